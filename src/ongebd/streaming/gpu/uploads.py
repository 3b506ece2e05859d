"""The way up: pictures in pinned memory, and from there to the device. Needs torch."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ongebd.streaming.gpu.cuda import new_event, new_stream
from ongebd.streaming.gpu.engine import CONTROL, Engine
from ongebd.streaming.gpu.resize import CropPlan, resized
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
    """

    pixels: ImageU8 | None = None
    plan: CropPlan | None = None
    feature: Feature | None = None


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
        if engine.graphs:
            self.arrived = new_event()
            # A short step is waited for by spinning, which wakes at once; a long one lets the core go.
            self.done = {spins: new_event(sleeps=not spins) for spins in (True, False)}


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
            self._put_chunk(pixels[first : first + _CHUNK], row + first)

    def _put_chunk(self, pixels: Sequence[ImageU8], row: int) -> None:
        pinned, sent = self._waiting[0]
        self._waiting.rotate(-1)
        if sent is not None:
            sent.synchronize()
        count = len(pixels)
        for place, picture in zip(pinned.numpy(), pixels, strict=False):
            place[...] = picture
        self._here[:count].copy_(pinned[:count], non_blocking=True)
        if sent is None:
            squares = resized(self._here[:count], self._down, self._across)
        else:
            sent.record()
            graph, squares = self._graphs[1 if count == 1 else _CHUNK]
            graph.replay()
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
        """Enqueue the upload of a step of pictures, those that are only cut first."""
        cut = [item.pixels for item in given if item.plan is None and item.pixels is not None]
        self._copy(stage, cut)
        used = slice(stage.control_bytes, stage.control_bytes + len(cut) * stage.picture_bytes)
        engine = self._engine
        if self._up is None or stage.there is None or len(given) <= DIRECT:
            engine.uploaded[used].copy_(stage.up[used], non_blocking=True)
        else:
            with torch.cuda.stream(self._up):
                stage.there[used].copy_(stage.up[used], non_blocking=True)
                stage.arrived.record()
            engine.main.wait_event(stage.arrived)
            engine.uploaded[used].copy_(stage.there[used])
        row = len(cut)
        while row < len(given):
            plan = given[row].plan
            same = [item.pixels for item in given[row:] if item.plan is plan and item.pixels is not None]
            if plan is None or not same:
                raise ValueError("pictures to be resized come last, those of one size together")
            self._resizer(plan).put(same, row)
            row += len(same)

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


def _copy_rows(rows: Tensor, pictures: Sequence[ImageU8]) -> None:
    """Copy pictures to rows in one call, in which other threads run: taking turns for each costs more."""
    views = [torch.from_numpy(picture if picture.flags.writeable else picture.copy()) for picture in pictures]
    with torch.inference_mode():
        torch.stack(views, out=rows[: len(views)])


def _alone() -> None:
    """These threads copy beside each other, and need no others."""
    torch.set_num_threads(1)
