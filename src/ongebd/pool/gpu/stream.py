"""One stream on a GPU, frame by frame: what `OnlineDetector` is on the CPU."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ongebd.detector.config import StreamConfig, asked_for
from ongebd.detector.due import Due, in_seconds
from ongebd.detector.models import Model
from ongebd.detector.retuning import check_retuning, with_knobs
from ongebd.pool.gpu.runtime import GpuRuntime
from ongebd.pool.runtime.base import Work
from ongebd.types import Boundary, Decision, Feature, ImageU8


class DeviceStream:
    """Finds event boundaries in one stream on a GPU. Not for use from two threads at once.

    It takes a GPU for itself, ready in seconds; for many streams there is `ongebd.StreamPool`.

    Args:
        model: A loaded model whose backbone and method have a GPU form.
        config: Settings; what is None takes the model's own value.
        device: "cuda" or "cuda:N".
        precision: "float32", "bfloat16" or "float16".
        options: Those of `GpuRuntime`, by name.
        **settings: Single settings by name, as in `StreamConfig`.

    Attributes:
        config: The settings, with the model's own filled in.
        runtime: What runs it.
        latency: Seconds of future that a verdict on a frame waits for, as in `OnlineDetector`.

    Raises:
        ConfigError: As `GpuRuntime`.
    """

    def __init__(
        self,
        model: Model,
        config: StreamConfig | None = None,
        *,
        device: str = "cuda",
        precision: str = "float16",
        options: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self._model = model
        self.config = model.configured(asked_for(config, settings))
        one = {"max_streams": 1, "max_batch": 1, "threads": 1}
        self.runtime = GpuRuntime(
            model, device=device, precision=precision, config=self.config, **{**one, **(options or {})}
        )
        self._lane = self.runtime.open(self.config)
        self.latency = self._lane.latency
        self.due = Due(self.config.rate())

    @property
    def state_bytes(self) -> int:
        """Bytes that are kept of this stream, on the device nearly all."""
        return self.runtime.state_bytes

    def update(self, frame: ImageU8, time: float | Fraction) -> Decision:
        """Take the next frame; see `OnlineDetector.update`."""
        return self._decided(self.runtime.accept(frame, copy=False), time)

    def update_feature(self, feature: Feature, time: float | Fraction) -> Decision:
        """Take the next frame's feature, (D,), in place of the picture."""
        return self._decided(self.runtime.accept_feature(feature), time)

    def drain(self) -> list[Decision]:
        """The decisions that a look-ahead still held back; see `OnlineDetector.drain`."""
        return self._lane.drain()

    def flush(self) -> Boundary | None:
        """Say that the stream is over: the boundary still open, if there is one."""
        return self._lane.flush()

    def new_epoch(self) -> Boundary | None:
        """Begin anew after a break in the source; frame numbers go on. Returns what `flush` would."""
        self.due.restart()
        self._lane.break_off()
        return self._lane.new_epoch()

    def retune(self, **knobs: float) -> None:
        """Judge with another sensitivity, τ or threshold from the next frame on; see `PoolStream.retune`."""
        config = self._model.configured(with_knobs(self.config, knobs))
        check_retuning(self.config, config)
        self.config = config
        self._lane.retune_ahead(config)
        self._lane.retune(config)

    def reset(self) -> None:
        """Forget everything seen: the next frame is the first of a new stream."""
        self.due.restart()
        self.runtime.release(self._lane)
        self._lane = self.runtime.open(self.config)

    def close(self) -> None:
        """Give the runtime's threads back."""
        self.runtime.close()

    def _decided(self, given: Any, time: float | Fraction) -> Decision:
        (outcome,) = self.runtime.begin([Work(self._lane, given, in_seconds(time))]).finish()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome
