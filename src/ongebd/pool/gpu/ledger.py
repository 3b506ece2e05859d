"""The host's part of a stream whose scores come from a device."""

from __future__ import annotations

from ongebd.detector.config import StreamConfig
from ongebd.detector.heads import OBD
from ongebd.detector.judge import Judge
from ongebd.errors import FeatureError
from ongebd.pool.gpu.engine import FEATURE_BROKEN, FEATURE_ZERO, VERDICT
from ongebd.pool.gpu.views import Said, Views
from ongebd.types import Boundary, Decision

Verdict = list[float]
"""A row as `ongebd.pool.gpu.engine.VERDICT` names it."""


class DeviceHead:
    """The discriminator's verdict as the device gave it (`ongebd.detector.heads.Head`).

    Args:
        first_threshold: Before the first score.
    """

    def __init__(self, first_threshold: float) -> None:
        self._first_threshold = first_threshold
        self.reset()

    def read(self, verdict: Verdict) -> None:
        """Take over what the device says of a score."""
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


class Ledger:
    """Makes a stream's decisions from a device's verdicts, as `OnlineDetector` makes them from scores.

    The discriminator works on the device. All other heads work here, on the scores.

    Args:
        config: The stream's settings, all filled in.
        method: The method's name, for messages.
        precision: Of the features, for messages.
        views: How late scores are made; None: a frame's score comes with the frame.

    Attributes:
        latency: Frames of future that a decision waits for.
    """

    def __init__(self, config: StreamConfig, method: str, precision: str, views: Views | None = None) -> None:
        self._method = method
        self._hint = "" if precision != "float16" else ", or compute in bfloat16: float16 ends at 65504"
        self._scores = Said(views or Views(delays=(0,), latency=0, cold=0))
        self.latency = self._scores.latency
        there = views is None and config.head in (None, OBD)
        self._device_head = DeviceHead(config.discriminator().threshold) if there else None
        self._judge = Judge(config, self._scores, self._device_head)

    def take(self, time: float, verdict: Verdict) -> Decision:
        """The decision on the next frame.

        Args:
            time: Seconds.
            verdict: Of the device.

        Raises:
            FeatureError: The frame's feature or score is broken; nothing has changed.
        """
        error, known, restarted, fault = verdict[0], *verdict[7:10]
        if fault:
            raise self._broken(time, fault)
        if restarted:
            self._judge.break_off()
        score = self._scores.add([error, *verdict[len(VERDICT) :]]) if known else None
        if known and self._device_head is not None:
            self._device_head.read(verdict)
        return self._judge.take(time, score)

    def drain(self) -> list[Decision]:
        """The decisions that a look-ahead still held back; see `OnlineDetector.drain`."""
        return self._judge.drain()

    def flush(self) -> Boundary | None:
        """The boundary still open, after what was held back."""
        return self._judge.flush()

    def new_epoch(self) -> Boundary | None:
        """Begin a new epoch; frame numbers go on. Returns what `flush` would."""
        self._judge.break_off()
        return self._judge.flush()

    @property
    def judged_there(self) -> bool:
        """Whether the device decides."""
        return self._device_head is not None

    def retune(self, config: StreamConfig) -> None:
        """A head here takes another threshold; see `OnlineDetector.retune`."""
        if self._device_head is None:
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
