"""Grows the trees of the learned models: targets from ratings, folds by clip, LightGBM's boosting.

A frame's target is the share of a clip's raters who see a boundary just before it: 1 within a plateau around
the time at which a causal detector should fire, 0 beyond a slope. LightGBM's cross-entropy accepts shares.
docs/model-card.md explains the choice of each number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError, MissingExtraError
from ongebd.estimator.cues import Context

if TYPE_CHECKING:
    import lightgbm

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeConfig:
    """How trees are grown.

    Attributes:
        lateness: Seconds from a boundary to the middle of its targets' plateau: time for evidence where a
            judge has no look-ahead.
        plateau: Seconds to each side of it at which the target is 1.
        slope: Seconds in which it falls to 0.
        rounds: Trees of a member.
        leaves: Of a tree, at most.
        rate: The learning rate.
        inputs: Share of the inputs for each tree.
        frames: Share of the frames for each tree.
        least: Frames in a leaf, at least.
        ridge: Penalty on the leaves' values.
        members: Ensembles with different seeds; their scores are averaged.
        longest: Frames of a clip that count; frames of longer clips weigh less, so that no clip dominates.
    """

    lateness: float = 0.12
    plateau: float = 0.08
    slope: float = 0.15
    rounds: int = 150
    leaves: int = 7
    rate: float = 0.06
    inputs: float = 0.3
    frames: float = 0.6
    least: int = 60
    ridge: float = 5.0
    members: int = 2
    longest: int = 400


@dataclass(frozen=True, eq=False)
class RatedClip:
    """A clip to learn from, or to score.

    Attributes:
        name: Of the clip.
        times: Of its frames, seconds, (T,).
        cues: (T, C).
        ratings: Each rater's boundaries, seconds.
        weight: Of its frames, relative to other clips.
        group: Clips of one group stay on one side of a split.
        trainable: Whether its licence allows learning from it.
        begin: The first frame to learn from.
    """

    name: str
    times: npt.NDArray[np.float64]
    cues: Floats
    ratings: tuple[npt.NDArray[np.float64], ...]
    weight: float = 1.0
    group: str = ""
    trainable: bool = True
    begin: int = 0

    @cached_property
    def inputs(self) -> Floats:
        """What the trees see of each frame, (T, 5 C + 6)."""
        context = Context(self.cues.shape[1])
        return np.stack([context.update(row) for row in self.cues])

    def counting(self, *, weight: float = 1.0, trainable: bool = True) -> RatedClip:
        """The same clip with another weight or role; the inputs are shared."""
        other = replace(self, weight=weight, trainable=trainable)
        other.__dict__["inputs"] = self.inputs
        return other

    def targets(self, config: TreeConfig) -> Floats:
        """The share of raters who saw a boundary `lateness` seconds before each frame, (T,)."""
        total = np.zeros(len(self.times))
        for boundaries in self.ratings:
            if len(boundaries):
                late = self.times[:, None] - (boundaries[None, :] + config.lateness)
                total += np.clip(1 - (np.abs(late).min(axis=1) - config.plateau) / config.slope, 0, 1)
        return (total / max(len(self.ratings), 1)).astype(np.float32)


def grow(
    clips: Sequence[RatedClip], config: TreeConfig, *, seed: int = 0, threads: int = 1
) -> list[lightgbm.Booster]:
    """The members of one judge.

    Args:
        clips: To learn from; those that are not trainable are skipped.
        config: How to grow.
        seed: Of the choice of inputs and frames.
        threads: Of LightGBM; the same number gives the same trees.

    Raises:
        ConfigError: There is nothing to learn from.
        MissingExtraError: LightGBM is not installed.
    """
    try:
        import lightgbm
    except ImportError:
        raise MissingExtraError.of("lightgbm", "train") from None
    taken = [clip for clip in clips if clip.trainable]
    if not taken:
        raise ConfigError("no clip is trainable")
    inputs = np.concatenate([clip.inputs[clip.begin :] for clip in taken])
    targets = np.concatenate([clip.targets(config)[clip.begin :] for clip in taken])
    weights = np.repeat(
        [clip.weight * min(1.0, config.longest / len(clip.times)) for clip in taken],
        [len(clip.times) - clip.begin for clip in taken],
    )
    settings: dict[str, Any] = {
        "objective": "cross_entropy",
        "num_leaves": config.leaves,
        "learning_rate": config.rate,
        "feature_fraction": config.inputs,
        "bagging_fraction": config.frames,
        "bagging_freq": 1,
        "min_data_in_leaf": config.least,
        "lambda_l2": config.ridge,
        "max_bin": 63,
        "num_threads": threads,
        "deterministic": True,
        "force_col_wise": True,
        "verbose": -1,
    }
    data = lightgbm.Dataset(inputs, targets, weight=weights, params=settings, free_raw_data=False)
    return [
        lightgbm.train({**settings, "seed": 101 * seed + member}, data, config.rounds)
        for member in range(config.members)
    ]


def folds_by_clip(clips: Sequence[RatedClip], folds: int, seed: int) -> dict[str, int]:
    """A fold for each clip: groups stay together, and boundaries are spread evenly."""
    groups: dict[str, list[RatedClip]] = {}
    for clip in clips:
        groups.setdefault(clip.group or clip.name, []).append(clip)
    names = sorted(groups)
    order = [names[place] for place in np.random.default_rng(seed).permutation(len(names))]
    count = {
        name: sum(np.mean([len(b) for b in clip.ratings]) for clip in groups[name]) + 0.5 for name in names
    }
    held = np.zeros(folds)
    fold_of: dict[str, int] = {}
    for name in sorted(order, key=lambda name: -round(count[name] / 4)):  # large ones first, then at random
        fold = int(np.argmin(held))
        held[fold] += count[name]
        fold_of |= {clip.name: fold for clip in groups[name]}
    return fold_of


def out_of_fold(
    clips: Sequence[RatedClip],
    fold_of: Mapping[str, int],
    config: TreeConfig,
    *,
    extra: Callable[[int], Sequence[RatedClip]] = lambda _fold: (),
    also: Callable[[int], Sequence[RatedClip]] = lambda _fold: (),
    seed: int = 0,
    threads: int = 1,
) -> dict[str, npt.NDArray[np.float64]]:
    """The score of each frame of each clip, in [0, 1], by trees that have seen no clip of its fold.

    Args:
        clips: The clips.
        fold_of: From a clip's name to its fold.
        config: How trees are grown.
        extra: More clips to learn from (composites) when a fold is scored.
        also: More clips to score with a fold: what was made of its clips.
        seed: Of the trees.
        threads: Of LightGBM.

    Returns:
        Arrays (T,) by the clips' names.
    """
    scores: dict[str, npt.NDArray[np.float64]] = {}
    for fold in sorted(set(fold_of.values())):
        others = [clip for clip in clips if fold_of[clip.name] != fold]
        members = grow([*others, *extra(fold)], config, seed=seed, threads=threads)
        for clip in [*(clip for clip in clips if fold_of[clip.name] == fold), *also(fold)]:
            predicted = [np.asarray(member.predict(clip.inputs, num_threads=threads)) for member in members]
            scores[clip.name] = np.mean(predicted, axis=0)
    return scores
