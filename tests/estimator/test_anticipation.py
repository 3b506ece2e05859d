"""The error of an anticipation, and the anticipators that need no training."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ongebd.baselines.naive import Persistence, WindowMean
from ongebd.estimator import Anticipator, cosine_error

vectors = arrays.arrays(np.float32, 6, elements=st.floats(-8, 8, width=32))
windows = arrays.arrays(np.float32, (5, 6), elements=st.floats(-8, 8, width=32))


@given(vectors, vectors)
def test_the_error_lies_between_0_and_1_and_does_not_depend_on_order(f, g):
    error = cosine_error(f, g)
    assert 0 <= error <= 1
    assert error == pytest.approx(cosine_error(g, f), abs=1e-12)


@given(vectors, st.floats(0.01, 100))
def test_the_error_knows_directions_only(f, scale):
    assume(np.abs(f).max() > 1e-3)
    assert cosine_error(f, np.float32(scale) * f) == pytest.approx(0, abs=1e-6)
    assert cosine_error(f, -f) == 1


@pytest.mark.parametrize("size", [1e-22, 1e-10, 1.0, 1e10, 1e30])
def test_tiny_and_huge_features_have_an_exact_error(size):
    east, between = np.float32([size, 0]), np.float32([size, size])
    assert cosine_error(east, between) == pytest.approx((1 - np.sqrt(0.5)) / 2, abs=1e-6)


def test_an_error_of_a_thousandth_of_a_degree_is_not_lost():
    turned = np.float32([np.cos(2e-3), np.sin(2e-3)])
    assert cosine_error(np.float32([1, 0]), turned) == pytest.approx(1e-6, rel=1e-3)


def test_an_anticipation_of_norm_zero_has_an_error_of_a_half():
    assert cosine_error(np.float32([1, 2]), np.float32([0, 0])) == 0.5


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_anticipation_that_is_not_finite_has_no_error(bad):
    assert np.isnan(cosine_error(np.float32([1, 2]), np.float32([1, bad])))


@pytest.mark.parametrize("anticipator", [Persistence(), WindowMean(4)])
def test_untrained_anticipators_follow_the_protocol(anticipator):
    assert isinstance(anticipator, Anticipator)
    for n in range(1, anticipator.window + 1):
        past = np.ones((n, 6), np.float32)
        anticipated = anticipator.anticipate(past)
        assert (anticipated.shape, anticipated.dtype) == ((6,), np.float32)
        assert np.array_equal(past, np.ones((n, 6))), "the past is not theirs to change"


@given(windows)
def test_persistence_is_the_last_feature(past):
    assert np.array_equal(Persistence().anticipate(past), past[-1])


@given(windows, st.lists(st.floats(0.1, 10), min_size=5, max_size=5))
def test_window_mean_is_the_mean_direction_whatever_the_lengths(past, lengths):
    assume((np.abs(past).max(axis=1) > 1e-3).all())
    stretched = past * np.float32(lengths)[:, None]
    assert WindowMean(5).anticipate(stretched) == pytest.approx(WindowMean(5).anticipate(past), abs=1e-5)


@pytest.mark.parametrize("size", [1e-30, 1e-5, 1e5, 1e30])
def test_window_mean_of_tiny_and_huge_features_is_exact(size):
    past = np.float32([[size, 0], [0, size]])
    assert WindowMean(2).anticipate(past).tolist() == [0.5, 0.5]
