"""One stream on a GPU, frame by frame: what `OnlineDetector` is on the CPU."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ongebd.detector.config import StreamConfig
from ongebd.detector.detector import Due, in_seconds
from ongebd.detector.models import Model
from ongebd.pool.gpu.runtime import GpuRuntime
from ongebd.pool.gpu.uploads import Given
from ongebd.pool.runtime import Work
from ongebd.types import Boundary, Decision, Feature, ImageU8


class DeviceStream:
    """Finds event boundaries in one stream on a GPU. Not for use from two threads together.

    It has its own `GpuRuntime`, ready in seconds; for many streams use `ongebd.StreamPool`.

    Args:
        model: A loaded model whose backbone and method have a GPU form.
        config: Settings; what is None takes the model's own value.
        **options: `device`, `precision` and `compiles`, as of `GpuRuntime`.

    Attributes:
        config: The settings, with the model's defaults filled in.
        runtime: What runs it.
        latency, due, drain, flush, closed: As of `OnlineDetector`.
        close: A function that joins the runtime's threads.

    Raises:
        ConfigError: As `GpuRuntime`.
    """

    def __init__(self, model: Model, config: StreamConfig | None = None, **options: Any) -> None:
        self.config = model.configured(config)
        self.runtime = GpuRuntime(model, config=self.config, max_streams=1, max_batch=1, **options)
        self._slot = slot = self.runtime.open(self.config)
        self.latency, self.due = slot.latency, Due(self.config.rate())
        self.drain, self.flush, self.closed = slot.drain, slot.flush, slot.closed
        self.close = self.runtime.close

    def update(self, frame: ImageU8, time: float | Fraction) -> Decision:
        """Take the next frame; see `OnlineDetector.update`."""
        return self._decide(self.runtime.accept(frame, copy=False), time)

    def update_feature(self, feature: Feature, time: float | Fraction) -> Decision:
        """Take the next frame's feature, (D,), instead of the picture."""
        return self._decide(self.runtime.accept_feature(feature), time)

    def new_epoch(self) -> Boundary | None:
        """See `OnlineDetector.new_epoch`."""
        self.due.restart()
        self.runtime.restart_ahead(self._slot)
        return self._slot.new_epoch()

    def _decide(self, given: Given, time: float | Fraction) -> Decision:
        (outcome,) = self.runtime.begin([Work(self._slot, given, in_seconds(time))])()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome
