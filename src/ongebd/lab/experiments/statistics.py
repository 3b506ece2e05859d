"""Mean and interval over seeds and videos, and which row is best beyond the noise.

Every row is scored on the same draws of videos, so differences are paired; a row that was trained with
several seeds also draws among them. What differs by less than that is noise, and is not set in bold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ongebd.data.numbers import FloatArray
from ongebd.lab.evaluation.bootstrap import Interval, resampled_scores
from ongebd.lab.experiments.columns import SCORES, Counted, value_of

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure.

    Attributes:
        value: Mean over the seeds.
        interval: 95 %; None where one video or a count of something cannot vary.
        seeds: The figure of each seed.
    """

    value: float
    interval: Interval | None = None
    seeds: tuple[float, ...] = ()


class Drawn:
    """Figures of several rows, each with some seeds, and on the same draws of videos.

    Args:
        rows: Of each row, what was counted by seed.
        seed: Of the draws.
    """

    def __init__(self, rows: Mapping[str, Sequence[Counted]], seed: int = 0) -> None:
        self._rows = rows
        players = {f"{name}\n{n}": each.counts for name, row in rows.items() for n, each in enumerate(row)}
        videos = len(next(iter(players.values())).tp) if players else 0
        sampled, _ = resampled_scores(players, RESAMPLES, seed, np.ones(videos)) if players else ({}, None)
        rng = np.random.default_rng((seed, 1))
        self._drawn: dict[tuple[str, str], FloatArray] = {}
        for name, row in rows.items():
            picks = rng.integers(0, len(row), (RESAMPLES, len(row)))
            for column in SCORES:
                each = np.stack(
                    [value_of(column, sampled[f"{name}\n{n}"]) for n in range(len(row))]
                )  # (S, B)
                if each.shape[1]:
                    self._drawn[name, column] = each[picks, np.arange(RESAMPLES)[:, None]].mean(axis=1)
                else:
                    self._drawn[name, column] = np.zeros(0)

    def cell(self, name: str, column: str) -> Cell:
        """One row's figure."""
        seeds = tuple(float(value_of(column, each.counts.totals())) for each in self._rows[name])
        return Cell(float(np.mean(seeds)), Interval.of(self._drawn[name, column]), seeds)

    def difference(self, name: str, other: str, column: str) -> Cell:
        """How far one row is above another, on the same draws."""
        apart = self._drawn[name, column] - self._drawn[other, column]
        value = self.cell(name, column).value - self.cell(other, column).value
        return Cell(value, Interval.of(apart))

    def best(self, names: Sequence[str], column: str) -> str | None:
        """The row that is ahead of each other one beyond the noise; None where there is none."""
        ranked = sorted(names, key=lambda name: -self.cell(name, column).value)
        if len(ranked) < 2:
            return None
        for other in ranked[1:]:
            interval = self.difference(ranked[0], other, column).interval
            if interval is None or interval.low <= 0:
                return None
        return ranked[0]
