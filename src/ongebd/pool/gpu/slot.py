"""A stream's slot in the GPU runtime: what the device reads of it, and the decisions made here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ongebd.detector.config import StreamConfig
from ongebd.detector.judge import OBD, Judge, ThresholdHead
from ongebd.errors import FeatureError
from ongebd.pool.gpu.batched_scorer import BatchedScorer
from ongebd.pool.gpu.discriminator import SETTINGS
from ongebd.pool.gpu.engine import FEATURE_BROKEN, FEATURE_ZERO, SCORE_BROKEN, VERDICT
from ongebd.types import Boundary, Decision, Signs

Verdict = list[float]
"""A row as `VERDICT` of `ongebd.pool.gpu.engine` names it."""

_BROKEN = {
    FEATURE_BROKEN: "the feature has NaN or infinity in it; check the backbone (float16 ends at 65504)",
    FEATURE_ZERO: "the feature has norm zero; check the backbone's weights",
    SCORE_BROKEN: "the score has NaN or infinity in it; check the method (float16 ends at 65504)",
}


class DeviceHead(ThresholdHead):
    """The discriminator's verdict as the device gave it."""

    def __init__(self, config: StreamConfig) -> None:
        self._first_threshold = config.discriminator().threshold
        super().__init__(self._first_threshold)

    def read(self, verdict: Verdict) -> None:
        """Copy the device's verdict on a score."""
        self.mean, self.std, self.z, self.threshold, positive, ready = verdict[1:7]
        self.is_boundary, self.ready = bool(positive), bool(ready)

    def update(self, score: float, /) -> DeviceHead:
        """Do nothing: the device has seen the score."""
        return self

    def reset(self) -> None:
        """Forget the last verdict."""
        self.read([0.0, 0.0, 0.0, 0.0, self._first_threshold, False, False])


class _AtOnce:
    """Scores that come with their frames (`LateScores`)."""

    latency = 0

    def flush(self) -> tuple[()]:
        """None is late."""
        return ()

    def reset(self) -> None:
        """Nothing is kept."""


class DeviceSlot(Judge):
    """A stream in a `GpuRuntime`: makes decisions from the device's verdicts (`StreamSlot`).

    The discriminator works on the device if scores come with their frames. All other heads work here.

    Attributes:
        number: Of the slot on the device.
        config: The stream's settings.
        latency: Seconds of future that a verdict waits for.
        settings: The slot's row of `SETTINGS`, (6,), for the device; zeros if another head works here.
        restart: Whether the next frame that begins starts a new epoch.
    """

    latency = 0.0

    def __init__(
        self,
        number: int,
        config: StreamConfig,
        scorer: BatchedScorer,
        settings: npt.NDArray[np.float64],
        levels: Callable[[StreamConfig], Sequence[float]],
    ) -> None:
        self._levels, self._cuts = levels, scorer.cuts
        on_device = not scorer.cuts and config.head in (None, OBD)
        self._device_head = DeviceHead(config) if on_device else None
        super().__init__(_AtOnce(), self._device_head or config.new_head(), config.runs(levels(config)))
        self.number, self.config, self.settings = number, config, settings
        self.restart = True  # whatever the slot's last stream left behind
        settings[:] = 0.0
        self.retune_ahead(config)

    def retune_ahead(self, config: StreamConfig) -> None:
        """Let the device use other knobs, if its discriminator decides."""
        if self._device_head is not None:
            checked = config.discriminator()
            self.settings[:] = [float(getattr(checked, name)) for name in SETTINGS]

    def decide(self, time: float, verdict: Verdict) -> Decision:
        """The decision on the next frame, shown at `time`, in seconds.

        Raises:
            FeatureError: The frame's feature or score is broken; nothing has changed.
        """
        error, known, restarted, fault = verdict[0], *verdict[7:10]
        if fault:
            raise FeatureError(f"frame {self.frames} at {time:.3f} s: {_BROKEN[int(fault)]}")
        if restarted:
            self.break_off()
        cut, *ago, contrast = verdict[len(VERDICT) :] if self._cuts else (0.0, 0.0)
        if known and self._device_head is not None:
            self._device_head.read(verdict)
        return self.take(time, error if known else None, Signs(cut > 0, ago, contrast))

    def new_epoch(self) -> Boundary | None:
        """See `OnlineDetector.new_epoch`."""
        self.break_off()
        return self.flush()

    def retune(self, config: StreamConfig) -> None:
        """Judge with another τ or threshold from the next score on."""
        self.config = config
        self.use(config.knob, self._levels(config))
