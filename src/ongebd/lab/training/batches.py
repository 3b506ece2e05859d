"""Batches of features, from the device's memory or copied from the store ahead of time.

A batch is S runs of one shape (`ongebd.data.windows`). Its runs depend only on the seed, the epoch and the
step: not on the device, the number of GPUs, or interruptions.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ongebd.backbones.pipeline import prefetch
from ongebd.data.labelled import LabelledVideo
from ongebd.data.windows import IntArray, WindowTape
from ongebd.errors import FeatureError
from ongebd.estimator.losses import balancing_weight
from ongebd.lab.training.processes import Processes

_AHEAD = 3  # batches to prepare in advance
_SHARE = 0.7  # of the free memory for features
_MAGNITUDE, _INFINITE = np.uint16(0x7FFF), np.uint16(0x7C00)  # bits of a float16


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """S runs; see `Objective.forward`."""

    frames: Tensor
    targets: Tensor
    lead: Tensor
    weight: Tensor
    count: Tensor


class Features(Protocol):
    """The features of some videos, by row (see `ongebd.data.windows`), on a device."""

    device: torch.device

    def stream(self, rows: Iterator[IntArray]) -> Generator[Tensor, None, None]:
        """The features (S, F, D) on the device for each array of rows (S, F), in order."""


class DeviceFeatures:
    """All features in the device's memory, where batches are gathered; rows count in the videos' order.

    Raises:
        FeatureError: A feature is NaN, infinite or zero.
    """

    def __init__(self, videos: Sequence[LabelledVideo], device: torch.device) -> None:
        frames, dim = sum(map(len, videos)), videos[0].features.shape[1]
        self.device = device
        self.features = torch.empty((frames, dim), dtype=torch.float16, device=device)
        row = 0
        for video in videos:
            end = row + len(video)
            self.features[row:end] = torch.from_numpy(np.array(_checked(video, video.features)))  # (T, D)
            row = end

    def stream(self, rows: Iterator[IntArray]) -> Generator[Tensor, None, None]:
        for each in rows:
            yield self.features[to_device(each, self.device)]


class HostFeatures:
    """Features that stay in the store; a thread copies them while the device computes."""

    def __init__(self, videos: Sequence[LabelledVideo], device: torch.device) -> None:
        self.videos = videos
        self.device = device
        self.first = np.cumsum([0, *map(len, videos)])  # the row at which each video begins
        self._pin = device.type == "cuda"

    def stream(self, rows: Iterator[IntArray]) -> Generator[Tensor, None, None]:
        taken = prefetch((self.take(each) for each in rows), ahead=_AHEAD, name="ongebd-features")
        with closing(taken) as batches:
            for batch in batches:
                yield batch.to(self.device, non_blocking=True)

    def take(self, rows: IntArray) -> Tensor:
        """The features of rows (S, F), as (S, F, D), on the host."""
        flat = rows.reshape(-1)
        dim = self.videos[0].features.shape[1]
        batch = torch.empty((*rows.shape, dim), dtype=torch.float16, pin_memory=self._pin)
        out = batch.numpy().reshape(len(flat), dim)
        owner = np.searchsorted(self.first, flat, side="right") - 1
        edges = np.flatnonzero(np.diff(owner)) + 1  # neighbours mostly belong to one video
        for begin, end in pairwise([0, *edges.tolist(), len(flat)]):
            video = self.videos[owner[begin]]
            inside = flat[begin:end] - self.first[owner[begin]]
            if inside[-1] - inside[0] == end - begin - 1 and (np.diff(inside) == 1).all():
                part = video.features[inside[0] : inside[-1] + 1]  # no copy
            else:
                part = video.features[inside]
            out[begin:end] = _checked(video, part)
        return batch


def to_device(array: IntArray, device: torch.device) -> Tensor:
    """Copy numbers to a device without waiting for its work; a copy from pageable memory would wait."""
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def place_features(videos: Sequence[LabelledVideo], device: torch.device, where: str) -> Features:
    """Features in the device's memory or in the store; `where` as in `TrainConfig.features_in`."""
    size = sum(video.features.nbytes for video in videos)
    if where == "device" or (where == "auto" and size < _SHARE * free_memory(device)):
        return DeviceFeatures(videos, device)
    return HostFeatures(videos, device)


def free_memory(device: torch.device) -> int:
    """Free bytes of a GPU, or of the machine."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class BatchLoader:
    """The batches of each epoch. Each process takes an equal share of every batch.

    Args:
        tape: The training videos.
        features: Their features.
        processes: This process and the others.
        runs: Runs in a batch, over all processes.
        seed: Of the order.
        balanced: Whether to weight boundaries by the batch's balance; else their weight is 1.
    """

    def __init__(
        self,
        tape: WindowTape,
        features: Features,
        processes: Processes,
        *,
        runs: int,
        seed: int,
        balanced: bool = True,
    ) -> None:
        self.tape, self.features, self.processes = tape, features, processes
        self.runs, self.seed, self.balanced = runs, seed, balanced
        self.device = processes.device
        self.targets = torch.from_numpy(tape.targets).to(self.device)
        self.lead = torch.from_numpy(tape.lead).to(self.device)

    @property
    def windows_in_batch(self) -> int:
        """Windows that all processes compute for a batch."""
        return self.runs * (self.tape.region + self.tape.run)

    def steps(self, epoch: int) -> int:
        """Batches in an epoch."""
        return -(-len(self.tape.epoch(self.seed, epoch)) // self.runs)

    def epoch(self, epoch: int, skip: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, without the first `skip` of them."""
        order = self.tape.epoch(self.seed, epoch)
        # The last batch is padded with the run at the beginning of the tape, which has no target.
        order = np.concatenate([order, np.zeros(-len(order) % self.runs, np.int64)])
        groups = order.reshape(-1, self.runs)[skip:]  # (steps, runs)
        share = np.array_split(np.arange(self.runs), self.processes.world)[self.processes.rank]
        span = np.arange(self.tape.frames_in_run)
        rows = (self.tape.rows[group[share][:, None] + span] for group in groups)
        with closing(self.features.stream(rows)) as stream:  # its thread ends with the epoch
            for group, frames in zip(groups, stream, strict=True):
                yield self._batch(group, share, frames)

    def _batch(self, group: IntArray, share: IntArray, frames: Tensor) -> Batch:
        first = to_device(group, self.device) + self.tape.window
        places = first[:, None] + torch.arange(self.tape.region + self.tape.run, device=self.device)
        targets, lead = self.targets[places], self.lead[places]  # (runs, K + R), of the whole batch
        counted = lead >= 0
        counted[:, : self.tape.region] = False
        weight = balancing_weight(targets, counted) if self.balanced else torch.ones((), device=self.device)
        # DDP averages over processes, and each sums its own share: together the mean over the batch.
        count = counted.sum().clamp_min(1) / self.processes.world
        own = slice(int(share[0]), int(share[-1]) + 1)
        return Batch(frames, targets[own], lead[own], weight, count)


def _checked(video: LabelledVideo, features: npt.NDArray[np.float16]) -> npt.NDArray[np.float16]:
    """Raise a FeatureError, which names the video, if a feature is NaN, infinite or zero."""
    # Without its sign, a float16's bits grow with its magnitude, and integers compare far faster.
    largest = (features.view(np.uint16) & _MAGNITUDE).max(axis=1, initial=0)
    bad = np.flatnonzero((largest >= _INFINITE) | (largest == 0))
    if len(bad):
        what = "norm zero" if largest[bad[0]] == 0 else "NaN or infinity in it"
        raise FeatureError(
            f"video {video.id!r}: a feature has {what} ({len(bad)} such frames); extract the video again"
        )
    return features
