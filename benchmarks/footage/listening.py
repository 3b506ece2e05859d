"""What methods find in videos; features are shared and kept, so that a run can be taken up again.

    WORK/features/VIEW/VIDEO.npz      float32 features of a video, by its contents' hash
    WORK/scores/SCORES/VIDEO.npz      the scores of a method that looks at pictures

Decisions are made anew each time, by the library's own stream: they cost little.
"""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from footage.films import Film, Seen, embed, frames_of, key_of, read_seen, write_seen
from footage.methods import Method, view_of
from ongebd.backbones import Backbone
from ongebd.common.geometry import Fit, View
from ongebd.data.numbers import FloatArray
from ongebd.detector.detector import OnlineDetector
from ongebd.detector.recipes import RECIPES
from ongebd.detector.scorers import Scorer
from ongebd.errors import ConfigError
from ongebd.estimator import Anticipator
from ongebd.types import Boundary, Decision, Feature


@dataclass(frozen=True, eq=False)
class Found:
    """What a method found in a video: arrays of shape (n,), seconds.

    Attributes:
        times: Centres.
        onsets: First positive frames.
        decided: When each centre was known; NaN where predictions from a file do not say.
        told: When each onset was known; for a method that looks ahead, later than the onset itself. None
            where predictions come from a file, which does not say.
    """

    times: FloatArray
    onsets: FloatArray
    decided: FloatArray
    told: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Curve:
    """A method's score of each frame: times, scores and thresholds, each (T,)."""

    times: FloatArray
    scores: FloatArray
    thresholds: FloatArray


class Listener:
    """One method on one video, frame by frame, as `ongebd.detector.source_run.SourceRun` feeds it.

    Args:
        detector: New.
    """

    def __init__(self, detector: OnlineDetector) -> None:
        self._detector = detector
        self._epoch = 0
        self._now = 0.0
        self._told: dict[float, float] = {}
        self._boundaries: list[Boundary] = []
        self._curve: list[tuple[float, float, float]] = []

    def see(self, feature: Feature, time: float, epoch: int) -> None:
        """Take the next frame."""
        if epoch != self._epoch:
            self._rest()
            self._detector.new_epoch()
            self._epoch = epoch
        self._now = time
        self._hear(self._detector.update_feature(feature, time))

    def end(self) -> tuple[Found, Curve]:
        """The video is over."""
        self._rest()
        table = np.array(
            [
                (each.time, each.onset, each.decided, self._told.get(each.onset, each.decided))
                for each in self._boundaries
            ],
            dtype=np.float64,
        ).reshape(-1, 4)
        times, onsets, decided, told = table.T.copy()
        drawn = np.array(self._curve, dtype=np.float64).reshape(-1, 3).T.copy()
        return Found(times, onsets, decided, told), Curve(*drawn)

    def _hear(self, decision: Decision) -> None:
        if not decision.pending:
            self._curve.append((decision.time, decision.error, decision.threshold))
            if decision.onset:
                self._told[decision.time] = self._now
        if decision.boundary is not None:
            self._boundaries.append(decision.boundary)

    def _rest(self) -> None:
        for decision in self._detector.drain():
            self._hear(decision)
        while (boundary := self._detector.flush()) is not None:
            self._boundaries.append(boundary)


class Replay:
    """A scorer whose scores are known: one list for each stretch between two breaks of the clock.

    Args:
        name: The method's.
        latency: Frames of future that the method waited for.
        stretches: Scores of the frames.
    """

    state_bytes = 0

    def __init__(self, name: str, latency: int, stretches: Sequence[Sequence[float | None]]) -> None:
        self.name = name
        self.latency = latency
        self._left = list(stretches)
        self._seen = 0

    def update(self, feature: Feature, time: float) -> float | None:
        """The score of the frame `latency` frames before."""
        del feature, time
        self._seen += 1
        place = self._seen - 1 - self.latency
        return self._left[0][place] if place >= 0 else None

    def flush(self) -> Sequence[float | None]:
        """The scores of the last frames."""
        held = self._left[0][max(0, self._seen - self.latency) : self._seen] if self._left else []
        self._seen = len(self._left[0]) + self.latency if self._left else 0  # none is said twice
        return held

    def reset(self) -> None:
        """The next stretch."""
        self._left = self._left[1:]
        self._seen = 0


class Listening:
    """Runs methods over videos.

    Args:
        work: Folder for what is kept.
        say: Takes a line on how far it is.
        workers: Frames that a backbone works on at once.
    """

    def __init__(self, work: Path, say: Callable[[str], None] | None = None, workers: int = 1) -> None:
        self._work = work
        self._say = say or (lambda line: print(line, file=sys.stderr, flush=True))
        self._workers = workers
        self._last_word = clock.monotonic()

    def all(self, methods: Sequence[Method], films: Sequence[Film]) -> dict[str, dict[str, Found]]:
        """What each method finds in each video, by label and id."""
        result: dict[str, dict[str, Found]] = {method.label: {} for method in methods}
        for number, film in enumerate(films, start=1):
            for label, (found, _curve) in self.one(methods, film).items():
                result[label][film.id] = found
            self._tell(number, len(films))
        return result

    def _tell(self, number: int, count: int) -> None:
        if clock.monotonic() - self._last_word > 20:
            self._last_word = clock.monotonic()
            self._say(f"{number}/{count} videos")

    def one(self, methods: Sequence[Method], film: Film) -> dict[str, tuple[Found, Curve]]:
        """What each method finds in one video, by label."""
        self._keep_scores([method for method in methods if method.sees_pictures], film)
        result = {}
        for method in methods:
            result[method.label] = (
                self._replayed(method, film) if method.sees_pictures else self._felt(method, film)
            )
        return result

    def features(self, method: Method, film: Film) -> Seen:
        """The features that a method sees of a video, kept."""
        return read_seen(self._embedded(method.model.backbone, float(method.config.rate()), film))

    def keep(self, backbone: Backbone, fps: float, films: Sequence[Film]) -> None:
        """Compute features for methods to come."""
        for number, film in enumerate(films, start=1):
            self._embedded(backbone, fps, film)
            self._tell(number, len(films))

    def _embedded(self, backbone: Backbone, fps: float, film: Film) -> Path:
        path = self._work / "features" / view_of(backbone, fps) / f"{key_of(film)}.npz"
        if not path.exists():
            write_seen(path, embed(film, backbone, fps, self._workers))
        return path

    def _felt(self, method: Method, film: Film) -> tuple[Found, Curve]:
        seen = self.features(method, film)
        listener = Listener(method.stream())
        for row, time, epoch in zip(seen.rows, seen.times, seen.epochs, strict=True):
            listener.see(row, float(time), int(epoch))
        return listener.end()

    def _keep_scores(self, methods: Sequence[Method], film: Film) -> None:
        """Scores of methods that look at pictures; those with one size of picture decode together."""
        missing: dict[str, dict[str, Method]] = {}
        for method in methods:
            if not self._scores_at(method, film).exists():
                missing.setdefault(method.view, {})[method.scores] = method
        for together in missing.values():
            members = list(together.values())
            watchers = [_Watcher(_scorer_of(method)) for method in members]
            times, epochs = [], []
            fps = float(members[0].config.rate())
            for frame, picture in frames_of(film, members[0].model.backbone, fps, 1):
                times.append(float(frame.time))
                epochs.append(frame.epoch)
                for watcher in watchers:
                    watcher.see(picture, float(frame.time), frame.epoch)
            for method, watcher in zip(members, watchers, strict=True):
                rows = np.array([[np.nan if s is None else s] for s in watcher.end()], np.float32)
                kept = Seen(rows.reshape(-1, 1), np.array(times), np.array(epochs, np.int32))
                write_seen(self._scores_at(method, film), kept)

    def _replayed(self, method: Method, film: Film) -> tuple[Found, Curve]:
        kept = read_seen(self._scores_at(method, film))
        scores = [None if np.isnan(score) else float(score) for score in kept.rows[:, 0]]
        breaks = [0, *(np.flatnonzero(np.diff(kept.epochs)) + 1).tolist(), len(scores)]
        stretches = [scores[first:stop] for first, stop in pairwise(breaks)]
        scorer = Replay(method.model.name, _scorer_of(method).latency, stretches)
        listener = Listener(OnlineDetector(_Nothing(), scorer, method.config))
        for time, epoch in zip(kept.times, kept.epochs, strict=True):
            listener.see(np.ones(1, np.float32), float(time), int(epoch))
        return listener.end()

    def _scores_at(self, method: Method, film: Film) -> Path:
        return self._work / "scores" / method.scores / f"{key_of(film)}.npz"


class _Watcher:
    """The score of every frame, in the frames' order."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._scores: list[float | None] = []
        self._epoch = self._seen = 0

    def see(self, picture: Feature, time: float, epoch: int) -> None:
        if epoch != self._epoch:
            self._break()
            self._epoch = epoch
        score = self._scorer.update(picture, time)
        self._seen += 1
        if self._seen > self._scorer.latency:
            self._scores.append(score)

    def end(self) -> list[float | None]:
        self._break()
        return self._scores

    def _break(self) -> None:
        self._scores.extend(self._scorer.flush())
        self._scorer.reset()
        self._seen = 0


class _Nothing:
    """A backbone for streams whose scores are known."""

    name = identity = "known scores"
    dim = input_size = resize_size = 1
    view: View = Fit(1)

    def crop(self, rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        raise NotImplementedError

    def embed(self, frames: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        raise NotImplementedError


def _scorer_of(method: Method) -> Scorer:
    name, _, argument = method.model.name.partition(":")
    made = RECIPES[name].method(method.config, argument or None, "cpu")
    if isinstance(made, Anticipator):
        raise ConfigError(f"{method.label}: looks at pictures, and gives no scores")
    return made
