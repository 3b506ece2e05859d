"""The F1 curves: the table's values with their intervals, and the paper's printed ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure

pytest.importorskip("torch", reason="the extra `train` is not installed")

from ongebd.lab.evaluation.counts import Interval
from ongebd.lab.experiments.catalogue import EXPERIMENTS
from ongebd.lab.experiments.figures.f1_curves import f1_curves
from ongebd.lab.experiments.runner import RowResult, TableResult
from ongebd.lab.experiments.scores import DELAY_COLUMNS, SCORES, Limit, Measured

INTERVAL = Interval(0.2, 0.9)


@pytest.mark.parametrize("name", ["online-kinetics", "online-tapos"])
def test_every_row_has_its_own_line_and_all_letters_can_be_read(
    name: str, check_letters: Callable[[Figure], None], texts_of: Callable[[Figure], list[str]]
) -> None:
    experiment = EXPERIMENTS[name]
    rows = tuple(
        RowResult(
            row, {column: Measured(0.3 + 0.05 * n, INTERVAL) for column in SCORES}, {"relative 0.05": 0.6}
        )
        for n, row in enumerate(experiment.rows)
    )
    limits = (
        Limit("a blind clock, at its best", dict.fromkeys(SCORES, 0.3), ""),
        Limit("an annotator against the others", {c: 0.9 for c in SCORES if c not in DELAY_COLUMNS}, ""),
    )
    figure = f1_curves(TableResult(experiment, "a set", rows, limits))
    check_letters(figure)
    assert {"relative distance", "tolerance (s)", "any", "a blind clock", "ESTimator"} <= set(
        texts_of(figure)
    )
    relative, _, delay = figure.axes
    strokes = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in relative.lines}
    assert len(strokes) == len(relative.lines) == 9
    assert len(delay.lines) == 7  # neither the annotators nor printed values
    (printed,) = [line for line in relative.lines if "printed" in str(line.get_label())]
    values = np.asarray(printed.get_ydata(), np.float64)
    assert values[0] == 0.6
    assert np.isnan(values[1:]).all()
    many = f1_curves(TableResult(experiment, "another set", 3 * rows, limits, unlike=("another set",)))
    assert len(many.axes[0].lines) == 9  # seven of the rows, and no printed values beside them
    assert not any("printed" in text for text in texts_of(many))
