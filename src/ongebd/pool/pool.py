"""Many streams of one model, for their user."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Self

from ongebd.common.settings import Range, read_as
from ongebd.detector.config import StreamConfig, asked_for
from ongebd.detector.models import DEFAULT_MODEL, Model, load
from ongebd.errors import ConfigError
from ongebd.pool.runtime import Runtime, open_runtime
from ongebd.pool.runtime.base import AtLeastOne
from ongebd.pool.scheduler import Scheduler
from ongebd.pool.shared_input import SharedInput
from ongebd.pool.stream import PoolResult, PoolStream, WhenFull
from ongebd.pool.workers import Workers

GPU_DELAY = 0.005
"""Seconds that a frame may wait for others to form a batch, by default."""


class StreamPool(Scheduler):
    """Runs many streams of one model: add and close them at any time, give frames, take decisions.

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
        max_batch: The most frames in one step; None takes the runtime's.
        max_delay: Seconds that a frame may wait for others to form a batch. A batch begins immediately when
            it is full or every stream has a frame in it. None: 0 on the CPU, where a batch gains nothing, and
            0.005 on a GPU.
        max_pending: Frames of one stream that may wait.
        when_full: What happens to a frame that finds no room: "block" lets `submit` wait, up to its
            `timeout`; "drop-oldest" makes room. Each stream counts what it dropped.
        max_results: Results that may wait to be taken; then no more frames begin, and streams fill up.
        on_result: Called with each result, in a thread of the pool, instead of `results` and `poll`. It must
            not wait for the pool.
        runtime: A runtime instead of `device` and `precision`; the pool closes it.
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
        runtime: Runtime | None = None,
        **options: Any,
    ) -> None:
        self._max_pending = read_as(max_pending, AtLeastOne, "max_pending")
        self._when_full = read_as(when_full, WhenFull, "when_full")
        max_results = read_as(max_results, AtLeastOne, "max_results")
        if max_delay is None:
            max_delay = 0.0 if device == "cpu" else GPU_DELAY
        max_delay = read_as(max_delay, Annotated[float, Range(least=0, below=3600)], "max_delay")
        self.model = model if isinstance(model, Model) else load(model)
        self.config = self.model.configured(config)
        if max_batch is not None:
            options["max_batch"] = max_batch
        if runtime is None:
            if device != "cpu":
                options["config"] = self.config
            runtime = open_runtime(self.model, device, precision, **options)
        elif options:
            raise ConfigError(f"{', '.join(sorted(options))} can't be combined with runtime")
        super().__init__(runtime, max_delay, max_results, on_result)
        self._workers = Workers(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(drain=error is None)

    def add(
        self,
        config: StreamConfig | None = None,
        *,
        name: object = None,
        when_full: WhenFull | None = None,
        max_pending: int | None = None,
        **settings: Any,
    ) -> PoolStream:
        """Begin a stream; at any time, from any thread.

        Args:
            config: Settings; what is None takes the pool's value.
            name: Anything that identifies the stream for you.
            when_full: As the pool's, for this stream.
            max_pending: As the pool's, for this stream.
            **settings: Single settings by name, as in `StreamConfig`.

        Raises:
            ConfigError: A setting is out of range or unsupported, or the runtime has no free slot.
        """
        wanted = self.model.configured(asked_for(config, settings).filled(self.config))
        policy = read_as(when_full or self._when_full, WhenFull, "when_full")
        room = self._max_pending
        if max_pending is not None:
            room = read_as(max_pending, AtLeastOne, "max_pending")
        stream = PoolStream(self, self.model, self.runtime.open(wanted), name, room, policy)
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
            ConfigError: There are no streams, or a number is out of range.
            OngebdError: There is no room for the shared memory.
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
            raise ConfigError("on_result cannot close the pool that calls it")
        self.close_streams(drain=drain)
        self._workers.join()
        self.runtime.close()
        self.wait(0)  # raises what the threads stopped for
