"""A stream's slot in the GPU runtime: what the device is told of it, and the decisions made here."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ongebd.detector.config import StreamConfig
from ongebd.detector.heads import OBD
from ongebd.detector.judge import Judge
from ongebd.errors import FeatureError
from ongebd.estimator.learned import COLD, DelayedScores
from ongebd.pool.gpu.batched_scorer import BatchedScorer
from ongebd.pool.gpu.discriminator import SETTINGS
from ongebd.pool.gpu.engine import FEATURE_BROKEN, FEATURE_ZERO, VERDICT
from ongebd.pool.runtime.base import StreamSlot
from ongebd.types import Boundary, Decision

Verdict = list[float]
"""A row as `ongebd.pool.gpu.engine.VERDICT` names it."""


class DeviceHead:
    """The discriminator's verdict as the device gave it (`ongebd.detector.heads.Head`)."""

    def __init__(self, config: StreamConfig) -> None:
        self._first_threshold = config.discriminator().threshold
        self.reset()

    def read(self, verdict: Verdict) -> None:
        """Copy the device's verdict on a score."""
        self.mean, self.std, self.z, self.threshold, positive, ready = verdict[1:7]
        self.is_boundary, self.ready = bool(positive), bool(ready)

    def update(self, score: float, /) -> DeviceHead:
        """Do nothing: the device has seen the score."""
        return self

    def reset(self) -> None:
        """Forget the last verdict."""
        self.mean = self.std = self.z = 0.0
        self.threshold = self._first_threshold
        self.is_boundary = self.ready = False


class DeviceDetector:
    """Makes a stream's decisions from the device's verdicts, as `OnlineDetector` makes them from scores.

    The discriminator works on the device if scores come with their frames. All other heads work here.

    Attributes:
        latency: Seconds of future that a verdict waits for, at the rate of `config`.
        head: The discriminator's verdicts; None if another head works here.
    """

    def __init__(self, config: StreamConfig, scorer: BatchedScorer, precision: str, state_bytes: int) -> None:
        self.config = config
        self.state_bytes = state_bytes
        self._method = scorer.name
        self._hint = ", or compute in bfloat16: float16 ends at 65504" if precision == "float16" else ""
        has_views = bool(scorer.delays)
        self._scores = DelayedScores(scorer.delays or (0,), scorer.latency, cold=COLD if has_views else 0)
        self.latency = float(self._scores.latency / config.rate())
        on_device = not has_views and config.head in (None, OBD)
        self.head = DeviceHead(config) if on_device else None
        self._judge = Judge(config, self._scores, self.head)

    def take(self, time: float, verdict: Verdict) -> Decision:
        """The decision on the next frame, shown at `time`, in seconds.

        Raises:
            FeatureError: The frame's feature or score is broken; nothing has changed.
        """
        error, known, restarted, fault = verdict[0], *verdict[7:10]
        if fault:
            raise self._broken(time, fault)
        if restarted:
            self._judge.break_off()
        score = self._scores.add([error, *verdict[len(VERDICT) :]]) if known else None
        if known and self.head is not None:
            self.head.read(verdict)
        return self._judge.take(time, score)

    def drain(self) -> list[Decision]:
        """See `OnlineDetector.drain`."""
        return self._judge.drain()

    def flush(self) -> Boundary | None:
        """See `OnlineDetector.flush`."""
        return self._judge.flush()

    def new_epoch(self) -> Boundary | None:
        """See `OnlineDetector.new_epoch`."""
        self._judge.break_off()
        return self._judge.flush()

    def retune(self, config: StreamConfig) -> None:
        """Judge with another τ or threshold from the next score on."""
        self.config = config
        if self.head is None:
            self._judge.retune(config)

    def _broken(self, time: float, fault: float) -> FeatureError:
        where = f"frame {self._judge.frames} at {time:.3f} s"
        if fault == FEATURE_ZERO:
            return FeatureError(f"{where}: the feature has norm zero; check the backbone's weights")
        what, whose = (
            ("the feature", "the backbone") if fault == FEATURE_BROKEN else ("the score", self._method)
        )
        return FeatureError(
            f"{where}: {what} has NaN or infinity in it; check the weights of {whose}{self._hint}"
        )


class DeviceSlot(StreamSlot):
    """A stream in a `GpuRuntime`: its number on the device, and its row of `SETTINGS`, (6,)."""

    detector: DeviceDetector

    def __init__(self, number: int, detector: DeviceDetector, settings: npt.NDArray[np.float64]) -> None:
        super().__init__(detector)
        self.number = number
        self._settings = settings
        self._restart = True  # whatever the slot's last stream left behind
        settings[:] = 0.0
        self.retune_ahead(detector.config)

    def take_restart(self) -> bool:
        """Whether the next frame starts a new epoch; ask once for each frame."""
        restart, self._restart = self._restart, False
        return restart

    def restart_ahead(self) -> None:
        """The next frame that is begun starts a new epoch."""
        self._restart = True

    def retune_ahead(self, config: StreamConfig) -> None:
        """Let the device use other knobs, if its discriminator decides."""
        if self.detector.head is not None:
            checked = config.discriminator()
            self._settings[:] = [float(getattr(checked, name)) for name in SETTINGS]
