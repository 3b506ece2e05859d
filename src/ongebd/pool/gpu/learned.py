"""The learned methods on B streams together: `LearnedScorer`, as tensors. Needs torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ongebd.backbones.pipeline import LUMA_DIM
from ongebd.estimator.cues import CueStream
from ongebd.estimator.forest import Forest
from ongebd.estimator.learned import COLD, CONTRAST, ERRORS, LearnedModel
from ongebd.pool.gpu.batched_scorer import BatchedScorer, Rows, Scored
from ongebd.pool.gpu.cues import (
    BatchedAppearance,
    BatchedContext,
    BatchedCuts,
    BatchedGlance,
    BatchedLooks,
    BatchedMemory,
    BatchedMotion,
)


class BatchedLearned(BatchedScorer):
    """Cues, their context, and boosted trees.

    Cues are float32 whatever the backbone's precision, and the forest compares float32: its thresholds are
    sharp.

    Args:
        model: With its weights.
        dim: D, numbers in a feature, luma included.
        device: Where to compute.
    """

    # `torch.compile` makes one graph of its 476 operations, but did not finish within three minutes.
    compiles = False
    cuts = True

    def __init__(self, model: LearnedModel, dim: int, device: torch.device) -> None:
        self.name = model.facts.name
        self._network_dim = dim - LUMA_DIM
        self._appearance = BatchedAppearance(self._network_dim, device)
        self._looks = BatchedLooks(self._network_dim, device)
        self._motion, self._memory = BatchedMotion(device), BatchedMemory(device)
        self._context = BatchedContext(len(CueStream.names), device)
        self._forest = DeviceForest(model.forest, device)
        self._cuts = BatchedCuts(device)
        self._glance = BatchedGlance(dim, device)
        for_trees = self._appearance, self._looks, self._motion, self._memory, self._context
        self.empty = tuple(row for part in (*for_trees, self._cuts, self._glance) for row in part.empty)

    def step(self, features: Tensor, state: Rows, prepared: Rows, seen: Tensor, time: Tensor) -> Scored:
        """The score and the `Signs`, (B, 13), float64."""
        features, sudden, looked = self._glance.step(features, state[11:], seen, time)
        inputs, after = self.inputs(features, state, seen)
        cut, cuts = self._cuts.step(after[1], sudden, state[9:11], seen)
        signs = torch.cat([cut[:, None], inputs[:, ERRORS], 2 * inputs[:, CONTRAST, None]], dim=1)
        scores = torch.cat([self._forest.scores(inputs)[:, None], signs.double()], dim=1)
        return scores, seen >= COLD, after + cuts + looked

    def inputs(self, features: Tensor, state: Rows, seen: Tensor) -> tuple[Tensor, Rows]:
        """What the trees look at, (B, inputs), float32, and the new state but that of the cuts."""
        network, luma = features[:, : self._network_dim], features[:, self._network_dim :]
        past, gram, looks, count, pictures, flow, moved, cues, mean = state[:9]
        appearance, past, gram = self._appearance.step(network, past, gram, seen)
        looked, looks, count = self._looks.step(network, looks, count)
        motion, pictures, flow = self._motion.step(luma, pictures, flow, seen)
        newest = torch.cat([appearance, looked, motion], dim=1)
        context, cues, mean = self._context.step(newest, cues, mean, seen)
        memory, moved = self._memory.step(motion, moved, seen)
        after = past, gram, looks, count, pictures, flow, moved, cues, mean
        return torch.cat([context, memory], dim=1), after


class DeviceForest:
    """Walks all trees level by level, as `Forest.scores` does, with the nodes on the device.

    Inputs and thresholds are compared as float32, so equal inputs reach the same leaves as on the CPU; leaves
    are summed in float64.
    """

    def __init__(self, forest: Forest, device: torch.device) -> None:
        def there(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        self._depth = forest.depth
        self._feature = there(forest.feature.astype(np.int64))
        self._threshold = there(forest.threshold)
        self._children = there(np.stack([forest.left, forest.right], axis=1).reshape(-1).astype(np.int64))
        self._value = there(forest.value)
        self._root = there(forest.root.astype(np.int64))
        self._members = there(np.eye(len(forest.judge))[forest.member])  # (trees, members)
        of_judge = np.bincount(forest.judge)
        self._judges = there((np.eye(len(of_judge)) / of_judge)[forest.judge])  # (members, judges)

    def scores(self, x: Tensor) -> Tensor:
        """The scores: (B, F) float32 → (B,) float64, each in [0, 1]."""
        above = (x[:, self._feature] > self._threshold).long()  # (B, nodes): each node asked once
        at = self._root.expand(len(x), -1)  # (B, trees)
        for _ in range(self._depth):
            at = self._children[2 * at + above.gather(1, at)]
        return ((self._value[at] @ self._members).sigmoid() @ self._judges).amax(dim=1)
