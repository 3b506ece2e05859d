"""The error histograms: right counts, right shares, readable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from ongebd.errors import ConfigError
from ongebd.lab.experiments.figures import ErrorHistogram, error_histograms, errors_of
from ongebd.lab.experiments.figures.error_histograms import BARS, _merged, _reach
from ongebd.lab.experiments.figures.style import WIDTHS, Width

errors = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 1.7, float("nan")]), st.booleans()),
    min_size=1,
    max_size=40,
)


@given(errors)
def test_every_known_frame_is_counted_once_and_pairs_are_compared(pairs: list[tuple[float, bool]]) -> None:
    values = np.array([value for value, _ in pairs])
    at_boundary = np.array([flag for _, flag in pairs])
    found = errors_of("model", values, at_boundary)
    known = np.isfinite(values)
    yes, no = values[known & at_boundary], values[known & ~at_boundary]
    assert found.boundary.sum() == len(yes)
    assert found.elsewhere.sum() == len(no)
    if len(yes) and len(no):
        larger = [1.0 if a > b else 0.5 if a == b else 0.0 for a in yes for b in no]
        assert found.above == pytest.approx(np.mean(larger))
        assert found.mean_boundary == pytest.approx(yes.mean())
    else:
        assert found.above is None
    edges, boundary, elsewhere = _merged(found, _reach(found))
    assert len(edges) == len(boundary) + 1 == len(elsewhere) + 1
    assert (boundary.sum(), elsewhere.sum()) == (len(yes), len(no))
    assert np.searchsorted(edges, _reach(found)) <= BARS + 1


def model(name: str, boundary: float, elsewhere: float, frames: int = 4000) -> ErrorHistogram:
    rng = np.random.default_rng(0)
    flags = rng.random(frames) < 0.05
    scale = np.where(flags, boundary, elsewhere)
    return errors_of(name, np.clip(rng.gamma(3.0, scale / 3), 0, 1), flags)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("one_scale", [True, False])
def test_all_letters_can_be_read(
    width: Width, one_scale: bool, check_letters: Callable[[Figure], None]
) -> None:
    many = np.array([3_000_000.0, 17_000_000.0])
    models = [
        model("window-mean", 0.1, 0.02),
        model("a network that has given up and has a name that is far too long for a panel", 0.55, 0.45),
        ErrorHistogram("of a training report", np.array([0.0, 0.5, 1.0]), many, many, 0.7, 0.6),
        errors_of("nothing at boundaries", np.array([0.1, 0.2]), np.array([False, False])),
    ]
    check_letters(error_histograms(models, width=width, one_scale=one_scale).figure)


def test_panels_compare_on_one_scale_unless_told_otherwise() -> None:
    models = [model("small", 0.1, 0.02), model("large", 0.6, 0.3)]
    one = [axes.get_xlim() for axes in error_histograms(models).figure.axes]
    own = [axes.get_xlim() for axes in error_histograms(models, one_scale=False).figure.axes]
    assert one[0] == one[1] == own[1]
    assert own[0][1] < own[1][1] / 2


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a model"):
        error_histograms([])
    with pytest.raises(ConfigError, match=r"model: errors of shape \(2,\) for frames of shape \(3,\)"):
        errors_of("model", np.zeros(2), np.zeros(3, np.bool_))
    with pytest.raises(ConfigError, match="model: 2 bins, but 3 and 2 counts"):
        ErrorHistogram("model", np.array([0.0, 0.5, 1.0]), np.zeros(3), np.zeros(2), 0.0, 0.0)
    with pytest.raises(ConfigError, match="must ascend"):
        ErrorHistogram("model", np.array([0.0, 0.0]), np.zeros(1), np.zeros(1), 0.0, 0.0)
