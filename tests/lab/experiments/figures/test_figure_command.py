"""From a file and its labels to a figure, and what is refused before any work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from ongebd.cli import main
from ongebd.data import read_labels
from ongebd.detector import detect, load
from ongebd.errors import ConfigError, LabelError, OngebdError, SourceError
from ongebd.lab.evaluation.figure_style import save
from ongebd.lab.experiments.figures import draw_video
from ongebd.lab.experiments.figures import video as module
from ongebd.lab.experiments.figures.qualitative import Scene, qualitative
from ongebd.lab.experiments.figures.tracing import frames_at, trace
from ongebd.lab.experiments.figures.video import labels_of


@pytest.fixture(scope="module")
def clip(make_video: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seconds, a new colour in each."""
    colours = [(200, 30, 30), (30, 200, 30), (30, 30, 200)]
    pictures = [np.full((64, 96, 3), colours[number // 25], np.uint8) for number in range(75)]
    return make_video(tmp_path_factory.mktemp("clip") / "clip.mp4", pictures, rate=25)


@pytest.fixture(scope="module")
def labels(clip: Path) -> Path:
    file = clip.with_name("labels.json")
    file.write_text(json.dumps({"clip": {"duration": 3.0, "boundaries": [[1.0, 2.0], [1.1]]}}))
    return file


def test_a_video_becomes_a_figure_in_each_file(clip: Path, labels: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"figure.{kind}" for kind in ("pdf", "svg", "png")]
    assert draw_video([clip], labels, "window-mean", "clock:1", files) == files
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert draw_video([str(clip)], str(labels), "clock:1", None, [tmp_path / "one.pdf"], start=0.5, end=2)
    assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")


def test_frames_stand_over_the_moments_that_they_show(clip: Path) -> None:
    shown = [picture.mean(axis=(0, 1)).argmax() for picture in frames_at(clip, [0.0, 0.9, 1.1, 2.5, 9.0])]
    assert shown == [0, 0, 1, 2, 2]


def test_the_trace_is_that_of_detect(clip: Path) -> None:
    model = load("window-mean")
    found = trace(clip, model)
    detection = detect(clip, model)
    assert (found.name, found.unit) == ("window-mean", "error ε")
    assert found.boundaries.tolist() == [boundary.time for boundary in detection.boundaries]
    assert found.score.tolist() == pytest.approx([each.error for each in detection.decisions], nan_ok=True)
    assert np.isnan(found.threshold[0])
    assert trace(clip, load("clock:1"), "a clock").unit == "score"


def test_mistakes_are_reported_before_a_frame_is_decoded(
    clip: Path, labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the video was read")

    monkeypatch.setattr(module, "trace", never)
    good: dict[str, Any] = {"videos": [clip], "labels": labels, "method": "window-mean", "baseline": None}
    good["out"] = [tmp_path / "a.pdf"]
    mistakes: list[tuple[dict[str, Any], type[OngebdError], str]] = [
        ({"out": [tmp_path / "a.gif"]}, ConfigError, r"a\.gif: unknown kind"),
        ({"out": [tmp_path / "no" / "a.pdf"]}, ConfigError, "doesn't exist; make it first"),
        ({"videos": [clip, "-"]}, SourceError, "use a file"),
        ({"videos": ["rtsp://me:secret@camera/1"]}, SourceError, r"rtsp://\*\*\*@camera/1: .* use a file"),
        ({"videos": [tmp_path / "other.mp4"]}, LabelError, "none of its 1 videos is 'other'; name it"),
        ({"videos": [clip, clip], "video_id": "clip"}, ConfigError, "--id names the labels of one video"),
        ({"video_id": "other"}, LabelError, "no video 'other'; check"),
        ({"labels": tmp_path / "none.json"}, LabelError, "none.json"),
        ({"method": "nothing"}, ConfigError, "unknown model 'nothing'"),
        ({"tolerance": -1.0}, ConfigError, "must be above 0"),
        ({"start": 3.0}, ConfigError, "nothing to show"),
    ]
    for change, kind, words in mistakes:
        with pytest.raises(kind, match=words):
            draw_video(**(good | change))
    assert not list(tmp_path.iterdir())


def test_the_command_writes_what_it_is_asked_for_and_says_so(
    clip: Path, labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / name) for name in ("a.pdf", "a.svg")]
    command = ["experiment", "figure", str(clip), "--labels", str(labels), "--method", "clock:1"]
    assert main([*command, "--baseline", "clock", "--out", *files, "--tolerance", "0.2"]) == 0
    assert capsys.readouterr().err.splitlines() == [f"wrote {file}" for file in files]
    assert main(["experiment", "figure", *command[3:], "--out", files[0]]) == 2
    assert "no video: name one or more files" in capsys.readouterr().err
    assert main([*command[:3], *command[2:], "--out", files[0]]) == 0, "two scenes"
    assert main([*command, "--out", str(tmp_path / "b.gif")]) == 2
    assert "b.gif: unknown kind of figure" in capsys.readouterr().err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.pdf", "a.svg"]


def test_the_video_is_not_written_over(clip: Path, labels: Path, tmp_path: Path) -> None:
    disguised = tmp_path / "clip.png"
    disguised.write_bytes(clip.read_bytes())
    with pytest.raises(ConfigError, match="would be overwritten"):
        draw_video([disguised], labels, "clock", None, [disguised])
    assert disguised.read_bytes() == clip.read_bytes()


def test_a_video_is_found_in_the_labels_as_ongebd_evaluate_finds_it(labels: Path) -> None:
    known = read_labels(labels)
    assert labels_of("a/clip.mp4", known).id == "clip"
    assert labels_of("a/whatever.mp4", known, video_id="clip").id == "clip"


def test_a_real_video_with_five_annotators(
    shared: Path, check_letters: Callable[[Figure], None], tmp_path: Path
) -> None:
    clip = shared / "clips/other/kinetics400_tutorial__arm_wrestling__C4lCVBZ3ux0_000028_000038.mp4"
    marks = labels_of(clip, read_labels(shared / "labels/k400_mr345_minval_min_change_duration0.3.pkl"))
    assert len(marks.boundaries) == 5
    traces = [trace(clip, load(name)) for name in ("window-mean", "clock")]
    figure = qualitative([Scene(clip, marks, traces)], width="column")
    check_letters(figure)
    save(figure, tmp_path / "arm.pdf")
    assert b"/FontFile2" in (tmp_path / "arm.pdf").read_bytes()
