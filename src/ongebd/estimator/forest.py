"""Ensembles of boosted trees, as arrays: read without pickle, walked level by level, all trees together."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Tree = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]
"""Feature, threshold, left, right and value of each node of one tree."""
_FLOATS = {"threshold": np.float32, "value": np.float64}  # all other arrays are int32


@dataclass(frozen=True, eq=False)
class Forest:
    """Boosted trees in three layers of groups. It keeps no state.

    The trees of a *member* are summed, and the sum goes through a sigmoid; the members of a *judge* are
    averaged. A *view*, one for each delay, takes the largest score of its judges: where one knows events and
    another changes of the picture, either may call.

    An inner node sends x to its left child where x[feature] ≤ threshold, else to its right child. A leaf is
    its own child on both sides and has an infinite threshold, so a walk may go on for ever.

    Attributes:
        feature: Of each node, which input it looks at; (nodes,).
        threshold: (nodes,), float32. A float64 threshold rounded *down* sends float32 inputs the same way.
        left: The left child of each node; children follow their parent.
        right: The right child.
        value: Of leaves, in the sum's unit (a logarithm of odds); 0 elsewhere. (nodes,), float64.
        root: Of each tree, its first node; (trees,).
        member: Of each tree, its member, ascending from 0; (trees,).
        judge: Of each member, its judge, ascending from 0; (members,).
        view: Of each judge, its view, ascending from 0; (judges,). All views have the same number of judges.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    value: Doubles
    root: Ints
    member: Ints
    judge: Ints
    view: Ints

    def __post_init__(self) -> None:
        nodes, own = len(self.feature), np.arange(len(self.feature))
        sizes = {len(array) for array in (self.threshold, self.left, self.right, self.value)}
        groups = (self.root, self.member, self.judge, self.view)
        if sizes != {nodes} or not all(map(len, groups)) or len(self.root) != len(self.member):
            raise ConfigError("trees: the arrays don't fit together")
        if any(above.max() >= len(below) for above, below in pairwise(groups[1:])):
            raise ConfigError("trees: the groups don't fit together")
        if len(set(np.bincount(self.view).tolist())) != 1:
            raise ConfigError("trees: the views have different numbers of judges")
        if not np.isfinite(self.value).all() or self.feature.min() < 0:
            raise ConfigError("trees: a value isn't finite, or a feature is below 0")
        inner = ~self._is_leaf
        children = np.stack([self.left, self.right])
        reached = np.concatenate([self.root, children.ravel()])
        if (children <= own)[:, inner].any() or reached.min() < 0 or reached.max() >= nodes:
            raise ConfigError("trees: a walk reaches no leaf")

    @property
    def views(self) -> int:
        """How many views there are."""
        return int(self.view[-1]) + 1

    @cached_property
    def depth(self) -> int:
        """Steps from a root to the farthest leaf."""
        steps, nodes = 0, self.root
        while len(nodes := np.unique(nodes[~self._is_leaf[nodes]])):
            nodes = np.concatenate([self.left[nodes], self.right[nodes]])
            steps += 1
        return steps

    def scores(self, x: Floats) -> Doubles:
        """The scores of all views.

        Args:
            x: float32, finite, (N, F) with F above every number in `feature`.

        Returns:
            (N, views), each in [0, 1]. A row does not depend on the others, to the bit.
        """
        children, begin_members, begin_judges, per_judge = self._walk
        above = x.take(self.feature, axis=1) > self.threshold  # (N, nodes), each node asked once
        count, nodes = above.shape
        above = above.reshape(-1)
        rows = np.arange(count, dtype=np.intp)[:, None] * nodes
        at = np.broadcast_to(self.root.astype(np.intp), (count, len(self.root)))
        for _ in range(self.depth):
            at = children.take(2 * at + above.take(at + rows))
        sums = np.add.reduceat(self.value.take(at), begin_members, axis=1)  # (N, members)
        with np.errstate(over="ignore"):  # 1 / inf is 0, which is right
            chances = 1.0 / (1.0 + np.exp(-sums))
        judged = np.add.reduceat(chances, begin_judges, axis=1) / per_judge
        return np.asarray(judged.reshape(count, self.views, -1).max(axis=2))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote; nothing in the file is run."""
        try:
            with np.load(path, allow_pickle=False) as file:
                names = [field.name for field in fields(cls)]
                return cls(*(np.asarray(file[name], _FLOATS.get(name, np.int32)) for name in names))
        except ConfigError as problem:
            raise ConfigError(f"{path}: can't read trees from it ({problem})") from None
        except Exception as problem:  # zipfile, zlib and NumPy raise what a damaged file brings about
            raise ConfigError(
                f"{path}: can't read trees from it; it is damaged, or another file"
            ) from problem

    @cached_property
    def _is_leaf(self) -> npt.NDArray[np.bool_]:
        own = np.arange(len(self.feature))
        return np.asarray((self.left == own) & (self.right == own))

    @cached_property
    def _walk(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp], Doubles]:
        """Children as left, right, left, …; where members and judges begin; the members of each judge."""
        children = np.stack([self.left, self.right], axis=1).reshape(-1).astype(np.intp)
        begin_members = np.flatnonzero(np.diff(self.member, prepend=-1))
        begin_judges = np.flatnonzero(np.diff(self.judge, prepend=-1))
        return children, begin_members, begin_judges, np.bincount(self.judge).astype(np.float64)
