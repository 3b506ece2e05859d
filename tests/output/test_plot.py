"""The picture of a run and its contact sheet, whatever the run was, in memory that does not grow."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.detector.trace import Album, Trace, pooled, thumbnail
from ongebd.output import RunEnd, RunHeader
from ongebd.output.figure import draw, png
from ongebd.output.jsonl import Recording
from ongebd.output.sheet import html
from ongebd.output.whole import Scene, WholeWriter
from ongebd.types import Boundary, Decision, Epoch

Play = Callable[..., RunEnd]


picture = partial(WholeWriter, png, pictures=True)


def size(path: Path) -> tuple[int, int]:
    with av.open(str(path)) as file:
        frame = next(file.decode(video=0))
        return frame.width, frame.height


@pytest.mark.parametrize(
    ("frames", "positive"),
    [(0, []), (1, []), (500, []), (500, [100]), (500, [0, 300, 302, 498]), (90_000, range(500, 90_000, 700))],
)
def test_any_run_gives_a_picture_for_a_slide(
    tmp_path: Path, header: RunHeader, play: Play, frames: int, positive: list[int]
):
    path = tmp_path / "a.png"
    play(picture(path, header), frames, positive)
    rows = 1 if frames <= 60 * 24 else 8
    assert size(path) == (1600, 900 if rows == 1 else 110 + 55 + 360 * rows)
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "name", ["$5_x^2.mp4", r"a$\frac{.mp4", "会议 событие 🎬.mp4", "x" * 250, "a\nb\udcff.mp4", ""]
)
def test_no_file_name_breaks_the_picture(tmp_path: Path, header: RunHeader, play: Play, name: str):
    path = tmp_path / "a.png"
    play(picture(path, replace(header, source=name)), 60, [30])
    assert size(path) == (1600, 900)


@pytest.mark.parametrize(
    ("seconds", "rows", "length"), [(60, 1, 60), (61, 2, 60), (300, 5, 60), (900, 8, 120)]
)
def test_a_long_run_has_rows_of_minutes(header: RunHeader, seconds: int, rows: int, length: int):
    trace = Trace()
    trace.add(Decision(0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.5, False))
    figure = draw(Scene(Recording(header, end=RunEnd(True, seconds, 1, 0)), trace.points()))
    limits = [axes.get_xlim() for axes in figure.axes]
    assert limits == [(number * length, (number + 1) * length) for number in range(rows)]


def test_a_break_in_the_source_is_drawn(tmp_path: Path, header: RunHeader, play: Play):
    sink = picture(tmp_path / "a.png", header)
    sink.epoch(Epoch(1, 1.0, "another size"))
    play(sink, 60)
    assert size(tmp_path / "a.png") == (1600, 900)


def test_the_picture_of_an_earlier_run_does_not_outlive_the_start(tmp_path: Path, header: RunHeader):
    path = tmp_path / "a.png"
    path.write_text("old")
    picture(path, header)
    assert list(tmp_path.iterdir()) == []


def test_matplotlib_is_imported_only_to_draw():
    code = "import ongebd.output, sys; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [((1080, 1920), (90, 160)), ((1920, 1080), (120, 68)), ((16, 16), (16, 16)), ((1, 5000), (1, 160))],
)
def test_thumbnails_fit_their_box(shape: tuple[int, int], wanted: tuple[int, int]):
    small = thumbnail(np.full((*shape, 3), 200, np.uint8))
    assert small.shape == (*wanted, 3)
    assert abs(int(small.mean()) - 200) <= 2


@pytest.mark.parametrize(("size", "wanted"), [((1280, 720), (90, 160)), ((720, 1280), (120, 68))])
def test_a_squashed_picture_gets_its_shape_back(size: tuple[int, int], wanted: tuple[int, int]):
    assert thumbnail(np.zeros((224, 224, 3), np.uint8), size).shape == (*wanted, 3)
    assert thumbnail(np.zeros((16, 16, 3), np.uint8), (32, 16)).shape == (16, 32, 3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("head", [None, "obd", "hysteresis", "threshold"])
def test_every_head_is_drawn(tmp_path: Path, header: RunHeader, play: Play, head: str | None):
    settings = {
        **header.settings,
        "head": head,
        "rearm": 0.75,
        "max_run": 0.0 if head == "hysteresis" else 1.0,
    }
    play(picture(tmp_path / "a.png", replace(header, settings=settings)), 60, [30])
    assert size(tmp_path / "a.png") == (1600, 900)


def test_a_thumbnail_does_not_hold_on_to_the_frame():
    rgb = np.zeros((16, 16, 3), np.uint8)
    assert thumbnail(rgb).base is None


@given(st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), max_size=300))
def test_a_trace_stays_small_and_keeps_every_peak(frames: list[tuple[float, bool]]):
    trace = Trace(limit=16, block=4)
    for i, (error, positive) in enumerate(frames):
        trace.add(Decision(i, float(i), error, 0.0, 0.0, 0.0, 0.5, positive))
        assert len(trace.points()) <= 16 + 4
    points = trace.points()
    if frames:
        assert points["error"].max() == max(error for error, _ in frames)
        assert pooled(points, 5)["error"].max() == points["error"].max()
        assert points["positive"].any() == any(positive for _, positive in frames)
        assert (np.diff(points["time"]) > 0).all()
        for time, error in zip(points["time"], points["error"], strict=True):
            assert frames[int(time)][0] == error


def test_an_album_keeps_the_strongest():
    album = Album(size=3)
    found = [Boundary(i + 0.5, i, i + 1.0, score) for i, score in enumerate([5.0, 1.0, 9.0, 3.0, 7.0])]
    for boundary in found:
        album.onset(boundary.onset, np.zeros((1, 1, 3), np.uint8))
        album.boundary(boundary)
    assert [snapshot.boundary.score for snapshot in album.snapshots(found)] == [5.0, 9.0, 7.0]
    assert [snapshot.boundary.score for snapshot in album.snapshots(found[:3])] == [5.0, 9.0]


def test_each_run_of_errors_above_the_threshold_is_shaded(header: RunHeader):
    trace = Trace()
    positive = {10, 11, 12, 20, 30}
    for i in range(40):
        trace.add(Decision(i, i / 24, 0.4, 0.03, 0.01, 3.0, 0.06, i in positive, i >= 8))
    axes = draw(Scene(Recording(header, end=RunEnd(True, 40 / 24, 40, 0)), trace.points())).axes[0]
    shades = {str(bars.get_label()): bars.get_paths() for bars in axes.collections}
    assert {label: len(paths) for label, paths in shades.items()} == {"above threshold": 3, "not ready": 1}
    start, end = shades["above threshold"][1].get_extents().intervalx
    assert start < 20 / 24 < end
    texts = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert set(shades) < set(texts)


sheet = partial(WholeWriter, html, pictures=True)


def test_each_segment_is_a_button_with_a_picture_in_the_row_of_its_minute(
    tmp_path: Path, header: RunHeader, play: Play
):
    path = tmp_path / "a.html"
    play(sheet(path, header), 24 * 130, [240, 1680, 1700])
    rows = path.read_text("utf-8").split("<section ")[1:]
    assert [re.findall(r'<button data-start="([^"]*)"><img ', row) for row in rows] == [
        ["0.000", "10.000"],
        ["70.000", "70.833"],
        [],
    ]
    assert [row.count("<svg") for row in rows] == [1, 1, 1]


@pytest.mark.parametrize("name", ['<script>alert(1)</script>{}".mp4', "\udcff%d.mp4", ""])
def test_a_name_does_nothing_in_the_page(tmp_path: Path, header: RunHeader, play: Play, name: str):
    path = tmp_path / "a.html"
    play(sheet(path, replace(header, source=name)), 60, [30])
    text = path.read_text("utf-8")
    assert text.count("<script>") == 1
    assert "alert(1)<" not in text
    assert re.findall(r'src="(?!data:image/jpeg;base64,)([a-z]*:)', text) == ["file:"]


def test_a_run_without_frames_is_a_page_too(tmp_path: Path, header: RunHeader, play: Play):
    play(sheet(tmp_path / "a.html", header), 0)
    assert "0 boundaries in 0.00 s" in (tmp_path / "a.html").read_text()
