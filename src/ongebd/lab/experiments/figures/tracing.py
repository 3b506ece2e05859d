"""What the figure of a video needs: each method's trace over it, and its frames at given times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ongebd.common.text import printable, public_name
from ongebd.data.files import FloatArray
from ongebd.detector import Model, detect
from ongebd.detector.judge import OBD
from ongebd.errors import SourceError
from ongebd.types import Boundary, Decision, ImageU8
from ongebd.video import VideoReader


@dataclass(frozen=True, slots=True, eq=False)
class MethodTrace:
    """A method's stream over one video.

    Attributes:
        name: What the figure calls the method.
        unit: What its score is.
        time: Of each frame, seconds, (T,).
        score: The score of each frame.
        threshold: The score's threshold; NaN where there is none.
        boundaries: The centres, seconds, in the order in which they were decided.
        duration: Of the video, seconds.
    """

    name: str
    unit: str
    time: FloatArray
    score: FloatArray
    threshold: FloatArray
    boundaries: FloatArray
    duration: float


def trace(video: Path | str, model: Model, name: str | None = None) -> MethodTrace:
    """Run a method over a video as a stream.

    Raises:
        SourceError: The video can't be read.
    """
    found = detect(video, model)
    return traced(found.boundaries, found.decisions, found.duration, model, name)


def traced(
    boundaries: Sequence[Boundary],
    decisions: Sequence[Decision],
    duration: float,
    model: Model,
    name: str | None = None,
) -> MethodTrace:
    """The trace of what a method found in a video of a duration in seconds."""
    rows = [(each.time, each.error, each.threshold, each.ready) for each in decisions]
    time, score, threshold, ready = np.array(rows, np.float64).reshape(-1, 4).T
    return MethodTrace(
        printable(public_name(model.name)) if name is None else name,
        "error ε" if (model.configured().head or OBD) == OBD else "score",
        time,
        score,
        np.where(ready > 0, threshold, np.nan),
        np.array([boundary.time for boundary in boundaries], np.float64),
        duration,
    )


def frames_at(video: Path | str, times: Sequence[float]) -> list[ImageU8]:
    """The frames nearest to ascending times in seconds, two or more, 240 pixels on the shorter side.

    Raises:
        SourceError: The video can't be read, or has no frame.
    """
    nearest: list[tuple[float, ImageU8] | None] = [None] * len(times)
    fps = max(4.0, 8.0 * (len(times) - 1) / (times[-1] - times[0]))
    with VideoReader(video, fps, short_side=240) as reader:
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
