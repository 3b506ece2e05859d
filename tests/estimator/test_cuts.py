"""Hard cuts: told at the first frame of the new shot; flashes and fades are none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import ongebd
from ongebd.backbones.pipeline import Glance
from ongebd.estimator.cues import LUMA_DIM, CueStream

SIZE = (341, 256)


@pytest.fixture(scope="module")
def scene(make_scene):
    return lambda seed: make_scene(seed, *SIZE).astype(float)


def cuts_of(pictures):
    """The frames before which a cut lies, of a stream at 24 frames/s; a still picture is embedded once."""
    model = ongebd.load("immediate")
    detector, found, last = model.stream(), [], None
    for n, picture in enumerate(pictures):
        if picture is not last:
            seen = model.backbone.crop(np.clip(picture, 0, 255).astype(np.uint8))
            feature, last = model.backbone.embed(seen[None])[0], picture
        detector.update_feature(feature, Fraction(n, 24))
        found += [n] * detector._scorer.signs.cut
    return found


def blend(a, b, frames):
    return [a + (b - a) * n / frames for n in range(frames)]


def test_a_cut_lies_before_the_first_frame_of_the_new_shot(scene):
    a, b, c = map(scene, (1, 3, 6))
    assert cuts_of([a] * 14 + [b] * 6 + [c] * 6) == [14, 20]


def test_a_cut_after_a_dissolve_is_seen_and_the_dissolve_is_none(scene):
    a, b, c = map(scene, (6, 3, 9))
    assert cuts_of([a] * 12 + blend(a, b, 12) + [b] * 8 + [c] * 4) == [32]


@pytest.mark.parametrize("strength", [80, 120])
def test_a_flash_is_no_cut(scene, strength):
    a = scene(1)
    assert cuts_of([a] * 14 + [a + strength] + [a] * 8) == []


def test_a_fade_through_black_is_no_cut(scene):
    a, b, black = scene(1), scene(2), np.zeros((256, 341, 3))
    assert cuts_of([a] * 12 + blend(a, black, 12) + blend(black, b, 12) + [b] * 6) == []


def test_light_that_changes_at_once_is_no_cut(scene):
    a = scene(1)
    assert cuts_of([a] * 14 + [a * 0.6] * 8) == []


def test_no_cut_is_told_before_it_is_known_what_is_usual(scene):
    assert cuts_of([scene(1)] * 4 + [scene(2)] * 8) == []


@pytest.mark.parametrize(("frames", "found"), [(12, []), (3, []), (1, [22])])
def test_a_dissolve_is_no_cut_though_the_network_looks_four_times_a_second(frames, found):
    random = np.random.default_rng(3)
    network, luma = random.gamma(0.1, 1.0, (2, 512)), random.uniform(0, 255, (2, LUMA_DIM))
    cues, glance, cuts = CueStream(512 + LUMA_DIM), Glance(), []
    for n in range(40):
        share = float(np.clip((n - 21) / frames, 0, 1))
        now = [(1 - share) * a + share * b for a, b in (network, luma)]
        now[1] += random.normal(0, 1, LUMA_DIM)
        cues.update(glance.counted(np.concatenate(now).astype(np.float32), n / 24), glance.sudden)
        cuts += [n] * cues.cut
    assert cuts == found
