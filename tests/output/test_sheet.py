"""The contact sheet: a picture for each segment, in rows of a minute; nothing from outside acts in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ongebd.output import RunEnd, RunHeader
from ongebd.output.sheet import html
from ongebd.output.whole import WholeWriter

Play = Callable[..., RunEnd]
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
