"""Streams whose frames other processes read, while one process decides on them all, say with a GPU."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from ongebd.backbones import Backbone
from ongebd.backbones.pipeline import prefetch
from ongebd.detector.config import StreamConfig
from ongebd.detector.models import Model
from ongebd.errors import OngebdError, uninterrupted
from ongebd.pool.pool import StreamPool
from ongebd.pool.shared_memory import Handle, Producer
from ongebd.pool.stream import PoolResult
from ongebd.types import Boundary, Decision, Frame
from ongebd.video.picture import View

_SLOTS = 8

Remote = tuple[Handle, Connection]
"""A stream of another process: where its frames go, and where its results come from."""


@contextmanager
def deciding(model: Model, config: StreamConfig, device: str, count: int) -> Iterator[list[Remote]]:
    """Decide on the frames of so many other processes, a stream for each, until the end of the block."""

    def tell(result: PoolResult) -> None:
        pipe: Any = result.stream.name
        with suppress(OSError):  # its process is gone
            pipe.send(replace(result, stream=None))  # type: ignore[arg-type]  # which stays here

    ours, theirs = zip(*(multiprocessing.Pipe() for _ in range(count)), strict=True)
    with StreamPool(
        model, device=device, config=config, on_result=tell, max_streams=count, max_batch=count
    ) as pool:
        streams = [pool.add(name=pipe) for pipe in ours]
        width, height = model.backbone.view.size(1, 1)
        with pool.shared_input(streams, (height, width), slots=_SLOTS) as shared:
            yield list(zip(shared.handles, theirs, strict=True))


class RemoteModel(Model):
    """Stands for a model in a process that only reads."""

    def __init__(self, name: str, view: View, producer: Producer, results: Connection) -> None:
        backbone = Backbone(name, name, 0, 0, 0)
        backbone.view = view
        super().__init__(name, "", backbone, StreamConfig(), _elsewhere)
        object.__setattr__(self, "begin", partial(RemoteDetector, producer, results))


def _elsewhere(_config: StreamConfig) -> NoReturn:
    raise NotImplementedError


class RemoteDetector:
    """What `SourceRun` needs of an `OnlineDetector`, for a stream without look-ahead of another process."""

    def __init__(self, producer: Producer, results: Connection, config: StreamConfig) -> None:
        self.config = config
        self._producer, self._results = producer, results
        self._asked = self._ended = 0  # ends of an epoch: asked for, and told
        self._found: list[Boundary] = []
        self._closed: list[Boundary] = []

    def features(
        self, frames: Iterable[Frame], _workers: int, wake: Callable[[], object]
    ) -> Generator[tuple[Frame, Decision], None, None]:
        """The decision on each frame. If it stops early, `flush` has the boundaries that were under way."""
        try:
            with closing(prefetch(self._given(frames), ahead=_SLOTS, wake=wake)) as given:
                for frame in given:
                    while (result := self._next()).waited is None:
                        self._keep(result)
                    if result.decision is None:
                        raise result.error or OngebdError("no decision")
                    yield frame, result.decision
            self._finish()
        except BaseException:
            with uninterrupted(), suppress(OngebdError):
                self._end()
                self._finish()
            raise

    def take(self, decision: Decision, _time: float | Fraction) -> Decision:
        """See `OnlineDetector.take`."""
        return decision

    def drain(self) -> list[Decision]:
        """No decision is held back."""
        return []

    def flush(self) -> Boundary | None:
        """See `OnlineDetector.flush`."""
        return self._found.pop(0) if self._found else None

    def closed(self) -> list[Boundary]:
        """See `OnlineDetector.closed`."""
        closed, self._closed = self._closed, []
        return closed

    def new_epoch(self) -> None:
        """The stream begins one with its first frame."""

    def _given(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """The frames, each given to the other process, and the end of each epoch. Runs in a thread."""
        height, width = self._producer.shape
        epoch = 0
        for frame in frames:
            if frame.epoch != epoch:
                self._end()
            epoch = frame.epoch
            top, left = (frame.rgb.shape[0] - height) // 2, (frame.rgb.shape[1] - width) // 2
            picture = frame.rgb[top : top + height, left : left + width]
            self._producer.submit(picture, float(frame.time))
            yield frame
        self._end()

    def _end(self) -> None:
        self._asked += 1
        self._producer.new_epoch()

    def _finish(self) -> None:
        """Wait until all epochs have ended."""
        while self._ended < self._asked:
            self._keep(self._next())

    def _keep(self, result: PoolResult) -> None:
        if result.found is not None:
            self._found.append(result.found)

    def _next(self) -> PoolResult:
        while not self._results.poll(1.0):
            self._producer.check()
        with uninterrupted():  # half a result would spoil those that follow
            result: PoolResult = self._results.recv()
        self._ended += result.ended is not None
        self._closed += result.closed
        return result
