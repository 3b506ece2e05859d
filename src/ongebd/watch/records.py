"""The records that a watcher publishes about its streams: small frozen values.

`stream` is the stream's key, `wall` is a moment in Unix seconds (UTC), and `time` is in media
seconds since the first frame of the connection that `epoch` belongs to. Each connection begins an epoch at
time 0. A break within a connection (the clock stepped back, the picture changed) also begins an epoch, but
time goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from ongebd.output.jsonl import boundary_fields, update_fields
from ongebd.output.writer import rounded
from ongebd.types import Boundary, Kind
from ongebd.video.packets import Piece

State = Literal["connecting", "live", "stalled", "reconnecting", "ended", "failed"]
STATES: tuple[State, ...] = get_args(State)
"""A stream's life: it opens; frames come; none came for a while; the connection was lost and is being tried
again; the source is over; the watcher gave up."""


Held = Literal["cooldown", "rate", "cap", "repeats", "hours"]
"""Why an incident causes no alert: too soon after a stronger one; weaker than others of the hour; the day's
alerts
are used up; the same comes all the time; it's not in the active hours."""


@dataclass(frozen=True, slots=True)
class Point:
    """One decided frame, with the numbers of its `ongebd.Decision`; `wall` is when the frame arrived."""

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
    """A boundary begins; published at the frame that fired.

    Attributes:
        number: Counts the stream's boundaries from 1, over all epochs.
        wall: When the frame arrived.
        score: Its z; the boundary's score, known when the run of positive frames is over, may be larger.
        has_thumbnail: Whether `WatchedStream.history` has a picture of it.
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
    """The centre of a boundary is known; its `Onset` has the same number.

    Attributes:
        wall: When the frame that decided it arrived, or when the stream ended.
    """

    stream: str
    number: int
    epoch: int
    boundary: Boundary
    wall: float
    has_thumbnail: bool


@dataclass(frozen=True, slots=True)
class Updated:
    """Peak and kind of a boundary are known, within a second of its onset; its `Found` came before."""

    stream: str
    number: int
    epoch: int
    boundary: Boundary
    wall: float


@dataclass(frozen=True, slots=True)
class Incident:
    """Boundaries that belong together. It is published when it starts, gets better, and ends.

    Attributes:
        number: Counts the stream's incidents from 1; the records of one incident share it.
        state: `started` comes up to two seconds after `start`, when there is a good picture; `updated` when
            picture or peak got better, or when a held incident is told after all.
        first: Number of its first boundary; the history's `picture(first)` shows how it began.
        start: The first boundary's onset.
        end: The last boundary's onset; None while more may come.
        wall: When the frame of `start` arrived.
        wall_end: When the frame of `end` arrived.
        peak: Of its strongest boundary.
        count: Boundaries in it.
        kind: Of its strongest boundary; None if the method can't tell.
        has_picture: Whether `WatchedStream.history` has its best picture: `picture(Best(number))`.
        held: Why nobody should be alarmed; None: tell it. It may change when the incident gets better.
    """

    stream: str
    number: int
    state: Literal["started", "updated", "ended"]
    first: int
    epoch: int
    start: float
    end: float | None
    wall: float
    wall_end: float | None
    peak: float
    count: int
    kind: Kind | None
    has_picture: bool
    held: Held | None = None


@dataclass(frozen=True, slots=True)
class Digest:
    """The incidents of a day that were held; published at midnight (local time) and when the stream is over.

    Attributes:
        day: As in 2026-11-28.
        told: Alerts on that day.
        held: How many incidents were held, by reason.
        strongest: Numbers of the five strongest of these.
    """

    stream: str
    wall: float
    day: str
    told: int
    held: dict[Held, int]
    strongest: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StateChanged:
    """A stream enters another state, or begins an epoch in its current state.

    Attributes:
        epoch: The newest frame's; one more than before if this record begins an epoch.
        reason: One line for people, without credentials; may be empty.
    """

    stream: str
    state: State
    wall: float
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """Frames were dropped because the model is slower than the source; at most one record in ten seconds.

    Attributes:
        count: Frames since the last such record.
        total: Frames since the watcher started.
    """

    stream: str
    wall: float
    count: int
    total: int


@dataclass(frozen=True, slots=True)
class Warned:
    """What a user should know about a source: `ongebd detect` gives the same warnings.

    A warning in which only numbers are new comes once an hour, and when the stream is over.

    Attributes:
        warning: One line without credentials.
    """

    stream: str
    wall: float
    epoch: int
    warning: str


@dataclass(frozen=True, slots=True)
class Retuned:
    """A stream has a new sensitivity, from 0.1 (few boundaries) to 0.9 (many)."""

    stream: str
    wall: float
    sensitivity: float


@dataclass(frozen=True, slots=True)
class Clip:
    """The video around an onset is in a file (MP4). `number` to `wall` are the onset's.

    Attributes:
        kind: The boundary's; None while it isn't known.
    """

    stream: str
    number: int
    epoch: int
    time: float
    wall: float
    path: Path
    seconds: float
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class Filmed:
    """Everything is known about a boundary: its centre, and its clip. Published if clips are kept.

    Attributes:
        path: The clip; None if it could not be made, or if the watch ended first.
    """

    found: Found
    path: Path | None


@dataclass(frozen=True, slots=True)
class Footage:
    """The video around an onset, ready to be written. Large: published on `Watcher.footage` only.

    Attributes:
        piece: Its packets; None if the source sent no keyframe to begin with.
    """

    onset: Onset
    piece: Piece | None


Told = Onset | Found | Incident | Digest | StateChanged | Dropped | Warned | Clip
Record = Point | Told | Updated | Retuned | Filmed | Footage

_TYPES: dict[type[Any], str] = {
    Found: "boundary",
    Updated: "update",
    StateChanged: "state",
    Dropped: "drop",
    Warned: "warning",
}


def record_line(record: Point | Told | Updated | Retuned) -> dict[str, Any]:
    """A record as a JSON object, with times rounded to the microsecond."""
    kind = type(record)
    line: dict[str, Any] = {"type": _TYPES.get(kind, kind.__name__.lower())}
    for name in (field.name for field in fields(record)):
        value = getattr(record, name)
        if isinstance(value, Boundary):
            line |= update_fields(value) if kind is Updated else boundary_fields(value)
        elif name == "time" and isinstance(record, Onset | Clip):
            line["onset"] = rounded(value)
        elif value is not None and name not in ("wall", "has_thumbnail", "has_picture"):
            shown = str(value) if isinstance(value, Path) else value
            line[name] = rounded(value) if isinstance(value, float) else shown
    return {**line, "wall": rounded(record.wall)}
