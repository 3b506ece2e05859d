"""What a figure needs of a video: the trace of a method's stream over it, and its frames at given times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ongebd.common.text import printable, public_name
from ongebd.detector import Model, StreamConfig, detect, load
from ongebd.detector.heads import OBD
from ongebd.errors import SourceError
from ongebd.output.trace import Curves, Floats
from ongebd.types import Boundary, Decision, Detection, ImageU8
from ongebd.video import VideoReader

POINTS = 2000
"""On a drawn curve; of more, the highest of neighbours stands for them."""


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """A method's stream over one video, from beginning to end.

    Attributes:
        name: What the method is called in the figure.
        curves: The score of each frame, its threshold, and when there was none; NaN where there is no
            verdict.
        z: The same in standard deviations of the recent errors; None for a method that is not judged by the
            paper's discriminator.
        boundaries: In the order in which they were decided.
        duration: Of the video, seconds.
    """

    name: str
    curves: Curves
    z: Curves | None
    boundaries: tuple[Boundary, ...]
    duration: float

    @classmethod
    def of(cls, name: str, detection: Detection, settings: StreamConfig) -> Watched:
        """The trace of a finished detection.

        Args:
            name: What to call the method.
            detection: With a decision on every frame.
            settings: With which it was made, filled in.
        """
        curves = _curves(detection.decisions)
        z = None
        if has_z(settings):
            z = _standardised(curves, detection.decisions, settings.min_std or 0.0)
        return cls(name, curves, z, tuple(detection.boundaries), detection.duration)

    def times(self, moment: str) -> Floats:
        """The boundaries' moments, "centre" or "onset", in seconds, shape (number of boundaries,)."""
        return np.array(
            [found.onset if moment == "onset" else found.time for found in self.boundaries], np.float64
        )


def has_z(settings: StreamConfig) -> bool:
    """Whether a stream with these settings is judged by the paper's discriminator."""
    return (settings.head or OBD) == OBD


def watch(video: Path | str, model: str | Model, *, name: str | None = None, **settings: Any) -> Watched:
    """Run a method over a video, as a stream, and keep the trace.

    Args:
        video: What `ongebd.detect` takes.
        model: The method's name or folder, or a loaded one.
        name: What to call it in the figure; None: its own name.
        **settings: As in `StreamConfig`: tau, sensitivity, …

    Raises:
        SourceError: The video cannot be read.
        ConfigError: There is no such method, or a setting is out of range.
    """
    loaded = model if isinstance(model, Model) else load(model)
    detection = detect(video, loaded, **settings)
    called = printable(public_name(loaded.name)) if name is None else name
    return Watched.of(called, detection, loaded.configured(**settings))


def pictures_at(video: Path | str, times: Sequence[float], short_side: int = 240) -> list[ImageU8]:
    """The frames that are nearest to given times.

    Args:
        video: A file, read once.
        times: Seconds, ascending.
        short_side: Pixels of the shorter side.

    Returns:
        A picture for each time, uint8, (height, width, 3).

    Raises:
        SourceError: The video cannot be read, or has no frame.
    """
    if not len(times):
        return []
    nearest: list[tuple[float, ImageU8] | None] = [None] * len(times)
    with VideoReader(video, _rate(times), short_side=short_side) as reader:
        for frame in reader:
            at = float(frame.time)
            for place, wanted in enumerate(times):
                best = nearest[place]
                if best is None or abs(at - wanted) < best[0]:
                    nearest[place] = abs(at - wanted), frame.rgb
            if at > times[-1] + 1.0:
                break
    found = [best[1] for best in nearest if best is not None]
    if len(found) < len(times):
        raise SourceError(f"{printable(public_name(str(video)))}: has no frame to show; is it empty?")
    return found


def _rate(times: Sequence[float]) -> float | None:
    """Frames a second that are enough to be near each of the times; None for all that there are."""
    if len(times) < 2 or times[-1] <= times[0]:
        return None
    return max(4.0, 8.0 * (len(times) - 1) / (times[-1] - times[0]))


def _curves(decisions: Sequence[Decision]) -> Curves:
    ready = np.array([decision.ready for decision in decisions], np.bool_)
    threshold = np.array([decision.threshold for decision in decisions], np.float64)
    return Curves(
        time=np.array([decision.time for decision in decisions], np.float64),
        error=np.array([decision.error for decision in decisions], np.float64),
        threshold=np.where(ready, threshold, np.nan),
        mean=np.array([decision.mean for decision in decisions], np.float64),
        ready=ready,
        positive=np.array([decision.is_boundary for decision in decisions], np.bool_),
    )


def _standardised(curves: Curves, decisions: Sequence[Decision], min_std: float) -> Curves:
    """Errors and thresholds as numbers of standard deviations above the mean of the queue."""
    spread = np.array([max(decision.std, min_std) for decision in decisions], np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (curves.error - curves.mean) / spread
        threshold = (curves.threshold - curves.mean) / spread
    known = curves.ready & (spread > 0)
    return replace(
        curves,
        error=np.where(known, z, np.nan),
        threshold=np.where(known, threshold, np.nan),
        mean=np.zeros_like(z),
    )
