"""What trainings will take, from what trainings like them took on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from ongebd.lab.experiments.scales import Scale

if TYPE_CHECKING:
    from ongebd.lab.experiments.runner import Step


@dataclass(frozen=True)
class Estimate:
    """Seconds of each step.

    Attributes:
        seconds: In the order of the steps.
        known: How many of them are known from others like them.
    """

    seconds: tuple[float, ...]
    known: int

    @property
    def total(self) -> float:
        """Of all of them."""
        return sum(self.seconds)

    @classmethod
    def of(cls, steps: Sequence[Step], scale: Scale, kept: Sequence[Mapping[str, Any]]) -> Estimate:
        """By the median of kept trainings of the same method and scale; of any method, else a guess."""
        took: dict[str, list[float]] = {}
        for facts in kept:
            how = facts["key"]["how"]
            if how.get("epochs") == scale.training.get("epochs", 10) or "untrained" in how:
                took.setdefault(how.get("method", "untrained"), []).append(facts["seconds"])
        trained = [s for name, each in took.items() if name != "untrained" for s in each]
        seconds, known = [], 0
        for step in steps:
            name = step.row.method if step.row.kind == "trained" else "untrained"
            known += name in took
            seconds.append(median(took.get(name) or trained or [scale.guess]))
        return cls(tuple(seconds), known)
