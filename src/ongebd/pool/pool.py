"""Many streams of one model, for their user.

One thread begins steps and another finishes them, so that the device never waits.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from time import monotonic
from typing import Annotated, Any, Self

from ongebd.common.settings import Range, read_as
from ongebd.detector.config import StreamConfig, asked_for
from ongebd.detector.models import DEFAULT_MODEL, Model, load
from ongebd.errors import ConfigError, import_extra
from ongebd.pool.queue import Request
from ongebd.pool.runtime import AtLeastOne, CpuRuntime, Finish, Runtime, Work
from ongebd.pool.scheduler import Batch, OnResult, Scheduler
from ongebd.pool.shared_input import SharedInput
from ongebd.pool.stream import PoolResult, PoolStream, WhenFull

GPU_DELAY = 0.005
"""Seconds that a frame may wait for others to form a batch, by default."""


class StreamPool(Scheduler):
    """Runs many streams of one model: add and close them at any time, give frames, take decisions.

    While 65,536 results wait to be taken, no more frames begin, and streams fill up.

    The pool works on frames of different streams together. Each stream gets the decisions that it would get
    alone: exactly the same on the CPU, nearly the same on a GPU (docs/runtime.md).

        with ongebd.StreamPool("window-mean") as pool:
            cameras = {pool.add(name=name): camera for name, camera in my_cameras()}
            ...                                     # any thread: stream.submit(frame, seconds)
            for result in pool.results():           # any other
                if result.decision and result.decision.onset:
                    print(result.stream.name, "something new begins at", result.decision.time)

    Args:
        model: The name of a model, or a loaded one.
        device: "cpu", or a GPU: "cuda", "cuda:1".
        precision: Of backbone and method; None: float32 on the CPU and float16 on a GPU.
        config: Default settings of the streams; None takes the model's.
        max_delay: Seconds that a frame may wait for others to form a batch. A batch begins immediately when
            it is full or every stream has a frame in it. None: 0 on the CPU, where a batch gains nothing, and
            0.005 on a GPU.
        max_pending: Frames of one stream that may wait. Streams have their own `max_pending` and `when_full`,
            with these values at first.
        when_full: What happens to a frame if the queue is full: "block" lets `submit` wait, up to its
            `timeout`; "drop-oldest" makes room. Each stream counts what it dropped.
        on_result: Called with each result, in a thread of the pool, instead of `results` and `poll`. It must
            not wait for the pool.
        runtime: A runtime instead of `device` and `precision`; the pool closes it.
        **options: Those of the runtime, such as `max_batch`, the most frames in one step.

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
        max_delay: float | None = None,
        max_pending: int = 8,
        when_full: WhenFull = "block",
        on_result: OnResult | None = None,
        runtime: Runtime | None = None,
        **options: Any,
    ) -> None:
        self.max_pending = read_as(max_pending, AtLeastOne, "max_pending")
        self.when_full: WhenFull = read_as(when_full, WhenFull, "when_full")
        if max_delay is None:
            max_delay = 0.0 if device == "cpu" else GPU_DELAY
        max_delay = read_as(max_delay, Annotated[float, Range(least=0, below=3600)], "max_delay")
        self.model = model if isinstance(model, Model) else load(model)
        self.config = self.model.configured(config)
        if runtime is None:
            if device != "cpu":
                options["config"] = self.config
            runtime = open_runtime(self.model, device, precision, **options)
        elif options:
            raise ConfigError(f"{', '.join(sorted(options))} can't be combined with runtime")
        super().__init__(runtime, max_delay, on_result)
        self._workers = Workers(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(drain=error is None)

    def add(self, config: StreamConfig | None = None, *, name: object = None, **settings: Any) -> PoolStream:
        """Begin a stream; at any time, from any thread.

        Args:
            config: Settings; what is None takes the pool's value.
            name: Anything that identifies the stream for you.
            **settings: Single settings by name, as in `StreamConfig`.

        Raises:
            ConfigError: A setting is out of range or unsupported, or the runtime has no free slot.
        """
        wanted = self.model.configured(asked_for(config, settings).filled(self.config))
        stream = PoolStream(self, self.runtime.open(wanted), name)
        self.add_stream(stream)
        return stream

    def shared_input(
        self, streams: Sequence[PoolStream], shape: tuple[int, int], *, slots: int = 4
    ) -> SharedInput:
        """Let other processes give the frames of some streams, through shared memory.

        Python runs in one thread at a time, so frames at a rate of tens of thousands a second should be made
        outside the pool's process. Times pass through as float64.

        Args:
            streams: Of this pool. Give them no other frames.
            shape: Height and width of all their frames, in pixels.
            slots: Frames of a stream that may be under way.

        Raises:
            ConfigError: Streams are missing, or a number is out of range.
            OngebdError: The shared memory is full.
        """
        return SharedInput(self, streams, shape, slots)

    def close(self, drain: bool = True) -> None:
        """Close all streams, join the threads and close the runtime. A second call does nothing.

        Args:
            drain: Decide every waiting frame and flush every stream first. Otherwise the pool drops frames
                that wait, and counts them.

        Raises:
            ConfigError: Called from `on_result`.
        """
        if self._workers.is_current():
            raise ConfigError("on_result can't close the pool that calls it")
        self.close_streams(drain=drain)
        self._workers.join()
        self.runtime.close()
        self.wait(0)  # raises what the threads stopped for


class Workers:
    """The threads; they end when the scheduler has no more batches, or when anything breaks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._free = threading.Semaphore(scheduler.runtime.depth)
        self._begun: SimpleQueue[tuple[Batch, Finish] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, args=(work,), name="ongebd-pool", daemon=True)
            for work in (self._begin_all, self._finish_all)
        ]
        for thread in self._threads:
            thread.start()

    def is_current(self) -> bool:
        """Whether the caller is one of the threads."""
        return threading.current_thread() in self._threads

    def join(self) -> None:
        """Wait for the threads."""
        for thread in self._threads:
            thread.join()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as problem:  # noqa: BLE001 - raised where the pool is used
            self._scheduler.fail(problem)
        finally:  # the other thread ends too
            self._begun.put(None)
            self._free.release()

    def _begin_all(self) -> None:
        self._free.acquire()
        while (batch := self._scheduler.next_batch()) is not None:
            self._begun.put((batch, self._begin(batch)))
            self._free.acquire()

    def _begin(self, batch: Batch) -> Finish:
        runtime, work = self._scheduler.runtime, []
        for stream, entry in batch:
            if entry.what == "frame":
                work.append(Work(stream.slot, entry.given, entry.time))
            elif entry.what == "epoch":
                runtime.restart_ahead(stream.slot)
            elif entry.config is not None:
                runtime.retune_ahead(stream.slot, entry.config)
        return runtime.begin(work) if work else list

    def _finish_all(self) -> None:
        while (begun := self._begun.get()) is not None:
            batch, finish = begun
            outcomes = iter(finish())
            self._free.release()  # the next step may begin while these results go out
            now = monotonic()
            results: list[PoolResult] = []
            for stream, entry in batch:
                if entry.what != "frame":
                    results += _fulfil(stream, entry.what, entry.config)
                elif isinstance(outcome := next(outcomes), Exception):
                    results.append(PoolResult(stream, error=outcome, waited=now - entry.since))
                else:
                    waited, closed = now - entry.since, stream.slot.closed()
                    results.append(PoolResult(stream, outcome, closed=closed, waited=waited))
                if entry.release is not None:
                    entry.release()
            self._scheduler.deliver(results)


def _fulfil(stream: PoolStream, what: Request, config: StreamConfig | None) -> Iterator[PoolResult]:
    slot = stream.slot
    try:
        if config is not None:
            slot.retune(config)
        else:
            for decision in slot.drain():
                yield PoolResult(stream, decision)
            while (boundary := slot.flush()) is not None:
                yield PoolResult(stream, boundary=boundary)
            if what == "epoch":
                slot.new_epoch()
    except Exception as problem:  # noqa: BLE001 - it concerns this stream alone
        yield PoolResult(stream, error=problem)
    yield PoolResult(stream, ended=what, closed=slot.closed())


def open_runtime(model: Model, device: str = "cpu", precision: str | None = None, **options: Any) -> Runtime:
    """The runtime for a device.

    Args:
        model: A loaded model.
        device: "cpu", which needs no torch, or a GPU: "cuda" or "cuda:N".
        precision: Of backbone and method: "float32", "bfloat16" or "float16". None: float32 on the CPU, which
            knows no other, and float16 on a GPU.
        **options: Those of `CpuRuntime` or `ongebd.pool.gpu.GpuRuntime`.

    Raises:
        ConfigError: This model doesn't support the device or the precision.
        MissingExtraError: A GPU is asked for, and torch is not installed.
    """
    if device == "cpu":
        if precision not in (None, "float32"):
            raise ConfigError(f"on the CPU a stream computes in float32, not in {precision}")
        return CpuRuntime(model, **options)
    import_extra("torch", "train")
    from ongebd.pool.gpu import GpuRuntime

    return GpuRuntime(model, device=device, precision=precision or "float16", **options)
