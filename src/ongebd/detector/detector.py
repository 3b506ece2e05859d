"""One stream's detector: frames in, decisions out. All state of a stream lives here."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import NoReturn

import numpy as np

from ongebd.backbones import Backbone
from ongebd.detector.config import StreamConfig
from ongebd.detector.due import Due, in_seconds
from ongebd.detector.judge import Judge
from ongebd.detector.scorers import AnticipationScorer, Scorer
from ongebd.errors import ConfigError, FeatureError
from ongebd.estimator.anticipation import Anticipator, ErrorFunction, cosine_error
from ongebd.types import Boundary, Decision, Feature, ImageU8


class OnlineDetector:
    """Finds event boundaries in one stream, frame by frame.

    Made by `ongebd.load(name).stream(…)`. Backbone and networks are shared between streams and keep no state;
    two detectors never influence each other. Not for use from two threads at once.

    A method that looks ahead (`latency` above 0) gives its verdicts late: `update` returns a `pending`
    decision until the first is known, then the decision on the frame that far back, whose time it bears.
    `drain` gives the last ones. Where an epoch breaks off, its last decisions come in the place of the next
    one's pending ones, so that every frame has its decision.

    `update` judges each frame that it is given. A model is calibrated for the `fps` of its settings, and a
    source gives that many; who has a camera that is faster asks `due` which of its frames are wanted:

        if detector.due(seconds):
            decision = detector.update(frame, seconds)

    It cannot be copied or pickled, for it shares its networks; begin another with `model.stream(…)`.

    Args:
        backbone: From pictures to features.
        method: An anticipator, whose error is the score, or a scorer of its own, new.
        config: Settings, every one filled in.
        error: The error of the anticipator.

    Attributes:
        config: The settings, with the model's own filled in.
        latency: Seconds of future that a verdict on a frame waits for, at the rate of `config`; 0 for an
            online method. (The *centre* of a boundary is known later than its onset, when its run of positive
            frames ends: see `Boundary.decided`.)
    """

    def __init__(
        self,
        backbone: Backbone,
        method: Anticipator | Scorer,
        config: StreamConfig,
        error: ErrorFunction = cosine_error,
    ) -> None:
        self.config = config
        self._backbone = backbone
        self._scorer: Scorer = (
            AnticipationScorer(method, error, backbone.dim) if isinstance(method, Anticipator) else method
        )
        self._judge = Judge(config, self._scorer)
        self.latency = float(self._scorer.latency / config.rate()) if self._scorer.latency else 0.0
        self._time: float | None = None
        self._due = Due(config.rate())

    @property
    def state_bytes(self) -> int:
        """Bytes that the method keeps of this stream; a head and an open boundary add a few hundred."""
        return self._scorer.state_bytes

    def reset(self) -> None:
        """Forget everything seen: the next frame is the first of a new stream."""
        self._due.restart()
        self._judge.reset()
        self._time = None

    def due(self, time: float | Fraction) -> bool:
        """Whether a frame shown at this time is one of those that make up the settings' `fps`.

        Ask once about each frame of a source, in order, and `update` with those that are due: they are the
        frames that `ongebd.detect` takes of a source with these times, so the boundaries are the same. Of a
        source that is slower than `fps` all are due. A time before the last one begins a new epoch, as in
        `update`, and so does `new_epoch`; the first frame of an epoch is due always.

        The `fps` of the settings is of no use but for this and for sources: `update` takes any frame.

        Args:
            time: Seconds; a float is taken for the simple fraction that it stands for.

        Raises:
            ConfigError: The time is no number.
        """
        return self._due(time, self._judge.frames)

    def update(self, frame: ImageU8, time: float | Fraction) -> Decision:
        """Take the next frame.

        Args:
            frame: An upright RGB picture, uint8, shape (height, width, 3), any size.
            time: When it is shown, in seconds. A time before the last one begins a new epoch: an open
                boundary is decided, and everything before is forgotten.

        Returns:
            The decision on this frame (with a look-ahead: see the class); `.onset` tells that a boundary
            begins here, `.boundary` is one whose centre is now known.

        Raises:
            FeatureError: The picture has another type or shape, or its feature is NaN, infinite or zero.
        """
        in_seconds(time, self._judge.frames)  # refused before any work
        return self.update_feature(self._backbone.embed(self._backbone.crop(frame)[np.newaxis])[0], time)

    def update_feature(self, feature: Feature, time: float | Fraction) -> Decision:
        """Take the next frame's feature, float32, shape (D,), in place of the picture; else as `update`."""
        time = in_seconds(time, self._judge.frames)
        feature = self._checked(feature, time)
        if self._time is not None and time < self._time:
            self._judge.break_off()
            self._time = None
        score = self._scorer.update(feature, time)
        if score is not None and not isfinite(score):
            anticipates = isinstance(self._scorer, AnticipationScorer)
            what = "the anticipated feature" if anticipates else "the score"
            raise FeatureError(
                f"{self._where(time)}: {what} has NaN or infinity in it; check the weights"
                f" of {self._scorer.name}"
            )
        self._time = time
        return self._judge.take(time, score)

    def drain(self) -> list[Decision]:
        """Say that the stream is over: the decisions that a look-ahead still held back.

        For an online method there are none. `flush` gives the boundary that is open after them.
        """
        return self._judge.drain()

    def flush(self) -> Boundary | None:
        """Say that the stream is over: the boundary still open, if there is one.

        After a method with a look-ahead there may be several, where `drain` was not called before: call it
        until it returns None.
        """
        return self._judge.flush()

    def new_epoch(self) -> Boundary | None:
        """Begin anew after a break in the source; frame numbers go on. Returns what `flush` would."""
        self._due.restart()
        self._judge.break_off()
        self._time = None
        return self._judge.flush()

    def retune(self, config: StreamConfig) -> None:
        """Judge with another τ or threshold from the next score on. Nothing that was seen is forgotten.

        Args:
            config: Filled settings, as of `model.configured(sensitivity=0.7)`. They may differ from the
                stream's in τ, threshold and sensitivity only.

        Raises:
            ConfigError: They differ in more, or the stream's head has neither.
        """
        self.config.check_retuning(config)
        self._judge.retune(config)
        self.config = config

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ConfigError(
            "a detector can neither be copied nor pickled: begin another with model.stream(detector.config)"
        )

    def _where(self, time: float) -> str:
        return f"frame {self._judge.frames} at {time:.3f} s"

    def _checked(self, feature: Feature, time: float) -> Feature:
        """The feature in float32, in which it is kept; or an error that names the frame."""
        where = self._where(time)
        try:
            with np.errstate(over="ignore"):  # said below, in words
                feature = np.asarray(feature, np.float32)
        except (TypeError, ValueError):
            kind = type(feature).__name__
            raise FeatureError(f"{where}: the feature must be an array of numbers, not {kind}") from None
        if feature.shape != (self._backbone.dim,):
            wanted, given = (self._backbone.dim,), feature.shape
            raise FeatureError(f"{where}: the feature has shape {given}, but the backbone's is {wanted}")
        square = float(np.square(feature, dtype=np.float64).sum())
        if not isfinite(square):
            raise FeatureError(
                f"{where}: the feature has NaN or infinity in it; check the backbone's weights"
            )
        if square == 0.0:
            raise FeatureError(f"{where}: the feature has norm zero; check the backbone's weights")
        return feature
