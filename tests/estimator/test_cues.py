"""The cues of a stream against a plain reference, over thousands of frames, from the first one on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ongebd.errors import ConfigError
from ongebd.estimator.appearance import AppearanceCues, RecentFeatures, from_bfloat16, to_bfloat16
from ongebd.estimator.cues import CONTEXT, Context, CueStream
from ongebd.estimator.motion import MotionCues, MotionMemory

LUMA = 56 * 56


def features(count: int, dim: int, seed: int = 0) -> np.ndarray:
    """A walk in multiples of 1/16 below 16, which bfloat16 holds exactly."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(-6, 7, (count, dim)) * (rng.random((count, 1)) < 0.7)
    return (np.clip(40 + np.cumsum(steps, axis=0), 1, 255) / 16).astype(np.float32)


def lumas(count: int, seed: int = 0) -> np.ndarray:
    """A texture that drifts, with a patch that moves by itself now and then."""
    rng = np.random.default_rng(seed)
    world = rng.random((120, 120)).astype(np.float32)
    for axis in (0, 1):
        for _ in range(3):
            world = (world + np.roll(world, 1, axis)) / 2
    out = []
    for t in range(count):
        picture = world[t // 3 : t // 3 + 56, t // 2 : t // 2 + 56].copy()
        at = (5 + t) % 40 if t > count // 2 else 5
        picture[at : at + 12, 20:32] = world[60:72, 60:72]
        out.append(picture.reshape(-1) * 255)
    return np.float32(out)


class Plain:
    """The rules of the cues, as plain as possible, one frame at a time."""

    def __init__(self, past: np.ndarray) -> None:
        self.past = past.astype(np.float64)  # all frames up to now, the newest last

    def window(self, start: int, length: int) -> np.ndarray:
        """The mean of a window counted back from now; what lies before the first frame is not there."""
        backwards = self.past[::-1][start : start + length]
        return backwards.mean(0) if len(backwards) else self.past[0]

    def error(self, one: tuple[int, int], other: tuple[int, int]) -> float:
        a, b = self.window(*one), self.window(*other)
        return (1 - a @ b / np.sqrt((a @ a) * (b @ b))) / 2

    def novelty(self, k: int) -> float:
        last = self.past[-2 * k :]
        if len(last) < 4:
            return 0.0
        unit = last / np.linalg.norm(last, axis=1, keepdims=True)
        older, newer = unit[: len(last) // 2], unit[len(last) // 2 :]
        between = (older @ newer.T).mean()
        return max(((newer @ newer.T).mean() + (older @ older.T).mean()) / 2 - between, 0.0)

    def appearance(self) -> np.ndarray:
        ks = (1, 2, 3, 4, 6, 8, 12, 16, 24, 36)
        horizons = [self.error((0, 1), (k, 1)) for k in ks]
        horizons += [self.error((0, 1), (1, k)) for k in ks[1:]]
        horizons += [self.error((0, k), (k, k)) for k in (2, 4, 8, 12)]
        pairs = ((1, 4), (2, 8), (4, 8), (4, 16), (8, 16), (8, 32), (12, 24), (12, 48))
        windows = [self.error((0, s), (s, n)) for s, n in pairs]
        novelties = np.log([self.novelty(k) + 0.002 for k in (4, 8, 12, 20)])
        logs = [np.log(np.array(errors) + 0.002) for errors in (horizons, windows)]
        return np.concatenate([horizons, logs[0], windows, logs[1], novelties, self.memory()])

    def memory(self) -> np.ndarray:
        looks = self.past[np.append(True, (np.diff(self.past, axis=0) != 0).any(1))][::-1]
        unit = looks / np.linalg.norm(looks, axis=1, keepdims=True)
        errors = (1 - unit @ unit[0]) / 2
        return np.log([max(errors[min(2, len(looks) - 1) : k + 1].min(), 0.002) for k in (8, 16, 32, 64)])


@pytest.mark.parametrize("count", [1, 2, 5, 13, 40, 75, 200])
def test_appearance_is_what_its_description_says(count):
    stream = features(count, 12)
    cues = AppearanceCues(12)
    found = [cues.update(feature) for feature in stream][-1]
    np.testing.assert_allclose(found, Plain(stream).appearance(), atol=3e-4)
    assert found.dtype == np.float32
    assert len(cues.names) == len(found) == 70


def test_nothing_drifts_over_thousands_of_frames():
    stream = features(3000, 12, seed=1)
    recent, cues = RecentFeatures(12, 60), AppearanceCues(12)
    for feature in stream:
        recent.add(feature)
        last = cues.update(feature)
    newest_first = stream[:-61:-1].astype(np.float64)
    np.testing.assert_allclose(recent.gram, newest_first @ newest_first.T, rtol=1e-6)
    young = AppearanceCues(12)
    for feature in stream[-120:]:
        same = young.update(feature)
    np.testing.assert_array_equal(last, same, "a stream is its last 60 frames and 65 looks")


@pytest.mark.parametrize("count", [1, 2, 59, 61, 150])
def test_products_of_a_repeated_feature_are_those_that_would_be_computed(count):
    random = np.random.default_rng(count)
    some, which = random.normal(size=(3, 1280)).astype(np.float32), random.integers(0, 3, count)
    rounded, recent = from_bfloat16(to_bfloat16(some)), RecentFeatures(1280, 60)
    products = np.stack([np.einsum("ij,j->i", rounded, feature) for feature in rounded])
    recent.add(some[which[0]])
    recent.reset()
    for number in which:
        recent.add(some[number])
    last = which[:-61:-1]
    np.testing.assert_array_equal(recent.gram[: len(last), : len(last)], products[np.ix_(last, last)])


def test_a_still_picture_has_no_error_at_any_horizon():
    still = np.tile(np.float32(np.random.default_rng(0).random(40)), (80, 1))
    cues = AppearanceCues(40)
    for feature in still:
        found = cues.update(feature)
        errors = [value for name, value in zip(cues.names, found, strict=True) if "log" not in name]
        assert max(errors) < 1e-9


def test_cues_of_a_feature_of_norm_zero_are_finite():
    cues = AppearanceCues(8)
    for feature in (np.zeros(8, np.float32), np.ones(8, np.float32), np.zeros(8, np.float32)):
        assert np.isfinite(cues.update(feature)).all()


def plain_motion(pictures: np.ndarray) -> np.ndarray:
    """The motion cues of the last of some pictures (T, 56, 56)."""

    def blur(z):
        z = np.pad(z - z.mean(), 1, mode="edge")
        rows = (z[:-2] + 2 * z[1:-1] + z[2:]) / 4
        return (rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 4

    def box(z):
        blocks = np.pad(z.reshape(14, 4, 14, 4).mean((1, 3)), 1, mode="edge")
        return sum(blocks[i : i + 14, j : j + 14] for i in range(3) for j in range(3)) / 9

    def flow(now, old):
        gy, gx = ((a + b) / 2 for a, b in zip(np.gradient(now), np.gradient(old), strict=True))
        it = now - old
        a, b, c = box(gx * gx) + 2, box(gx * gy), box(gy * gy) + 2
        d, e = -box(gx * it), -box(gy * it)
        det = a * c - b * b
        u, v = (np.clip(z, -4, 4) for z in ((c * d - b * e) / det, (a * e - b * d) / det))
        return u, v, np.sqrt(box(it * it))

    blurred = [blur(picture.astype(np.float64)) for picture in pictures]
    cues = []
    for lag in (1, 2, 4):
        flows, owns = [], []
        for t in range(len(blurred)):
            u, v, change = flow(blurred[t], blurred[max(t - lag, 0)])
            gu, gv = np.median(u), np.median(v)
            own = np.hypot(u - gu, v - gv).ravel()
            weight = max(1 - 0.5**0.5, 1 / (t + 1))
            both, slow = np.concatenate([u.ravel(), v.ravel()]), np.log(own + 0.05)
            flows.append(flows[-1] + weight * (both - flows[-1]) if t else both)
            owns.append(owns[-1] + weight * (slow - owns[-1]) if t else slow)
        speeds = [np.hypot(gu, gv), np.hypot(u, v).mean(), np.sort(own)[-20:].mean(), own.mean()]
        cues += [*np.log(np.array(speeds) + 0.05), np.log(change.mean() + 0.3)]
        for back in (6, 12):
            old = flows[max(t - back, 0)]
            a = flows[t] + 1e-3
            cues.append((1 - a @ old / max(np.linalg.norm(a) * np.linalg.norm(old), 1e-6)) / 2)
            cues.append(np.log(np.linalg.norm(flows[t] - old) / 14 + 0.05))
        for back in (6, 12):
            gain = np.sort(owns[t] - owns[max(t - back, 0)])
            cues += [gain[-15:].mean(), gain[:15].mean(), np.abs(gain).mean()]
    return np.array(cues)


@pytest.mark.parametrize("count", [1, 2, 4, 9, 24])
def test_motion_is_what_its_description_says(count):
    pictures = lumas(count)
    cues = MotionCues()
    found = [cues.update(picture) for picture in pictures][-1]
    np.testing.assert_allclose(found, plain_motion(pictures.reshape(-1, 56, 56)), atol=2e-3)
    assert len(cues.names) == len(found) == 45


def test_motion_tells_a_moving_camera_from_a_moving_thing():
    by_name = {}
    for what in ("camera", "thing"):
        cues = MotionCues()
        world = np.kron(np.random.default_rng(0).random((40, 40)), np.ones((4, 4))).astype(np.float32) * 255
        for t in range(12):
            picture = world[:56, t : t + 56].copy() if what == "camera" else world[:56, :56].copy()
            if what == "thing":
                picture[20:40, 10 + t : 30 + t] = world[80:100, 80:100]
            found = cues.update(picture.reshape(-1))
        by_name[what] = dict(zip(cues.names, found, strict=True))
    assert by_name["camera"]["motion 1: camera"] > np.log(0.5) > by_name["thing"]["motion 1: camera"]
    gained = by_name["thing"]["motion 1: fastest of own"] - by_name["thing"]["motion 1: camera"]
    assert gained > by_name["camera"]["motion 1: fastest of own"] - by_name["camera"]["motion 1: camera"]


def test_the_context_holds_lags_and_what_stands_above_the_mean():
    cues = np.random.default_rng(0).normal(size=(60, 48)).astype(np.float32)
    context = Context(48)
    mean = cues[0].astype(np.float64)
    for t, row in enumerate(cues):
        found = context.update(row)[:-6]
        lagged = np.concatenate([cues[max(t - lag, 0)] for lag in CONTEXT])
        np.testing.assert_allclose(found, [*lagged, *(row - mean)], atol=1e-5)
        mean += max(1 - 0.5 ** (1 / 24), 1 / (t + 2)) * (row - mean)
    assert len(found) == 5 * 48


@pytest.mark.parametrize("count", [1, 5, 11, 60, 900])
def test_the_memory_of_motion_knows_the_nearest_and_the_mean_distance(count):
    motion = np.random.default_rng(0).normal(size=(count, 45)).astype(np.float32)
    memory = MotionMemory()
    found = [memory.update(row) for row in motion][-1]
    apart = np.linalg.norm(motion[-1] - motion[::-1].astype(np.float64), axis=1)  # by age
    spans = [apart[min(10, count - 1) : span + 1] for span in (48, 96, 192, 384)]
    wanted = [*(span.min() for span in spans), spans[1].mean(), spans[3].mean()]
    np.testing.assert_allclose(found, np.log(np.array(wanted) + 0.1), atol=1e-5)


def test_a_repeated_motion_is_near_and_a_new_one_is_not():
    cycle = np.random.default_rng(0).normal(size=(30, 45)).astype(np.float32)
    memory = MotionMemory()
    nearest = [memory.update(row)[0] for row in [*cycle, *cycle, 2 * cycle[0]]]
    assert max(nearest[30:60]) == pytest.approx(np.log(0.1), abs=1e-5)
    assert nearest[60] > 0


@pytest.fixture(scope="module")
def stream():
    return np.concatenate([features(70, 20), lumas(70)], axis=1)


def cue_matrix(stream: np.ndarray) -> np.ndarray:
    cues = CueStream(stream.shape[1])
    return np.stack([cues.update(feature) for feature in stream])


def test_all_cues_of_a_frame_are_those_of_its_two_halves(stream):
    appearance, motion = AppearanceCues(stream.shape[1] - LUMA), MotionCues()
    apart = [np.concatenate([appearance.update(row[:-LUMA]), motion.update(row[-LUMA:])]) for row in stream]
    np.testing.assert_array_equal(cue_matrix(stream), apart)
    assert len(set(CueStream.names)) == len(CueStream.names) == 115


def test_features_without_luma_are_refused():
    with pytest.raises(ConfigError, match="no luma"):
        CueStream(1280)


@settings(max_examples=15)
@given(st.lists(st.sampled_from("abr"), min_size=1, max_size=60))
def test_streams_in_turns_and_reset_give_what_each_gives_alone(stream, turns):
    alone = cue_matrix(stream)
    streams = {name: CueStream(stream.shape[1]) for name in "ab"}
    seen = dict.fromkeys("ab", 0)
    for turn in turns:
        if turn == "r":
            streams["a"].reset()
            seen["a"] = 0
            continue
        np.testing.assert_array_equal(streams[turn].update(stream[seen[turn]]), alone[seen[turn]])
        seen[turn] += 1


def test_the_state_is_small_and_does_not_grow(stream):
    cues, context = CueStream(1280 + LUMA), Context(115)
    before = cues.state_bytes + context.state_bytes
    assert before <= 670_000
    for row in stream[:5]:
        cues.update(np.resize(row, 1280 + LUMA))
    assert cues.state_bytes + context.state_bytes == before
