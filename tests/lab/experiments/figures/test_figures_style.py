"""Files of figures: vectors, fonts with them, the same each time, whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from ongebd.errors import ConfigError, OngebdError
from ongebd.lab.experiments.figures.style import (
    KINDS,
    MARKERS,
    SERIES,
    STROKES,
    WIDTHS,
    Picture,
    inches,
    kind_of_file,
    printing,
)


@pytest.fixture
def picture() -> Picture:
    with printing():
        figure = Figure(figsize=(WIDTHS["column"], 1.5))
        axes = figure.add_subplot()
        axes.plot([0, 1], [1, 0])
        axes.set_title("ε, μ + τσ")
    return Picture(figure)


def test_a_pdf_has_its_fonts_with_it_and_none_that_publishers_refuse(picture: Picture) -> None:
    pdf = picture.encoded("pdf")
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    box = re.search(rb"/MediaBox \[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", pdf)
    assert box is not None
    assert (float(box[1]), float(box[2])) == (72 * WIDTHS["column"], 108.0)


def test_an_svg_has_letters_as_outlines(picture: Picture) -> None:
    svg = picture.encoded("svg").decode()
    assert "<path" in svg
    assert "<text" not in svg


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_figure_is_the_same_file(kind: str, picture: Picture) -> None:
    assert picture.encoded(kind) == picture.encoded(kind)


def test_the_ending_says_what_is_written(picture: Picture, tmp_path: Path) -> None:
    starts = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}
    for kind, start in starts.items():
        assert picture.save(tmp_path / f"figure.{kind.upper()}").read_bytes().startswith(start)
    with pytest.raises(ConfigError, match=r"figure\.jpg: .* give \.pdf, \.svg or \.png"):
        picture.save(tmp_path / "figure.jpg")
    with pytest.raises(ConfigError, match="there are pdf, svg, png"):
        picture.encoded("eps")


def test_a_file_that_cannot_be_written_leaves_nothing(picture: Picture, tmp_path: Path) -> None:
    (tmp_path / "taken.pdf").mkdir()
    with pytest.raises(OngebdError, match=r"cannot write .*taken\.pdf"):
        picture.save(tmp_path / "taken.pdf")
    assert [file.name for file in tmp_path.iterdir()] == ["taken.pdf"]


def test_each_line_has_a_stroke_and_a_mark_of_its_own() -> None:
    assert len(SERIES) == len(set(SERIES)) == len(set(MARKERS)) == len(set(map(str, STROKES))) == 7


def test_other_widths_are_refused() -> None:
    with pytest.raises(ConfigError, match="give column or page"):
        inches("poster")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="the ending says"):
        kind_of_file(Path("figure"))
