"""Boundaries that belong together become one incident: a piece of news with a start, an end and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ongebd.types import Boundary
from ongebd.watch.records import Incident, Onset, Point, Updated

GAP = 2.5
"""Seconds without a boundary that end an incident."""
LOOK = 2.0
"""Seconds after a boundary in which a better picture is looked for."""


@dataclass(slots=True)
class _Open:
    """An incident that more boundaries may join."""

    first: Onset
    last: Onset
    strongest: Boundary | Onset
    count: int = 0
    told: bool = False
    better_since: float | None = None  # when it became better than what was told
    quality: float = 0.0  # of its best picture

    def improve(self, time: float) -> None:
        """Something is better since this time; if it was already, the earlier time stays."""
        if self.better_since is None:
            self.better_since = time


class Incidents:
    """The incidents of one stream: takes its records in order, and gives records of incidents.

    >>> incidents = Incidents()
    >>> def at(time): return Point("door", 0, time, time, 0, 0, 0, 0, 0, False, True)
    >>> _ = incidents.take(Onset("door", 1, 0, 5.0, 5.0, 0.7, False))
    >>> [(one.state, one.start, one.end) for t in range(5, 20) for one in incidents.take(at(t))]
    [('started', 5.0, None), ('ended', 5.0, 5.0)]
    """

    def __init__(self) -> None:
        self._number = 0
        self._open: _Open | None = None

    @property
    def open(self) -> bool:
        """Whether the next boundary joins an incident."""
        return self._open is not None

    def looks(self, time: float) -> bool:
        """Whether a frame at this time may give a better picture."""
        return self._open is not None and time - self._open.last.time <= LOOK

    def improves(self, quality: float) -> bool:
        """Take the quality of a frame's picture; whether it is the best so far of the open incident."""
        if (now := self._open) is None or quality <= now.quality:
            return False
        now.quality = quality
        now.improve(now.last.time)
        return True

    def take(self, record: Onset | Updated | Point) -> list[Incident]:
        """The next record of the stream; each frame's point comes before its onset."""
        now = self._open
        if isinstance(record, Onset):
            if now is None:
                self._number += 1
                now = self._open = _Open(record, record, record, better_since=record.time)
            now.last, now.count = record, now.count + 1
            if _strength(record) > _strength(now.strongest):
                now.strongest = record
                now.improve(record.time)
        elif now is None:
            return []
        elif isinstance(record, Updated):
            same = isinstance(now.strongest, Onset) and now.strongest.time == record.boundary.onset
            if same or _strength(record.boundary) > _strength(now.strongest):
                now.strongest = record.boundary
                now.improve(record.boundary.onset)
        elif record.time - now.last.time >= GAP:
            return self.end()
        elif now.better_since is not None and record.time - now.better_since >= LOOK:
            return [self._tell(now, "updated" if now.told else "started")]
        return []

    def end(self) -> list[Incident]:
        """No more boundaries belong to the open incident, if there is one."""
        if (now := self._open) is None:
            return []
        began = [] if now.told else [self._tell(now, "started")]
        ended = [*began, self._tell(now, "ended")]
        self._open = None
        return ended

    def _tell(self, now: _Open, state: Literal["started", "updated", "ended"]) -> Incident:
        now.told, now.better_since = True, None
        first, last, best = now.first, now.last, now.strongest
        over = state == "ended"
        return Incident(
            stream=first.stream,
            number=self._number,
            state=state,
            first=first.number,
            epoch=first.epoch,
            start=first.time,
            end=last.time if over else None,
            wall=first.wall,
            wall_end=last.wall if over else None,
            peak=_strength(best),
            count=now.count,
            kind=None if isinstance(best, Onset) else best.kind,
            has_picture=now.quality > 0,
        )


def _strength(one: Boundary | Onset) -> float:
    return one.score if isinstance(one, Onset) or one.peak is None else one.peak
