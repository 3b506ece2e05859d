"""The way to the device: pictures in pinned memory, and from there to where the engine reads. Needs torch."""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ongebd.pool.gpu.cuda import Pinned, captured, gather, new_event, new_stream
from ongebd.pool.gpu.engine import CONTROL, Engine
from ongebd.pool.gpu.resize import CropPlan, Weights, resized
from ongebd.types import Feature, ImageU8

DIRECT = 8
"""Up to so many rows are uploaded straight to where the graph reads; more go up beside the last step."""
_COPIED_ALONE = 8  # pictures that one thread copies
_CHUNK = 8  # pictures that are resized together
_PLANS = 8  # sizes of pictures whose weights are kept


@dataclass(frozen=True, slots=True)
class Given:
    """What is kept of a frame until its step.

    Attributes:
        pixels: The part of the picture that matters, uint8, (rows, columns, 3); None for a feature.
        plan: How the picture becomes a square; None if it is one.
        feature: (D,), float32, instead of a picture.
        pinned: The memory that holds the pixels, if the device reads them from there.
        address: Where in that memory; 0 if they are copied.
    """

    pixels: ImageU8 | None = None
    plan: CropPlan | None = None
    feature: Feature | None = None
    pinned: Pinned | None = None
    address: int = 0

    @property
    def order(self) -> tuple[bool, int, bool]:
        """Sorts a step: pictures only cut, pictures to resize (of each size, copied ones first), features."""
        return self.feature is not None, id(self.plan) if self.plan else 0, self.address != 0


class Staging:
    """Pinned memory for one step under way: what goes up, and the verdicts that come back.

    Attributes:
        control: (most rows, len(CONTROL)), to be written.
        verdicts: (most rows, …), to be read once the step is done.
    """

    def __init__(self, engine: Engine) -> None:
        pinned, device = engine.graphs, engine.device
        most = engine.buckets[-1]
        self.up = torch.zeros(engine.uploaded.shape, dtype=torch.uint8, pin_memory=pinned)
        self.features = torch.zeros(engine.features.shape, pin_memory=pinned)
        self.down = torch.zeros(engine.verdicts.shape, dtype=torch.float64, pin_memory=pinned)
        self.control_bytes = most * len(CONTROL) * 8
        control = self.up[: self.control_bytes].view(torch.float64).view(most, len(CONTROL))
        self.control: npt.NDArray[np.float64] = control.numpy()
        self.picture_rows = self.up[self.control_bytes :].view(engine.pictures.shape)
        self.pictures: ImageU8 = self.picture_rows.numpy()
        self.picture_bytes = engine.pictures[0].numel()
        self.verdicts: npt.NDArray[np.float64] = self.down.numpy()
        self.on_device = torch.zeros_like(self.up, device=device) if engine.graphs and most > DIRECT else None
        self._addresses_up = torch.zeros(most, dtype=torch.int64, pin_memory=pinned)
        self.addresses = torch.zeros(most, dtype=torch.int64, device=device)
        if engine.graphs:
            self.arrived = new_event()
            # Waiting for a short step spins, which wakes immediately; waiting for a long one frees the core.
            self.done = {spins: new_event(sleeps=not spins) for spins in (True, False)}

    def upload_addresses(self, addresses: Sequence[int]) -> None:
        """Enqueue the upload of where the pictures of a step lie, to `addresses`."""
        count = len(addresses)
        self._addresses_up.numpy()[:count] = addresses
        self.addresses[:count].copy_(self._addresses_up[:count], non_blocking=True)


class Resizer:
    """Makes pictures of one size into squares, in the engine's `pictures`.

    `weights` are those of the size's `CropPlan`, `shape` is (rows, columns, 3) of what the plan cuts out.
    """

    def __init__(self, weights: Weights, shape: tuple[int, ...], engine: Engine, dtype: torch.dtype) -> None:
        self._engine = engine
        down, across = weights
        self._down = torch.from_numpy(down).to(engine.device, dtype)
        self._across = torch.from_numpy(across.T.copy()).to(engine.device, dtype)
        self._here = torch.zeros(_CHUNK, *shape, dtype=torch.uint8, device=engine.device)
        self._waiting: deque[tuple[Tensor, torch.cuda.Event | None]] = deque()
        for _ in range(3):
            pinned = torch.zeros(_CHUNK, *shape, dtype=torch.uint8, pin_memory=engine.graphs)
            self._waiting.append((pinned, new_event() if engine.graphs else None))
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        if engine.graphs:
            torch.cuda.synchronize(engine.device)
            for count in (1, _CHUNK):
                run = partial(resized, self._here[:count], self._down, self._across)
                self._graphs[count] = captured(run, engine.device, warm_up=2)

    def put(self, pixels: Sequence[ImageU8], row: int) -> None:
        """Resize some pictures into consecutive rows of `pictures`."""
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
        """Do the same with pictures that the device reads from pinned memory."""
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

    Pictures are resized in `dtype`; threads copy large batches into pinned memory.
    """

    def __init__(self, engine: Engine, dtype: torch.dtype) -> None:
        self._engine = engine
        self._dtype = dtype
        self._resizers: OrderedDict[CropPlan, Resizer] = OrderedDict()
        self._shares = max(1, min(8, (os.cpu_count() or 1) // 4))
        # The threads copy side by side, so torch must not split each copy further.
        self.threads = ThreadPoolExecutor(
            self._shares, thread_name_prefix="ongebd-upload", initializer=torch.set_num_threads, initargs=(1,)
        )
        self._up = new_stream(engine.device) if engine.graphs else None

    def send_features(self, staging: Staging, given: Sequence[Given], first: int) -> None:
        """Enqueue the upload of a step's features, which follow its first rows."""
        rows, part = staging.features.numpy(), slice(first, first + len(given))
        for row, item in enumerate(given, first):
            rows[row] = item.feature
        self._engine.features[part].copy_(staging.features[part], non_blocking=True)

    def send_pictures(self, staging: Staging, given: Sequence[Given]) -> None:
        """Enqueue the upload of a step of pictures, sorted by `Given.order`."""
        only_cut = sum(item.plan is None for item in given)
        copied = sum(not item.address for item in given[:only_cut])
        self._copy(staging, [item.pixels for item in given[:copied] if item.pixels is not None])
        engine, beside = self._engine, self._up if len(given) > DIRECT else None
        target = engine.uploaded if beside is None or staging.on_device is None else staging.on_device
        start, length = staging.control_bytes, staging.picture_bytes
        with nullcontext() if beside is None else torch.cuda.stream(beside):
            part = slice(start, start + copied * length)
            target[part].copy_(staging.up[part], non_blocking=True)
            if any(item.address for item in given):
                staging.upload_addresses([item.address for item in given])
            if copied < only_cut:
                rows = target[start + copied * length : start + only_cut * length]
                gather(staging.addresses[copied:only_cut], rows.view(-1, length))
            if beside is not None:
                staging.arrived.record()
        if beside is not None:
            engine.main.wait_event(staging.arrived)
        if target is not engine.uploaded:
            used = slice(start, start + only_cut * length)
            engine.uploaded[used].copy_(target[used])
        row = only_cut
        for (*_, on_host), group in groupby(given[only_cut:], lambda item: item.order):
            same = list(group)
            resizer = self._resizer(same[0])
            if on_host:
                resizer.gather(staging.addresses[row : row + len(same)], row)
            else:
                resizer.put([item.pixels for item in same if item.pixels is not None], row)
            row += len(same)

    def _copy(self, staging: Staging, pictures: Sequence[ImageU8]) -> None:
        if len(pictures) <= _COPIED_ALONE:
            for row, picture in zip(staging.pictures, pictures, strict=False):
                row[...] = picture
            return
        size = -(-len(pictures) // self._shares)
        parts = [slice(first, first + size) for first in range(0, len(pictures), size)]
        rows, shares = [staging.picture_rows[part] for part in parts], [pictures[part] for part in parts]
        list(self.threads.map(_copy_rows, rows, shares))

    def _resizer(self, given: Given) -> Resizer:
        plan, pixels = given.plan, given.pixels
        if plan is None or plan.weights is None or pixels is None:
            raise ValueError("pictures to be resized come last, those of one size together")
        if plan not in self._resizers:
            self._resizers[plan] = Resizer(plan.weights, pixels.shape, self._engine, self._dtype)
            if len(self._resizers) > _PLANS:
                if self._engine.graphs:
                    torch.cuda.synchronize(self._engine.device)
                self._resizers.popitem(last=False)
        self._resizers.move_to_end(plan)
        return self._resizers[plan]


def _copy_rows(rows: Tensor, pictures: Sequence[ImageU8]) -> None:
    """Copy pictures to rows in one call that releases Python's lock once; a call for each costs more."""
    views = [torch.from_numpy(picture if picture.flags.writeable else picture.copy()) for picture in pictures]
    with torch.inference_mode():
        torch.stack(views, out=rows[: len(views)])
