"""The F1 curves: the table's values, the paper's printed ones, and a legend that fits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

from ongebd.errors import ConfigError
from ongebd.lab.experiments.figures.f1_curves import PANELS, Band, F1Line, f1_curves, legend_columns
from ongebd.lab.paper import PRINTED


def method(name: str, start: float = 0.3) -> F1Line:
    bands = {
        against: Band(np.linspace(start, 0.8, len(ticks)), np.full(len(ticks), 0.2), np.full(len(ticks), 0.9))
        for against, (_, ticks) in PANELS.items()
    }
    return F1Line(name, bands)


def printed(row: str) -> F1Line:
    values = PRINTED["offline-tapos"].rows[row][:10]
    return F1Line(f"{row} (printed)", {"relative": Band(np.array(values, np.float64))}, "printed")


@pytest.mark.parametrize("longest", ["short", "a method with a name that is much too long for a legend"])
def test_all_letters_can_be_read(
    longest: str, check_letters: Callable[[Figure], None], texts_of: Callable[[Figure], list[str]]
) -> None:
    lines = [method(f"{number} {longest}") for number in range(6)] + [method("_hidden_")]
    figure = f1_curves([*lines, printed("EfficientGEBD"), F1Line("clock", method("").bands, "floor")])
    check_letters(figure)
    texts = texts_of(figure)
    assert {"relative distance", "tolerance (s)"} <= set(texts)
    assert sum("EfficientGEBD (printed)" in text for text in texts) == 1
    assert sum("_hidden_" in text for text in texts) == 1


def test_only_panels_with_a_line_are_drawn_and_a_dash_is_a_gap() -> None:
    (axes,) = f1_curves([printed("EfficientGEBD")]).axes
    (line,) = axes.lines
    assert np.isnan(np.asarray(line.get_ydata(), np.float64)).sum() == 6


def test_a_legend_of_long_names_has_few_columns() -> None:
    assert legend_columns(["ours"] * 9) == 4
    assert legend_columns(["x" * 100] * 9) == 1
    assert legend_columns(["ours"]) == 1


def test_what_cannot_be_told_apart_or_has_no_line_is_refused() -> None:
    with pytest.raises(ConfigError, match="can't draw 8 methods"):
        f1_curves([method(str(number)) for number in range(8)])
    with pytest.raises(ConfigError, match="no F1 to draw"):
        f1_curves([F1Line("nothing")])
