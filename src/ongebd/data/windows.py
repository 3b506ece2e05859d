"""Runs of frames as training samples, so that neighbouring targets share their windows.

All frames of all videos lie behind each other on a *tape*. A run is `run` consecutive places of it: its
targets; the K places before them, whose errors the region of the first targets reaches back to; and the L
places before those, the first window. A run may cross from one video into the next, so every place is used
and all runs have one shape. What keeps videos apart:

- Before each video stand L − 1 places that repeat its first frame. A window of L consecutive places therefore
  never mixes two videos, and is what the stream sees at its start (see `ongebd.estimator.anticipator`).
- `lead` says how many errors of its own video precede each place, so that no region reaches across.

A break of the clock within a video counts as the start of another one, as it does in the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ongebd.data.labelled import LabelledVideo
from ongebd.data.targets import BoolArray
from ongebd.errors import LabelError

IntArray = npt.NDArray[np.int64]


def stretches(epochs: npt.NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """The unbroken stretches of a video, as (first frame, end).

    >>> list(stretches(np.int32([0, 0, 0, 1, 1])))
    [(0, 3), (3, 5)]
    """
    cuts = np.flatnonzero(np.diff(epochs)) + 1
    edges = [0, *cuts.tolist(), len(epochs)]
    yield from ((first, end) for first, end in pairwise(edges) if end > first)


@dataclass(frozen=True, slots=True, eq=False)
class WindowTape:
    """The tape. A *row* is a frame's number when all videos are laid end to end.

    Attributes:
        rows: The row whose feature stands at each place, (P,).
        targets: y, (P,).
        lead: How many errors of the same stretch precede each place's own, (P,); −1 where the place is no
            target (the repeated frames, and the first frame of a stretch, which nothing predicts).
        window: L.
        region: K.
        run: Targets in a run.
    """

    rows: IntArray
    targets: BoolArray
    lead: npt.NDArray[np.int32]
    window: int
    region: int
    run: int

    @property
    def frames_in_run(self) -> int:
        """Features that one run needs: L + K + `run`."""
        return self.window + self.region + self.run

    @property
    def target_count(self) -> int:
        """Targets on the tape."""
        return int((self.lead >= 0).sum())

    @property
    def boundary_count(self) -> int:
        """Targets that are boundaries."""
        return int((self.targets & (self.lead >= 0)).sum())

    def epoch(self, seed: int, epoch: int) -> IntArray:
        """The runs of one epoch in random order, each by the place of its first feature.

        Every target stands in exactly one run; where runs are cut differs from epoch to epoch.

        Args:
            seed: Of the training.
            epoch: Its number.
        """
        rng = np.random.default_rng((seed, epoch))
        first = int(rng.integers(self.run))  # the places before and after the videos leave room for this
        runs = (len(self.rows) - self.window - self.region - first) // self.run
        return first + self.run * rng.permutation(runs)


def build_tape(videos: Sequence[LabelledVideo], *, window: int, region: int, run: int) -> WindowTape:
    """Lay videos on a tape.

    Args:
        videos: Their rows count in this order.
        window: L.
        region: K.
        run: Targets in a run.
    """
    before = window + region + run  # so that the first run may begin at any phase
    rows, targets, lead = [np.zeros(before, np.int64)], [np.zeros(before, np.bool_)], [_no_targets(before)]
    row = 0
    for video in videos:
        for first, end in stretches(video.epochs):
            length = end - first
            rows += [np.full(window - 1, row + first), np.arange(row + first, row + end)]
            targets += [np.zeros(window - 1, np.bool_), video.targets[first:end]]
            lead += [_no_targets(window - 1), np.arange(-1, length - 1, dtype=np.int32)]
        row += len(video)
    rows.append(np.zeros(run, np.int64))
    targets.append(np.zeros(run, np.bool_))
    lead.append(_no_targets(run))
    return WindowTape(
        np.concatenate(rows), np.concatenate(targets), np.concatenate(lead), window, region, run
    )


def check_learnable(tape: WindowTape, videos: int) -> None:
    """Make sure that there is something to learn from.

    Args:
        tape: Of the training videos.
        videos: How many they are, for messages.

    Raises:
        LabelError: There is no target, or no boundary among them.
    """
    if not tape.target_count:
        raise LabelError(
            f"the {videos} training videos have one frame each or none, so nothing can be anticipated;"
            " extract them at a higher --fps"
        )
    if not tape.boundary_count:
        raise LabelError(
            f"the {videos} training videos have no boundary in {tape.target_count} frames;"
            " check that labels and features are of the same videos"
        )


def _no_targets(count: int) -> npt.NDArray[np.int32]:
    return np.full(count, -1, np.int32)
