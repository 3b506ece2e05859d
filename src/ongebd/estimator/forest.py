"""Ensembles of boosted trees, as arrays: read without pickle, walked level by level, all trees at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

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
        threshold: (nodes,), float32. A float64 threshold, rounded *down*, parts float32 inputs alike.
        left: The left child of each node.
        right: The right child.
        value: Of leaves, in the sum's unit (a logarithm of odds); 0 elsewhere. (nodes,), float64.
        root: Of each tree, its first node; (trees,).
        member: Of each tree, its member, ascending from 0; (trees,).
        judge: Of each member, its judge, ascending from 0; (members,).
        view: Of each judge, its view, ascending from 0; (judges,). All views have the same number of judges.

    >>> one = ([0, 0, 0], [0.5, np.inf, np.inf], [1, 1, 2], [2, 1, 2], [0.0, -1.0, 3.0])
    >>> stump = Forest.of([[one]], judges=[0], views=[0])
    >>> stump.scores(np.float32([[0.4], [0.6]])).round(3)  # sigmoids of −1 and 3
    array([[0.269],
           [0.953]])
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
        nodes, children = len(self.feature), np.concatenate([self.left, self.right, self.root])
        sizes = {len(array) for array in (self.threshold, self.left, self.right, self.value)}
        groups = (self.root, self.member, self.judge, self.view)
        if sizes != {nodes} or not all(map(len, groups)) or len(self.root) != len(self.member):
            raise ConfigError("trees: the arrays do not fit each other")
        if any(above.max() >= len(below) for above, below in pairwise(groups[1:])):
            raise ConfigError("trees: the groups do not fit each other")
        if children.min() < 0 or children.max() >= nodes or self.depth < 0:
            raise ConfigError("trees: a walk reaches no leaf")
        if len(set(np.bincount(self.view).tolist())) != 1:
            raise ConfigError("trees: the views have different numbers of judges")

    @classmethod
    def of(cls, members: list[list[Tree]], *, judges: list[int], views: list[int]) -> Self:
        """A forest from single trees.

        Args:
            members: The trees of each, with nodes numbered from 0, the root first.
            judges: Of each member, its judge.
            views: Of each judge, its view.
        """
        trees = [[np.asarray(column) for column in tree] for trees in members for tree in trees]
        if not trees:
            raise ConfigError("trees: there are none")
        sizes = [len(tree[0]) for tree in trees]
        roots = np.cumsum(sizes) - sizes
        shift = np.repeat(roots, sizes)
        columns = zip(*trees, strict=True)
        feature, threshold, left, right, value = (np.concatenate(column) for column in columns)
        return cls(
            feature.astype(np.int32),
            rounded_down(threshold),
            (left + shift).astype(np.int32),
            (right + shift).astype(np.int32),
            value.astype(np.float64),
            roots.astype(np.int32),
            np.repeat(np.arange(len(members), dtype=np.int32), [len(trees) for trees in members]),
            np.array(judges, np.int32),
            np.array(views, np.int32),
        )

    @property
    def views(self) -> int:
        """How many views there are."""
        return int(self.view[-1]) + 1

    @property
    def inputs(self) -> int:
        """The fewest inputs that it works with."""
        return int(self.feature.max()) + 1

    @property
    def parameters(self) -> int:
        """Numbers that were learned: a feature and a threshold for each inner node, a value for each leaf."""
        leaves = int(self._is_leaf.sum())
        return 2 * (len(self.feature) - leaves) + leaves

    @cached_property
    def depth(self) -> int:
        """Steps from a root to the farthest leaf; −1 where a walk never ends."""
        nodes = np.unique(self.root)
        for step in range(len(self.feature) + 1):
            nodes = nodes[~self._is_leaf[nodes]]
            if not len(nodes):
                return step
            nodes = np.unique(np.concatenate([self.left[nodes], self.right[nodes]]))
        return -1

    def scores(self, x: Floats) -> Doubles:
        """The scores of all views.

        Args:
            x: float32, finite, (N, F) with F of at least `inputs`.

        Returns:
            (N, views), each in [0, 1]. A row does not depend on the others, to the bit.
        """
        if x.ndim != 2 or x.shape[1] < self.inputs:
            raise ConfigError(f"trees: (N, {self.inputs}) inputs are wanted, not {x.shape}")
        children, begin_members, begin_judges, per_judge = self._walk
        above = x.take(self.feature, axis=1) > self.threshold  # (N, nodes), each node asked once
        count, nodes = above.shape
        above = above.reshape(-1)
        rows = np.arange(count, dtype=np.intp)[:, None] * nodes
        at = np.broadcast_to(self.root.astype(np.intp), (count, len(self.root)))
        for _ in range(self.depth):
            at = children.take(2 * at + above.take(at + rows))
        sums = np.add.reduceat(self.value.take(at), begin_members, axis=1)  # (N, members)
        chances = 1.0 / (1.0 + np.exp(-sums))
        judged = np.add.reduceat(chances, begin_judges, axis=1) / per_judge
        return np.asarray(judged.reshape(count, self.views, -1).max(axis=2))

    def save(self, path: Path) -> None:
        """Write the arrays as an `.npz` file; `load` reads it."""
        np.savez_compressed(path, **{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote; nothing in the file is run."""
        try:
            with np.load(path, allow_pickle=False) as file:
                names = [field.name for field in fields(cls)]
                arrays: dict[str, Any] = {
                    name: np.asarray(file[name], _FLOATS.get(name, np.int32)) for name in names
                }
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as problem:
            raise ConfigError(f"{path}: can't read trees from it ({problem})") from None
        return cls(**arrays)

    @cached_property
    def _is_leaf(self) -> npt.NDArray[np.bool_]:
        own = np.arange(len(self.feature))
        leaf: npt.NDArray[np.bool_] = (self.left == own) & (self.right == own)
        return leaf

    @cached_property
    def _walk(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp], Doubles]:
        """Children as left, right, left, …; where members and judges begin; the members of each judge."""
        children = np.stack([self.left, self.right], axis=1).reshape(-1).astype(np.intp)
        begin_members = np.flatnonzero(np.diff(self.member, prepend=-1))
        begin_judges = np.flatnonzero(np.diff(self.judge, prepend=-1))
        return children, begin_members, begin_judges, np.bincount(self.judge).astype(np.float64)


def rounded_down(threshold: npt.ArrayLike) -> Floats:
    """The largest float32 numbers that are not above: for a float32 x, x ≤ threshold holds for both alike.

    >>> rounded_down(0.1) <= 0.1, float(np.float32(0.1)) <= 0.1
    (np.True_, False)
    """
    exact = np.asarray(threshold, np.float64)
    near = exact.astype(np.float32)
    return np.where(near > exact, np.nextafter(near, np.float32(-np.inf)), near)
