"""One stream's detector: frames in, decisions out. All state of a stream lives here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from fractions import Fraction
from math import isfinite
from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from ongebd.backbones import Backbone
from ongebd.backbones.pipeline import LUMA_DIM, Glance, frame_features
from ongebd.detector.config import StreamConfig
from ongebd.detector.judge import Judge, LateScores
from ongebd.errors import ConfigError, FeatureError, a_number
from ongebd.estimator.anticipation import Anticipator, ErrorFunction, cosine_error
from ongebd.types import Boundary, Decision, Feature, Frame, ImageU8, Signs
from ongebd.video.timing import Sampler


class Scorer(LateScores, Protocol):
    """A method at work on one stream, whose state it owns. A head decides on the scores."""

    @property
    def name(self) -> str:
        """The method's name."""

    @property
    def state_bytes(self) -> int:
        """Bytes that it keeps of the stream at most; they do not grow with it."""

    def update(self, feature: Feature, time: float) -> float | None:
        """Take the next frame.

        Args:
            feature: Of the frame, float32, (D,).
            time: Seconds.

        Returns:
            The score of the frame `latency` frames before this one, high where an event ends; None where that
            frame has none: it doesn't exist, or there is nothing to compare it with.
        """


class AnticipationScorer:
    """The paper's score: how wrong an anticipator was about a frame.

    Args:
        anticipator: It keeps no state.
        error: From a feature and its anticipation to ε.
        dim: D.
    """

    latency: int = 0

    def __init__(self, anticipator: Anticipator, error: ErrorFunction, dim: int) -> None:
        self.name = anticipator.name
        self._anticipator = anticipator
        self._error = error
        self._past: npt.NDArray[np.float32] = np.empty((anticipator.window, dim), np.float32)
        self.state_bytes = self._past.nbytes
        self._seen = 0

    def update(self, feature: Feature, time: float) -> float | None:
        """ε of this frame; None for the first, which nothing predicts."""
        del time
        seen = min(self._seen, len(self._past))
        error = self._error(feature, self._anticipator.anticipate(self._past[-seen:])) if seen else None
        self._past[:-1] = self._past[1:]
        self._past[-1] = feature
        self._seen += 1
        return error

    def flush(self) -> list[float | None]:
        """Nothing is held back."""
        return []

    def reset(self) -> None:
        """Forget the past features."""
        self._seen = 0


_LONG, _LONG_TWICE = 0.5, 0.13
"""Seconds that a frame must stay to be judged again; less where the one before it stayed so long, too."""
_REPEATS = 96
"""How often a frame is judged again at most. After so many nothing changes any more."""


class OnlineDetector:
    """Finds event boundaries in one stream, frame by frame.

    `ongebd.load(name).stream(…)` makes one. Streams share backbone and networks, which keep no state; two
    detectors never influence each other. Don't use one from two threads at the same time.

    A method that looks ahead (`latency` above 0) decides late: `update` returns a `pending` decision until
    the first verdict is known, then the decision on the frame that far back, with that frame's time. `drain`
    gives the last ones. Where an epoch breaks off, its last decisions replace the pending ones of the next
    epoch, so every frame gets its decision.

    `update` judges each frame that it is given. A model is calibrated for the `fps` of its settings. In a
    slower source each frame stays until the next one comes, and the method sees it again at that rate. A
    boundary that shows only then comes with the next decision; it begins with the frame that stayed. For a
    faster camera, ask `due` which of its frames to use:

        if detector.due(seconds):
            decision = detector.update(frame, seconds)

    Args:
        backbone: Turns pictures into features.
        method: An anticipator, whose error is the score, or a new scorer.
        config: Settings, all filled in.
        error: The error of the anticipator.
        rate: Frames a second that the method is made for; None takes the `fps` of `config`.
        levels: From settings to the thresholds at which runs begin; None: to `knob` alone.

    Attributes:
        config: The settings.
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
        rate: Fraction | None = None,
        *,
        levels: Callable[[StreamConfig], Sequence[float]] | None = None,
    ) -> None:
        self.config = config
        self._levels = levels or (lambda config: [config.knob])
        self._backbone = backbone
        self._scorer: Scorer = (
            AnticipationScorer(method, error, backbone.dim) if isinstance(method, Anticipator) else method
        )
        self._judge = Judge(self._scorer, config.new_head(), config.runs(self._levels(config)))
        self.latency = float(self._scorer.latency / config.rate())
        self._step = float(1 / (rate or config.rate()))
        self._time: float | None = None
        self._warned = False  # that time went back
        self._stayed = 0.0  # how long the frame before the last one was shown
        self._last: Feature = np.empty(0, np.float32)
        self._glance = Glance() if getattr(self._scorer, "glances", False) else None
        self._due = Due(config.rate())

    @property
    def state_bytes(self) -> int:
        """What the method keeps of this stream; a head and an open boundary add a few hundred."""
        return self._scorer.state_bytes

    def reset(self) -> None:
        """Forget everything seen: the next frame is the first of a new stream."""
        self._due.restart()
        self._judge.reset()
        self._time = None
        self._stayed = 0.0
        if self._glance is not None:
            self._glance.reset()

    def due(self, time: float | Fraction) -> bool:
        """Whether a frame shown at this time is one of those that make up the settings' `fps`.

        Ask once about each frame of a source, in order, and `update` with those that are due: `ongebd.detect`
        takes the same frames, so the boundaries are the same. Of a source slower than `fps` all are due. A
        time before the last one begins a new epoch, as in `update`; an epoch's first frame is always due.

        Args:
            time: Seconds; a float is taken for the simple fraction that it stands for.
        """
        return self._due(time, self._judge.frames)

    def update(self, frame: ImageU8, time: float | Fraction) -> Decision:
        """Take the next frame.

        Args:
            frame: An upright RGB picture, uint8, shape (height, width, 3), any size.
            time: When it is shown, in seconds. A time before the last one begins a new epoch, with a warning:
                an open boundary is decided, and everything before is forgotten.

        Returns:
            The decision on this frame (with a look-ahead: see the class); `.onset` is True where a boundary
            begins, `.boundary` is one whose centre is now known.

        Raises:
            FeatureError: The picture has another type or shape, or its feature is NaN, infinite or zero.
        """
        seconds = in_seconds(time, self._judge.frames)  # refused before any work
        self._warned = self._warned or warned_of(seconds, self._time)
        square = self._backbone.crop(frame)
        luma = None if self._glance is None else self._glance.unseen(square, seconds)
        return self.take(self._backbone.embed(square[np.newaxis])[0] if luma is None else luma, time)

    def glance(self) -> Glance | None:
        """A new one, for those who compute features ahead; None if the method needs each feature."""
        return None if self._glance is None else Glance()

    def features(
        self, frames: Iterable[Frame], workers: int, wake: Callable[[], object]
    ) -> Generator[tuple[Frame, Feature], None, None]:
        """The feature of each frame, computed ahead, for `take`; see `frame_features`."""
        return frame_features(frames, self._backbone, workers, wake=wake, glance=self.glance())

    def update_feature(self, feature: Feature, time: float | Fraction) -> Decision:
        """Take the next frame's feature, float32, shape (D,), instead of the picture; else as `update`."""
        self._warned = self._warned or warned_of(in_seconds(time, self._judge.frames), self._time)
        return self.take(feature, time)

    def take(self, feature: Feature, time: float | Fraction) -> Decision:
        """As `update_feature`, for a caller that knows when time goes back: without a warning.

        Where a `glance` says that the network needn't look, the luma alone is enough.
        """
        time = in_seconds(time, self._judge.frames)
        if self._glance is not None and np.shape(feature) == (LUMA_DIM,) and len(self._last):
            feature = np.concatenate([self._last[:-LUMA_DIM], feature])
        feature = self._checked(feature, time)
        if self._time is not None and time < self._time:
            self._break_off()
        if self._time is not None:
            self._hold(time - self._time)
        score = self._score(feature, time)
        self._time, self._last = time, feature
        return self._judge.take(time, score, self._signs())

    def _signs(self) -> Signs:
        return getattr(self._scorer, "signs", Signs())

    def _score(self, feature: Feature, time: float) -> float | None:
        score = self._scorer.update(feature, time)
        if score is not None and not isfinite(score):
            raise self._broken(
                time, "the score has NaN or infinity in it", f"the weights of {self._scorer.name}"
            )
        return score

    def _hold(self, seconds: float) -> None:
        """The last frame was shown so long. If that is long for the method, it sees the frame again."""
        assert self._time is not None
        long = seconds > _LONG or min(seconds, self._stayed) > _LONG_TWICE
        self._stayed = seconds
        for _ in range(min(round(seconds / self._step) - 1, _REPEATS) if long else 0):
            score = self._score(self._last, self._time)
            self._judge.hold(self._time, score, self._signs(), self._time + seconds)

    def _end(self) -> None:
        """No frame follows the last one: of a slow source, it stays as long as the one before it."""
        if self._time is not None and self._stayed > _LONG_TWICE:
            self._hold(self._stayed)
        self._stayed = 0.0

    def _break_off(self) -> None:
        self._end()
        self._judge.break_off()
        self._time = None
        if self._glance is not None:
            self._glance.reset()

    def drain(self) -> list[Decision]:
        """The stream is over: the decisions that a look-ahead still held back; none for an online method.

        `flush` gives the boundary that is open after them.
        """
        self._end()
        return self._judge.drain()

    def flush(self) -> Boundary | None:
        """The stream is over: the boundary still open, if there is one.

        After a look-ahead there may be several, if `drain` was not called before: call it until it returns
        None.
        """
        self._end()
        return self._judge.flush()

    def closed(self) -> list[Boundary]:
        """The boundaries whose peak and kind have become known since the last call, in order.

        Each was told before, within a second. `flush` closes the last one.
        """
        return self._judge.closed()

    def new_epoch(self) -> Boundary | None:
        """Start over after a break in the source; frame numbers go on. Returns what `flush` would."""
        self._due.restart()
        self._break_off()
        return self._judge.flush()

    def retune(self, config: StreamConfig) -> None:
        """Judge with another τ or threshold from the next score on. Nothing that was seen is forgotten.

        Args:
            config: Filled settings, as of `model.configured(sensitivity=0.7)`. They may differ from the
                stream's in τ, threshold and sensitivity only, else ConfigError.
        """
        self.config.check_retuning(config)
        self._judge.use(config.knob, self._levels(config))
        self.config = config

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ConfigError(
            "a detector can't be copied or pickled; start another with model.stream(detector.config)"
        )

    def _checked(self, feature: Feature, time: float) -> Feature:
        """The feature in float32, in which it is kept; or an error that names the frame."""
        try:
            with np.errstate(over="ignore"):  # reported below
                feature = np.asarray(feature, np.float32)
        except (TypeError, ValueError):
            kind = type(feature).__name__
            raise self._broken(time, f"the feature must be an array of numbers, not {kind}") from None
        if feature.shape != (dim := (self._backbone.dim,)):
            raise self._broken(time, f"the feature has shape {feature.shape}, but the backbone's is {dim}")
        square = float(np.square(feature, dtype=np.float64).sum())
        if not isfinite(square):
            raise self._broken(time, "the feature has NaN or infinity in it", "the backbone's weights")
        if square == 0.0:
            raise self._broken(time, "the feature has norm zero", "the backbone's weights")
        return feature

    def _broken(self, time: float, what: str, check: str | None = None) -> FeatureError:
        advice = "" if check is None else f"; check {check}"
        return FeatureError(f"frame {self._judge.frames} at {time:.3f} s: {what}{advice}")


class Due:
    """The answers of `OnlineDetector.due`, at a rate in frames a second."""

    def __init__(self, rate: Fraction) -> None:
        self._sampler = Sampler(rate)
        self._asked: Fraction | None = None

    def __call__(self, time: float | Fraction, frame: int | None = None) -> bool:
        """Whether a frame shown at this time is one of them; ask once about each, in order.

        Args:
            time: Seconds; a float is taken for the simple fraction that it stands for.
            frame: Its number, for messages.
        """
        seconds = in_seconds(time, frame)
        exact = time if isinstance(time, Fraction) else Fraction(seconds).limit_denominator(1_000_000)
        if self._asked is not None and exact < self._asked:
            self._sampler.restart()
        self._asked = exact
        return self._sampler.take(exact)

    def restart(self) -> None:
        """Take the next frame, whatever its time."""
        self._sampler.restart()
        self._asked = None


def warned_of(time: float, last: float | None) -> bool:
    """Warn the caller's caller of a time before the last one; whether there was reason to."""
    back = last is not None and time < last
    if back:
        warnings.warn(
            f"time goes back from {last:.3f} s to {time:.3f} s, so a new epoch begins and the detector"
            " forgets what it saw; if you meant that, call new_epoch() first",
            stacklevel=3,
        )
    return back


def in_seconds(time: float | Fraction, frame: int | None = None) -> float:
    """A frame's time in seconds; ConfigError, with the frame's number, if it isn't a finite number."""
    if isinstance(time, float) and isfinite(time):  # as most are, and this is called for each frame
        return time
    what = "a frame's time" if frame is None else f"frame {frame}: its time"
    seconds = a_number(what, time)
    if not isfinite(seconds):
        raise ConfigError(f"{what} must be a number of seconds, not {seconds}")
    return seconds
