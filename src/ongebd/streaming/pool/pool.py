"""Many streams of one model at once, in micro-batches."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from time import monotonic
from types import TracebackType
from typing import Any, Self

from ongebd.errors import ConfigError
from ongebd.streaming.config import StreamConfig, asked_for
from ongebd.streaming.models import DEFAULT_MODEL, Model, load
from ongebd.streaming.pool.checks import a_delay, at_least_one
from ongebd.streaming.pool.door import Door
from ongebd.streaming.pool.ring import WhenNoSlot, check_layout
from ongebd.streaming.pool.stream import Counts, PoolResult, PoolStream, sum_of
from ongebd.streaming.pool.turns import Ended, Ending, Entry, Turns, Waiting, WhenFull, check_when_full
from ongebd.streaming.pool.workers import Workers
from ongebd.streaming.retuning import check_retuning, with_knobs
from ongebd.streaming.runtime import Runtime, open_runtime
from ongebd.streaming.runtime.base import in_seconds
from ongebd.types import Feature, ImageU8


class StreamPool:
    """Runs many streams of one model: add and drop them at will, give frames, take decisions.

    Frames of different streams are worked on together. Each stream gets what it would get alone: on the CPU
    the very same decisions, on a GPU nearly the same (docs/runtime.md).

        with ongebd.StreamPool("window-mean") as pool:
            cameras = {pool.add(name=name): camera for name, camera in my_cameras()}
            ...                                     # any thread: stream.submit(frame, seconds)
            for result in pool.results():           # any other
                if result.decision and result.decision.onset:
                    print(result.stream.name, "something new begins at", result.decision.time)

    Args:
        model: The name of a model, or a loaded one.
        device: "cpu", or a GPU: "cuda", "cuda:1".
        precision: In what backbone and method compute; None takes float32 on the CPU and float16 on a GPU.
        config: Settings of every stream where `add` is not told others; None takes the model's.
        max_batch: The most frames in one step; None takes the runtime's.
        max_delay: Seconds that a frame may wait for others to make a batch with. A batch is begun at once
            where it is full or every stream has a frame in it. None takes 0 on the CPU, where a batch gains
            nothing, and 0.005 on a GPU.
        max_pending: Frames of one stream that may wait to be begun.
        when_full: What becomes of a frame that finds no room: "block" lets `submit` wait, "drop-oldest" makes
            room, "drop-newest" drops the frame itself. Each stream counts what it dropped.
        max_results: Results that may wait to be taken; then no more frames are begun, and the lines fill up.
        on_result: Called with each result, in one thread of the pool, in place of `results` and `poll`. It
            must not wait for the pool.
        runtime: A runtime in place of `device` and `precision`; the pool closes it.
        **options: Those of the runtime.

    Raises:
        ConfigError: A setting is out of range, or the model has no form for the device.
        MissingExtraError: Torch is needed and not installed.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | Model = DEFAULT_MODEL,
        *,
        device: str = "cpu",
        precision: str | None = None,
        config: StreamConfig | None = None,
        max_batch: int | None = None,
        max_delay: float | None = None,
        max_pending: int = 8,
        when_full: WhenFull = "block",
        max_results: int = 65_536,
        on_result: Callable[[PoolResult], object] | None = None,
        runtime: Runtime[Any] | None = None,
        **options: Any,
    ) -> None:
        self._max_pending = at_least_one("max_pending", max_pending)
        self._when_full = check_when_full(when_full)
        self._max_results = at_least_one("max_results", max_results)
        self._delay = (0.0 if device == "cpu" else 0.005) if max_delay is None else a_delay(max_delay)
        self._on_result = on_result
        self.model = model if isinstance(model, Model) else load(model)
        self.config = self.model.configured(config)
        if max_batch is not None:
            options["max_batch"] = at_least_one("max_batch", max_batch)
        if runtime is None:
            if device != "cpu":
                options["config"] = self.config
            runtime = open_runtime(self.model, device, precision, **options)
        elif options:
            raise ConfigError(f"a runtime is given, which has its own {', '.join(sorted(options))}")
        self.runtime = runtime
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # for who begins steps
        self._room = threading.Condition(self._lock)  # for who submits
        self._news = threading.Condition(self._lock)  # for who takes results, and who waits
        self._turns = Turns()
        self._results: deque[PoolResult] = deque()
        self._streams: set[PoolStream] = set()
        self._past = Counts(0, 0, 0, 0)  # of streams that are closed
        self._undone = 0  # entries without a result
        self._closing = False
        self._failure: BaseException | None = None
        self._workers = Workers(self.runtime, self._next, self._deliver, self._fail)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(drain=error is None)

    def __len__(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    def add(
        self,
        config: StreamConfig | None = None,
        *,
        name: object = None,
        when_full: WhenFull | None = None,
        max_pending: int | None = None,
        **settings: Any,
    ) -> PoolStream:
        """Begin a stream; any time, from any thread.

        Args:
            config: Settings; what is None takes the pool's value.
            name: Anything that tells it apart, for you.
            when_full: As the pool's, for this stream.
            max_pending: Likewise.
            **settings: Single settings by name, as in `StreamConfig`.

        Raises:
            ConfigError: A setting is out of range or not to be had, or there is no place left.
        """
        wanted = asked_for(config, settings).filled(self.config)
        policy = self._when_full if when_full is None else check_when_full(when_full)
        room = self._max_pending if max_pending is None else at_least_one("max_pending", max_pending)
        with self._lock:
            self._check_open()
            stream = PoolStream(self, name, self.runtime.open(self.model.configured(wanted)), room, policy)
            self._streams.add(stream)
        return stream

    def submit(
        self,
        stream: PoolStream,
        frame: ImageU8,
        time: float | Fraction,
        *,
        copy: bool = True,
        timeout: float | None = None,
    ) -> bool:
        """Give a stream its next frame. Its result comes later, after those of its frames before.

        Args:
            stream: Of `add`.
            frame: An upright RGB picture, uint8, shape (height, width, 3), any size.
            time: When it is shown, in seconds; a time before the last one begins a new epoch.
            copy: Keep a copy of the frame; otherwise it must not be changed until its result is there.
            timeout: Seconds to wait for room at most, where the stream blocks.

        Returns:
            Whether it was taken; False where it was dropped, which the stream counts.

        Raises:
            FeatureError: It is no such picture.
            ConfigError: The time is no number, or stream or pool is closed.
        """
        return self._push(stream, self.runtime.accept(frame, copy), in_seconds(time), timeout)

    def submit_feature(
        self,
        stream: PoolStream,
        feature: Feature,
        time: float | Fraction,
        *,
        timeout: float | None = None,
    ) -> bool:
        """Give a stream its next frame's feature, float32, (D,), not the picture; else as `submit`."""
        return self._push(stream, self.runtime.accept_feature(feature), in_seconds(time), timeout)

    def end(self, stream: PoolStream, what: Ended) -> None:
        """What `PoolStream.flush`, `new_epoch` and `close` do."""
        with self._lock:
            self._check_taking(stream)
            if what == "close":
                stream.open = False
            self._undone += 1
            self._turns.push(stream.line, Ending(what))
            self._work.notify()

    def retune(self, stream: PoolStream, knobs: dict[str, float]) -> None:
        """What `PoolStream.retune` does."""
        with self._lock:
            self._check_taking(stream)
            config = self.model.configured(with_knobs(stream.config, knobs))
            check_retuning(stream.config, config)
            stream.config = config
            self._undone += 1
            self._turns.push(stream.line, Ending("retune", config))
            self._work.notify()

    def door(
        self,
        streams: Sequence[PoolStream],
        shape: tuple[int, int],
        *,
        slots: int = 4,
        when_full: WhenNoSlot = "block",
    ) -> Door:
        """Let other processes give the frames of some streams, through memory that is shared.

        Python runs in one thread at a time, so that what makes tens of thousands of frames a second had
        better not be in the pool's process. Times go through as float64.

        Args:
            streams: Of this pool; each with `max_pending` of `slots` at least. They take no frames otherwise.
            shape: Height and width of all their frames, in pixels.
            slots: Frames of a stream that may be under way.
            when_full: "block" lets a producer wait for a slot, "drop-newest" drops the frame.

        Raises:
            ConfigError: A number is out of range, or a stream lets fewer frames wait.
            OngebdError: There is no room for the shared memory.
        """
        self._check_open()
        layout = check_layout(len(streams), slots, shape, self.runtime.window)

        def accept(pixels: ImageU8, pinned: Any) -> Any:
            return self.runtime.accept_window(pixels, *layout.shape, pinned)

        return Door(streams, layout, when_full, self.runtime.pin, accept, self._come)

    def _come(self, entries: list[tuple[PoolStream, Entry]]) -> None:
        """Frames and ends of several streams, which have room for them. For a door."""
        with self._lock:
            self._check_open()
            waited_for_none = not self._turns
            for stream, entry in entries:
                frame = isinstance(entry, Waiting)
                stream.submitted += frame
                if not stream.open:
                    stream.dropped += frame
                    continue
                if isinstance(entry, Ending) and entry.what == "close":
                    stream.open = False
                self._undone += 1
                self._turns.push(stream.line, entry)
            if waited_for_none or self._whole():  # as in `_push`
                self._work.notify()

    def counts(self) -> Counts:
        """What became of all frames so far."""
        with self._lock:
            return sum_of([self._past, *(stream.counts() for stream in self._streams)])

    def poll(self) -> list[PoolResult]:
        """The results that are there, without waiting.

        Raises:
            ConfigError: They go to `on_result`.
        """
        with self._lock:
            self._check_takes_results()
            return self._taken()

    def results(self, timeout: float | None = None) -> Iterator[PoolResult]:
        """Results as they come, until the pool is closed and the last one is out.

        Args:
            timeout: Seconds without a result after which to stop all the same.

        Raises:
            ConfigError: They go to `on_result`.
        """
        while True:
            with self._lock:
                self._check_takes_results()
                if not self._results and not self._over and not self._news.wait_for(self._any_news, timeout):
                    return
                if not self._results:
                    self._check_sound()
                    return
                some = self._taken()
            yield from some

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything submitted so far has its result; whether it has."""
        with self._lock:
            done = self._news.wait_for(lambda: self._undone == 0 or self._failure is not None, timeout)
            self._check_sound()
            return done

    def close(self, drain: bool = True) -> None:
        """End all streams, join the threads and give the runtime back. A second time does nothing.

        Args:
            drain: Let every frame that waits be decided, and every stream be flushed, first. Otherwise frames
                that wait are dropped, and counted.

        Raises:
            ConfigError: Called from `on_result`.
        """
        if self._workers.is_current():
            raise ConfigError("on_result cannot close the pool that calls it")
        with self._lock:
            if not self._closing:
                self._closing = True
                for stream in self._streams:
                    if not drain:
                        self._drop_waiting(stream)
                    if stream.open:
                        stream.open = False
                        self._undone += 1
                        self._turns.push(stream.line, Ending("close"))
            self._work.notify_all()
            self._room.notify_all()
        self._workers.join()
        with self._lock:
            self._news.notify_all()
            self._check_sound()

    def _push(self, stream: PoolStream, given: Any, time: float, timeout: float | None) -> bool:
        since = monotonic()
        with self._lock:
            self._check_taking(stream)
            line = stream.line
            stream.submitted += 1
            if line.full and not self._make_room(stream, timeout):
                stream.dropped += 1
                return False
            self._undone += 1
            self._turns.push(line, Waiting(given, time, since))
            # Who begins steps is woken for the first frame, to set its alarm, and for a batch that is whole.
            if len(self._turns) == 1 or self._whole():
                self._work.notify()
        return True

    def _make_room(self, stream: PoolStream, timeout: float | None) -> bool:
        if stream.when_full == "drop-newest":
            return False
        if stream.when_full == "drop-oldest":
            stream.line.drop_oldest()
            stream.dropped += 1
            self._undone -= 1
            return True

        def may_go_on() -> bool:
            return not stream.line.full or not stream.open or self._failure is not None

        made = self._room.wait_for(may_go_on, timeout)
        if made:
            try:
                self._check_taking(stream)
            except BaseException:
                stream.submitted -= 1
                raise
        return made

    def _drop_waiting(self, stream: PoolStream) -> None:
        entries = list(stream.line.entries)
        stream.dropped += stream.line.clear()
        self._undone -= len(entries)
        if any(isinstance(entry, Ending) and entry.what == "close" for entry in entries):
            stream.open = True

    def _whole(self) -> bool:
        return len(self._turns) >= min(self.runtime.max_batch, len(self._streams))

    def _next(self) -> list[tuple[PoolStream, Waiting | Ending]] | None:
        """The next batch, once there is one; None at the end. For who begins steps."""
        with self._lock:
            while self._failure is None:
                left: float | None = None
                if self._turns and (self._closing or len(self._results) < self._max_results):
                    left = 0.0 if self._closing or self._whole() else self._left()
                    if left <= 0:
                        batch = self._turns.take(self.runtime.max_batch)
                        self._room.notify_all()
                        return [(line.stream, entry) for line, entry in batch]
                elif self._closing and not self._turns:
                    return None
                self._work.wait(left)
            return None

    def _left(self) -> float:
        return self._turns.oldest() + self._delay - monotonic()

    def _deliver(self, results: list[PoolResult]) -> None:
        """Hand results over, and count them. For who finishes steps."""
        if self._on_result is not None:
            for result in results:
                self._on_result(result)
        with self._lock:
            for result in results:
                self._count(result)
            if self._on_result is None:
                self._results.extend(results)
            self._news.notify_all()

    def _count(self, result: PoolResult) -> None:
        stream = result.stream
        if result.waited is not None:
            stream.decided += result.error is None
            stream.failed += result.error is not None
            self._undone -= 1
        if result.ended is not None:
            self._undone -= 1
        if result.ended == "close":
            self._streams.discard(stream)
            self._past = sum_of([self._past, stream.counts()])
            self.runtime.release(stream.lane)

    def _fail(self, problem: BaseException) -> None:
        with self._lock:
            self._failure = self._failure or problem
            for waiting in (self._work, self._room, self._news):
                waiting.notify_all()

    def _taken(self) -> list[PoolResult]:
        some = list(self._results)
        self._results.clear()
        self._work.notify()  # there may have been too many
        return some

    def _any_news(self) -> bool:
        return bool(self._results) or self._over

    @property
    def _over(self) -> bool:
        return self._failure is not None or (self._closing and not self._streams and self._undone == 0)

    def _check_sound(self) -> None:
        if self._failure is not None:
            raise RuntimeError(f"the pool has stopped: {self._failure}") from self._failure

    def _check_open(self) -> None:
        self._check_sound()
        if self._closing:
            raise ConfigError("the pool is closed; begin another")

    def _check_taking(self, stream: PoolStream) -> None:
        self._check_open()
        if not stream.open:
            raise ConfigError(f"stream {stream.name!r} is closed; add another")

    def _check_takes_results(self) -> None:
        if not self._results:
            self._check_sound()
        if self._on_result is not None:
            raise ConfigError("this pool's results go to on_result")
