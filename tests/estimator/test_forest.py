"""Trees as arrays: the walk, the rounding of thresholds, the file."""

from __future__ import annotations

import contextlib
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_weights import forest_of, parameter_count, rounded_down, save_forest

from ongebd.errors import ConfigError
from ongebd.estimator.forest import Forest

INPUTS = 6


def grown(rng: np.random.Generator, leaves: int) -> tuple[list[float], ...]:
    """A tree of so many leaves, split at random."""
    nodes = [[0, np.inf, 0, 0, float(rng.normal())]]
    while sum(node[2] == at for at, node in enumerate(nodes)) < leaves:
        at = rng.choice([at for at, node in enumerate(nodes) if node[2] == at])
        nodes[at] = [int(rng.integers(INPUTS)), float(rng.normal()), len(nodes), len(nodes) + 1, 0.0]
        nodes += [[0, np.inf, len(nodes) + i, len(nodes) + i, float(rng.normal())] for i in (0, 1)]
    return tuple(map(list, zip(*nodes, strict=True)))


def forest(seed: int = 0, members: int = 4, judges: int = 2, leaves: int = 8) -> Forest:
    """So many members, shared out among the judges; at least one for each."""
    members = max(members, judges)
    rng = np.random.default_rng(seed)
    trees = [
        [grown(rng, int(rng.integers(1, leaves + 1))) for _ in range(rng.integers(1, 5))]
        for _ in range(members)
    ]
    return forest_of(trees, judges=sorted(i % judges for i in range(members)))


def walked(trees: Forest, x: np.ndarray) -> float:
    """The score of one row, tree by tree."""
    sums = np.zeros(len(trees.judge))
    for root, member in zip(trees.root, trees.member, strict=True):
        at = root
        while trees.left[at] != at:
            at = trees.left[at] if x[trees.feature[at]] <= trees.threshold[at] else trees.right[at]
        sums[member] += trees.value[at]
    chances = 1 / (1 + np.exp(-sums))
    return max(chances[trees.judge == judge].mean() for judge in set(trees.judge))


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 6), st.integers(1, 3), st.integers(1, 32))
def test_all_trees_together_score_like_each_alone(seed, members, count, judges, leaves):
    trees = forest(seed, members, judges, leaves)
    x = np.random.default_rng(seed).normal(size=(count, INPUTS)).astype(np.float32)
    scores = trees.scores(x)
    np.testing.assert_allclose(scores, [walked(trees, row) for row in x], rtol=1e-12)
    for row, score in zip(x, scores, strict=True):
        assert trees.scores(row[None]) == [score], "a row doesn't depend on the others, to the bit"


@given(st.floats(-(2.0**99), 2.0**99), st.floats(-(2.0**99), 2.0**99, width=32), st.integers(-1, 1))
def test_a_rounded_threshold_sends_float32_numbers_the_same_way(threshold, x, steps):
    for number in (np.float32(x), np.nextafter(np.float32(threshold), np.float32(steps * 1e38))):
        assert (np.float64(number) <= threshold) == bool(number <= rounded_down(threshold))


def test_a_file_gives_the_same_trees_and_needs_no_pickle(tmp_path):
    trees = forest()
    save_forest(tmp_path / "trees.npz", trees)
    read = Forest.load(tmp_path / "trees.npz")
    x = np.random.default_rng(1).normal(size=(9, INPUTS)).astype(np.float32)
    np.testing.assert_array_equal(read.scores(x), trees.scores(x))
    assert all(array.dtype != object for array in np.load(tmp_path / "trees.npz").values())


def test_a_file_without_trees_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("no zip")
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    np.savez(tmp_path / "pickle.npz", feature=np.array([{}], object))
    for name in ("text", "other", "pickle", "missing"):
        with pytest.raises(ConfigError, match=rf"{name}\.npz: can't read trees; it is damaged, or another"):
            Forest.load(tmp_path / f"{name}.npz")


def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path):
    save_forest(tmp_path / "whole.npz", forest())
    dice, path = np.random.default_rng(0), tmp_path / "trees.npz"
    for _ in range(200):
        with zipfile.ZipFile(tmp_path / "whole.npz") as whole, zipfile.ZipFile(path, "w") as file:
            for name in whole.namelist():  # their checksums are right again
                data = bytearray(whole.read(name))
                data[dice.integers(60)] = dice.integers(256)
                file.writestr(name, data)
        packed = bytearray(path.read_bytes())
        packed[dice.integers(len(packed))] ^= 1 << dice.integers(8)
        path.write_bytes(packed)
        with contextlib.suppress(ConfigError):
            Forest.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": np.float64([0, np.nan, 1])}, "isn't finite"),
        ({"feature": np.int32([-1, 0, 0])}, "below 0"),
        ({"left": np.int32([9, 1, 2])}, "reaches no leaf"),
        ({"left": np.int32([0, 1, 2])}, "reaches no leaf"),
        ({"left": np.int32([-1, 1, 2])}, "reaches no leaf"),
        ({"root": np.int32([3])}, "reaches no leaf"),
        ({"value": np.float64([0, 1])}, "the arrays don't fit"),
        ({"member": np.int32([1])}, "the groups don't fit"),
        ({"judge": np.int32([1])}, "the groups don't fit"),
        ({"judge": np.int32([0, 1])}, "the groups don't fit"),
        ({"root": np.int32([0, 0]), "member": np.int32([0, 0])}, "two walks meet"),
        ({"left": np.int32([2, 1, 2])}, "two walks meet"),
    ],
)
def test_arrays_that_do_not_make_trees_are_refused(change, message):
    one = ([0, 0, 0], [0.5, np.inf, np.inf], [1, 1, 2], [2, 1, 2], [0.0, -1.0, 3.0])
    stump = forest_of([[one]], judges=[0])
    with pytest.raises(ConfigError, match=message):
        replace(stump, **change)


def test_parameters_are_counted():
    tree = grown(np.random.default_rng(0), 5)
    assert parameter_count(forest_of([[tree], [tree]], judges=[0, 0])) == 2 * (2 * 4 + 5)


def test_a_tree_of_too_many_leaves_is_refused():
    with pytest.raises(ConfigError, match="one has 33 leaves; at most 32 are supported"):
        forest_of([[grown(np.random.default_rng(0), 33)]], judges=[0])
