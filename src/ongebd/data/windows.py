"""Runs of frames as training samples, so that neighbouring targets share their windows.

A *tape* holds all frames of all videos in a row. A run covers consecutive places of it: `run` targets, the K
places before them (the first targets' regions need their errors), and the L places before those, the first
window. A run may cross from one video into the next, so every place is used and all runs have one shape. What
keeps videos apart:

- L − 1 places before each video repeat its first frame. A window of L consecutive places never mixes two
  videos, and is what the stream sees at its start (see `ongebd.estimator.anticipator`).
- `lead` says how many errors of its own video precede each place, so no region reaches across.

A break of the clock within a video counts as the start of another video, as it does in the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ongebd.data.labelled import BoolArray, LabelledVideo
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
        rows: The row whose feature is at each place, (P,).
        targets: y, (P,).
        lead: How many errors of the same stretch precede each place's error, (P,); −1 where the place isn't a
            target (the repeated frames, and the first frame of a stretch, which nothing predicts).
        window: L.
        region: K.
        run: Targets in a run.
        stride: An epoch takes one run of so many.
    """

    rows: IntArray
    targets: BoolArray
    lead: npt.NDArray[np.int32]
    window: int
    region: int
    run: int
    stride: int = 1

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

        Without a stride, every target is in exactly one run. Where runs are cut differs from epoch to epoch.
        """
        rng, step = np.random.default_rng((seed, epoch)), self.run * self.stride
        first = int(rng.integers(step))  # the places before and after the videos leave room for a run
        room = len(self.rows) - self.window - self.region - self.run - first
        return first + step * rng.permutation(room // step + 1)


def build_tape(
    videos: Sequence[LabelledVideo], *, window: int, region: int, run: int, stride: int = 1
) -> WindowTape:
    """Lay videos on a tape, in the given order; see `WindowTape`."""
    before = window + region + run  # so that the first run may begin at any phase
    parts = [_padding(before, 0)]
    row = 0
    for video in videos:
        for first, end in stretches(video.epochs):
            lead = np.arange(-1, end - first - 1, dtype=np.int32)
            parts.append(_padding(window - 1, row + first))
            parts.append((np.arange(row + first, row + end), video.targets[first:end], lead))
        row += len(video)
    parts.append(_padding(run, 0))
    rows, targets, leads = (np.concatenate(column) for column in zip(*parts, strict=True))
    return WindowTape(rows, targets, leads, window, region, run, stride)


@dataclass(frozen=True, slots=True, eq=False)
class ClipTape(WindowTape):
    """Clips, each of one video's stretch, instead of runs that cross from one into the next.

    A clip is `run` places; L and K are 0. A place stands for one frame in every `stride`; the frames between
    are in other clips, and a boundary among them belongs to the nearest. A clip that is too short ends with
    copies of its last frame, whose `lead` is −1. The first clip has no target, like a tape's first run.
    """

    def epoch(self, seed: int, epoch: int) -> IntArray:
        """The clips of one epoch in random order, each by its first place; all in every epoch."""
        order = np.random.default_rng((seed, epoch)).permutation(len(self.rows) // self.run - 1)
        return self.run * (1 + order)


def build_clips(videos: Sequence[LabelledVideo], *, length: int, stride: int) -> ClipTape:
    """Cut videos into clips of `length` frames, one in every `stride` of theirs."""
    parts, row = [_padding(length, 0)], 0
    for video in videos:
        for first, end in stretches(video.epochs):
            near = np.convolve(video.targets[first:end], np.ones(stride), "same") > 0  # in stride frames
            for phase in range(min(stride, end - first)):
                frames = np.arange(phase, end - first, stride)
                for begin in range(0, len(frames), length):
                    some = frames[begin : begin + length]
                    lead = np.arange(begin, begin + len(some), dtype=np.int32)
                    parts.append((row + first + some, near[some], lead))
                    parts.append(_padding(length - len(some), row + first + int(some[-1])))
        row += len(video)
    rows, targets, leads = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ClipTape(rows, targets, leads, window=0, region=0, run=length)


def _padding(count: int, row: int) -> tuple[IntArray, BoolArray, npt.NDArray[np.int32]]:
    """Places that repeat a row and have no target."""
    return np.full(count, row), np.zeros(count, np.bool_), np.full(count, -1, np.int32)


def check_learnable(tape: WindowTape, videos: int) -> None:
    """Make sure that the tape of so many training videos has a target, and a boundary among its targets."""
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
