"""Streams whose frames other processes read: one process decides on them all, say with a GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, NamedTuple, NoReturn

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


class Told(NamedTuple):
    """What the reading process gets of a `PoolResult`."""

    decision: Decision | None
    boundary: Boundary | None
    error: Exception | None
    ended: str | None
    closed: Sequence[Boundary]
    of_frame: bool


@contextmanager
def deciding(
    model: Model, config: StreamConfig, device: str, pipes: Sequence[Connection]
) -> Iterator[tuple[StreamPool, list[Handle]]]:
    """Decide on what other processes read, a stream for each. What is `Told` goes to its pipe.

    Yields:
        The pool, and each process's handle to its stream.
    """

    def tell(result: PoolResult) -> None:
        pipe: Any = result.stream.name
        told = result.decision, result.boundary, result.error, result.ended, list(result.closed)
        with suppress(OSError):  # its process is gone
            pipe.send(Told(*told, of_frame=result.waited is not None))

    count = len(pipes)
    with StreamPool(
        model, device=device, config=config, on_result=tell, max_streams=count, max_batch=count
    ) as pool:
        streams = [pool.add(name=pipe) for pipe in pipes]
        width, height = model.backbone.view.size(1, 1)
        with pool.shared_input(streams, (height, width), slots=_SLOTS) as shared:
            yield pool, shared.handles


class RemoteDetector:
    """The stream of one source in a process that only reads: a `Decider`.

    It begins by ending what an earlier source may have left in the stream.

    Args:
        producer: Takes the pictures.
        told: Gives what the deciding process tells.
        config: The stream's settings.
    """

    def __init__(self, producer: Producer, told: SimpleQueue[Told], config: StreamConfig) -> None:
        self.config = config
        self._producer, self._told = producer, told
        self._asked = self._ended = 0  # ends of an epoch: asked for, and told
        self._late: deque[Told] = deque()  # of the end of an epoch
        self._closed: list[Boundary] = []
        self._finish()
        self._late.clear()

    def features(
        self, frames: Iterable[Frame], workers: int, wake: Callable[[], object]
    ) -> Generator[tuple[Frame, Told], None, None]:
        """Each frame with what is told of it. After an error, what was decided is there for `flush`."""
        try:
            with closing(prefetch(self._given(frames), ahead=_SLOTS, wake=wake)) as given:
                for frame in given:
                    while not (told := self._next()).of_frame:
                        self._late.append(told)
                    yield frame, told
            self._finish(ask=False)
        except BaseException:
            with uninterrupted():
                self._finish()
            raise

    def take(self, told: Told, _time: float | Fraction) -> Decision:
        """The decision on a frame."""
        if told.decision is None:
            raise told.error or OngebdError("the process that decides has stopped")
        self._closed += told.closed
        return told.decision

    def drain(self) -> list[Decision]:
        """See `OnlineDetector.drain`."""
        decisions = [told.decision for told in self._late if told.decision is not None]
        self._late = deque(told._replace(decision=None) for told in self._late)
        return decisions

    def flush(self) -> Boundary | None:
        """See `OnlineDetector.flush`."""
        while self._late:
            told = self._late.popleft()
            self._closed += told.closed
            if boundary := told.boundary or (told.decision and told.decision.boundary):
                return boundary
        return None

    def closed(self) -> list[Boundary]:
        """See `OnlineDetector.closed`."""
        closed, self._closed = self._closed, []
        return closed

    def new_epoch(self) -> None:
        """The stream begins one as soon as its first frame is given."""

    def _given(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """The frames, each given to the other process, and the end of each epoch. Runs in a thread."""
        height, width = self._producer.shape
        epoch = 0
        for frame in frames:
            if frame.epoch != epoch:
                self._end()
            epoch = frame.epoch
            top, left = (frame.rgb.shape[0] - height) // 2, (frame.rgb.shape[1] - width) // 2
            self._producer.submit(frame.rgb[top : top + height, left : left + width], float(frame.time))
            yield frame
        self._end()

    def _end(self) -> None:
        self._asked += 1
        self._producer.new_epoch()

    def _finish(self, *, ask: bool = True) -> None:
        """Wait until the stream has ended."""
        if ask:
            self._end()
        while self._ended < self._asked:
            self._late.append(self._next())

    def _next(self) -> Told:
        told = self._told.get()
        self._ended += told.ended == "epoch"
        if told.ended == "close":
            raise OngebdError("the process that decides has stopped")
        return told


def remote_model(name: str, view: View, producer: Producer, told: SimpleQueue[Told]) -> Model:
    """What stands for a model in a process that only reads."""
    backbone = Backbone(name, name, 0, 0, 0)
    backbone.view = view

    def begin(config: StreamConfig) -> RemoteDetector:
        return RemoteDetector(producer, told, config)

    def nothing(_config: StreamConfig) -> NoReturn:
        raise NotImplementedError

    return Model(name, "", backbone, StreamConfig(), nothing, elsewhere=begin)
