"""Files of figures: vectors, fonts with them, the same each time, whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from ongebd.errors import ConfigError, OngebdError
from ongebd.lab.evaluation.figure_style import INCHES, MARKERS, SERIES, STROKES, print_style, save


@pytest.fixture
def figure() -> Figure:
    with print_style():
        figure = Figure(figsize=(INCHES["column"], 1.5))
        axes = figure.add_subplot()
        axes.plot([0, 1], [1, 0])
        axes.set_title("ε, μ + τσ")
    return figure


def test_a_pdf_has_its_fonts_with_it_and_none_that_publishers_refuse(figure: Figure, tmp_path: Path) -> None:
    save(figure, tmp_path / "a.pdf")
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    box = re.search(rb"/MediaBox \[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", pdf)
    assert box is not None
    assert (float(box[1]), float(box[2])) == (72 * INCHES["column"], 108.0)


def test_an_svg_has_letters_as_outlines(figure: Figure, tmp_path: Path) -> None:
    save(figure, tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text()
    assert "<path" in svg
    assert "<text" not in svg


@pytest.mark.parametrize(("kind", "start"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_the_same_figure_is_the_same_file_of_the_kind_that_its_ending_names(
    kind: str, start: bytes, figure: Figure, tmp_path: Path
) -> None:
    for name in ("one", "other"):
        save(figure, tmp_path / f"{name}.{kind.upper()}")
    one, other = ((tmp_path / f"{name}.{kind.upper()}").read_bytes() for name in ("one", "other"))
    assert one == other
    assert one.startswith(start)


def test_a_file_that_cannot_be_written_leaves_nothing(figure: Figure, tmp_path: Path) -> None:
    (tmp_path / "taken.pdf").mkdir()
    with pytest.raises(OngebdError, match=r"taken\.pdf: .*; choose another --out"):
        save(figure, tmp_path / "taken.pdf")
    with pytest.raises(ConfigError, match=r"figure\.jpg: .* use \.pdf, \.svg or \.png"):
        save(figure, tmp_path / "figure.jpg")
    assert [file.name for file in tmp_path.iterdir()] == ["taken.pdf"]


def test_each_line_has_its_own_stroke_and_marker() -> None:
    assert len(SERIES) == len(set(SERIES)) == len(set(MARKERS)) == len(set(map(str, STROKES))) == 7
