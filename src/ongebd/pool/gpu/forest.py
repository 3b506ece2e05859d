"""A forest's scores of many rows at once, with its nodes on the device. Needs torch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ongebd.estimator.forest import Forest


class DeviceForest:
    """Walks all trees level by level, as `Forest.scores` does.

    Inputs and thresholds are float32 and compared as they are, so each row comes to the same leaves as on the
    CPU, given equal inputs; leaves are summed in float64.

    Args:
        forest: Whose nodes; it is left as it is.
        device: Where to walk.
    """

    def __init__(self, forest: Forest, device: torch.device) -> None:
        def there(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        self.views = forest.views
        self._depth = forest.depth
        self._feature = there(forest.feature.astype(np.int64))
        self._threshold = there(forest.threshold)
        self._children = there(np.stack([forest.left, forest.right], axis=1).reshape(-1).astype(np.int64))
        self._value = there(forest.value)
        self._root = there(forest.root.astype(np.int64))
        self._members = there(np.eye(len(forest.judge))[forest.member])  # (trees, members)
        of_judge = np.bincount(forest.judge)
        self._judges = there((np.eye(len(forest.view)) / of_judge)[forest.judge])  # (members, judges)

    def scores(self, x: Tensor) -> Tensor:
        """What each view says: (B, F) float32 → (B, views) float64, each in [0, 1]."""
        above = (x[:, self._feature] > self._threshold).long()  # (B, nodes): each node asked once
        at = self._root.expand(len(x), -1)  # (B, trees)
        for _ in range(self._depth):
            at = self._children[2 * at + above.gather(1, at)]
        said = (self._value[at] @ self._members).sigmoid() @ self._judges
        return said.view(len(x), self.views, -1).amax(dim=2)
