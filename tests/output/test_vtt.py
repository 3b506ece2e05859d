"""Chapters that any WebVTT reader takes."""

from __future__ import annotations

import io
import re

from hypothesis import given
from hypothesis import strategies as st

from ongebd.output import RunEnd, RunHeader
from ongebd.output.text import VttWriter
from ongebd.types import Boundary

STAMP = r"(\d{2,}):([0-5]\d):([0-5]\d)\.(\d{3})"


def chapters(
    times: list[float], duration: float, source: str = "clip.mp4"
) -> tuple[str, list[tuple[int, int]]]:
    out = io.StringIO()
    sink = VttWriter(out, RunHeader(source, "m", {}, 1, 1, "0"))
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
    assert edges[-1] == round(duration * 1000)
    assert all(start < end for start, end in found)


@given(st.lists(st.floats(-10, 1000)))
def test_times_that_step_back_leave_a_valid_file(times: list[float]):
    _, found = chapters(times, 1000.0)
    assert found[0][0] == 0
    assert found[-1][1] == 1_000_000
    assert found == sorted(found)


def test_a_boundary_that_starts_no_event_is_said():
    text, found = chapters([5.0, 3.0], 10.0)
    assert found == [(0, 5000), (5000, 10_000)]
    assert "NOTE The boundary at 00:00:03.000 starts no event" in text


def test_a_file_without_boundary_has_one_event():
    assert chapters([], 12.5)[1] == [(0, 12_500)]


def test_a_video_without_duration_gives_a_valid_file_without_event():
    assert chapters([], 0.0)[1] == []


def test_more_than_a_hundred_hours_are_written():
    assert "102:46:40.000" in chapters([], 370_000.0)[0]


def test_the_note_says_what_a_cue_starts_with_whatever_the_file_is_called():
    text, found = chapters([1.0], 2.0, source="a --> b\n\n00:00:00.000 --> 00:00:09.000\nEvil\r.mp4")
    assert "starts at the centre of an event boundary" in text
    assert found == [(0, 1000), (1000, 2000)]
