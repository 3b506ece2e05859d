"""Many streams of one model at once, as their user holds them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

from ongebd.detector.config import StreamConfig, asked_for
from ongebd.detector.due import in_seconds
from ongebd.detector.models import DEFAULT_MODEL, Model, load
from ongebd.detector.retuning import check_retuning, with_knobs
from ongebd.errors import ConfigError
from ongebd.pool.checks import a_delay, at_least_one
from ongebd.pool.door import Door
from ongebd.pool.exchange import Exchange
from ongebd.pool.ring import WhenNoSlot, check_layout
from ongebd.pool.runtime import Runtime, open_runtime
from ongebd.pool.stream import Counts, PoolResult, PoolStream
from ongebd.pool.turns import Ended, WhenFull, check_when_full
from ongebd.pool.workers import Workers
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
        most_results = at_least_one("max_results", max_results)
        delay = (0.0 if device == "cpu" else 0.005) if max_delay is None else a_delay(max_delay)
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
        self._exchange = exchange = Exchange(
            runtime.max_batch, delay, most_results, on_result, runtime.release
        )
        self._workers = Workers(runtime, exchange.next_batch, exchange.deliver, exchange.fail)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(drain=error is None)

    def __len__(self) -> int:
        """How many streams are open."""
        return len(self._exchange)

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

        def begin() -> PoolStream:
            return PoolStream(self, name, self.runtime.open(self.model.configured(wanted)), room, policy)

        return self._exchange.add(begin)

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
        return self._exchange.push(stream, self.runtime.accept(frame, copy), in_seconds(time), timeout)

    def submit_feature(
        self,
        stream: PoolStream,
        feature: Feature,
        time: float | Fraction,
        *,
        timeout: float | None = None,
    ) -> bool:
        """Give a stream its next frame's feature, float32, (D,), not the picture; else as `submit`."""
        return self._exchange.push(stream, self.runtime.accept_feature(feature), in_seconds(time), timeout)

    def end(self, stream: PoolStream, what: Ended) -> None:
        """What `PoolStream.flush`, `new_epoch` and `close` do."""
        self._exchange.end(stream, what)

    def retune(self, stream: PoolStream, knobs: dict[str, float]) -> None:
        """What `PoolStream.retune` does."""

        def change(config: StreamConfig) -> StreamConfig:
            changed = self.model.configured(with_knobs(config, knobs))
            check_retuning(config, changed)
            return changed

        self._exchange.retune(stream, change)

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
        self._exchange.check_open()
        layout = check_layout(len(streams), slots, shape, self.runtime.window)

        def accept(pixels: ImageU8, pinned: Any) -> Any:
            return self.runtime.accept_window(pixels, *layout.shape, pinned)

        return Door(streams, layout, when_full, self.runtime.pin, accept, self._exchange.come)

    def counts(self) -> Counts:
        """What became of all frames so far."""
        return self._exchange.counts()

    def poll(self) -> list[PoolResult]:
        """The results that are there, without waiting.

        Raises:
            ConfigError: They go to `on_result`.
        """
        return self._exchange.poll()

    def results(self, timeout: float | None = None) -> Iterator[PoolResult]:
        """Results as they come, until the pool is closed and the last one is out.

        Args:
            timeout: Seconds without a result after which to stop all the same.

        Raises:
            ConfigError: They go to `on_result`.
        """
        return self._exchange.results(timeout)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything submitted so far has its result; whether it has."""
        return self._exchange.wait(timeout)

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
        self._exchange.close(drain=drain)
        self._workers.join()
        self._exchange.over()
