"""Distractors: where they go in a video, and what they do to the camera or to a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ongebd.lab.composites.config import CAMERA, ComposeConfig
from ongebd.lab.composites.plan import Distractor, Segment
from ongebd.types import ImageU8

CLEAR = 0.4
"""Seconds between a distractor and a boundary, or the ends of the video."""

_SECONDS = {
    "shake": (1.5, 6.0),
    "pan": (2.0, 8.0),
    "exposure": (2.0, 8.0),
    "noise": (1.5, 6.0),
    "compression": (2.0, 8.0),
    "freeze": (0.12, 0.37),
    "overlay": (1.0, 5.0),
    "zoom": (2.5, 9.0),
}
_PAUSE, _PAUSE_MOMENTARY = (0.5, 1.5), (1.5, 4.0)  # seconds between two in a video without boundaries
_SHARE = 0.8  # of the stretches between boundaries that have one
_DRAWS = 3
_MARGIN = {"shake": 1.08, "pan": 1.3}
_CAPTIONS = (
    *("Chapter 3", "Yesterday, 14:05", "Recorded live", "Next: the weather", "Part two of five"),
    *("Dr. Ana Lima, physician", "www.example.org", "12.4 km to go"),
)
_LOGOS = ("TV", "LIVE", "HD", "N1", "REC")


def margin_of(distractors: Sequence[Distractor]) -> float:
    """The zoom that leaves the camera room enough to move."""
    return max((_MARGIN.get(each.kind, 1.0) for each in distractors), default=1.0)


def placed(
    segments: Sequence[Segment],
    marks: Sequence[tuple[int, int]],
    config: ComposeConfig,
    rng: np.random.Generator,
    counts: Counter[str],
) -> list[Distractor]:
    """Distractors for a video; in one without boundaries they follow each other with short pauses.

    Args:
        segments: What is shown.
        marks: First and last frame of each boundary, to keep clear of.
        config: Which kinds.
        rng: Of every choice.
        counts: How often each kind was placed in earlier videos.
    """
    fps = float(config.rate)
    between = any(kind != "natural" for kind in config.boundary_kinds)
    here: Counter[str] = Counter()
    result: list[Distractor] = []
    for low, high, still in _free(segments, marks, round(CLEAR * fps)):
        if between and rng.random() > _SHARE:
            continue
        at = low + int(rng.integers(0, max(1, (high - low) // 3))) if between else low
        while True:
            room = (high - at) / fps
            kind = _kind(config.distractor_kinds, rng, counts + here, room, still=still and between)
            if kind is None:
                break
            frames = _length(kind, rng, room, fps)
            strength, seed = float(rng.random()), int(rng.integers(2**31))
            result.append(Distractor(kind, at, at + frames, strength, seed))
            here[kind] += 1
            pause = _PAUSE_MOMENTARY if kind in ("flash", "freeze") else _PAUSE
            at += frames + max(1, round(float(rng.uniform(*pause)) * fps))
            if between:
                break
    return result


def _free(
    segments: Sequence[Segment], marks: Sequence[tuple[int, int]], clear: int
) -> list[tuple[int, int, bool]]:
    """Stretches (first, stop) between boundaries, and whether the picture is still in them."""
    last = segments[-1].stop
    free = []
    for (_, low), (high, _) in pairwise(sorted([(0, 0), *marks, (last, last)])):
        if high - low > 2 * clear:
            rate = next(each.piece.rate for each in segments if each.first <= (low + high) // 2 < each.stop)
            free.append((low + clear, high - clear, rate == 0))
    return free


def _kind(
    wanted: Sequence[str], rng: np.random.Generator, counts: Counter[str], seconds: float, *, still: bool
) -> str | None:
    """A kind, rare ones more often; None if those drawn don't fit, so that short ones don't take over.

    In a still picture nothing moves the camera.
    """
    kinds = [kind for kind in wanted if not (still and kind in CAMERA | {"freeze"})]
    if not kinds:
        return None
    weights = np.cumsum([1 / (1 + counts[kind]) ** 2 for kind in kinds])
    for _ in range(_DRAWS):
        kind = kinds[min(int(np.searchsorted(weights / weights[-1], rng.random())), len(kinds) - 1)]
        if _SECONDS.get(kind, (0.1, 0.1))[0] <= seconds:
            return kind
    return None


def _length(kind: str, rng: np.random.Generator, room: float, fps: float) -> int:
    if kind == "flash":
        return int(rng.integers(1, 3))
    shortest, longest = _SECONDS[kind]
    frames = round(float(rng.uniform(shortest, min(longest, room))) * fps)
    return max(1, min(frames, int(room * fps)))


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
    strength = distractor.strength
    elapsed, left = (frame - distractor.first + 1) / fps, (distractor.stop - frame) / fps
    if distractor.kind == "exposure":  # the gain goes to 2^±(0.4 … 0.8) and comes back
        part = (frame - distractor.first) / (distractor.stop - distractor.first)
        stops = (0.4 + 0.4 * strength) * (1 if distractor.seed % 2 else -1)
        gain = 2 ** (stops * (0.5 - 0.5 * np.cos(2 * np.pi * part)))
        return _mapped(picture, np.arange(256) * gain)
    if distractor.kind == "flash":  # adds light, more to bright parts
        return _mapped(picture, np.arange(256) * 1.4 + 60 + 100 * strength)
    if distractor.kind == "noise":  # σ = 3 … 10 of 255, rising and falling within 0.3 s; mostly brightness
        sigma = (3 + 7 * strength) * min(1.0, elapsed / 0.3, left / 0.3)
        rng = np.random.default_rng((distractor.seed, frame - distractor.first))
        grain = rng.standard_normal((*picture.shape[:2], 1), dtype=np.float32)
        colour = rng.standard_normal(picture.shape, dtype=np.float32)
        noisy = picture + np.float32(sigma) * (np.float32(0.9) * grain + np.float32(0.4) * colour)
        return np.clip(noisy + np.float32(0.5), 0, 255).astype(np.uint8)
    if distractor.kind == "overlay":
        return _with_overlay(picture, distractor, elapsed, left)
    return picture


def _mapped(picture: ImageU8, values: npt.NDArray[np.floating]) -> ImageU8:
    """The picture with each of the 256 values replaced."""
    mapped: ImageU8 = np.clip(np.round(values), 0, 255).astype(np.uint8)[picture]
    return mapped


def _with_overlay(picture: ImageU8, distractor: Distractor, elapsed: float, remaining: float) -> ImageU8:
    """A caption on a bar, or a logo in a corner; sudden, or faded in and out in a quarter second."""
    rng = np.random.default_rng(distractor.seed)
    height, width = picture.shape[:2]
    short = min(height, width)
    share = min(1.0, elapsed / 0.25, remaining / 0.25) if rng.random() < 0.5 else 1.0
    caption = rng.random() < 0.5
    texts, least, more, pads = (_CAPTIONS, 0.05, 0.03, 40) if caption else (_LOGOS, 0.06, 0.05, 30)
    text = texts[int(rng.integers(len(texts)))]
    letters = words(text, max(9, round(short * (least + more * distractor.strength))))
    pad = max(3, short // pads)
    if caption:
        left, top = round(0.06 * width), round(height * 0.94) - letters.shape[0] - 2 * pad
    else:
        left = round(0.05 * width) if rng.random() < 0.3 else width - letters.shape[1] - 2 * pad - 8
        top = round(0.05 * height)
    bar, ink = (float(value) for value in rng.choice([[20, 240], [235, 25], [150, 255]], axis=0))
    rows = slice(max(top, 0), top + letters.shape[0] + 2 * pad)
    columns = slice(max(left, 0), left + letters.shape[1] + 2 * pad)
    result = picture.copy()
    below = result[rows, columns].astype(np.float32)
    mask = np.pad(letters, pad)[: below.shape[0], : below.shape[1], None]
    box = below * np.float32(0.25) + np.float32(0.75 * bar)
    box = box + (np.float32(ink) - box) * mask
    result[rows, columns] = (below + (box - below) * np.float32(share) + np.float32(0.5)).astype(np.uint8)
    return result


@cache
def words(text: str, height: int) -> npt.NDArray[np.float32]:
    """How much of each pixel the letters cover, 0 to 1. Matplotlib's font is the same on every machine."""
    import matplotlib as mpl
    from matplotlib.ft2font import FT2Font

    font = FT2Font(f"{mpl.get_data_path()}/fonts/ttf/DejaVuSans-Bold.ttf")
    font.set_size(height, 72)
    font.set_text(text)
    font.draw_glyphs_to_bitmap(antialiased=True)
    return np.asarray(font.get_image(), dtype=np.float32) / np.float32(255)
