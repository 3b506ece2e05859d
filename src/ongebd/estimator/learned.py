"""The learned methods: cues, their context, and boosted trees that say how like a boundary a frame is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self

import numpy as np

from ongebd.backbones.onnx_backbone import read_weights
from ongebd.backbones.pipeline import FLAT, LUMA_DIM, MOVES, Glance
from ongebd.errors import ConfigError
from ongebd.estimator.cues import INPUTS, Context, CueStream
from ongebd.estimator.forest import Forest
from ongebd.estimator.motion import mean
from ongebd.types import AGO, Feature, Signs

FORMAT = 2
STILL, SAME, QUIET = 12, 1e-4, 0.01
"""A still picture was repeated so often, its error below `SAME`; where it is coded again, below `QUIET`."""
SAME_LUMA = 1.0
"""Levels by which the luma of a cell may differ in the same picture."""
BRIGHTER = 20.0
"""Another flat picture is brighter or darker by more levels than this, of 255."""
JUMP = 2.5
"""The least score of a change, where a still or flat picture gives the trees too little to see: times how far
the frame is from the last one."""
ERRORS = slice(len(AGO))
"""The cues that are errors against earlier frames, as in `Signs`."""
CONTRAST = CueStream.names.index("mean of 12 to 12 ago")
COLD = 8
"""The first frames of a stream have no score: what is usual in it is not known yet."""
_WEIGHTS = files("ongebd.estimator") / "weights"


@dataclass(frozen=True, slots=True)
class LearnedFacts:
    """The description beside the weights, `weights/NAME.json`.

    Attributes:
        name: The model's.
        backbone: The name of the backbone whose features it looks at.
        fps: Frames a second that it was trained for.
        settings: Of a stream: min_gap, max_run and rearm.
        sensitivities: (sensitivity, threshold), by rising sensitivity and falling threshold.
        parameters: Numbers that were learned.
        licence: Of the weights.
        trained_on: In words.
        sha256: Of the file of weights.
    """

    name: str
    backbone: str
    fps: float
    settings: dict[str, Any]
    sensitivities: Sequence[tuple[float, float]]
    parameters: int
    licence: str
    trained_on: str
    sha256: str

    @classmethod
    def read(cls, path: Path | Traversable) -> Self:
        """Read a description."""
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            if about["format"] != FORMAT or tuple(about["cues"]) != CueStream.names:
                raise ConfigError("made for other cues than this version computes")
            return cls(**{f.name: about[f.name] for f in fields(cls)})
        # A ConfigError is a ValueError.
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as problem:
            raise ConfigError(f"{path}: damaged ({problem}); reinstall the package") from None

    def threshold(self, sensitivity: float) -> float:
        """The threshold at a sensitivity, interpolated; beyond the table's ends as there."""
        known, thresholds = zip(*self.sensitivities, strict=True)
        return float(np.interp(sensitivity, known, thresholds))


@dataclass(frozen=True, eq=False)
class LearnedModel:
    """A learned method with its weights. It keeps no state; streams share it."""

    facts: LearnedFacts
    forest: Forest

    @classmethod
    def read(cls, folder: Path | Traversable, name: str) -> Self:
        """Read `NAME.json` and `NAME.npz`."""
        facts, source = LearnedFacts.read(folder / f"{name}.json"), folder / f"{name}.npz"
        read_weights(source, facts.sha256)
        with as_file(source) as path:
            forest = Forest.load(path)
            if forest.feature.max() >= INPUTS:
                raise ConfigError(f"{source}: its trees look at other cues than this version computes")
            return cls(facts, forest)


def learned_facts(name: str) -> LearnedFacts:
    """What is known of one of our learned methods, without its weights."""
    return LearnedFacts.read(_WEIGHTS / f"{name}.json")


@cache
def learned_model(name: str) -> LearnedModel:
    """One of our learned methods; the same object each time."""
    return LearnedModel.read(_WEIGHTS, name)


class LearnedScorer:
    """Scores the frames of one stream (`ongebd.detector.detector.Scorer`).

    Args:
        model: With its weights; shared.
        dim: D, numbers in a feature of its backbone.

    Attributes:
        signs: What the last frame shows beside its score.
        glances: It needs the network's features only where a `Glance` says so.
    """

    latency, glances = 0, True

    def __init__(self, model: LearnedModel, dim: int) -> None:
        self.model = model
        self.name = model.facts.name
        self.signs = Signs()
        self._glance = Glance()
        self._cues = CueStream(dim)
        self._context = Context(len(self._cues.names))
        self.state_bytes = 4 * (dim + LUMA_DIM) + self._cues.state_bytes + self._context.state_bytes
        self._seen = 0
        self._time: float | None = None  # of the last frame
        self._level: float | None = None  # of the last picture's luma, if it was flat
        self._still, self._repeated = 0, False

    def update(self, feature: Feature, time: float) -> float | None:
        """Take the next frame's feature (D,); its score, if it has one.

        Of frames at which the network needn't look it takes the luma alone: see `Glance`. A frame with the
        time of the one before it is that one, which stays.
        """
        feature = self._glance.counted(feature, time)
        cues = self._cues.update(feature, self._glance.sudden)
        self.signs = Signs(self._cues.cut, cues[ERRORS].tolist(), 2 * float(cues[CONTRAST]))
        least = JUMP * self._jump(float(cues[0]), feature[-LUMA_DIM:], repeated=time == self._time)
        self._time = time
        inputs = self._context.update(cues)
        self._seen += 1
        if self._seen <= COLD:
            return None
        return max(float(self.model.forest.scores(inputs[np.newaxis])[0]), min(least, 1.0))

    def flush(self) -> list[float | None]:
        """No score is late."""
        return []

    def reset(self) -> None:
        """Forget everything."""
        self._glance.reset()
        self._cues.reset()
        self._context.reset()
        self._time = self._level = None
        self._seen = self._still = 0
        self._repeated = False

    def _jump(self, change: float, luma: Feature, *, repeated: bool) -> float:
        """How far a frame is from the one before it, where the trees don't know; else 0."""
        jump = 0.0
        moved = self._glance.moved
        repeated = repeated or (change < SAME and moved < SAME_LUMA)
        if not repeated:
            jump = change if self._still >= STILL else 0.0
            if change > QUIET or moved > MOVES or not self._repeated:
                self._still = 0
        self._still += repeated
        self._repeated = repeated
        average = mean(luma)
        level = float(average) if np.sqrt(mean((luma - average) ** 2)) < FLAT else None
        if level is not None and self._level is not None and abs(level - self._level) > BRIGHTER:
            jump = max(change, abs(level - self._level) / 255)
        self._level = level
        return jump
