"""The plan of a video: which pieces of which clips, how they join, what is laid over them. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ongebd.lab.composites.config import Part


@dataclass(frozen=True, slots=True)
class Framing:
    """A part of the picture, shown full size. Zoom 1 is all of it; places are 0 (left, top) to 1."""

    zoom: float = 1.0
    x: float = 0.5
    y: float = 0.5
    mirror: bool = False


WHOLE = Framing()


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a clip on the output's frames.

    Attributes:
        clip: The clip's name.
        first: The first output frame that shows it.
        frames: How many show it, including those in which it is mixed with its neighbours.
        start: Seconds of the clip at its first frame.
        rate: Seconds of the clip a second; below 0 backwards, 0 a still picture.
        framing: What part of the picture is shown.
    """

    clip: str
    first: int
    frames: int
    start: float
    rate: float
    framing: Framing = WHOLE

    @property
    def stop(self) -> int:
        """The first output frame that doesn't show it."""
        return self.first + self.frames

    def source_time(self, frame: int, fps: Fraction) -> float:
        """Seconds of the clip at an output frame."""
        return self.start + self.rate * float((frame - self.first) / fps)


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
    """Everything that decides what a video looks like, apart from the clips themselves.

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
        return sorted({segment.clip for segment in self.segments})
