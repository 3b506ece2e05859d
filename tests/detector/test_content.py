"""What is in the picture: changes are found, and what only looks like one to a computer isn't.

On made scenes with the default model. Real cameras differ; the limits stand beside each test.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import ongebd
from ongebd.detector import load

SIZE = (341, 256)  # width and height to which the backbone would resize a picture of 4:3


def boundaries_of(pictures, model="window-mean", **settings):
    """What a stream at 24 frames/s finds; a still picture is embedded only once."""
    loaded = load(model)
    detector, found, last = loaded.stream(**settings), [], None
    for n, picture in enumerate(pictures):
        if picture is not last:
            seen = loaded.backbone.crop(np.clip(picture, 0, 255).astype(np.uint8))
            feature, last = loaded.backbone.embed(seen[None])[0], picture
        decision = detector.update_feature(feature, Fraction(n, 24))
        assert np.isfinite([decision.error, decision.z, decision.threshold]).all()
        found.append(decision.boundary)
    return [boundary for boundary in (*found, detector.flush()) if boundary is not None]


@pytest.fixture(scope="module")
def scene(make_scene):
    return lambda seed: make_scene(seed, *SIZE).astype(float)


def blend(a, b, frames):
    return [a + (b - a) * n / frames for n in range(frames)]


@pytest.mark.parametrize("model", ["window-mean", "persistence"])
@pytest.mark.parametrize("seeds", [(1, 2), (3, 4), (5, 6)])
def test_a_cut_is_found_at_its_frame(scene, seeds, model):
    before, after = map(scene, seeds)
    (boundary,) = boundaries_of([before] * 30 + [after] * 30, model)
    assert boundary.onset == 30 / 24
    assert boundary.time - boundary.onset <= 1.5 / 24


def test_black_and_white_and_still_pictures_are_silent(scene):
    for picture in (np.zeros((256, 341, 3)), np.full((256, 341, 3), 255.0), scene(1)):
        assert boundaries_of([picture] * 120) == []


@pytest.mark.parametrize("still", [None, 1], ids=["black", "scene"])
def test_a_change_after_minutes_of_a_still_picture_fires_immediately(scene, still):
    before = np.zeros((256, 341, 3)) if still is None else scene(still)
    frames = 5 * 60 * 24
    (boundary,) = boundaries_of([before] * frames + [scene(2)] * 12)
    assert boundary.onset == frames / 24


@pytest.mark.parametrize("deviation", [2, 8])
def test_sensor_noise_is_silent(scene, deviation):
    # False boundaries begin between 8 and 16 of 255 at the backbone's 256 pixels: far more than a camera's.
    random = np.random.default_rng(0)
    picture = scene(1)
    assert boundaries_of([picture + random.normal(0, deviation, picture.shape) for _ in range(72)]) == []


def test_a_change_in_sensor_noise_is_found(scene):
    random = np.random.default_rng(0)
    stream = [scene(1)] * 30 + [scene(2)] * 20
    (boundary,) = boundaries_of([picture + random.normal(0, 6, picture.shape) for picture in stream])
    assert boundary.onset == 30 / 24


def test_slow_exposure_drift_is_silent(scene):
    assert boundaries_of([scene(1) * (0.7 + 0.6 * n / 72) for n in range(72)]) == []


@pytest.mark.parametrize("brighter", [150, 255], ids=["bright", "white"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_flash_of_one_frame_is_one_boundary_at_most(scene, seed, brighter):
    stream = [scene(seed)] * 80
    stream[40] = stream[40] + brighter
    assert len(boundaries_of(stream)) <= 1


def test_the_option_against_flashes_is_a_longer_gap(scene):
    stream = [scene(1)] * 100
    for frame in (40, 58):  # 0.75 s apart
        stream[frame] = stream[frame] + 150
    assert len(boundaries_of(stream)) == 2
    assert len(boundaries_of(stream, min_gap=1.0)) == 1


@pytest.mark.parametrize("seconds", [1, 1.5, 2])
@pytest.mark.parametrize("seed", [4, 5])
def test_a_fade_through_black_is_one_boundary(scene, seed, seconds):
    a, b, black = scene(seed), scene(seed + 100), np.zeros((256, 341, 3))
    half = round(seconds * 12)
    stream = [a] * 36 + blend(a, black, half) + blend(black, b, half) + [b] * 30
    (boundary,) = boundaries_of(stream)
    assert 1.5 <= boundary.time <= 1.5 + seconds + 0.1


@pytest.mark.parametrize("seconds", [1, 1.5, 2])
@pytest.mark.parametrize("seed", [4, 5])
def test_a_dissolve_is_one_boundary(scene, seed, seconds):
    a, b = scene(seed), scene(seed + 100)
    (boundary,) = boundaries_of([a] * 36 + blend(a, b, round(seconds * 24)) + [b] * 30)
    assert 1.5 <= boundary.time <= 1.5 + seconds + 0.1


@pytest.mark.slow
def test_every_dissolve_is_one_boundary_or_two(scene):
    # One in five is seen twice (its second half stands out again); min_gap=1.0 makes nearly all of them one.
    counts, joined = [], []
    for seed in range(1, 7):
        a, b = scene(seed), scene(seed + 100)
        for seconds in (1, 1.5, 2):
            stream = [a] * 36 + blend(a, b, round(seconds * 24)) + [b] * 30
            counts.append(len(boundaries_of(stream)))
            joined.append(len(boundaries_of(stream, min_gap=1.0)))
    assert set(counts) <= {1, 2}
    assert counts.count(1) >= 12
    assert joined.count(1) >= 16


@pytest.mark.parametrize("crf", [23, 28])
def test_keyframe_pulsing_at_ordinary_quality_is_silent(tmp_path, make_video, make_scene, crf):
    # On these scenes false boundaries begin at crf 32, on frames of real clips at crf 36.
    random, picture = np.random.default_rng(0), make_scene(1, 640, 480)
    noisy = [
        np.clip(picture + random.normal(0, 3, picture.shape), 0, 255).astype(np.uint8) for _ in range(48)
    ]
    path = make_video(
        tmp_path / "pulse.mkv", noisy, rate=24, options={"preset": "veryfast", "g": "12", "crf": str(crf)}
    )
    assert ongebd.detect(path).boundaries == []


@pytest.mark.parametrize(("model", "fps"), [("window-mean", 24), ("window-mean", 30), ("persistence", 24)])
def test_duplicate_frames_of_a_pulldown_change_nothing(tmp_path, make_video, make_scene, model, fps):
    # Persistence at the full 30 frames/s meets an error of zero at each duplicate: of this cut it finds the
    # same, but with so small errors in its queue it is quicker to fire on what follows.
    scenes = [make_scene(seed, 421, 256) for seed in (5, 6)]
    film = [np.ascontiguousarray(scenes[n // 40][:, n % 40 * 2 : n % 40 * 2 + 340]) for n in range(80)]
    at_25 = make_video(tmp_path / "at25.mp4", film, rate=25)
    at_30 = make_video(tmp_path / "at30.mp4", [film[n * 25 // 30] for n in range(96)], rate=30)
    (original,) = ongebd.detect(at_25, model, fps=fps).boundaries
    (pulled,) = ongebd.detect(at_30, model, fps=fps).boundaries
    assert original.onset == pytest.approx(40 / 25, abs=1e-6)
    assert pulled.onset == pytest.approx(original.onset, abs=1 / 24)


@pytest.mark.parametrize("frames", [1, 3, 6])
def test_a_flash_to_white_is_told_as_a_cut_and_then_is_none(scene, frames):
    model, shot, white = load("immediate"), scene(1), np.full((SIZE[1], SIZE[0], 3), 255.0)
    seen = [model.backbone.crop(picture.astype(np.uint8)) for picture in (shot, white, scene(2))]
    old, flash, new = model.backbone.embed(np.stack(seen))
    detector = model.stream()
    told = []
    for n, feature in enumerate([old] * 30 + [flash] * frames + [old] * 36 + [new] * 30):
        decision = detector.update_feature(feature, Fraction(n, 24))
        told += [decision.boundary] if decision.boundary else []
    assert (told[0].onset, told[0].kind) == (30 / 24, "cut")
    *flashes, cut = detector.closed()
    assert ({one.kind for one in flashes}, cut.kind) == ({"event"}, "cut")
