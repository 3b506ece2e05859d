"""One stream on a GPU, frame by frame: what `OnlineDetector` is on the CPU."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ongebd.detector.config import StreamConfig, asked_for
from ongebd.detector.detector import Due, in_seconds
from ongebd.detector.models import Model
from ongebd.pool.gpu.runtime import GpuRuntime
from ongebd.pool.gpu.uploads import Given
from ongebd.pool.runtime.base import Work
from ongebd.types import Boundary, Decision, Feature, ImageU8


class DeviceStream:
    """Finds event boundaries in one stream on a GPU. Not for use from two threads together.

    It has its own `GpuRuntime`, ready in seconds; for many streams use `ongebd.StreamPool`.

    Args:
        model: A loaded model whose backbone and method have a GPU form.
        config: Settings; what is None takes the model's own value.
        device: "cuda" or "cuda:N".
        precision: "float32", "bfloat16" or "float16".
        options: Those of `GpuRuntime`, by name.
        **settings: Single settings by name, as in `StreamConfig`.

    Attributes:
        config: The settings, with the model's defaults filled in.
        runtime: What runs it.
        latency: Seconds of future that a verdict on a frame waits for, as in `OnlineDetector`.
        due: See `OnlineDetector.due`.

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
        self._slot = self.runtime.open(self.config)
        self.latency = self._slot.detector.latency
        self.state_bytes = self.runtime.state_bytes
        self.due = Due(self.config.rate())

    def update(self, frame: ImageU8, time: float | Fraction) -> Decision:
        """Take the next frame; see `OnlineDetector.update`."""
        return self._decide(self.runtime.accept(frame, copy=False), time)

    def update_feature(self, feature: Feature, time: float | Fraction) -> Decision:
        """Take the next frame's feature, (D,), instead of the picture."""
        return self._decide(self.runtime.accept_feature(feature), time)

    def drain(self) -> list[Decision]:
        """See `OnlineDetector.drain`."""
        return self._slot.detector.drain()

    def flush(self) -> Boundary | None:
        """See `OnlineDetector.flush`."""
        return self._slot.detector.flush()

    def new_epoch(self) -> Boundary | None:
        """See `OnlineDetector.new_epoch`."""
        self.due.restart()
        self._slot.restart_ahead()
        return self._slot.detector.new_epoch()

    def retune(self, **knobs: float) -> None:
        """Judge with another sensitivity, τ or threshold from the next frame on; see `PoolStream.retune`."""
        self.config = self._model.retuned(self.config, knobs)
        self._slot.retune_ahead(self.config)
        self._slot.detector.retune(self.config)

    def reset(self) -> None:
        """Forget everything: the next frame is the first of a new stream."""
        self.due.restart()
        self.runtime.release(self._slot)
        self._slot = self.runtime.open(self.config)

    def close(self) -> None:
        """Join the runtime's threads."""
        self.runtime.close()

    def _decide(self, given: Given, time: float | Fraction) -> Decision:
        (outcome,) = self.runtime.begin([Work(self._slot, given, in_seconds(time))]).finish()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome
