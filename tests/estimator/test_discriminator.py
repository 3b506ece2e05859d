"""The discriminator: the paper's rule, and each choice that the paper leaves open."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ongebd.errors import ConfigError, FeatureError
from ongebd.estimator import BoundaryDiscriminator

errors = st.floats(0, 1, allow_subnormal=False)
streams = st.lists(errors, min_size=1, max_size=80)


def state(obd):
    return (obd.is_boundary, obd.ready, obd.z, obd.mean, obd.std, obd.threshold, list(obd._queue))


def verdicts(obd, stream):
    return [obd.update(error).is_boundary for error in stream]


def test_the_mean_and_deviation_are_those_of_the_errors_before():
    obd = BoundaryDiscriminator(tau=1.5, delta=4)
    for error in (0.9, 0.1, 0.2, 0.3, 0.4):  # the first has left the queue when the last is tested
        obd.update(error)
    obd.update(0.5)
    before = [0.1, 0.2, 0.3, 0.4]
    assert (obd.mean, obd.std) == (pytest.approx(np.mean(before)), pytest.approx(np.std(before)))
    assert obd.z == pytest.approx((0.5 - np.mean(before)) / np.std(before))
    assert obd.threshold == pytest.approx(np.mean(before) + 1.5 * np.std(before))


def test_more_than_tau_is_meant_strictly():
    # The queue 0, 2 has mean 1 and deviation 1, both exact: an error of 3 is two deviations above.
    assert not BoundaryDiscriminator(2.0, 2).update(0).update(2).update(3).is_boundary
    assert BoundaryDiscriminator(2.0, 2).update(0).update(2).update(np.nextafter(3, 4)).is_boundary


@pytest.mark.parametrize(("warmup", "first"), [(None, 6), (6, 6), (3, 3), (2, 2)])
def test_nothing_is_positive_before_so_many_errors_are_known(warmup, first):
    for position in range(10):
        obd = BoundaryDiscriminator(3.0, 6, warmup=warmup, min_std=0.01)
        stream = [0.1] * 10
        stream[position] = 0.9
        assert (
            verdicts(obd, stream).index(True) == position
            if position >= first
            else not any(verdicts(obd, stream))
        )


def test_all_numbers_are_finite_during_the_cold_start():
    obd = BoundaryDiscriminator()
    obd.update(0.7)
    assert (obd.ready, obd.z, obd.mean, obd.std, obd.threshold) == (False, 0.0, 0.0, 0.0, 0.0)


@given(streams, st.integers(2, 12), st.floats(0.5, 5))
def test_the_last_decision_is_that_of_a_new_one_fed_the_last_errors(stream, delta, tau):
    assume(len(stream) > delta)
    old = BoundaryDiscriminator(tau, delta)
    for error in stream:
        old.update(error)
    new = BoundaryDiscriminator(tau, delta)
    for error in stream[-delta - 1 :]:
        new.update(error)
    assert state(old) == state(new), "to the last bit"


@given(streams, st.sampled_from([0.25, 2.0, 1024.0]))
def test_scaling_all_errors_by_a_power_of_two_changes_no_verdict(stream, scale):
    scaled = [error * scale for error in stream]
    assert verdicts(BoundaryDiscriminator(delta=5), stream) == verdicts(
        BoundaryDiscriminator(delta=5), scaled
    )


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=80), st.integers(0, 1000))
def test_shifting_all_errors_changes_no_verdict(stream, shift):
    # With Δ = 4 the mean of whole numbers is exact, so nothing is lost in rounding.
    shifted = [error + shift for error in stream]
    assert verdicts(BoundaryDiscriminator(delta=4), stream) == verdicts(
        BoundaryDiscriminator(delta=4), shifted
    )


@given(streams, st.floats(0.5, 3), st.floats(0.1, 3))
def test_a_higher_tau_never_finds_more(stream, tau, more):
    low = verdicts(BoundaryDiscriminator(tau, 5), stream)
    high = verdicts(BoundaryDiscriminator(tau + more, 5), stream)
    assert all(a or not b for a, b in zip(low, high, strict=True))


@given(streams, st.floats(0, 0.2), st.floats(0, 0.5))
def test_the_numbers_explain_the_verdict(stream, min_std, min_error):
    obd = BoundaryDiscriminator(2.0, 5, min_std=min_std, min_error=min_error)
    for error in stream:
        obd.update(error)
        assert np.isfinite([obd.z, obd.mean, obd.std, obd.threshold]).all()
        if obd.is_boundary:
            assert obd.ready
            assert obd.z > 2.0
            assert error > min_error
            assert error >= obd.threshold * (1 - 1e-12)
        elif obd.ready:
            assert error <= obd.threshold * (1 + 1e-12)


def test_equal_errors_are_never_positive_and_any_rise_over_them_is():
    obd = BoundaryDiscriminator()
    assert not any(verdicts(obd, [0.1] * 200))
    assert obd.std == 0
    assert obd.update(0.1 + 1e-6).is_boundary
    assert obd.z == 1e9, "finite"
    assert BoundaryDiscriminator(delta=2).update(1).update(1).update(0.5).z == -1e9


def test_a_floor_on_the_deviation_keeps_a_still_picture_silent():
    noise = np.random.default_rng(0).normal(0.005, 0.0005, 500)
    assert any(verdicts(BoundaryDiscriminator(2.5), noise))
    floored = BoundaryDiscriminator(2.5, min_std=0.004)
    assert not any(verdicts(floored, noise))
    assert floored.update(0.1).is_boundary, "and yet a change fires at once"


def test_no_error_at_the_floor_or_under_it_is_positive():
    obd = BoundaryDiscriminator(delta=2, min_error=0.25).update(0.0).update(0.0)
    assert not obd.update(0.25).is_boundary
    assert obd.threshold == 0.25
    obd.reset()
    assert obd.update(0.0).update(0.0).update(0.26).is_boundary


def test_boundary_errors_join_the_queue_unless_inliers_only():
    stream = [0.1, 0.1, 0.1, 0.9, 0.9, 0.9]
    paper = BoundaryDiscriminator(1.5, 3)
    ablation = BoundaryDiscriminator(1.5, 3, inliers_only=True)
    assert verdicts(paper, stream) == [False, False, False, True, False, False]
    assert verdicts(ablation, stream) == [False, False, False, True, True, True]
    assert (ablation.mean, ablation.std) == (pytest.approx(0.1), pytest.approx(0))


@pytest.mark.parametrize("bad", [nan, inf, -inf, 1e200])
def test_an_invalid_error_is_refused_and_changes_nothing(bad):
    obd = BoundaryDiscriminator(delta=3)
    for error in (0.1, 0.2, 0.1, 0.5):
        obd.update(error)
    before = state(obd)
    with pytest.raises(FeatureError, match="must be a number"):
        obd.update(bad)
    assert state(obd) == before


@given(st.lists(st.floats(-1e150, 1e150), max_size=50))
def test_any_accepted_error_gives_finite_results(stream):
    obd = BoundaryDiscriminator(delta=3)
    for error in stream:
        obd.update(error)
        assert np.isfinite([obd.z, obd.mean, obd.std, obd.threshold]).all()


@given(streams, streams)
def test_reset_forgets_everything(before, after):
    used, new = BoundaryDiscriminator(delta=4), BoundaryDiscriminator(delta=4)
    for error in before:
        used.update(error)
    used.reset()
    assert state(used) == state(new)
    assert verdicts(used, after) == verdicts(new, after)


@pytest.mark.parametrize(
    "settings",
    [
        {"tau": 0},
        {"tau": -1},
        {"tau": nan},
        {"tau": inf},
        {"delta": 1},
        {"warmup": 1},
        {"warmup": 22},
        {"min_std": -1},
        {"min_std": nan},
        {"min_error": inf},
        {"min_error": -0.1},
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(settings):
    (name,) = settings
    with pytest.raises(ConfigError, match=name):
        BoundaryDiscriminator(**settings)
