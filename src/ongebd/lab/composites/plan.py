"""The plan of a video: which pieces of which clips, how they join, what is laid over them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ongebd.lab.composites.clips import Clip, Shot
from ongebd.lab.composites.config import Part
from ongebd.lab.composites.pictures import SIDE, LumaU8


@dataclass(frozen=True, slots=True)
class Framing:
    """A part of the picture, shown full size. Zoom 1 is all of it; places are 0 (left, top) to 1."""

    zoom: float = 1.0
    x: float = 0.5
    y: float = 0.5
    mirror: bool = False


WHOLE = Framing()

STILL = (1.5, 3.0)
"""Seconds for which motion stops."""

MOVING = 15.0
"""`Clip.motion` from which on something clearly moves."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a shot that is shown.

    Attributes:
        clip: The clip.
        shot: The shot within which it stays.
        start: Seconds of the clip at which it begins.
        rate: Seconds of the clip a second; below 0 backwards, 0 a still picture.
        framing: What part of the picture is shown.
        resume: The rate with which motion goes on after a still picture.
    """

    clip: Clip
    shot: Shot
    start: float
    rate: float = 1.0
    framing: Framing = WHOLE
    resume: float = 1.0

    @property
    def room(self) -> float:
        """Seconds for which it can be shown."""
        if self.rate == 0:
            return STILL[1]
        left = self.shot.end - self.start if self.rate > 0 else self.start - self.shot.start
        return max(left, 0.0) / abs(self.rate)

    def after(self, seconds: float) -> float:
        """Seconds of the clip after so many seconds of showing."""
        return self.start + self.rate * seconds

    def seen(self, time: float) -> LumaU8:
        """The small picture at a time of the clip, cropped and mirrored."""
        luma, framing = self.clip.picture(time), self.framing
        if framing == WHOLE:
            return luma
        places = (np.arange(SIDE) + 0.5) / framing.zoom
        spare = SIDE * (1 - 1 / framing.zoom)
        rows, columns = ((places + spare * at).astype(np.intp) for at in (framing.y, framing.x))
        picture: LumaU8 = luma[np.ix_(rows, columns)]
        return picture[:, ::-1] if framing.mirror else picture

    def moves(self, start: float, end: float, least: float) -> bool:
        """Whether something clearly moves, all the time between two times of the clip, within the shot."""
        low, high = sorted((start, end))
        if low < self.shot.start - 0.05 or high > self.shot.end + 0.05:
            return False
        motion = self.clip.motion_between(low, high)
        return float(motion.mean()) >= least and float(np.quantile(motion, 0.2)) >= MOVING * 0.6


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece on the output's frames.

    Attributes:
        piece: What is shown.
        first: The first output frame that shows it.
        frames: How many show it, including those in which it is mixed with its neighbours.
    """

    piece: Piece
    first: int
    frames: int

    @property
    def stop(self) -> int:
        """The first output frame that doesn't show it."""
        return self.first + self.frames

    def source_time(self, frame: int, fps: Fraction) -> float:
        """Seconds of the clip at an output frame."""
        return self.piece.after(float((frame - self.first) / fps))


@dataclass(frozen=True, slots=True)
class Join:
    """Where one segment changes into the next.

    Attributes:
        kind: The kind of boundary.
        first: The first frame that shows the next segment, if only in part.
        frames: Frames that show both, an odd number; 0 for a sudden change.
        white: A fade goes through white, not black.
    """

    kind: str
    first: int
    frames: int = 0
    white: bool = False

    @property
    def frame(self) -> int:
        """The labelled frame: the first of the next segment, or the middle of those that show both."""
        return self.first + self.frames // 2


@dataclass(frozen=True, slots=True)
class Distractor:
    """Something that is not an event, in the frames from `first` to before `stop`; strength 0 (weak) to 1."""

    kind: str
    first: int
    stop: int
    strength: float
    seed: int


@dataclass(frozen=True, slots=True)
class VideoPlan:
    """Everything that decides what a video looks like.

    Attributes:
        id: The name of its file without ending.
        part: Of the clips; "all" where they aren't split.
        width: Pixels, even.
        height: Pixels, even.
        fps: Frames a second.
        frames: How many.
        segments: In the order in which they are seen.
        joins: One fewer than segments.
        naturals: Frames at which a labelled boundary of a source is seen.
        distractors: In order. They overlap neither each other nor a boundary.
        margin: Zoom of the whole video that leaves room for the camera to move.
    """

    id: str
    part: Part
    width: int
    height: int
    fps: Fraction
    frames: int
    segments: tuple[Segment, ...]
    joins: tuple[Join, ...]
    naturals: tuple[int, ...]
    distractors: tuple[Distractor, ...]
    margin: float

    @property
    def duration(self) -> float:
        """Seconds."""
        return float(self.frames / self.fps)

    @property
    def clips(self) -> list[str]:
        """The names of the clips in it, each once."""
        return sorted({segment.piece.clip.name for segment in self.segments})
