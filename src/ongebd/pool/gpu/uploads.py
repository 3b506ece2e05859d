"""The way up: pictures in pinned memory, and from there to the device. Needs torch."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ongebd.pool.gpu.cuda import new_event, new_stream
from ongebd.pool.gpu.engine import CONTROL, Engine
from ongebd.pool.gpu.pinned import Pinned, gather
from ongebd.pool.gpu.resize import CropPlan, resized
from ongebd.types import Feature, ImageU8

DIRECT = 8
"""Up to so many rows an upload goes straight to where the graph reads; more go up beside the last step."""
_COPIED_ALONE = 8
_CHUNK = 8
_SIZES = 8


@dataclass(frozen=True, slots=True)
class Given:
    """What is kept of a frame until its step.

    Attributes:
        pixels: The part of the picture that matters, uint8, (rows, columns, 3); None for a feature.
        plan: How it becomes a square; None where it is one.
        feature: (D,), float32, in place of a picture.
        pinned: The memory in which the pixels lie, where the device reads them itself.
        address: Where there; 0 where they are copied.
    """

    pixels: ImageU8 | None = None
    plan: CropPlan | None = None
    feature: Feature | None = None
    pinned: Pinned | None = None
    address: int = 0


class Stage:
    """Pinned memory for one step under way: what goes up, and the verdicts that come back.

    Args:
        engine: Whose.
        size: S.
        dim: D.
    """

    def __init__(self, engine: Engine, size: int, dim: int) -> None:
        pinned = engine.graphs
        most = engine.buckets[-1]
        self.up = torch.zeros(engine.uploaded.shape, dtype=torch.uint8, pin_memory=pinned)
        self.features_up = torch.zeros(most, dim, pin_memory=pinned)
        self.down = torch.zeros(most, engine.said, dtype=torch.float64, pin_memory=pinned)
        self.control_bytes = most * len(CONTROL) * 8
        bytes_of = self.up.numpy()
        self.control: npt.NDArray[np.float64] = (
            bytes_of[: self.control_bytes].view(np.float64).reshape(most, len(CONTROL))
        )
        self.pictures: ImageU8 = bytes_of[self.control_bytes :].reshape(most, size, size, 3)
        self.picture_rows = self.up[self.control_bytes :].view(most, size, size, 3)
        self.verdicts: npt.NDArray[np.float64] = self.down.numpy()
        self.features: npt.NDArray[np.float32] = self.features_up.numpy()
        self.there = (
            torch.zeros_like(self.up, device=engine.device) if engine.graphs and most > DIRECT else None
        )
        self.picture_bytes = size * size * 3
        self._addresses_up = torch.zeros(most, dtype=torch.int64, pin_memory=pinned)
        self.addresses = torch.zeros(most, dtype=torch.int64, device=engine.device)
        if engine.graphs:
            self.arrived = new_event()
            # A short step is waited for by spinning, which wakes at once; a long one lets the core go.
            self.done = {spins: new_event(sleeps=not spins) for spins in (True, False)}

    def tell(self, addresses: Sequence[int]) -> None:
        """Enqueue the upload of where the pictures of a step lie, to `addresses`."""
        count = len(addresses)
        self._addresses_up.numpy()[:count] = addresses
        self.addresses[:count].copy_(self._addresses_up[:count], non_blocking=True)


class Resizer:
    """Pictures of one size on their way to squares.

    Args:
        plan: For that size.
        engine: To whose `pictures` they go.
        dtype: In what weights are kept and products computed.
    """

    def __init__(self, plan: CropPlan, engine: Engine, dtype: torch.dtype) -> None:
        if plan.down is None or plan.across is None:
            raise ValueError("pictures of this size are only cut")
        self._engine = engine
        self._down = torch.from_numpy(plan.down).to(engine.device, dtype)
        self._across = torch.from_numpy(plan.across.T.copy()).to(engine.device, dtype)
        shape = (_CHUNK, plan.rows[1] - plan.rows[0], plan.columns[1] - plan.columns[0], 3)
        self._here = torch.zeros(shape, dtype=torch.uint8, device=engine.device)
        self._waiting: deque[tuple[Tensor, torch.cuda.Event | None]] = deque()
        for _ in range(3):
            pinned = torch.zeros(shape, dtype=torch.uint8, pin_memory=engine.graphs)
            self._waiting.append((pinned, new_event() if engine.graphs else None))
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        for count in (1, _CHUNK) if engine.graphs else ():
            self._capture(count)

    def _capture(self, count: int) -> None:
        torch.cuda.synchronize(self._engine.device)
        stream = new_stream(self._engine.device)
        with torch.cuda.stream(stream):
            for _ in range(2):
                resized(self._here[:count], self._down, self._across)
        torch.cuda.synchronize(self._engine.device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            squares = resized(self._here[:count], self._down, self._across)
        self._graphs[count] = graph, squares

    def put(self, pixels: Sequence[ImageU8], row: int) -> None:
        """Make the squares of some pictures, and put them from a row of `pictures` on."""
        for first in range(0, len(pixels), _CHUNK):
            part = pixels[first : first + _CHUNK]
            pinned, sent = self._waiting[0]
            self._waiting.rotate(-1)
            if sent is not None:
                sent.synchronize()
            for place, picture in zip(pinned.numpy(), part, strict=False):
                place[...] = picture
            self._here[: len(part)].copy_(pinned[: len(part)], non_blocking=True)
            if sent is not None:
                sent.record()
            self._square(len(part), row + first)

    def gather(self, addresses: Tensor, row: int) -> None:
        """The same for pictures that the device reads where they lie."""
        for first in range(0, len(addresses), _CHUNK):
            part = addresses[first : first + _CHUNK]
            gather(part, self._here[: len(part)])
            self._square(len(part), row + first)

    def _square(self, count: int, row: int) -> None:
        if self._graphs:
            graph, squares = self._graphs[1 if count == 1 else _CHUNK]
            graph.replay()
        else:
            squares = resized(self._here[:count], self._down, self._across)
        self._engine.pictures[row : row + count] = squares[:count]


class Uploader:
    """Brings the frames of a step to where the engine reads.

    Args:
        engine: Whose.
        dtype: In what pictures are resized.
        threads: Threads that copy many pictures at once into pinned memory.
    """

    def __init__(self, engine: Engine, dtype: torch.dtype, threads: int) -> None:
        self._engine = engine
        self._dtype = dtype
        self._resizers: OrderedDict[CropPlan, Resizer] = OrderedDict()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="ongebd-upload", initializer=_alone)
        self._shares = threads
        self._up = new_stream(engine.device) if engine.graphs else None

    def close(self) -> None:
        """Join the threads."""
        self._threads.shutdown(wait=True)

    def send_control(self, stage: Stage) -> None:
        """Enqueue the upload of the stage's control rows."""
        used = stage.control_bytes
        self._engine.uploaded[:used].copy_(stage.up[:used], non_blocking=True)

    def send_features(self, stage: Stage, features: Sequence[Feature]) -> None:
        """Enqueue the upload of a step of features."""
        for row, feature in enumerate(features):
            stage.features[row] = feature
        count = len(features)
        self._engine.features[:count].copy_(stage.features_up[:count], non_blocking=True)

    def send_pictures(self, stage: Stage, given: Sequence[Given]) -> None:
        """Enqueue the upload of a step of pictures, in the order of `in_order`."""
        only_cut = sum(item.plan is None for item in given)
        copied = sum(not item.address for item in given[:only_cut])
        self._copy(stage, [item.pixels for item in given[:copied] if item.pixels is not None])
        engine, beside = self._engine, self._up if len(given) > DIRECT else None
        there = engine.uploaded if beside is None or stage.there is None else stage.there
        start, length = stage.control_bytes, stage.picture_bytes
        with nullcontext() if beside is None else torch.cuda.stream(beside):
            part = slice(start, start + copied * length)
            there[part].copy_(stage.up[part], non_blocking=True)
            if any(item.address for item in given):
                stage.tell([item.address for item in given])
            if copied < only_cut:
                rows = there[start + copied * length : start + only_cut * length]
                gather(stage.addresses[copied:only_cut], rows.view(-1, length))
            if beside is not None:
                stage.arrived.record()
        if beside is not None:
            engine.main.wait_event(stage.arrived)
        if there is not engine.uploaded:
            used = slice(start, start + only_cut * length)
            engine.uploaded[used].copy_(there[used])
        for (plan, lies), group in groupby(
            enumerate(given[only_cut:], only_cut), lambda each: (each[1].plan, bool(each[1].address))
        ):
            rows_of = list(group)
            row = rows_of[0][0]
            if plan is None:
                raise ValueError("pictures to be resized come last, those of one size together")
            if lies:
                self._resizer(plan).gather(stage.addresses[row : row + len(rows_of)], row)
            else:
                pixels = [item.pixels for _, item in rows_of if item.pixels is not None]
                self._resizer(plan).put(pixels, row)

    def _copy(self, stage: Stage, pictures: Sequence[ImageU8]) -> None:
        if len(pictures) <= _COPIED_ALONE:
            for row, picture in zip(stage.pictures, pictures, strict=False):
                row[...] = picture
            return
        size = -(-len(pictures) // self._shares)
        copying = [
            self._threads.submit(
                _copy_rows, stage.picture_rows[first : first + size], pictures[first : first + size]
            )
            for first in range(0, len(pictures), size)
        ]
        for share in copying:
            share.result()

    def _resizer(self, plan: CropPlan) -> Resizer:
        if plan not in self._resizers:
            self._resizers[plan] = Resizer(plan, self._engine, self._dtype)
            if len(self._resizers) > _SIZES:
                if self._engine.graphs:
                    torch.cuda.synchronize(self._engine.device)
                self._resizers.popitem(last=False)
        self._resizers.move_to_end(plan)
        return self._resizers[plan]


def in_order(given: Given) -> tuple[int, bool]:
    """What a step's pictures are sorted by: those only cut first; of each size, copied ones first."""
    return id(given.plan) if given.plan else 0, given.address != 0


def _copy_rows(rows: Tensor, pictures: Sequence[ImageU8]) -> None:
    """Copy pictures to rows in one call, in which other threads run: taking turns for each costs more."""
    views = [torch.from_numpy(picture if picture.flags.writeable else picture.copy()) for picture in pictures]
    with torch.inference_mode():
        torch.stack(views, out=rows[: len(views)])


def _alone() -> None:
    """These threads copy beside each other, and need no others."""
    torch.set_num_threads(1)
