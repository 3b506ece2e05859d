"""Ensembles of boosted trees, as arrays: read without pickle, asked all together."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Tree = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]
"""Feature, threshold, left, right and value of each node of one tree."""
MOST_LEAVES = 32
"""Of a tree."""
_FLOATS = {"threshold": np.float32, "value": np.float64}  # all other arrays are int32


@dataclass(frozen=True, eq=False)
class Forest:
    """Boosted trees in two layers of groups. It keeps no state.

    The trees of a *member* are summed, and the sum goes through a sigmoid; the members of a *judge* are
    averaged. The largest score of the judges counts: where one knows events and another changes of the
    picture, either may call.

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
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    value: Doubles
    root: Ints
    member: Ints
    judge: Ints

    def __post_init__(self) -> None:
        nodes, own = len(self.feature), np.arange(len(self.feature))
        sizes = {len(array) for array in (self.threshold, self.left, self.right, self.value)}
        groups = (self.root, self.member, self.judge)
        if sizes != {nodes} or not all(map(len, groups)) or len(self.root) != len(self.member):
            raise ConfigError("trees: the arrays don't fit together")
        gaps = any(set(np.diff(of, prepend=-1).tolist()) - {0, 1} for of in groups[1:])
        if gaps or self.member[-1] + 1 != len(self.judge):
            raise ConfigError("trees: the groups don't fit together")
        if not np.isfinite(self.value).all() or self.feature.min() < 0:
            raise ConfigError("trees: a value isn't finite, or a feature is below 0")
        inner = ~self._is_leaf
        children = np.stack([self.left, self.right])
        reached = np.concatenate([self.root, children.ravel()])
        if (children <= own)[:, inner].any() or reached.min() < 0 or reached.max() >= nodes:
            raise ConfigError("trees: a walk reaches no leaf")
        if np.bincount(np.concatenate([self.root, children[:, inner].ravel()])).max() > 1:
            raise ConfigError("trees: two walks meet")
        if (most := int(self._leaves[self.root].max())) > MOST_LEAVES:
            raise ConfigError(f"trees: one has {most} leaves; at most {MOST_LEAVES} are supported")

    @property
    def depth(self) -> int:
        """Steps from a root to the farthest leaf."""
        return len(self._levels) - 1

    def scores(self, x: Floats) -> Doubles:
        """The scores: of each row, the largest of the judges'.

        A node that sends x to the right rules out the leaves under its left child. The first leaf of a tree
        that none of its nodes rules out is the one that x reaches.

        Args:
            x: float32, finite, (N, F) with F above every number in `feature`.

        Returns:
            (N,), each in [0, 1]. A row does not depend on the others, to the bit.
        """
        nodes = self._nodes
        ruled_out = [  # of each judge, (N, trees)
            np.bitwise_or.reduce((x.take(feature, axis=1) > threshold) * under_left, axis=1)
            for feature, threshold, under_left in nodes.asked
        ]
        left = ~np.concatenate(ruled_out, axis=1)
        leaf = np.frexp((left & -left).astype(np.float64))[1] - 1  # the number of the lowest bit
        sums = np.add.reduceat(nodes.value.take(nodes.first_leaf + leaf), nodes.members, axis=1)
        with np.errstate(over="ignore"):  # 1 / inf is 0, which is right
            chances = 1.0 / (1.0 + np.exp(-sums))
        judged = np.add.reduceat(chances, nodes.judges, axis=1) / nodes.of_judge
        return np.asarray(judged.max(axis=1))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote; nothing in the file is run."""
        try:
            with warnings.catch_warnings(action="ignore"), np.load(path, allow_pickle=False) as file:
                names = [field.name for field in fields(cls)]
                return cls(*(np.asarray(file[name], _FLOATS.get(name, np.int32)) for name in names))
        except ConfigError as problem:
            raise ConfigError(f"{path}: can't read trees from it ({problem})") from None
        except Exception as problem:  # zipfile, zlib and NumPy raise what a damaged file brings about
            raise ConfigError(f"{path}: can't read trees; it is damaged, or another file") from problem

    @cached_property
    def _is_leaf(self) -> npt.NDArray[np.bool_]:
        own = np.arange(len(self.feature))
        return np.asarray((self.left == own) & (self.right == own))

    @cached_property
    def _levels(self) -> list[Ints]:
        """The nodes that are so many steps from their root."""
        levels = [self.root]
        while len(inner := levels[-1][~self._is_leaf[levels[-1]]]):
            levels.append(np.concatenate([self.left[inner], self.right[inner]]))
        return levels

    @cached_property
    def _leaves(self) -> Ints:
        """How many leaves are under each node."""
        leaves = self._is_leaf.astype(np.int32)
        for level in self._levels[::-1]:
            inner = level[~self._is_leaf[level]]
            leaves[inner] = leaves[self.left[inner]] + leaves[self.right[inner]]
        return leaves

    @cached_property
    def _nodes(self) -> _Nodes:
        tree, before = np.full(len(self.left), -1), np.zeros(len(self.left), np.int64)  # leaves to the left
        tree[self.root] = np.arange(len(self.root))
        for level in self._levels:
            split = level[~self._is_leaf[level]]
            left, right = self.left[split], self.right[split]
            tree[left] = tree[right] = tree[split]
            before[left], before[right] = before[split], before[split] + self._leaves[left]
        of_tree = self._leaves[self.root]
        first_leaf = np.cumsum(of_tree) - of_tree
        leaf, value = self._is_leaf & (tree >= 0), np.zeros(of_tree.sum())
        value[first_leaf[tree[leaf]] + before[leaf]] = self.value[leaf]
        inner, under = ~self._is_leaf & (tree >= 0), np.where(self._is_leaf, 0, self._leaves[self.left])
        masks = ((1 << under) - 1) << before
        table = np.full((of_tree.max(), len(self.root)), self._is_leaf.argmax())  # a leaf rules nothing out
        table[(before + under - 1)[inner], tree[inner]] = np.flatnonzero(inner)
        members, judges = (np.flatnonzero(np.diff(of, prepend=-1)) for of in (self.member, self.judge))
        asked = []
        for begin, end in pairwise([*members[judges], len(self.root)]):
            last = int(of_tree[begin:end].max()) - 1  # a tree's last leaf, and how many inner nodes it has
            node, bits = table[:last, begin:end], np.min_scalar_type(1 << last)
            asked.append((self.feature[node].astype(np.intp), self.threshold[node], masks[node].astype(bits)))
        return _Nodes(asked, first_leaf, value, members, judges, np.bincount(self.judge).astype(np.float64))


class _Nodes(NamedTuple):
    """The nodes that are asked; `scores` says what for."""

    # Of each judge, (nodes of a tree, trees): feature, threshold, and bit i: whether leaf i is on the left.
    asked: list[tuple[npt.NDArray[np.intp], Floats, npt.NDArray[np.unsignedinteger[Any]]]]
    first_leaf: npt.NDArray[np.int64]  # of each tree, in `value`
    value: Doubles  # of the leaves, from left to right
    members: npt.NDArray[np.intp]  # where each begins, in the trees
    judges: npt.NDArray[np.intp]  # where each begins, in the members
    of_judge: Doubles  # how many members it has
