"""What the figure of a video needs: each method's trace over it, and its frames at given times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ongebd.common.text import printable, public_name
from ongebd.data.numbers import FloatArray
from ongebd.detector import Model, StreamConfig, detect
from ongebd.detector.heads import OBD
from ongebd.errors import SourceError
from ongebd.types import Boundary, Detection, ImageU8
from ongebd.video import VideoReader

MOST_POINTS = 2000
"""On a drawn curve."""


class Curve(NamedTuple):
    """A score and its threshold over time; all (T,), NaN where there is none."""

    time: FloatArray
    score: FloatArray
    threshold: FloatArray

    def between(self, start: float, end: float) -> Curve:
        """The part from start to end, with one more point on either side."""
        inside = (self.time >= start) & (self.time <= end)
        inside[:-1] |= inside[1:]
        inside[1:] |= inside[:-1]
        return Curve(*(values[inside] for values in self))

    def pooled(self) -> Curve:
        """At most `MOST_POINTS`: of neighbours, the one with the highest score."""
        frames = len(self.time)
        size = -(-frames // MOST_POINTS)
        if size <= 1:
            return self
        starts = np.arange(0, frames, size)
        padded = np.full(len(starts) * size, -np.inf)
        padded[:frames] = np.where(np.isnan(self.score), -np.inf, self.score)
        highest = starts + padded.reshape(-1, size).argmax(axis=1)
        return Curve(*(values[highest] for values in self))


@dataclass(frozen=True, slots=True, eq=False)
class MethodTrace:
    """A method's stream over one video.

    Attributes:
        name: What the figure calls the method.
        score: The score of each frame.
        z: The same in standard deviations of the recent errors; None without the paper's discriminator.
        boundaries: In the order in which they were decided.
        duration: Of the video, seconds.
    """

    name: str
    score: Curve
    z: Curve | None
    boundaries: tuple[Boundary, ...]
    duration: float

    @classmethod
    def of(cls, name: str, detection: Detection, settings: StreamConfig) -> MethodTrace:
        """The trace of a detection with a decision on every frame, made with these settings."""
        decisions = detection.decisions
        ready = np.array([decision.ready for decision in decisions], np.bool_)
        time, error, threshold, mean, deviation = np.array(
            [(each.time, each.error, each.threshold, each.mean, each.std) for each in decisions], np.float64
        ).T
        score = Curve(time, error, np.where(ready, threshold, np.nan))
        z = None
        if has_z(settings):
            deviation = np.maximum(deviation, settings.min_std or 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                both = [(values - mean) / deviation for values in (score.score, score.threshold)]
            z = Curve(time, *(np.where(ready & (deviation > 0), values, np.nan) for values in both))
        return cls(name, score, z, tuple(detection.boundaries), detection.duration)

    def times(self, moment: str) -> FloatArray:
        """The onsets or centres of its boundaries, seconds."""
        return np.array([b.onset if moment == "onset" else b.time for b in self.boundaries], np.float64)


def has_z(settings: StreamConfig) -> bool:
    """Whether a stream with these settings is judged by the paper's discriminator."""
    return (settings.head or OBD) == OBD


def trace(video: Path | str, model: Model, name: str | None = None) -> MethodTrace:
    """Run a method over a video as a stream.

    Raises:
        SourceError: The video can't be read.
    """
    name = printable(public_name(model.name)) if name is None else name
    return MethodTrace.of(name, detect(video, model), model.configured())


def frames_at(video: Path | str, times: Sequence[float]) -> list[ImageU8]:
    """The frames nearest to ascending times in seconds, 240 pixels on the shorter side.

    Raises:
        SourceError: The video can't be read, or has no frame.
    """
    nearest: list[tuple[float, ImageU8] | None] = [None] * len(times)
    with VideoReader(video, _enough_fps(times), short_side=240) as reader:
        for frame in reader:
            at = float(frame.time)
            for place, wanted in enumerate(times):
                best = nearest[place]
                if best is None or abs(at - wanted) < best[0]:
                    nearest[place] = abs(at - wanted), frame.rgb
            if at > times[-1] + 1.0:
                break
    found = [best[1] for best in nearest if best is not None]
    if not found:
        raise SourceError(f"{printable(public_name(str(video)))}: has no frame to show")
    return found


def _enough_fps(times: Sequence[float]) -> float | None:
    """Frames per second that come near to each of the times; None means all."""
    if len(times) < 2:
        return None
    return max(4.0, 8.0 * (len(times) - 1) / (times[-1] - times[0]))
