"""The error histograms: each frame is counted, and everything can be read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from ongebd.lab.experiments.figures.error_histograms import MOST_BARS, ModelErrors, error_histograms

errors = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 1.7, float("nan")]), st.booleans()),
    min_size=1,
    max_size=40,
)


@given(errors)
def test_every_known_frame_is_counted_once_and_pairs_are_compared(pairs: list[tuple[float, bool]]) -> None:
    values = np.array([value for value, _ in pairs])
    at_boundary = np.array([flag for _, flag in pairs])
    found = ModelErrors.of("model", values, at_boundary)
    known = np.isfinite(values)
    yes, no = values[known & at_boundary], values[known & ~at_boundary]
    if len(yes) and len(no):
        larger = [1.0 if a > b else 0.5 if a == b else 0.0 for a in yes for b in no]
        assert found.larger_at_boundaries() == pytest.approx(np.mean(larger))
    else:
        assert found.larger_at_boundaries() is None
    edges, boundary, elsewhere = found.bars(found.reach())
    assert len(edges) == len(boundary) + 1 == len(elsewhere) + 1
    assert (boundary.sum(), elsewhere.sum()) == (len(yes), len(no))
    assert np.searchsorted(edges, found.reach()) <= MOST_BARS + 1


def model(name: str, boundary: float, elsewhere: float, frames: int = 4000) -> ModelErrors:
    rng = np.random.default_rng(0)
    flags = rng.random(frames) < 0.05
    scale = np.where(flags, boundary, elsewhere)
    return ModelErrors.of(name, np.clip(rng.gamma(3.0, scale / 3), 0, 1), flags)


def test_all_letters_can_be_read_and_panels_share_one_scale(check_letters: Callable[[Figure], None]) -> None:
    models = [
        model("window-mean", 0.1, 0.02),
        model("a network that has given up and has a name that is far too long for a panel", 0.55, 0.45),
        model("many frames", 0.1, 0.02, 2_000_000),
        ModelErrors.of("nothing at boundaries", np.array([0.1, 0.2]), np.array([False, False])),
    ]
    figure = error_histograms(models)
    check_letters(figure)
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
