"""One sharp picture for each segment, by seeking: the video is never in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ongebd.detector.segments import Segment
from ongebd.types import ImageU8
from ongebd.video import VideoReader

_AROUND = 0.5
"""Seconds on either side of the calmest moment in which the sharpest picture is looked for."""
_FPS = 12


def keyframes(
    reader: Callable[..., VideoReader], segments: Iterable[Segment]
) -> Iterator[tuple[Segment, ImageU8]]:
    """Each segment with the sharpest picture about its `keyframe`, which then says when that is.

    Args:
        reader: Opens the source from `start` to `end` seconds, at `fps` frames a second.
        segments: Of the source.
    """
    for segment in segments:
        around = min(_AROUND, (segment.end - segment.start) / 5)
        # A picture that is shown for long may begin before those seconds.
        for begin, end in (
            (segment.keyframe - around, segment.keyframe + around),
            (segment.start, segment.end),
        ):
            best, time, picture = -1.0, segment.keyframe, None
            start = max(Fraction(0), Fraction(begin))
            with reader(fps=_FPS, start=start, end=Fraction(end)) as video:
                for frame in video:
                    if (sharp := sharpness(frame.rgb)) > best:
                        best, time, picture = sharp, float(frame.time), frame.rgb
            if picture is not None:
                yield replace(segment, keyframe=time), picture
                break


def sharpness(rgb: ImageU8) -> float:
    """How much detail a picture has: the mean square of the Laplacian of its green."""
    green = rgb[..., 1].astype(np.float32)
    across = np.diff(green, 2, axis=1)
    down = np.diff(green, 2, axis=0)
    return float(np.square(across).sum() + np.square(down).sum()) / max(1, green.size)
