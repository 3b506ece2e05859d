"""What distractors do: to the place of the camera, and to a picture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ongebd.lab.composites.lettering import words
from ongebd.lab.composites.plan import Distractor
from ongebd.types import ImageU8

_CAPTIONS = (
    "Chapter 3",
    "Yesterday, 14:05",
    "Recorded live",
    "Next: the weather",
    "Part two of five",
    "Dr. Ana Lima, physician",
    "www.example.org",
    "12.4 km to go",
)
_LOGOS = ("TV", "LIVE", "HD", "N1", "REC")


def camera(distractor: Distractor, frame: int, fps: float) -> tuple[float, float, float]:
    """Where a moved camera looks: zoom (1 or more) and a shift in x and y, as parts of the picture's size.

    It starts and ends at rest, (1, 0, 0). The shifts stay within the room that `margin_of` leaves.
    """
    seconds = (frame - distractor.first) / fps
    length = (distractor.stop - distractor.first) / fps
    rng = np.random.default_rng(distractor.seed)
    if distractor.kind == "shake":
        ramp = min(1.0, seconds / 0.4, (length - seconds) / 0.4)
        size = (0.006 + 0.014 * distractor.strength) * max(ramp, 0.0)
        rates, phases = rng.uniform(1.5, 7.0, (2, 4)), rng.uniform(0, 2 * np.pi, (2, 4))
        weights = 1 / rates
        waves = np.sin(2 * np.pi * rates * seconds + phases)
        x, y = ((waves * weights).sum(1) / weights.sum(1)).tolist()
        return 1.0, size * x * 1.8, size * y * 1.8
    bump = 0.5 - 0.5 * np.cos(2 * np.pi * min(max(seconds / length, 0.0), 1.0))
    if distractor.kind == "pan":
        angle = float(rng.choice([0.0, np.pi])) + float(rng.uniform(-0.3, 0.3))
        size = bump * (0.05 + 0.06 * distractor.strength)
        return 1.0, float(size * np.cos(angle)), float(size * np.sin(angle) * 0.5)
    return float(1 + bump * (0.1 + 0.25 * distractor.strength)), 0.0, 0.0


def applied(picture: ImageU8, distractor: Distractor, frame: int, fps: float) -> ImageU8:
    """A picture, (height, width, 3), with what a distractor does to it; those of the camera do nothing."""
    effect = _EFFECTS.get(distractor.kind)
    return picture if effect is None else effect(picture, distractor, frame, fps)


def _exposure(picture: ImageU8, distractor: Distractor, frame: int, fps: float) -> ImageU8:
    """The gain goes to 2^±(0.4 … 0.8) and comes back."""
    part = (frame - distractor.first) / (distractor.stop - distractor.first)
    stops = (0.4 + 0.4 * distractor.strength) * (1 if distractor.seed % 2 else -1)
    gain = 2 ** (stops * (0.5 - 0.5 * np.cos(2 * np.pi * part)))
    return _looked_up(picture, np.arange(256) * gain)


def _flash(picture: ImageU8, distractor: Distractor, frame: int, fps: float) -> ImageU8:
    """Light is added, more to what is bright."""
    return _looked_up(picture, np.arange(256) * 1.4 + 60 + 100 * distractor.strength)


def _noise(picture: ImageU8, distractor: Distractor, frame: int, fps: float) -> ImageU8:
    """Gaussian, σ = 3 … 10 of 255, rising and falling within 0.3 s; mostly of the brightness."""
    seconds, left = (frame - distractor.first + 1) / fps, (distractor.stop - frame) / fps
    sigma = (3 + 7 * distractor.strength) * min(1.0, seconds / 0.3, left / 0.3)
    rng = np.random.default_rng((distractor.seed, frame - distractor.first))
    grain = rng.standard_normal((*picture.shape[:2], 1), dtype=np.float32)
    colour = rng.standard_normal(picture.shape, dtype=np.float32)
    noisy = picture + np.float32(sigma) * (np.float32(0.9) * grain + np.float32(0.4) * colour)
    return np.clip(noisy + np.float32(0.5), 0, 255).astype(np.uint8)


def _overlay(picture: ImageU8, distractor: Distractor, frame: int, fps: float) -> ImageU8:
    """A caption on a bar, or a logo in a corner; at once, or faded in and out in a quarter second."""
    rng = np.random.default_rng(distractor.seed)
    height, width = picture.shape[:2]
    short = min(height, width)
    seconds, left = (frame - distractor.first + 1) / fps, (distractor.stop - frame) / fps
    share = min(1.0, seconds / 0.25, left / 0.25) if rng.random() < 0.5 else 1.0
    if rng.random() < 0.5:
        text = _CAPTIONS[int(rng.integers(len(_CAPTIONS)))]
        letters = words(text, max(9, round(short * (0.05 + 0.03 * distractor.strength))))
        pad = max(3, short // 40)
        left_edge, top = round(0.06 * width), round(height * 0.94) - letters.shape[0] - 2 * pad
    else:
        text = _LOGOS[int(rng.integers(len(_LOGOS)))]
        letters = words(text, max(9, round(short * (0.06 + 0.05 * distractor.strength))))
        pad = max(3, short // 30)
        left_edge = round(0.05 * width) if rng.random() < 0.3 else width - letters.shape[1] - 2 * pad - 8
        top = round(0.05 * height)
    bar, ink = (float(value) for value in rng.choice([[20, 240], [235, 25], [150, 255]], axis=0))
    rows = slice(max(top, 0), top + letters.shape[0] + 2 * pad)
    columns = slice(max(left_edge, 0), left_edge + letters.shape[1] + 2 * pad)
    mask = np.pad(letters, pad)[:, :, None]
    result = picture.copy()
    below = result[rows, columns].astype(np.float32)
    mask = mask[: below.shape[0], : below.shape[1]]
    box = below * np.float32(0.25) + np.float32(0.75 * bar)
    box = box + (np.float32(ink) - box) * mask
    result[rows, columns] = (below + (box - below) * np.float32(share) + np.float32(0.5)).astype(np.uint8)
    return result


def _looked_up(picture: ImageU8, values: npt.NDArray[np.floating]) -> ImageU8:
    table = np.clip(np.round(values), 0, 255).astype(np.uint8)
    looked_up: ImageU8 = table[picture]
    return looked_up


_EFFECTS: dict[str, Callable[[ImageU8, Distractor, int, float], ImageU8]] = {
    "exposure": _exposure,
    "flash": _flash,
    "noise": _noise,
    "overlay": _overlay,
}
