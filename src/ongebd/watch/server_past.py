"""What a page that loads now must know of a stream: its curve, boundaries and states of the last hour."""

from __future__ import annotations

from collections import deque
from typing import Any

from ongebd.watch.records import Clip, Found, Onset, Point, StateChanged
from ongebd.watch.server_curves import Curve
from ongebd.watch.server_watched import Stream

HOUR = 3600.0
_MOST_EVENTS = 2000
_MOST_STATES = 500


class Past:
    """One stream's last hour, in bounded memory."""

    def __init__(self) -> None:
        self.curve = Curve()
        self._events: dict[int, dict[str, Any]] = {}
        self._states: deque[dict[str, Any]] = deque(maxlen=_MOST_STATES)

    def seed(self, stream: Stream) -> float:
        """Begin again from what a watcher remembers; returns the newest point's wall time."""
        self.curve, self._events = Curve(), {}
        newest = 0.0
        for point in stream.history(HOUR):
            self.curve.add(point)
            newest = point.wall
        for event in stream.found(HOUR):
            if isinstance(event, Found):
                self.found(event)
            else:
                self.onset(event)
        for number, told in self._events.items():
            if stream.clip(number) is not None:
                told["clip"] = True
        status = stream.status()
        if not self._states or self._states[-1]["state"] != status.state:
            self.state(StateChanged(stream.key, status.state, status.since, status.epoch, status.reason))
        return newest

    def onset(self, record: Onset) -> dict[str, Any]:
        """A boundary began; returns what the page is told."""
        return self._keep(
            {
                "s": record.stream,
                "n": record.number,
                "w": round(record.wall, 3),
                "t": round(record.time, 3),
                "z": round(record.score, 4),
                "img": record.has_thumbnail,
            }
        )

    def found(self, record: Found) -> dict[str, Any]:
        """A boundary's centre is known; returns what the page is told, the onset included."""
        boundary = record.boundary
        known = self._events.get(record.number)
        # Where its onset was lost: the boundary was decided now, so many seconds after its onset.
        onset = known["w"] if known else record.wall - (boundary.decided - boundary.onset)
        return self._keep(
            {
                "s": record.stream,
                "n": record.number,
                "w": round(onset, 3),
                "t": round(boundary.onset, 3),
                "z": round(boundary.score, 4),
                "img": record.has_thumbnail or bool(known and known["img"]),
                "c": round(boundary.time, 3),
                "d": round(boundary.decided, 3),
            }
        )

    def clip(self, record: Clip) -> list[dict[str, Any]]:
        """A boundary's clip is there; returns what the page is told, nothing where it is too long ago."""
        event = self._events.get(record.number)
        return [] if event is None else [self._keep({**event, "clip": True})]

    def state(self, record: StateChanged) -> dict[str, Any]:
        """The stream's state changed; returns what the page is told."""
        told = {
            "s": record.stream,
            "state": record.state,
            "reason": record.reason,
            "w": round(record.wall, 3),
        }
        self._states.append(told)
        return told

    def point(self, record: Point) -> int:
        """One decided frame; returns its flags."""
        return self.curve.add(record)

    def packed(self, now: float) -> dict[str, Any]:
        """All of the last hour; of the states also the one that held when it began."""
        since = now - HOUR
        states = list(self._states)
        while len(states) > 1 and states[1]["w"] <= since:
            states.pop(0)
        events = [event for event in self._events.values() if event["w"] >= since]
        return {**self.curve.packed(), "events": events, "states": states}

    def _keep(self, event: dict[str, Any]) -> dict[str, Any]:
        if self._events.get(event["n"], {}).get("clip"):
            event["clip"] = True
        self._events[event["n"]] = event
        if len(self._events) > _MOST_EVENTS:
            del self._events[next(iter(self._events))]
        return event
