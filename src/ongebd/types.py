"""The values that pass between rooms: a frame, the decision on it, a boundary, a break in the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

ImageU8 = npt.NDArray[np.uint8]
"""An upright picture, RGB, shape (height, width, 3)."""

Feature = npt.NDArray[np.float32]
"""One frame's feature, shape (D,)."""


Kind = Literal["cut", "gradual", "event"]


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One upright picture and the exact time at which it is shown.

    Attributes:
        index: Position among the frames that the reader handed out, from 0.
        time: Seconds since the first frame of the source, exact (a multiple of the stream's time base).
        rgb: The picture, uint8, shape (height, width, 3), rotated upright.
        epoch: 0 at the start; 1 more after each break of the clock or change of the picture's format.
        pts: The raw presentation timestamp, in units of `time_base`; None if the source has none.
        time_base: The unit of `pts`, in seconds.
        size: Width and height of the upright picture before resizing; None if it wasn't resized.
        preview: A second picture, for people; None if none was asked for.
    """

    index: int
    time: Fraction
    rgb: ImageU8 = field(repr=False)
    epoch: int = 0
    pts: int | None = None
    time_base: Fraction = Fraction(1)
    size: tuple[int, int] | None = None
    preview: ImageU8 | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Boundary:
    """One event boundary: where one event ends and the next begins. All times are in seconds.

    Attributes:
        time: The *centre*: midway between the first and the last frame of the run of positive frames. The
            paper scores this one.
        onset: The first positive frame of the run, the earliest moment at which the boundary can be reported.
        decided: Time of the frame that showed that the run was over. From then on the centre is known.
        score: The largest z of the run: how many standard deviations the error stood above the recent mean.
            For a learned model, its score at the onset, in [0, 1].
        onset_known: Time of the frame at which the onset was known: the onset itself for an online method,
            later for a method that looks ahead. None if unknown.
        peak: How strong it is: the highest score within a second after the onset, or until the next boundary.
            A learned model adds 1 − cos between the half seconds before and after the onset. None while it
            isn't known.
        kind: `cut`, the picture changed from one frame to the next; `gradual`, it changed within a second (a
            dissolve, a fade); `event`, something else happens. None while it isn't known, or if the method
            can't tell.
    """

    time: float
    onset: float
    decided: float
    score: float
    onset_known: float | None = field(default=None, repr=False, compare=False)
    peak: float | None = field(default=None, repr=False, compare=False)
    kind: Kind | None = field(default=None, repr=False, compare=False)


AGO = (1, 2, 3, 4, 6, 8, 12, 16, 24, 36)


class Signs(NamedTuple):
    """What a method says of a frame beside its score.

    Attributes:
        cut: Whether a new shot begins with it.
        ago: The errors against earlier frames, `AGO` frames ago; nothing if the method can't tell.
        contrast: 1 − cos of the mean features of the last half second and the one before.
    """

    cut: bool = False
    ago: Sequence[float] = ()
    contrast: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """The detector's decision on one frame. All numbers are finite.

    Attributes:
        index: Frames of this stream before this one.
        time: Seconds, as given with the frame.
        error: Prediction error ε in [0, 1], or the method's own score; 0 if there is none, as for the first
            frame of a stream.
        mean: Mean of the errors in the queue, without this frame's.
        std: Their population standard deviation.
        z: (error − mean) / std, with a floor on the standard deviation; 0 while not `ready`.
        threshold: The error above which a frame is positive.
        is_boundary: Whether this frame is positive. Neighbouring positive frames make one boundary.
        ready: False during the cold start, when too few errors are known for a test.
        onset: Whether this frame is the first of a run of positive ones.
        boundary: The boundary whose run this frame ended, if any.
        pending: The method looks ahead, and the decision on this newest frame comes later. Never True
            for an online method.
    """

    index: int
    time: float
    error: float
    mean: float
    std: float
    z: float
    threshold: float
    is_boundary: bool
    ready: bool = True
    onset: bool = False
    boundary: Boundary | None = None
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Epoch:
    """A break in a source's clock or format, at which a detector restarts.

    Attributes:
        number: 1 for the first break.
        time: Seconds since the first frame of the source.
        reason: One line for people.
    """

    number: int
    time: float
    reason: str
