"""What a watcher says of its streams: small frozen values, told to whoever subscribes to the hub.

Of every record `stream` is the stream's key, `wall` a moment in Unix seconds (UTC), `time` media seconds
since the first frame of the connection that `epoch` belongs to. Each connection begins an epoch with a time
of 0; a break within one (the clock stepped back, the picture changed) begins an epoch too, and time goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ongebd.types import Boundary
from ongebd.video.packets import Piece

State = Literal["connecting", "live", "stalled", "reconnecting", "ended", "failed"]
STATES: tuple[State, ...] = ("connecting", "live", "stalled", "reconnecting", "ended", "failed")
"""A stream's life: it is opened; frames come; none came for a while; it was lost and is tried again; it is
over; it is given up."""


@dataclass(frozen=True, slots=True)
class Point:
    """One decided frame; its numbers are those of `ongebd.Decision`.

    Attributes:
        stream: Key of the stream.
        epoch: The frame's.
        time: Media seconds.
        wall: When the frame arrived.
        error: Its score; in [0, 1] for the default models.
        mean: Of the scores that it was compared with; 0 for a method that compares with none.
        std: Their standard deviation.
        threshold: The score above which the frame is positive.
        z: How far it stands out, in the method's own measure.
        positive: Whether it is above.
        ready: False during a cold start, when nothing can be judged.
    """

    stream: str
    epoch: int
    time: float
    wall: float
    error: float
    mean: float
    std: float
    threshold: float
    z: float
    positive: bool
    ready: bool


@dataclass(frozen=True, slots=True)
class Onset:
    """A boundary begins; told at the frame that fired.

    Attributes:
        stream: Key of the stream.
        number: The stream's boundaries are counted from 1, over all epochs.
        epoch: The frame's.
        time: Media seconds of the onset.
        wall: When that frame arrived.
        score: Its z; the boundary's, known when the run of positive frames is over, may be larger.
        has_thumbnail: Whether `WatchedStream.thumbnail(number)` has a picture of it.
    """

    stream: str
    number: int
    epoch: int
    time: float
    wall: float
    score: float
    has_thumbnail: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The centre of a boundary is now known; its `Onset` has the same number.

    Attributes:
        stream: Key of the stream.
        number: As its onset's.
        epoch: Likewise.
        boundary: Centre, onset, and when it was decided, in media seconds; and its score.
        wall: When the frame that decided it arrived, or the end that did.
        has_thumbnail: As its onset's.
    """

    stream: str
    number: int
    epoch: int
    boundary: Boundary
    wall: float
    has_thumbnail: bool


@dataclass(frozen=True, slots=True)
class StateChanged:
    """A stream goes over into another state, or begins an epoch in the state that it is in.

    Attributes:
        stream: Key of the stream.
        state: The new one.
        wall: When.
        epoch: The newest frame's; one more than before where this record begins one.
        reason: One line for people, without credentials; may be empty.
    """

    stream: str
    state: State
    wall: float
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """Frames were dropped, for the model is slower than the source; at most one such record a second.

    Attributes:
        stream: Key of the stream.
        wall: When it was counted.
        count: Frames since the last such record.
        total: Frames since the watcher was started.
    """

    stream: str
    wall: float
    count: int
    total: int


@dataclass(frozen=True, slots=True)
class Retuned:
    """A stream has another sensitivity from now on.

    Attributes:
        stream: Key of the stream.
        wall: When.
        sensitivity: From 0.1 (few boundaries) to 0.9 (many).
    """

    stream: str
    wall: float
    sensitivity: float


@dataclass(frozen=True, slots=True)
class Clip:
    """The video around an onset is in a file.

    Attributes:
        stream: Key of the stream.
        number: As its onset's.
        epoch: Likewise.
        time: Likewise.
        wall: Likewise.
        path: The file, MP4.
        seconds: How long it lasts.
    """

    stream: str
    number: int
    epoch: int
    time: float
    wall: float
    path: Path
    seconds: float


@dataclass(frozen=True, slots=True)
class Filmed:
    """All is known of a boundary: its centre, and its clip or that there is none. Told where clips are kept.

    Attributes:
        stream: Key of the stream.
        wall: As its centre's.
        found: Its centre.
        path: The clip's file, MP4; None where it could not be made, or the watch ended before it was.
    """

    stream: str
    wall: float
    found: Found
    path: Path | None


@dataclass(frozen=True, slots=True)
class Footage:
    """The video around an onset is complete, and is to be written. Large: told on `Watcher.footage` only.

    Attributes:
        stream: Key of the stream.
        wall: As its onset's.
        onset: What it is of.
        piece: Its packets; None where the source sent no keyframe to begin with.
    """

    stream: str
    wall: float
    onset: Onset
    piece: Piece | None


Record = Point | Onset | Found | StateChanged | Dropped | Retuned | Clip | Filmed | Footage
