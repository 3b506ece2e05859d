"""From trees that LightGBM grew to the weights of a learned model.

LightGBM isn't needed here: the input is what `Booster.dump_model()` returns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError
from ongebd.estimator.cues import INPUTS, CueStream
from ongebd.estimator.forest import Forest
from ongebd.estimator.learned import FORMAT, LearnedModel

Tree = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]
"""Feature, threshold, left, right and value of each node of one tree."""
_OBJECTIVES = ("cross_entropy", "xentropy", "binary sigmoid:1")


def forest_from_lightgbm(
    judges: Sequence[Sequence[Mapping[str, Any]]], handicaps: Sequence[float] | None = None
) -> Forest:
    """The trees of boosters as one forest.

    Args:
        judges: For each judge its members, as returned by `Booster.dump_model()`.
        handicaps: For each judge, what to subtract from its members' log odds; default none.

    Returns:
        A forest whose score is the largest mean of a judge's members' predictions.

    Raises:
        ConfigError: A booster's predictions would differ from the forest's.
    """
    members = [
        _with_handicap(_trees(dump), handicaps[place] if handicaps else 0.0)
        for place, judge in enumerate(judges)
        for dump in judge
    ]
    return forest_of(members, judges=[place for place, judge in enumerate(judges) for _ in judge])


def forest_of(members: list[list[Tree]], *, judges: list[int]) -> Forest:
    """A forest from single trees.

    Args:
        members: The trees of each, with nodes numbered from 0, the root first, children after their parent.
        judges: Of each member, its judge.
    """
    trees = [[np.asarray(column) for column in tree] for trees in members for tree in trees]
    if not trees:
        raise ConfigError("trees: there are none")
    sizes = [len(tree[0]) for tree in trees]
    roots = np.cumsum(sizes) - sizes
    shift = np.repeat(roots, sizes)
    feature, threshold, left, right, value = (np.concatenate(column) for column in zip(*trees, strict=True))
    return Forest(
        feature.astype(np.int32),
        rounded_down(threshold),
        (left + shift).astype(np.int32),
        (right + shift).astype(np.int32),
        value.astype(np.float64),
        roots.astype(np.int32),
        np.repeat(np.arange(len(members), dtype=np.int32), [len(trees) for trees in members]),
        np.array(judges, np.int32),
    )


def rounded_down(threshold: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """The largest float32 numbers that are not above: for float32 x, x ≤ threshold stays the same."""
    exact = np.asarray(threshold, np.float64)
    near = exact.astype(np.float32)
    return np.where(near > exact, np.nextafter(near, np.float32(-np.inf)), near)


def save_forest(path: Path, forest: Forest) -> None:
    """Write a forest's arrays as an `.npz` file, which `Forest.load` reads."""
    np.savez_compressed(path, **{field.name: getattr(forest, field.name) for field in fields(forest)})


def parameter_count(forest: Forest) -> int:
    """How many numbers were learned: a feature and a threshold for each inner node, a value for each leaf."""
    leaves = int((forest.left == np.arange(len(forest.left))).sum())
    return 2 * (len(forest.left) - leaves) + leaves


def write_weights(
    folder: Path,
    name: str,
    forest: Forest,
    *,
    what: str,
    trained_on: str,
    settings: Mapping[str, float],
    sensitivities: Sequence[tuple[float, float]],
) -> LearnedModel:
    """Write `NAME.npz` and the `NAME.json` that describes it, and read them back.

    Args:
        folder: Where to write; `src/ongebd/estimator/weights` for the models in the package.
        name: Of the model.
        forest: Its trees.
        what: A short description.
        trained_on: The data, in a few words.
        settings: Of a stream: min_gap and max_run in seconds, rearm.
        sensitivities: (sensitivity, threshold), by rising sensitivity; 0.5, the default, must be among them.

    Raises:
        ConfigError: The table falls, or the trees look at other inputs.
    """
    names = CueStream.names
    sensitivity, threshold = np.array(sensitivities).reshape(-1, 2).T
    if len(sensitivity) < 2 or (np.diff(sensitivity) <= 0).any() or (np.diff(threshold) >= 0).any():
        raise ConfigError(f"{name}: thresholds must fall as the sensitivity rises")
    needed = int(forest.feature.max()) + 1
    if needed > INPUTS:
        raise ConfigError(f"{name}: trees of {needed} inputs, but there are {INPUTS}")
    save_forest(folder / f"{name}.npz", forest)
    about = {
        "format": FORMAT,
        "name": name,
        "what": what,
        "trained_on": trained_on,
        "licence": "Apache-2.0",
        "date": date.today().isoformat(),
        "sha256": hashlib.sha256((folder / f"{name}.npz").read_bytes()).hexdigest(),
        "backbone": "efficientnet_lite0_whole",
        "fps": 24.0,
        "settings": dict(settings),
        "sensitivities": [list(pair) for pair in sensitivities],
        "parameters": parameter_count(forest),
        "trees": len(forest.root),
        "members": len(forest.judge),
        "judges": int(forest.judge[-1]) + 1,
        "inputs": INPUTS,
        "cues": list(names),
    }
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return LearnedModel.read(folder, name)


def _with_handicap(trees: list[Tree], handicap: float) -> list[Tree]:
    """The same member with a handicap subtracted from the leaves of the first tree."""
    feature, threshold, left, right, value = (np.asarray(column) for column in trees[0])
    leaves = left == np.arange(len(left))
    return [(feature, threshold, left, right, np.where(leaves, value - handicap, 0.0)), *trees[1:]]


def _trees(dump: Mapping[str, Any]) -> list[Tree]:
    objective = str(dump.get("objective", ""))
    if objective not in _OBJECTIVES:
        raise ConfigError(
            f"LightGBM: objective {objective!r}, but only {', '.join(_OBJECTIVES)} are supported"
        )
    if dump.get("average_output") or dump.get("num_tree_per_iteration", 1) != 1:
        raise ConfigError("LightGBM: averaged trees and several classes are not supported")
    return [_tree(tree["tree_structure"]) for tree in dump["tree_info"]]


def _tree(top: Mapping[str, Any]) -> Tree:
    """One tree's nodes, depth first from the root."""
    nodes: list[tuple[int, float, int, int, float]] = []

    def add(node: Mapping[str, Any]) -> int:
        at = len(nodes)
        if "leaf_value" in node:
            nodes.append((0, float("inf"), at, at, float(node["leaf_value"])))
            return at
        if node["decision_type"] != "<=" or node["missing_type"] != "None":
            raise ConfigError(
                f"LightGBM: a split by {node['decision_type']} with missing {node['missing_type']};"
                " only <= and None are supported"
            )
        nodes.append((0, 0.0, at, at, 0.0))
        left, right = add(node["left_child"]), add(node["right_child"])
        nodes[at] = (int(node["split_feature"]), float(node["threshold"]), left, right, 0.0)
        return at

    add(top)
    feature, threshold, left, right, value = zip(*nodes, strict=True)
    return feature, threshold, left, right, value
