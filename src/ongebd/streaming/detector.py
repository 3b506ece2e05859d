"""One stream's detector: frames in, decisions out. All state of a stream lives here."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import isfinite

import numpy as np
import numpy.typing as npt

from ongebd.backbones import Backbone
from ongebd.errors import ConfigError, FeatureError
from ongebd.estimator import Anticipator, cosine_error
from ongebd.estimator.distances import ErrorFunction
from ongebd.streaming.config import StreamConfig
from ongebd.types import Boundary, Decision, Feature, ImageU8


class OnlineDetector:
    """Finds event boundaries in one stream, frame by frame, without a look ahead.

    Made by `ongebd.load(name).stream(…)`. Backbone and anticipator are shared between streams and keep no
    state; two detectors never influence each other. Not for use from two threads at once.

    Attributes:
        config: The settings, with the model's own filled in.
        latency: Seconds of future that a verdict on a frame waits for; 0 here. (The *centre* of a boundary is
            known later than its onset, when its run of positive frames ends: see `Boundary.decided`.)
    """

    latency: float = 0.0

    def __init__(
        self,
        backbone: Backbone,
        anticipator: Anticipator,
        config: StreamConfig,
        error: ErrorFunction = cosine_error,
    ) -> None:
        self.config = config
        self._error = error
        self._backbone = backbone
        self._anticipator = anticipator
        self._discriminator = config.discriminator()
        self._runs = config.runs()
        self._past: npt.NDArray[np.float32] = np.empty((anticipator.window, backbone.dim), np.float32)
        self._index = 0
        self._seen = 0
        self._time: float | None = None

    def reset(self) -> None:
        """Forget everything seen: the next frame is the first of a new stream."""
        self._index = 0
        self._forget()

    def update(self, frame: ImageU8, time: float | Fraction) -> Decision:
        """Take the next frame.

        Args:
            frame: An upright RGB picture, uint8, shape (height, width, 3), any size.
            time: When it is shown, in seconds. A time before the last one begins a new epoch: an open
                boundary is decided, and everything before is forgotten.

        Returns:
            The decision on this frame; `.onset` tells that a boundary begins here, `.boundary` is one whose
            centre is now known.

        Raises:
            FeatureError: The picture has another type or shape, or its feature is NaN, infinite or zero.
        """
        return self.update_feature(self._backbone.embed(self._backbone.crop(frame)[np.newaxis])[0], time)

    def update_feature(self, feature: Feature, time: float | Fraction) -> Decision:
        """Take the next frame's feature, float32, shape (D,), in place of the picture; else as `update`."""
        time = float(time)
        if not isfinite(time):
            raise ConfigError(f"frame {self._index}: its time must be a number of seconds, not {time}")
        feature = self._checked(feature, time)
        left_open = self.new_epoch() if self._time is not None and time < self._time else None

        seen = min(self._seen, len(self._past))
        error = self._error(feature, self._anticipator.anticipate(self._past[-seen:])) if seen else 0.0
        if not isfinite(error):
            raise FeatureError(
                f"{self._where(time)}: the anticipated feature has NaN or infinity in it; check the weights"
                f" of {self._anticipator.name}"
            )
        decision = self._judge(error, time, tested=seen > 0)
        if left_open is not None:
            decision = replace(decision, boundary=left_open)

        self._past[:-1] = self._past[1:]
        self._past[-1] = feature
        self._seen += 1
        self._index += 1
        self._time = time
        return decision

    def flush(self) -> Boundary | None:
        """Say that the stream is over: the boundary still open, if there is one."""
        return self._runs.flush()

    def new_epoch(self) -> Boundary | None:
        """Begin anew after a break in the source; frame numbers go on. Returns what `flush` would."""
        boundary = self.flush()
        self._forget()
        return boundary

    def _judge(self, error: float, time: float, *, tested: bool) -> Decision:
        obd = self._discriminator
        if not tested:  # the first frame of an epoch: nothing predicts it, and no error joins the queue
            return Decision(self._index, time, error, obd.mean, obd.std, 0.0, obd.threshold, False, False)
        obd.update(error)
        step = self._runs.update(time, obd.is_boundary, obd.z)
        return Decision(
            self._index,
            time,
            error,
            obd.mean,
            obd.std,
            obd.z,
            obd.threshold,
            obd.is_boundary,
            obd.ready,
            step.onset,
            step.boundary,
        )

    def _where(self, time: float) -> str:
        return f"frame {self._index} at {time:.3f} s"

    def _checked(self, feature: Feature, time: float) -> Feature:
        """The feature in float32, in which it is kept; or an error that names the frame."""
        where = self._where(time)
        with np.errstate(over="ignore"):  # said below, in words
            feature = np.asarray(feature, np.float32)
        if feature.shape != self._past.shape[1:]:
            wanted, given = self._past.shape[1:], feature.shape
            raise FeatureError(f"{where}: the feature has shape {given}, but the backbone's is {wanted}")
        square = float(np.square(feature, dtype=np.float64).sum())
        if not isfinite(square):
            raise FeatureError(
                f"{where}: the feature has NaN or infinity in it; check the backbone's weights"
            )
        if square == 0.0:
            raise FeatureError(f"{where}: the feature has norm zero; check the backbone's weights")
        return feature

    def _forget(self) -> None:
        self._seen = 0
        self._time = None
        self._discriminator.reset()
        self._runs.reset()
