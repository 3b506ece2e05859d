"""From trees that LightGBM grew to the weights of a learned method.

LightGBM itself is needed by who trains, not here: what is read is what `Booster.dump_model()` returns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from ongebd.errors import ConfigError
from ongebd.estimator.cues import context_names, cue_names
from ongebd.estimator.forest import Forest, Tree
from ongebd.estimator.learned import FORMAT, LearnedModel

_OBJECTIVES = ("cross_entropy", "xentropy", "binary sigmoid:1")


def forest_from_lightgbm(
    views: Sequence[Sequence[Sequence[Mapping[str, Any]]]], handicaps: Sequence[float] | None = None
) -> Forest:
    """The trees of some boosters.

    Args:
        views: For each view its judges, for each of them its members: what `Booster.dump_model()` returned
            for each of these.
        handicaps: Of each judge of a view, what is taken off the logarithm of the odds that each of its
            members sees; none if not given.

    Returns:
        A forest whose scores are, for each view, the largest mean of a judge's members' predictions.

    Raises:
        ConfigError: A booster is of a kind whose predictions would not be those of the forest.
    """
    judges = [(number, place, judge) for number, view in enumerate(views) for place, judge in enumerate(view)]
    members = [
        _less(_trees(dump), handicaps[place] if handicaps else 0.0)
        for _, place, judge in judges
        for dump in judge
    ]
    return Forest.of(
        members,
        judges=[number for number, (_, _, judge) in enumerate(judges) for _ in judge],
        views=[number for number, _, _ in judges],
    )


def write_weights(
    folder: Path,
    name: str,
    forest: Forest,
    *,
    what: str,
    trained_on: str,
    groups: Sequence[str],
    delays: Sequence[int],
    latency: int,
    settings: Mapping[str, float],
    sensitivities: Sequence[tuple[float, float]],
    licence: str = "Apache-2.0",
    backbone: str = "efficientnet_lite0_whole",
    fps: float = 24.0,
    notes: Mapping[str, Any] | None = None,
) -> LearnedModel:
    """Write `NAME.npz` and the `NAME.json` that describes it, and read them again.

    Args:
        folder: Where to; `src/ongebd/estimator/weights` for those that come with the package.
        name: The model's.
        forest: Its trees.
        what: What it is, in words.
        trained_on: On what, in a few words.
        groups: Of the cues.
        delays: Of each view, in frames.
        latency: Frames of future that a score waits for, at least the largest delay.
        settings: Of a stream: min_gap and max_run in seconds, rearm.
        sensitivities: (sensitivity, threshold), by rising sensitivity; there must be one of 0.5, the default.
        licence: Of the weights.
        backbone: The name of the backbone.
        fps: Frames a second.
        notes: What else should stand in the description.

    Raises:
        ConfigError: What was written cannot be used.
    """
    forest.save(folder / f"{name}.npz")
    about = {
        "format": FORMAT,
        "name": name,
        "what": what,
        "trained_on": trained_on,
        "licence": licence,
        "date": date.today().isoformat(),
        "sha256": hashlib.sha256((folder / f"{name}.npz").read_bytes()).hexdigest(),
        "backbone": backbone,
        "fps": fps,
        "latency": latency,
        "delays": list(delays),
        "settings": dict(settings),
        "sensitivities": [list(pair) for pair in sensitivities],
        "parameters": forest.parameters,
        "trees": len(forest.root),
        "members": len(forest.judge),
        "judges": len(forest.view),
        **(notes or {}),
        "groups": list(groups),
        "inputs": len(context_names(cue_names(groups))),
        "cues": list(cue_names(groups)),
    }
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return LearnedModel.read(folder, name)


def _less(trees: list[Tree], handicap: float) -> list[Tree]:
    """The same member, less sure by a handicap: it is taken off the leaves of the first tree."""
    feature, threshold, left, right, value = (np.asarray(column) for column in trees[0])
    leaves = left == np.arange(len(left))
    return [(feature, threshold, left, right, np.where(leaves, value - handicap, 0.0)), *trees[1:]]


def _trees(dump: Mapping[str, Any]) -> list[Tree]:
    objective = str(dump.get("objective", ""))
    if objective not in _OBJECTIVES:
        raise ConfigError(f"LightGBM: objective {objective!r}, but only {', '.join(_OBJECTIVES)} are known")
    if dump.get("average_output") or dump.get("num_tree_per_iteration", 1) != 1:
        raise ConfigError("LightGBM: averaged trees, or several classes, are not known here")
    return [_tree(tree["tree_structure"]) for tree in dump["tree_info"]]


def _tree(top: Mapping[str, Any]) -> Tree:
    """One tree's nodes in the order in which they are met, the root first."""
    nodes: list[tuple[int, float, int, int, float]] = []

    def add(node: Mapping[str, Any]) -> int:
        at = len(nodes)
        if "leaf_value" in node:
            nodes.append((0, float("inf"), at, at, float(node["leaf_value"])))
            return at
        if node["decision_type"] != "<=" or node["missing_type"] != "None":
            raise ConfigError(
                f"LightGBM: a split by {node['decision_type']} with missing {node['missing_type']};"
                " only <= and none are known here"
            )
        nodes.append((0, 0.0, at, at, 0.0))
        left, right = add(node["left_child"]), add(node["right_child"])
        nodes[at] = (int(node["split_feature"]), float(node["threshold"]), left, right, 0.0)
        return at

    add(top)
    feature, threshold, left, right, value = zip(*nodes, strict=True)
    return feature, threshold, left, right, value
