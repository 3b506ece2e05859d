"""Boundaries that belong together become one incident, and some incidents become alerts."""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import date, datetime, time
from math import inf
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from ongebd.common.settings import Range, check_fields
from ongebd.errors import ConfigError
from ongebd.types import Boundary
from ongebd.watch.records import Digest, Held, Incident, Onset, Point, Updated

GAP = 2.5
"""Seconds without a boundary that end an incident. (Visits of a hall clip follow each other after 3 s.)"""
LONGEST = 30.0
"""Seconds that an incident lasts at most."""
LOOK = 2.0
"""Seconds after a boundary in which a better picture is looked for."""
SAME = 0.97
"""Cosine of two looks (see `ongebd.watch.pictures`) above which the same place changed in the same way."""
REPEATS = 12
"""How often an hour the same is news."""
Look = npt.NDArray[np.float32] | None
"""Where a picture changed: shape (D,), of length 1."""
_LAST_MOMENT = 253_402_000_000.0  # in the year 9999
_HOUR = 3600.0
_STRONGER = 1.2
_FREELY = 0.8
"""Share of an hour's alerts that any incident may take; the rest are kept for the strongest of the hour."""
_HOURS = re.compile(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d")


@dataclass(frozen=True, kw_only=True)
class Alerts:
    """Which incidents cause an alert. The others are held: only the records and the page show them.

    Raises:
        ConfigError: A value is of the wrong type or out of range.
    """

    alerts_per_hour: Annotated[int, Range(least=1)] = 15
    """Maximum alerts an hour for each camera. If more happens, only what stands out causes one."""

    alerts_per_day: Annotated[int, Range(least=1)] = 100
    """Maximum alerts a day for each camera. A digest reports the rest."""

    cooldown: Annotated[float, Range(least=0, most=86_400)] = 0.0
    """Seconds after an alert in which only stronger incidents cause one; the others wait."""

    quieten: bool = True
    """No alert for what looks the same twelve times an hour, such as a fan or headlights."""

    active: str | None = None
    """Hours with alerts, such as 22:00-06:00. [always]"""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.active is not None and not _HOURS.fullmatch(self.active):
            raise ConfigError(f"active must be hours of the day such as 22:00-06:00, not {self.active}")

    def awake(self, moment: datetime) -> bool:
        """Whether this time of the day has alerts."""
        if self.active is None:
            return True
        begin, end = map(time.fromisoformat, self.active.split("-"))
        inside = min(begin, end) <= moment.time() < max(begin, end)
        return inside == (begin < end)


@dataclass(slots=True)
class _Seen:
    """An incident, open or over.

    Attributes:
        moment: When it started, in seconds that go on across connections.
        due: When it's told, or judged again, in media seconds; infinite: when it changes.
    """

    first: Onset
    last: Onset
    strongest: Boundary | Onset
    moment: float
    due: float
    number: int
    count: int = 0
    told: bool = False
    alerted: float = -inf  # when it was told as an alert
    held: Held | None = None
    repeats: bool = False
    quality: float = 0.0  # of its best picture
    look: Look = None

    @property
    def peak(self) -> float:
        return _peak(self.strongest)


@dataclass(slots=True)
class _Day:
    date: date = date.min
    told: int = 0
    held: Counter[Held] = field(default_factory=Counter)
    strongest: list[tuple[float, int]] = field(default_factory=list)  # peak and number of five
    last: Onset | None = None

    def hold(self, one: _Seen, why: Held) -> None:
        self.held[why] += 1
        self.strongest = sorted([*self.strongest, (one.peak, one.number)], reverse=True)[:5]
        self.last = one.last


class Incidents:
    """The incidents of one stream: takes its records in order, and gives records of incidents.

    Attributes:
        alerts: Which alarm people; may be set at any time.

    >>> incidents = Incidents(Alerts())
    >>> def at(time): return Point("door", 0, time, time, 0, 0, 0, 0, 0, False, True)
    >>> _ = incidents.take(Onset("door", 1, 0, 5.0, 5.0, 0.7, False))
    >>> [(one.state, one.start, one.end) for t in range(5, 20) for one in incidents.take(at(t))]
    [('started', 5.0, None), ('ended', 5.0, 5.0)]
    """

    def __init__(self, alerts: Alerts) -> None:
        self.alerts = alerts
        self._open: _Seen | None = None
        self._number = 0
        self._seen: deque[_Seen] = deque()  # those before the open one
        self._day = _Day()
        self._epoch, self._began, self._moment = -1, 0.0, 0.0  # began: the moment of the epoch's time 0

    @property
    def open(self) -> bool:
        """Whether the next boundary joins an incident."""
        return self._open is not None

    def looks(self, time: float) -> bool:
        """Whether a frame at this time may give a better picture."""
        return self._open is not None and time - self._open.last.time <= LOOK

    @property
    def repeats(self) -> int:
        """How many were held in the last hour because the same comes all the time."""
        return sum(one.held == "repeats" for one in list(self._seen) if self._moment - one.moment <= _HOUR)

    def improves(self, quality: float, look: Look) -> bool:
        """Take the quality and look of a frame's picture; whether it's the open incident's best so far."""
        if (now := self._open) is None:
            return False
        now.look = now.look if now.told else look
        if better := quality > now.quality:
            now.quality, now.due = quality, min(now.due, now.last.time + LOOK)
        return better

    def take(self, record: Onset | Updated | Point) -> list[Incident | Digest]:
        """The next record of the stream; each frame's point comes before its onset."""
        now = self._open
        if isinstance(record, Updated):
            if now is not None:
                self._strengthen(now, record.boundary, record.boundary.onset)
            return []
        if record.epoch != self._epoch:
            self._epoch, self._began = record.epoch, max(record.wall, self._moment) - record.time
        self._moment = moment = self._began + record.time
        if isinstance(record, Onset):
            if now is None:
                self._number += 1
                now = self._open = _Seen(record, record, record, moment, record.time + LOOK, self._number)
            now.last, now.count = record, now.count + 1
            self._strengthen(now, record, record.time)
            return []
        today = _local(moment).date()
        told = [] if today == self._day.date else self.digest(today)
        if now is None:
            return told
        if record.time >= now.due:
            told += self._tell(now)
        quiet = record.time - now.last.time >= GAP or record.time - now.first.time >= LONGEST
        return told + (self.end() if quiet and now.held != "cooldown" else [])

    def end(self) -> list[Incident | Digest]:
        """No more boundaries belong to the open incident, if there is one."""
        if (now := self._open) is None:
            return []
        told = self._tell(now, over=True) if not now.told or now.held == "cooldown" else []
        self._open = None
        self._seen.append(now)
        if now.held is not None:
            self._day.hold(now, now.held)
        return [*told, _record(now, "ended")]

    def digest(self, today: date = date.min) -> list[Incident | Digest]:
        """A day is over: what was held on it, if anything."""
        day, self._day = self._day, _Day(today)
        if day.last is None:
            return []
        numbers = tuple(number for _, number in day.strongest)
        return [
            Digest(day.last.stream, day.last.wall, day.date.isoformat(), day.told, dict(day.held), numbers)
        ]

    def _strengthen(self, now: _Seen, by: Boundary | Onset, time: float) -> None:
        if now.strongest.score == by.score or _peak(by) > now.peak:
            now.strongest, now.due = by, min(now.due, time + LOOK)

    def _tell(self, now: _Seen, *, over: bool = False) -> list[Incident | Digest]:
        """Publish what is new of an incident, once it's clear whether it's held."""
        state: Literal["started", "updated"] = "updated" if now.told else "started"
        now.told, now.due = True, inf
        if now.alerted < 0:
            now.held = self._judged(now, over)
        if now.held is None and now.alerted < 0:
            now.alerted = self._moment
            self._day.told += 1
        return [_record(now, state)]

    def _judged(self, now: _Seen, over: bool) -> Held | None:
        alerts, peak, moment = self.alerts, now.peak, self._moment
        while self._seen and moment - self._seen[0].moment > max(_HOUR, 2 * alerts.cooldown):
            self._seen.popleft()
        hour = [one for one in self._seen if moment - one.moment <= _HOUR]
        if not alerts.awake(_local(now.moment)):
            return "hours"
        same = [one for one in hour if _alike(one.look, now.look)]
        if alerts.quieten and len(same) >= REPEATS and peak <= _STRONGER * max(one.peak for one in same):
            for one in (*same, now):
                one.repeats = True  # so it ranks before nothing else
            return "repeats"
        if self._day.told >= alerts.alerts_per_day:
            return "cap"
        told, most = sum(one.held is None for one in hour), alerts.alerts_per_hour
        allowed = most if told < _FREELY * most else most - told
        if sum(one.peak >= peak and not one.repeats for one in hour) >= allowed:
            return "rate"
        until = max((one.alerted for one in self._seen if one.peak >= peak), default=-inf) + alerts.cooldown
        if moment < until and not over:
            now.due = until - self._began
            return "cooldown"
        return None


def _record(now: _Seen, state: Literal["started", "updated", "ended"]) -> Incident:
    first, last, best = now.first, now.last, now.strongest
    over = state == "ended"
    return Incident(
        stream=first.stream,
        number=now.number,
        state=state,
        first=first.number,
        epoch=first.epoch,
        start=first.time,
        end=last.time if over else None,
        wall=first.wall,
        wall_end=last.wall if over else None,
        peak=now.peak,
        count=now.count,
        kind=best.kind if isinstance(best, Boundary) else None,
        has_picture=now.quality > 0,
        held=now.held,
    )


def _peak(one: Boundary | Onset) -> float:
    return one.score if isinstance(one, Onset) or one.peak is None else one.peak


def _local(moment: float) -> datetime:
    """The local time; a damaged file's clock may go beyond what dates can say."""
    return datetime.fromtimestamp(min(moment, _LAST_MOMENT))


def _alike(one: Look, other: Look) -> bool:
    return one is not None and other is not None and one.shape == other.shape and float(one @ other) > SAME
