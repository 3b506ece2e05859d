"""JSON lines, CSV and plain lines: what is found is on disk at once, in the promised form."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.errors import LabelError, OngebdError
from ongebd.output import LineWriter, RunEnd, RunHeader, read_jsonl
from ongebd.output.jsonl import JsonlWriter
from ongebd.output.text import CsvWriter, SegmentWriter
from ongebd.types import Boundary, Epoch

SECRET = "hunter2"


def test_a_jsonl_file_is_a_header_boundaries_and_an_end(
    tmp_path: Path, header: RunHeader, some: list[Boundary]
):
    path = tmp_path / "a.jsonl"
    sink = JsonlWriter(path, header)
    sink.boundary(some[0])
    sink.epoch(Epoch(1, 5.0, "the clock stepped back"))
    sink.close(RunEnd(True, 10.0, 240, 1, ["3 frames did not decode"]))
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [record["type"] for record in records] == ["header", "boundary", "epoch", "end"]
    assert records[0]["settings"] == {"fps": 24.0, "tau": 3.0, "flag": None}
    assert records[1] == {
        "type": "boundary",
        "time": 3.25,
        "onset": 3.166667,
        "decided": 3.375,
        "score": 6.08,
    }
    assert records[2] == {"type": "epoch", "epoch": 1, "time": 5.0, "reason": "the clock stepped back"}
    assert records[3] == {
        "type": "end",
        "complete": True,
        "duration": 10.0,
        "frames": 240,
        "boundaries": 1,
        "warnings": ["3 frames did not decode"],
    }


def test_a_record_that_is_nested_too_deeply_is_refused(tmp_path: Path, header: RunHeader) -> None:
    path = tmp_path / "a.jsonl"
    JsonlWriter(path, header)
    path.write_text(path.read_text("utf-8") + "[" * 200_000 + "\n", "utf-8")
    with pytest.raises(LabelError, match=r"a\.jsonl: not a file that"):
        read_jsonl(path)


# A byte of a file name that is not UTF-8 comes as a lone surrogate.
any_character = st.characters(exclude_categories=["Cs"]) | st.characters(
    min_codepoint=0xDC80, max_codepoint=0xDCFF
)
seconds = st.floats(0, 1e6).map(lambda x: round(x, 6))


@given(
    found=st.lists(
        st.builds(Boundary, time=seconds, onset=seconds, decided=seconds, score=seconds), max_size=5
    ),
    source=st.text(any_character, max_size=20),
    warnings=st.lists(st.text(), max_size=2),
)
def test_what_jsonl_writes_it_reads(
    tmp_path_factory: pytest.TempPathFactory, found: list[Boundary], source: str, warnings: list[str]
):
    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl"
    header = RunHeader(source.replace("/", ""), "window-mean", {"tau": 1.5, "name": "ü"}, 1, 2, "0")
    end = RunEnd(False, 12.5, 300, len(found), [warning.replace("/", "") for warning in warnings])
    sink = JsonlWriter(path, header)
    for boundary in found:
        sink.boundary(boundary)
    sink.close(end)
    recording = read_jsonl(path)
    assert (recording.header, recording.boundaries, recording.end) == (header, found, end)
    assert not recording.cut
    assert not recording.complete


def test_a_file_name_that_is_no_text_survives(tmp_path: Path, some: list[Boundary]):
    name = os.fsdecode(b"caf\xe9.mp4")
    header = RunHeader(name, "m", {}, 1, 1, "0")
    for sink in (JsonlWriter(tmp_path / "a.jsonl", header), SegmentWriter("vtt", tmp_path / "a.vtt", header)):
        sink.boundary(some[0])
        sink.close(RunEnd(True, 5.0, 1, 1))
    assert read_jsonl(tmp_path / "a.jsonl").header.source == name
    (tmp_path / "a.vtt").read_text("utf-8")


def test_non_latin_names_are_written_as_they_are(tmp_path: Path):
    JsonlWriter(tmp_path / "a.jsonl", RunHeader("会议 событие.mp4", "m", {}, 1, 1, "0"))
    assert "会议 событие.mp4" in (tmp_path / "a.jsonl").read_text("utf-8")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_stream_that_is_not_utf8_gets_valid_json(encoding: str):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    JsonlWriter(stream, RunHeader("会é😀", "m", {}, 1, 1, "0"))
    assert json.loads(raw.getvalue().decode(encoding))["source"] == "会é😀"


def test_numbers_that_json_lacks_become_null(tmp_path: Path):
    JsonlWriter(tmp_path / "a.jsonl", RunHeader("a", "m", {"fps": float("inf")}, 1, 1, "0"))
    assert read_jsonl(tmp_path / "a.jsonl").header.settings == {"fps": None}


def test_after_every_record_the_files_are_valid(tmp_path: Path, header: RunHeader, some: list[Boundary]):
    jsonl, table, vtt = (tmp_path / f"a.{ending}" for ending in ("jsonl", "csv", "vtt"))
    sinks = [JsonlWriter(jsonl, header), CsvWriter(table, header), SegmentWriter("vtt", vtt, header)]
    for known in range(3):  # the writers are still open: all that a kill would leave
        recording = read_jsonl(jsonl)
        assert recording.boundaries == [rounded(boundary) for boundary in some[:known]]
        assert recording.end is None
        assert not recording.cut
        assert len(list(csv.DictReader(table.open(newline="")))) == known
        assert vtt.read_text().count("-->") == known
        assert vtt.read_text().endswith("\n\n")
        for sink in sinks:
            if known < 2:
                sink.boundary(some[known])
                sink.closed(replace(some[known], peak=7.0, kind="event"))
    assert [(b.peak, b.kind) for b in read_jsonl(jsonl).boundaries] == [(7.0, "event")] * 2


def rounded(boundary: Boundary) -> Boundary:
    return Boundary(*(round(x, 6) for x in (boundary.time, boundary.onset, boundary.decided, boundary.score)))


def test_a_last_line_cut_anywhere_is_left_out_and_said(
    tmp_path: Path, header: RunHeader, some: list[Boundary]
):
    path = tmp_path / "a.jsonl"
    sink = JsonlWriter(path, RunHeader("会.mp4", "m", {}, 1, 1, "0"))
    sink.boundary(some[0])
    start = len(path.read_bytes())
    sink.epoch(Epoch(1, 1.0, "步"))
    whole = path.read_bytes()
    for length in range(start, len(whole) + 1):
        path.write_bytes(whole[:length])
        recording = read_jsonl(path)
        assert len(recording.boundaries) == 1
        assert recording.cut is (start < length < len(whole))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        '{"type":"boundary","time":1,"onset":1,"decided":1,"score":1}\n',
        '{"type":"header"}\n',
        '{"type":"header","source":"a","model":"m","version":"0","width":1,"height":1,"settings":{}}\nrubbish\n{}\n',
        '{"type":"header","source":"a","model":"m","version":"0","width":1,"height":1,"settings":{}}\n'
        '{"type":"boundary","time":"soon","onset":1,"decided":1,"score":1}\n',
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, text: str):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(LabelError, match=r"^[^\n]*a\.jsonl[^\n]*$"):
        read_jsonl(path)


def test_records_of_a_later_version_are_kept(tmp_path: Path, header: RunHeader):
    path = tmp_path / "a.jsonl"
    JsonlWriter(path, header)
    with path.open("a") as file:
        file.write('{"type":"stall","time":3.0}\n')
    assert read_jsonl(path).others == [{"type": "stall", "time": 3.0}]


def test_a_table_has_a_row_for_each_boundary(tmp_path: Path, header: RunHeader, some: list[Boundary]):
    path = tmp_path / "a.csv"
    sink = CsvWriter(path, header)
    for boundary in some:
        sink.boundary(boundary)
    sink.close(RunEnd(True, 10.0, 240, 2))
    assert (
        path.read_bytes()
        == b"time,onset,decided,score,peak,kind\n3.25,3.166667,3.375,6.08,,\n7.5,7.5,7.541667,4.0,,\n"
    )


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_table_has_one_row_for_each_of_two_boundaries_that_are_open_together(
    tmp_path: Path, header: RunHeader, some: list[Boundary], order: tuple[int, int]
):
    path = tmp_path / "a.csv"
    sink = CsvWriter(path, header)
    for boundary in some:
        sink.boundary(boundary)
    for place in order:
        sink.closed(replace(some[place], peak=7.0, kind="cut"))
    sink.close(RunEnd(True, 10.0, 240, 2))
    rows = list(csv.DictReader(path.open(newline="")))
    assert sorted(row["time"] for row in rows) == ["3.25", "7.5"]
    assert [(row["peak"], row["kind"]) for row in rows] == [("7.0", "cut")] * 2


def test_lines_for_people_go_to_a_stream_that_stays_open(some: list[Boundary]):
    out = io.StringIO()
    sink = LineWriter(out, prefix="a.mp4  ")
    sink.boundary(some[0])
    sink.epoch(Epoch(1, 5.0, f"reconnected to rtsp://me:{SECRET}@cam\nagain"))
    sink.close(RunEnd(True, 10.0, 240, 1))
    assert out.getvalue() == (
        "a.mp4  0:00:03.250  onset 0:00:03.166  decided 0:00:03.375  score 6.1\n"
        "a.mp4  # 0:00:05.000  reconnected to rtsp://***@cam\\nagain\n"
    )


def test_credentials_appear_in_no_file(tmp_path: Path, some: list[Boundary]):
    url = f"rtsp://admin:{SECRET}@cam/live?token={SECRET}"
    header = RunHeader(url, "m", {"input": url}, 1, 1, "0")
    for sink in (JsonlWriter(tmp_path / "a.jsonl", header), SegmentWriter("vtt", tmp_path / "a.vtt", header)):
        sink.epoch(Epoch(1, 1.0, f"lost {url}"))
        sink.boundary(some[0])
        sink.close(RunEnd(True, 5.0, 1, 1, [f"{url} stalled"]))
    for path in tmp_path.iterdir():
        assert SECRET not in path.read_text()
        assert "cam/live" in path.read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_line(header: RunHeader):
    with pytest.raises(OngebdError, match=r"^can't write /dev/full: No space left on device[^\n]*$"):
        JsonlWriter("/dev/full", header)


def test_a_reader_that_went_away_stays_a_broken_pipe(header: RunHeader):
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w")
    with pytest.raises(BrokenPipeError):
        JsonlWriter(stream, header)
    with pytest.raises(BrokenPipeError):
        stream.close()


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are a Unix thing")
def test_a_record_that_did_not_fit_is_taken_back(tmp_path: Path):
    path = tmp_path / "a.csv"
    code = f"""
import resource
from ongebd.errors import OngebdError
from ongebd.output.text import CsvWriter
from ongebd.types import Boundary
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
sink = CsvWriter({str(path)!r}, None)
try:
    while True:
        sink.boundary(Boundary(1.234567, 1.0, 2.0, 3.5))
except OngebdError as problem:
    print(problem)
"""
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.startswith("can't write")
    assert path.read_text() == "time,onset,decided,score,peak,kind\n" + 2 * "1.234567,1.0,2.0,3.5,,\n"


STAMP = r"(\d{2,}):([0-5]\d):([0-5]\d)\.(\d{3})"


def chapters(
    times: list[float], duration: float, source: str = "clip.mp4"
) -> tuple[str, list[tuple[int, int]]]:
    out = io.StringIO()
    sink = SegmentWriter("vtt", out, RunHeader(source, "m", {}, 1, 1, "0"))
    for time in times:
        sink.boundary(Boundary(time, time, time, 1.0))
    sink.close(RunEnd(True, duration, 1, len(times)))
    return out.getvalue(), cues(out.getvalue())


def cues(text: str) -> list[tuple[int, int]]:
    """Read the cues as strictly as the standard has it; milliseconds."""
    blocks = text.removesuffix("\n\n").split("\n\n")
    assert blocks[0] == "WEBVTT"
    found = []
    for block in blocks[1:]:
        if block.startswith("NOTE"):
            assert "-->" not in block
            continue
        timing, name = block.split("\n")
        match = re.fullmatch(f"{STAMP} --> {STAMP}", timing)
        assert match
        h, m, s, f, *rest = map(int, match.groups())
        start = ((h * 60 + m) * 60 + s) * 1000 + f
        h, m, s, f = rest
        found.append((start, ((h * 60 + m) * 60 + s) * 1000 + f))
        assert name == f"Event {len(found)}"
    return found


@given(st.floats(0, 5e5), st.lists(st.floats(0, 1)))
def test_cues_tile_the_video_without_gap_or_overlap(duration: float, parts: list[float]):
    _, found = chapters(sorted(part * duration for part in parts), duration)
    edges = [0, *(end for _, end in found)]
    assert [start for start, _ in found] == edges[:-1]
    assert 0 <= duration * 1000 - edges[-1] + 1e-6 < 1 + 2e-6
    assert all(start < end for start, end in found)


@given(st.lists(st.floats(-10, 1000)))
def test_times_that_step_back_leave_a_valid_file(times: list[float]):
    _, found = chapters(times, 1000.0)
    assert found[0][0] == 0
    assert found[-1][1] == 1_000_000
    assert found == sorted(found)


@pytest.mark.parametrize(
    "rate", [Fraction(30), Fraction(30_000, 1001), 24, 25, 50, Fraction(60_000, 1001), 144]
)
def test_a_seek_to_a_written_time_finds_the_frame_itself(rate: Fraction | int) -> None:
    """As ffmpeg -ss and most players have it: the first frame that is not before the given time."""
    times = [Fraction(n) / rate for n in range(1, 2000)]
    text = io.StringIO()
    lines = LineWriter(text)
    for time in times:
        lines.boundary(Boundary(*[float(time)] * 3, 1.0))
    printed = [Fraction(line.split()[0].split(":")[2]) for line in text.getvalue().splitlines()]
    minutes = [int(line.split(":")[1]) for line in text.getvalue().splitlines()]
    starts = [Fraction(start, 1000) for start, _ in chapters([float(time) for time in times], 100.0)[1][1:]]
    for written in ([60 * m + s for m, s in zip(minutes, printed, strict=True)], starts):
        assert [ceil(time * rate) for time in written[:1900]] == list(range(1, 1901))


def test_a_boundary_that_starts_no_event_is_said():
    text, found = chapters([5.0, 3.0], 10.0)
    assert found == [(0, 5000), (5000, 10_000)]
    assert "NOTE The boundary at 00:00:03.000 starts no event" in text


def test_without_a_boundary_there_is_one_event_or_none_of_no_duration():
    assert [chapters([], duration)[1] for duration in (12.5, 0.0)] == [[(0, 12_500)], []]
    assert "102:46:40.000" in chapters([], 370_000.0)[0]


def test_the_note_says_what_a_cue_starts_with_whatever_the_file_is_called():
    text, found = chapters([1.0], 2.0, source="a --> b\n\n00:00:00.000 --> 00:00:09.000\nEvil\r.mp4")
    assert "starts at the centre of an event boundary" in text
    assert found == [(0, 1000), (1000, 2000)]
