"""What a stream has decided and not handed out yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from ongebd.types import Boundary, Decision

_NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0, False, False)  # error, mean, std, z, threshold, is_boundary, ready


def pending(index: int, time: float) -> Decision:
    """What stands for a decision while a look-ahead has not reached its frame."""
    return Decision(index, time, *_NOTHING, pending=True)


class Outbox:
    """Boundaries that are owed, one to a decision, and decisions of an epoch that broke off.

    A look-ahead of n frames leaves n without a decision where an epoch breaks off, and has none to give on
    the first n of the next one: the former are handed out in the place of the latter, so none is lost.
    """

    def __init__(self) -> None:
        self._boundaries: deque[Boundary] = deque()
        self._decisions: deque[Decision] = deque()  # their boundaries are among those owed

    def owe(self, boundaries: Iterable[Boundary | None]) -> None:
        """Keep those that there are, after those that are owed already."""
        self._boundaries.extend(boundary for boundary in boundaries if boundary is not None)

    def keep(self, decisions: Iterable[Decision]) -> None:
        """Keep the decisions of an epoch that broke off, with their boundaries."""
        for decision in decisions:
            self.owe([decision.boundary])
            self._decisions.append(replace(decision, boundary=None))

    def hand_over(self, decision: Decision) -> Decision:
        """The decision, or in place of a pending one the oldest kept, with the oldest boundary owed."""
        if decision.pending and self._decisions:
            decision = self._decisions.popleft()
        if not self._boundaries:
            return decision
        self.owe([decision.boundary])
        return replace(decision, boundary=self._boundaries.popleft())

    def rest(self) -> list[Decision]:
        """The decisions that were kept, with the boundaries owed; they are handed over by this."""
        kept, self._decisions = self._decisions, deque()
        return [self.hand_over(decision) for decision in kept]

    def next_boundary(self) -> Boundary | None:
        """The oldest boundary owed."""
        return self._boundaries.popleft() if self._boundaries else None

    def clear(self) -> None:
        """Forget everything."""
        self._boundaries.clear()
        self._decisions.clear()
