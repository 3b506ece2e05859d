"""The error histograms: each frame is counted, and everything can be read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from ongebd.lab.training.error_histograms import Errors, error_histograms


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
