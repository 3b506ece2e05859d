"""The learned methods: cues, their context, and boosted trees that say how like a boundary a frame is."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError
from ongebd.estimator.cues import Context, CueStream, context_names, cue_names
from ongebd.estimator.forest import Forest
from ongebd.types import Feature

FORMAT = 2
COLD = 8
"""The first frames of a stream have no score: nothing is known yet of what is usual in it."""
_WEIGHTS = files("ongebd.estimator") / "weights"


@dataclass(frozen=True, slots=True)
class LearnedFacts:
    """What the description beside the weights says: `weights/NAME.json`.

    Attributes:
        name: The model's.
        backbone: The name of the backbone whose features it looks at.
        fps: Frames a second that it was trained for.
        latency: Frames of future that a score waits for.
        delays: Of each view, the d for which it says, at frame t, how like a boundary frame t − d is.
        groups: Of the cues that it looks at.
        min_gap: Seconds after a boundary in which there is no other.
        max_run: Seconds after which a boundary is closed; 0: at its onset.
        rearm: The part of the threshold under which the score falls between two boundaries.
        sensitivities: (sensitivity, threshold), by rising sensitivity and falling threshold.
        parameters: Numbers that were learned.
        licence: Of the weights.
        trained_on: In words.
        sha256: Of the file of weights.
    """

    name: str
    backbone: str
    fps: float
    latency: int
    delays: tuple[int, ...]
    groups: tuple[str, ...]
    min_gap: float
    max_run: float
    rearm: float
    sensitivities: tuple[tuple[float, float], ...]
    parameters: int
    licence: str
    trained_on: str
    sha256: str

    @classmethod
    def read(cls, path: Path | Traversable) -> Self:
        """Read a description.

        Raises:
            ConfigError: It cannot be read, or says what cannot be.
        """
        try:
            about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if about["format"] != FORMAT:
                raise ConfigError(f"{path}: format {about['format']!r}, and this version reads {FORMAT}")
            facts = cls(
                name=str(about["name"]),
                backbone=str(about["backbone"]),
                fps=float(about["fps"]),
                latency=int(about["latency"]),
                delays=tuple(int(delay) for delay in about["delays"]),
                groups=tuple(str(group) for group in about["groups"]),
                min_gap=float(about["settings"]["min_gap"]),
                max_run=float(about["settings"]["max_run"]),
                rearm=float(about["settings"]["rearm"]),
                sensitivities=tuple((float(s), float(t)) for s, t in about["sensitivities"]),
                parameters=int(about["parameters"]),
                licence=str(about["licence"]),
                trained_on=str(about["trained_on"]),
                sha256=str(about["sha256"]),
            )
            inputs = list(about["cues"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            if isinstance(problem, ConfigError):
                raise
            raise ConfigError(f"{path}: damaged ({type(problem).__name__}: {problem})") from None
        if inputs != list(cue_names(facts.groups)):
            raise ConfigError(f"{path}: was trained on other cues than this version computes")
        if not facts.delays or not 0 <= min(facts.delays) <= max(facts.delays) <= facts.latency:
            raise ConfigError(f"{path}: the delays must lie from 0 to the latency, {facts.latency}")
        sensitivity, threshold = np.array(facts.sensitivities).reshape(-1, 2).T
        if len(sensitivity) < 2 or (np.diff(sensitivity) <= 0).any() or (np.diff(threshold) >= 0).any():
            raise ConfigError(f"{path}: thresholds must fall as the sensitivity rises")
        return facts

    def threshold(self, sensitivity: float) -> float:
        """The threshold at a sensitivity, in between on a straight line; beyond the table's ends as there."""
        known, thresholds = zip(*self.sensitivities, strict=True)
        return float(np.interp(sensitivity, known, thresholds))


class LearnedModel:
    """A learned method with its weights; it keeps no state, and streams share it.

    Args:
        facts: What is known of it.
        forest: Its trees.

    Raises:
        ConfigError: The two do not fit each other.
    """

    def __init__(self, facts: LearnedFacts, forest: Forest) -> None:
        inputs = len(context_names(cue_names(facts.groups)))
        if forest.views != len(facts.delays) or forest.inputs > inputs:
            raise ConfigError(
                f"{facts.name}: trees with {forest.views} views of {forest.inputs} inputs, but"
                f" {len(facts.delays)} views of {inputs} are described"
            )
        self.facts = facts
        self.forest = forest

    @classmethod
    def read(cls, folder: Path | Traversable, name: str) -> Self:
        """Read `NAME.json` and `NAME.npz`.

        Raises:
            ConfigError: They are damaged, or do not belong together.
        """
        facts = LearnedFacts.read(folder / f"{name}.json")
        source = folder / f"{name}.npz"
        with as_file(source) as path:
            try:
                found = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError as problem:
                raise ConfigError(f"{source}: cannot be read ({problem.strerror})") from None
            if found != facts.sha256:
                raise ConfigError(f"{source}: is not the file that {name}.json describes; install it anew")
            return cls(facts, Forest.load(path))


def learned_facts(name: str) -> LearnedFacts:
    """What is known of one of our own learned methods, without its weights."""
    return LearnedFacts.read(_WEIGHTS / f"{name}.json")


@cache
def learned_model(name: str) -> LearnedModel:
    """One of our own learned methods; the same object each time."""
    return LearnedModel.read(_WEIGHTS, name)


class ViewScores:
    """Joins what the views say into the scores of one stream's frames.

    At frame t the view of delay d says how like a boundary frame t − d is. A frame's score is the mean of
    what all views say of it, so it is known `latency` frames later. The first frames have no score. Where the
    stream ends first, the score is the mean of the views that have spoken, if any has.

    Args:
        delays: Of each view, in frames.
        latency: Frames of future that a score waits for; no delay is longer.
        cold: How many frames at the start have no score.
    """

    def __init__(self, delays: Sequence[int], latency: int, cold: int = COLD) -> None:
        self.delays = tuple(delays)
        self.latency = latency
        self._cold = cold
        self._said: deque[Sequence[float] | npt.NDArray[np.float64]] = deque(maxlen=latency + 1)
        self._seen = 0

    @property
    def state_bytes(self) -> int:
        """Bytes kept of the stream."""
        return 8 * len(self.delays) * (self.latency + 1)

    def add(self, said: Sequence[float] | npt.NDArray[np.float64]) -> float | None:
        """Take what each view says at the next frame; the score of the frame `latency` before, if any."""
        self._said.append(said)
        self._seen += 1
        return self._score_of(self._seen - 1 - self.latency)

    def flush(self) -> list[float | None]:
        """The scores of the last `latency` frames, or of those that there were, from what is known now."""
        return [self._score_of(frame) for frame in range(max(0, self._seen - self.latency), self._seen)]

    def reset(self) -> None:
        """Forget everything."""
        self._said.clear()
        self._seen = 0

    def _score_of(self, frame: int) -> float | None:
        """The mean of what is known of a frame, counted from 0."""
        if frame < self._cold:
            return None
        oldest = self._seen - len(self._said)
        said = [
            self._said[frame + delay - oldest][view]
            for view, delay in enumerate(self.delays)
            if frame + delay < self._seen
        ]
        return float(sum(said) / len(said)) if said else None


class LearnedScorer:
    """Scores the frames of one stream (`ongebd.detector.scorers.Scorer`), as `ViewScores` has it.

    Args:
        model: With its weights; shared.
        dim: D, numbers in a feature of its backbone.
    """

    def __init__(self, model: LearnedModel, dim: int) -> None:
        self.model = model
        self.name = model.facts.name
        self.latency = model.facts.latency
        self._cues = CueStream(dim, model.facts.groups)
        self._context = Context(len(self._cues.names))
        self._views = ViewScores(model.facts.delays, self.latency)

    @property
    def state_bytes(self) -> int:
        """Bytes kept of the stream."""
        return self._cues.state_bytes + self._context.state_bytes + self._views.state_bytes

    def update(self, feature: Feature, time: float) -> float | None:
        """Take the next frame's feature (D,); the score of the frame `latency` before it, if it has one."""
        del time
        inputs = self._context.update(self._cues.update(feature))
        return self._views.add(self.model.forest.scores(inputs[np.newaxis])[0])

    def flush(self) -> list[float | None]:
        """The scores of the last `latency` frames, or of those that there were."""
        return self._views.flush()

    def reset(self) -> None:
        """Forget everything."""
        self._cues.reset()
        self._context.reset()
        self._views.reset()
