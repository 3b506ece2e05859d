"""Where distractors go: within a segment, clear of every boundary and of each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ongebd.lab.composites.config import ComposeConfig
from ongebd.lab.composites.kinds import CAMERA
from ongebd.lab.composites.plan import Distractor, Segment

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
_PAUSE = (0.5, 1.5)  # seconds between two, where there is nothing else
_PAUSE_MOMENTARY = (1.5, 4.0)
_SHARE = 0.8  # of the segments that have one, where there are boundaries
_DRAWS = 3
_MARGIN = {"shake": 1.08, "pan": 1.3}


def margin_of(distractors: Sequence[Distractor]) -> float:
    """The zoom that leaves the camera room enough to move."""
    return max((_MARGIN.get(each.kind, 1.0) for each in distractors), default=1.0)


def placed(
    segments: Sequence[Segment],
    marks: Sequence[tuple[int, int]],
    config: ComposeConfig,
    rng: np.random.Generator,
    counts: Counter[str],
    *,
    alone: bool,
) -> list[Distractor]:
    """Distractors for a video.

    Args:
        segments: What is seen.
        marks: First and last frame of each boundary, of which to keep clear.
        config: Which kinds.
        rng: Of every choice.
        counts: How often each kind was placed in earlier videos.
        alone: There are no boundaries: one follows the other, with short pauses.
    """
    fps = float(config.rate)
    clear = round(CLEAR * fps)
    here: Counter[str] = Counter()
    result: list[Distractor] = []
    last = segments[-1].stop
    for low, high, still in _free(segments, marks, clear, last):
        if not alone and rng.random() > _SHARE:
            continue
        at = low if alone else low + int(rng.integers(0, max(1, (high - low) // 3)))
        while True:
            kind = _kind(config, rng, counts + here, (high - at) / fps, still=still and not alone)
            if kind is None:
                break
            frames = _length(kind, rng, (high - at) / fps, fps)
            strength, seed = float(rng.random()), int(rng.integers(2**31))
            result.append(Distractor(kind, at, at + frames, strength, seed))
            here[kind] += 1
            pause = _PAUSE_MOMENTARY if kind in ("flash", "freeze") else _PAUSE
            at += frames + max(1, round(float(rng.uniform(*pause)) * fps))
            if not alone:
                break
    return result


def _free(
    segments: Sequence[Segment], marks: Sequence[tuple[int, int]], clear: int, last: int
) -> list[tuple[int, int, bool]]:
    """Stretches (first, stop) between boundaries, and whether the picture is still in them."""
    edges = sorted([(0, 0), *marks, (last, last)])
    free = []
    for (_, low), (high, _) in pairwise(edges):
        if high - low > 2 * clear:
            rate = next(each.rate for each in segments if each.first <= (low + high) // 2 < each.stop)
            free.append((low + clear, high - clear, rate == 0))
    return free


def _kind(
    config: ComposeConfig, rng: np.random.Generator, counts: Counter[str], seconds: float, *, still: bool
) -> str | None:
    """A kind, rare ones more often; none if those drawn do not fit, lest the short ones take over."""
    kinds = [
        kind for kind in config.distractor_kinds if not (still and kind in CAMERA | {"freeze"})
    ]  # where motion has stopped, none that moves the picture
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
