"""Files of figures, the same each time, whole or not at all; error histograms, all of which can be read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from ongebd.errors import ConfigError, OngebdError
from ongebd.lab.evaluation.figure_style import INCHES, MARKERS, SERIES, STROKES, print_style, save
from ongebd.lab.training.error_histograms import Errors, error_histograms


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


def model(boundary: float, elsewhere: float, frames: int = 4000) -> Errors:
    rng = np.random.default_rng(0)
    flags = rng.random(frames) < 0.05
    scale = np.where(flags, boundary, elsewhere)
    return np.clip(rng.gamma(3.0, scale / 3), 0, 1), flags


def test_all_letters_can_be_read_and_panels_share_one_scale(check_letters: Callable[[Figure], None]) -> None:
    models = {
        "window-mean": model(0.1, 0.02),
        "a network that has given up": model(0.55, 0.45),
        "many frames": model(0.1, 0.02, 2_000_000),
        "nothing at boundaries": (np.array([0.1, 0.2]), np.array([False, False])),
    }
    figure = error_histograms(models)
    check_letters(figure)
    assert len({axes.get_xlim() for axes in figure.axes}) == 1


def test_shares_are_of_all_known_frames_of_a_kind(texts_of: Callable[[Figure], list[str]]) -> None:
    errors = np.array([np.nan, *np.linspace(0, 0.9, 199), 50.0])  # one frame in 200 is beyond the axis
    figure = error_histograms({"model": (errors, np.zeros(201, np.bool_))})
    elsewhere, boundary = [
        patch.get_data().values for patch in figure.axes[0].patches if isinstance(patch, StepPatch)
    ]
    assert elsewhere.sum() == pytest.approx(198 / 200, abs=0.01)
    assert boundary.sum() == 0
    assert any("elsewhere: 200 frames" in text and "boundary: none" in text for text in texts_of(figure))
