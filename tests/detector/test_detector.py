"""One stream's detector, on features that the test makes."""

from __future__ import annotations

import re
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import ongebd
from ongebd.detector import OnlineDetector, load
from ongebd.errors import ConfigError, FeatureError

EAST, NORTH = np.float32([1, 0, 0, 0]), np.float32([0, 1, 0, 0])


def picture(feature) -> np.ndarray:
    rgb = np.zeros((8, 8, 3), np.uint8)
    rgb[0, :4, 0] = feature
    return rgb


def wander(count: int, seed: int = 0, changes: int = 3) -> np.ndarray:
    """Features (count, 4) that jitter about a direction, which changes now and then."""
    random = np.random.default_rng(seed)
    centres = random.uniform(0.2, 1, (changes + 1, 4))
    index = np.arange(count) * (changes + 1) // count
    return (centres[index] + random.normal(0, 0.01, (count, 4))).astype(np.float32)


def run(detector, features, fps=24, start=0):
    decisions = [detector.update_feature(f, Fraction(n + start, fps)) for n, f in enumerate(features)]
    return decisions, [d.boundary for d in decisions if d.boundary is not None]


def test_a_change_fires_with_the_frame_that_brings_it(detector):
    stream = detector()
    decisions, (boundary,) = run(stream, [EAST] * 30 + [NORTH] * 30)
    assert [d.index for d in decisions if d.onset] == [30]
    assert boundary.onset == 30 / 24
    assert boundary.onset <= boundary.time <= boundary.decided <= boundary.onset + 0.5
    assert stream.flush() is None
    assert stream.latency == 0


def test_the_first_frame_has_no_error(detector):
    first = detector().update_feature(EAST, 5.0)
    assert (first.index, first.time, first.error, first.ready, first.is_boundary) == (
        0,
        5.0,
        0.0,
        False,
        False,
    )


def test_every_number_is_finite_and_every_error_in_range_at_all_times(detector):
    decisions, _ = run(detector(), wander(200))
    for d in decisions:
        assert np.isfinite([d.time, d.error, d.mean, d.std, d.z, d.threshold]).all()
        assert 0 <= d.error <= 1
    assert [d.index for d in decisions] == [*range(200)]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 20, 21, 22])
def test_short_streams_are_fine(detector, count):
    stream = detector()
    decisions, boundaries = run(stream, [EAST] * count)
    assert len(decisions) == count
    assert boundaries == []
    assert stream.flush() is None


def test_the_anticipator_sees_the_last_frames_oldest_first_and_never_this_one(stub, stub_model):
    class Spy:
        name, window = "spy", 3
        seen: list[list[float]] = []  # noqa: RUF012

        def anticipate(self, past):
            self.seen.append(past[:, 0].tolist())
            return past[-1]

    run(OnlineDetector(stub, Spy(), stub_model.configured()), [EAST * n for n in range(1, 7)])
    assert Spy.seen == [[1], [1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]


def test_flush_gives_the_boundary_that_is_still_open(detector):
    stream = detector()
    _, none_yet = run(stream, [EAST] * 30 + [NORTH])
    assert none_yet == []
    boundary = stream.flush()
    assert (boundary.onset, boundary.time, boundary.decided) == (30 / 24,) * 3
    assert stream.flush() is None


def test_reset_begins_a_new_stream(detector):
    used, new = detector(), detector()
    run(used, wander(100, seed=1))
    used.reset()
    assert run(used, wander(100, seed=2)) == run(new, wander(100, seed=2))


def test_a_time_that_goes_back_starts_a_new_epoch_and_decides_what_was_open(detector):
    stream, new = detector(), detector()
    run(stream, [EAST] * 30 + [NORTH])
    decisions, boundaries = run(stream, wander(100))
    assert boundaries[0].onset == 30 / 24, "an open boundary comes with the first decision of the new epoch"
    wanted, _ = run(new, wander(100))
    strip = lambda d: (d.error, d.mean, d.std, d.z, d.is_boundary, d.ready, d.onset)  # noqa: E731
    assert [strip(d) for d in decisions] == [strip(d) for d in wanted]
    assert decisions[0].index == 31, "frame numbers go on"


def test_equal_times_are_not_a_step_back(detector):
    stream = detector()
    run(stream, [EAST] * 30)
    again = stream.update_feature(EAST, 29 / 24)
    assert again.ready


def test_a_stream_that_never_ends_stays_flat_and_forgets(detector):
    old, steps = detector(), 20_000
    features = wander(steps, changes=400)
    for n, feature in enumerate(features):
        if n == steps - 4000:
            tracemalloc.start()
        last = old.update_feature(feature, Fraction(n, 24))
    left_behind, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert left_behind < 20_000, "one number a frame would be more"
    new = detector()
    needed = old.config.delta + old.config.window + 1
    for n in range(steps - needed, steps):
        fresh = new.update_feature(features[n], Fraction(n, 24))
    assert (last.error, last.mean, last.std, last.z, last.threshold, last.is_boundary) == (
        fresh.error,
        fresh.mean,
        fresh.std,
        fresh.z,
        fresh.threshold,
        fresh.is_boundary,
    )


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        ([1, np.nan, 0, 0], "has NaN or infinity in it"),
        ([1, np.inf, 0, 0], "has NaN or infinity in it"),
        ([1, 1e300, 0, 0], "has NaN or infinity in it"),  # in the float32 in which it is kept
        ([0, 0, 0, 0], "has norm zero"),
        ([1, 0, 0], "has shape"),
        ([[1, 0, 0, 0]], "has shape"),
    ],
)
def test_a_broken_feature_names_the_frame_and_changes_nothing(detector, bad, cause):
    stream, untouched = detector(), detector()
    for each in (stream, untouched):
        run(each, wander(30))
    with pytest.raises(FeatureError, match=rf"^frame 30 at 1\.250 s: the feature {cause}"):
        stream.update_feature(np.array(bad, np.float64), 30 / 24)
    assert run(stream, wander(30), start=30) == run(untouched, wander(30), start=30)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_broken_anticipation_names_the_frame(stub, stub_model, bad):
    class Broken:
        name, window = "broken", 8

        def anticipate(self, past):
            return np.full(4, bad, np.float32)

    stream = OnlineDetector(stub, Broken(), stub_model.configured())
    stream.update_feature(EAST, 0)
    with pytest.raises(FeatureError, match=r"frame 1 at 0\.042 s: the score .* weights of broken"):
        stream.update_feature(EAST, 1 / 24)


def test_features_of_other_number_types_are_taken_as_float32(detector):
    features = wander(40)
    wanted = run(detector(), features)
    assert run(detector(), features.astype(np.float64)) == wanted
    assert run(detector(), [f.tolist() for f in features]) == wanted


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((64, 64), np.uint8),
        np.zeros((64, 64, 4), np.uint8),
        np.zeros((0, 64, 3), np.uint8),
        np.zeros((64, 64, 3), np.float32),
    ],
)
def test_a_picture_of_another_type_or_shape_is_refused(bad):
    stream = load("persistence").stream()
    with pytest.raises(FeatureError, match=r"the frame is (uint8|float32) of shape .*wanted uint8 of shape"):
        stream.update(bad, 0.0)
    assert stream.update(np.zeros((64, 64, 3), np.uint8), 0.0).index == 0


def test_update_equals_update_feature_of_the_backbones_feature(detector):
    pictures = [picture([200, 10 * (n % 3), 5 if n < 20 else 200, 0]) for n in range(40)]
    by_picture = [detector_.update(p, n / 24) for detector_ in [detector()] for n, p in enumerate(pictures)]
    features = [p[0, :4, 0].astype(np.float32) for p in pictures]
    assert by_picture == run(detector(), features)[0]
    assert [d.index for d in by_picture if d.onset] == [20]


@pytest.mark.parametrize(
    "bad",
    [
        {"fps": 0},
        {"fps": float("nan")},
        {"tau": 0},
        {"delta": 1},
        {"warmup": 1},
        {"window": 0},
        {"window": -1},
        {"min_gap": -1},
        {"min_gap": float("nan")},
        {"max_run": -1},
        {"max_run": float("nan")},
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(bad):
    (name,) = bad
    with pytest.raises(ConfigError, match=name):
        load("window-mean").stream(**bad)


def test_unknown_names_are_refused_with_a_hint():
    with pytest.raises(ConfigError, match="did you mean delta"):
        load("window-mean").stream(delt=3)
    with pytest.raises(ConfigError, match="did you mean min_length"):  # an argument of `detect` itself
        ongebd.detect("talk.mp4", min_lenght=5)
    with pytest.raises(ConfigError, match="did you mean window-mean"):
        load("window-means")


def test_a_stream_may_go_on_after_a_drain_and_be_drained_again():
    detector = ongebd.load("predictability").stream()
    rng = np.random.default_rng(0)
    frames = [rng.random(detector._backbone.dim, np.float32) for _ in range(24)]
    held = 4
    updates = [detector.update_feature(frame, place / 24) for place, frame in enumerate(frames[:20])]
    assert len(detector.drain()) == held == sum(decision.pending for decision in updates)
    for place, frame in enumerate(frames[20:], start=20):
        assert detector.update_feature(frame, place / 24).pending
    assert [decision.index for decision in detector.drain()] == list(range(20, 24))
    assert detector.drain() == []


BACK = r"time goes back from 2\.000 s to 1\.000 s, so a new epoch begins .* call new_epoch\(\) first"


@pytest.mark.parametrize("given", ["picture", "feature", "pool", "feature in a pool"])
def test_a_time_that_goes_back_is_warned_of_once_at_the_line_that_gave_it(stub_model, given, recwarn):
    with ongebd.StreamPool(stub_model) as pool:
        stream = pool.add() if "pool" in given else stub_model.stream()
        take = getattr(stream, "submit" if "pool" in given else "update")
        what = np.ones((8, 8, 3), np.uint8)
        if "feature" in given:
            take = getattr(stream, f"{take.__name__}_feature")
            what = np.ones(4, np.float32)
        for time in (0, 1, 2, 2, 1, 0):
            take(what, time)
        pool.wait(60)
    (warning,) = recwarn.list
    assert re.match(BACK, str(warning.message))
    assert Path(warning.filename).name == Path(__file__).name


def test_an_epoch_that_was_asked_for_is_not_warned_of(stub_model, recwarn):
    detector = stub_model.stream()
    with ongebd.StreamPool(stub_model) as pool:
        pooled = pool.add()
        for begin_again in (detector.new_epoch, detector.reset):
            for time in (0, 1):
                detector.update(np.ones((8, 8, 3), np.uint8), time)
                pooled.submit(np.ones((8, 8, 3), np.uint8), time)
            begin_again()
            pooled.new_epoch()
    assert not recwarn.list
