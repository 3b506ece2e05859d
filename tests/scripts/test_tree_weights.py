"""Trees that LightGBM grew, read into ours."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from tree_weights import forest_from_lightgbm

from ongebd.errors import ConfigError


@pytest.fixture(scope="module")
def lightgbm():
    return pytest.importorskip("lightgbm", reason="the extra `train` is not installed")


def inputs(count: int = 400, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    x[:, 3] = np.round(x[:, 3])  # ties, and zeros
    return x


def train(lightgbm, seed: int, objective: str = "cross_entropy"):
    x = inputs(seed=seed)
    y = (x[:, 0] + x[:, 1] * x[:, 3] > 0.3).astype(float)
    settings = {
        "objective": objective,
        "num_leaves": 7,
        "min_data_in_leaf": 5,
        "verbose": -1,
        "num_threads": 1,
    }
    return lightgbm.train({**settings, "seed": seed}, lightgbm.Dataset(x, y), 20)


@pytest.mark.parametrize("objective", ["cross_entropy", "binary"])
def test_the_scores_are_lightgbms_predictions(lightgbm, objective):
    boosters = [train(lightgbm, seed, objective) for seed in range(3)]
    dumps = [booster.dump_model() for booster in boosters]
    forest = forest_from_lightgbm([dumps[:2], [dumps[2]]])
    x = inputs(2000, seed=9)
    thresholds = np.unique(forest.threshold[np.isfinite(forest.threshold)])
    x[: len(thresholds), 0] = thresholds[:2000]  # on the very edge of splits
    predicted = [b.predict(x) for b in boosters]
    expected = np.maximum((predicted[0] + predicted[1]) / 2, predicted[2])
    np.testing.assert_allclose(forest.scores(x), expected, atol=1e-6)
    assert forest.depth > 1


def test_of_two_judges_the_one_that_sees_more_is_believed_and_a_handicap_comes_off_its_odds(lightgbm):
    boosters = [train(lightgbm, seed) for seed in range(3)]
    dumps = [booster.dump_model() for booster in boosters]
    x = inputs(500, seed=9)
    first, second, third = (booster.predict(x) for booster in boosters)
    odds = third / (1 - third) / np.exp(0.7)
    expected = np.maximum((first + second) / 2, odds / (1 + odds))
    forest = forest_from_lightgbm([dumps[:2], dumps[2:]], [0.0, 0.7])
    np.testing.assert_allclose(forest.scores(x), expected, atol=1e-6)
    assert 0 < (expected > (first + second) / 2).mean() < 1, "each has its say"


def test_boosters_that_would_be_read_wrong_are_refused(lightgbm):
    dump = train(lightgbm, 0).dump_model()
    for change, message in (
        ({"objective": "regression"}, "objective 'regression'"),
        ({"average_output": True}, "averaged trees"),
        ({"num_tree_per_iteration": 3}, "several classes"),
    ):
        with pytest.raises(ConfigError, match=message):
            forest_from_lightgbm([[{**dump, **change}]])
    categorical = copy.deepcopy(dump)
    categorical["tree_info"][0]["tree_structure"]["decision_type"] = "=="
    with pytest.raises(ConfigError, match="a split by =="):
        forest_from_lightgbm([[categorical]])
    with pytest.raises(ConfigError, match="there are none"):
        forest_from_lightgbm([])
