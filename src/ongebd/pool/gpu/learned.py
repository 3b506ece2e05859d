"""The learned methods on B streams at once: `LearnedScorer`, as tensors. Needs torch."""

from __future__ import annotations

import torch
from torch import Tensor

from ongebd.estimator.cues import AppearanceCues, cue_names
from ongebd.estimator.cues.stream import LUMA_DIM
from ongebd.estimator.learned import COLD, LearnedModel
from ongebd.pool.gpu.cues import BatchedAppearance, BatchedContext, BatchedMotion
from ongebd.pool.gpu.forest import DeviceForest
from ongebd.pool.gpu.views import Views

Rows = tuple[Tensor, ...]


class BatchedLearned:
    """Cues, their context, and boosted trees.

    A step says what each view thinks of a frame; which frame that is, and what follows, is told on the host
    (`ongebd.pool.gpu.views`). Whatever the precision of the backbone, cues are float32 here, and the
    forest compares float32: its thresholds are sharp.

    Args:
        model: With its weights.
        dim: D, numbers in a feature, luma included.
        device: Where to compute.

    Attributes:
        views: How scores are made of what a step says.
    """

    compiles = False  # it can be: one graph of 476 operations, but in three minutes it was not compiled

    def __init__(self, model: LearnedModel, dim: int, device: torch.device) -> None:
        facts = model.facts
        self.name = facts.name
        self.views = Views(facts.delays, facts.latency, COLD)
        self._network_dim = dim - LUMA_DIM
        names = cue_names(facts.groups)
        kept = [place for place, name in enumerate(AppearanceCues.names) if name in names]
        self._kept = torch.tensor(kept, dtype=torch.int64, device=device)
        self._appearance = BatchedAppearance(self._network_dim, device) if kept else None
        self._motion = BatchedMotion(device) if "motion" in facts.groups else None
        self._context = BatchedContext(len(names), device)
        self._forest = DeviceForest(model.forest, device)

    def initial(self, streams: int) -> Rows:
        """Nothing seen."""
        parts = (self._appearance, self._motion, self._context)
        return tuple(rows for part in parts if part is not None for rows in part.initial(streams))

    def prepare(self, state: Rows) -> Rows:
        """Nothing is computed ahead."""
        return ()

    def step(
        self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor
    ) -> tuple[Tensor, Tensor, Rows]:
        """What each view says, (B, V), float64."""
        inputs, after = self.inputs(features, state, seen)
        return self._forest.scores(inputs), seen >= 0, after

    def inputs(self, features: Tensor, state: Rows, seen: Tensor) -> tuple[Tensor, Rows]:
        """What the trees look at, (B, inputs), float32, and the new state; else as `step`."""
        left = iter(state)
        cues: list[Tensor] = []
        after: list[Tensor] = []
        if self._appearance is not None:
            network = features[:, : self._network_dim]
            appearance, *kept = self._appearance.step(network, next(left), next(left), seen)
            cues.append(appearance[:, self._kept])
            after += kept
        if self._motion is not None:
            luma = features[:, self._network_dim :]
            motion, *kept = self._motion.step(luma, next(left), next(left), seen)
            cues.append(motion)
            after += kept
        inputs, *kept = self._context.step(torch.cat(cues, dim=1), next(left), next(left), seen)
        return inputs, (*after, *kept)
