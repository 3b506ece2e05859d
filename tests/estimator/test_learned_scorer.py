"""A learned method at work, and files that do not fit."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from tree_weights import forest_of, parameter_count, save_forest, write_weights

import ongebd
from ongebd.backbones.pipeline import Glance
from ongebd.errors import ConfigError
from ongebd.estimator.cues import Context, CueStream
from ongebd.estimator.learned import (
    COLD,
    LearnedFacts,
    LearnedModel,
    LearnedScorer,
    learned_facts,
    learned_model,
)

DIM = 56 * 56 + 16
TABLE = ((0.1, 0.6), (0.5, 0.4), (0.9, 0.1))
SETTINGS = {"min_gap": 0.5, "max_run": 0.0, "rearm": 0.7}


def stump(feature: int, threshold: float, low: float, high: float):
    return ([feature, 0, 0], [threshold, np.inf, np.inf], [1, 1, 2], [2, 1, 2], [0.0, low, high])


def model() -> LearnedModel:
    """It looks at one cue: the error to the frame before."""
    return LearnedModel(
        replace(learned_facts("immediate"), name="test"), forest_of([[stump(0, 0.01, -2.0, 1.0)]], judges=[0])
    )


def stream(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scale = np.where(rng.random((count, 1)) < 0.3, 0.6, 0.05)
    walk = 1 + np.abs(np.cumsum(scale * rng.normal(size=(count, 16)), axis=0))
    return np.concatenate([walk, np.zeros((count, 56 * 56))], axis=1).astype(np.float32)


def all_scores(scorer: LearnedScorer, features: np.ndarray) -> list[float | None]:
    """One for each frame, in order."""
    return [scorer.update(feature, n / 24) for n, feature in enumerate(features)]


def test_the_first_frames_have_no_score_and_others_that_of_the_trees():
    chosen, features = model(), stream(30)
    cues, context, glance = CueStream(DIM), Context(len(CueStream.names)), Glance()
    seen = [glance.counted(row, n / 24) for n, row in enumerate(features)]
    inputs = np.stack([context.update(cues.update(row)) for row in seen])
    scores = all_scores(LearnedScorer(chosen, DIM), features)
    assert scores == [None] * COLD + chosen.forest.scores(inputs)[COLD:].tolist()


def test_streams_share_only_the_model_and_reset_forgets():
    chosen = model()
    one, two = LearnedScorer(chosen, DIM), LearnedScorer(chosen, DIM)
    features, others = stream(30, 1), stream(30, 2)
    mixed = [(one.update(a, 0.0), two.update(b, 0.0)) for a, b in zip(features, others, strict=True)]
    alone = LearnedScorer(chosen, DIM)
    assert [a for a, _ in mixed] == [alone.update(feature, 0.0) for feature in features]
    one.reset()
    assert [one.update(feature, 0.0) for feature in others] == [b for _, b in mixed]


def test_the_weights_in_the_package_fit_their_description():
    loaded = learned_model("immediate")
    assert loaded is learned_model("immediate")
    assert loaded.facts == learned_facts("immediate")
    assert loaded.facts.parameters == parameter_count(loaded.forest)
    assert 0.5 in [sensitivity for sensitivity, _ in loaded.facts.sensitivities]
    scorer = LearnedScorer(loaded, 1280 + 56 * 56)
    assert scorer.state_bytes <= 700_000
    assert (scorer.name, scorer.latency) == ("immediate", 0)


def test_a_threshold_lies_on_a_line_between_those_of_the_table():
    facts = replace(learned_facts("immediate"), sensitivities=TABLE)
    wanted = {0.01: 0.6, 0.1: 0.6, 0.3: 0.5, 0.5: 0.4, 0.7: 0.25, 0.9: 0.1, 0.99: 0.1}
    assert {s: round(facts.threshold(s), 3) for s in wanted} == wanted


def write(folder, **changes):
    about = {"what": "a test", "trained_on": "nothing", "settings": SETTINGS, "sensitivities": TABLE}
    return write_weights(folder, "mine", model().forest, **about | changes)


@pytest.fixture
def written(tmp_path):
    return write(tmp_path)


def test_weights_are_read_as_they_were_written(written, tmp_path):
    assert LearnedModel.read(tmp_path, "mine").facts == written.facts
    assert written.facts.settings == SETTINGS
    scores = [all_scores(LearnedScorer(one, DIM), stream(20)) for one in (written, model())]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 9}, "other cues"),
        ({"cues": ["a"]}, "other cues"),
        ({"cues": None}, "damaged"),
        ({"sha256": "0"}, r"mine\.npz: wrong checksum"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(written, tmp_path, change, message):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ConfigError, match=message):
        LearnedModel.read(tmp_path, "mine")


@pytest.mark.parametrize("table", [[[0.1, 0.2], [0.5, 0.4]], []])
def test_a_description_that_does_not_fit_is_not_written(tmp_path, table):
    with pytest.raises(ConfigError, match="thresholds must fall"):
        write(tmp_path, sensitivities=table)
    assert not list(tmp_path.iterdir())


def test_a_missing_or_broken_file_is_refused(written, tmp_path):
    (tmp_path / "mine.npz").unlink()
    with pytest.raises(ConfigError, match=r"mine\.npz: No such file"):
        LearnedModel.read(tmp_path, "mine")
    for text in ("{", "[" * 100_000):
        (tmp_path / "mine.json").write_text(text)
        with pytest.raises(ConfigError, match=r"mine\.json: damaged"):
            LearnedFacts.read(tmp_path / "mine.json")


def test_trees_that_look_at_unknown_cues_are_refused(written, tmp_path):
    trees, about = tmp_path / "mine.npz", tmp_path / "mine.json"
    save_forest(trees, replace(written.forest, feature=written.forest.feature + 5000))
    digest = sha256(trees.read_bytes()).hexdigest()
    about.write_text(json.dumps({**json.loads(about.read_text()), "sha256": digest}))
    with pytest.raises(ConfigError, match="look at other cues"):
        LearnedModel.read(tmp_path, "mine")


@pytest.mark.parametrize(("before", "after"), [(40, 200), (0, 255), ((200, 30, 30), (30, 200, 160))])
def test_a_flat_picture_that_becomes_another_is_a_boundary(before, after):
    stream = ongebd.load("immediate").stream()
    flat = [np.full((48, 64, 3), colour, np.uint8) for colour in (before, after)]
    found = [stream.update(flat[n >= 24], n / 24).boundary for n in range(36)]
    assert [boundary.time for boundary in found if boundary] == [1.0]


def test_a_flat_picture_that_flickers_or_fades_is_none():
    stream = ongebd.load("immediate").stream()
    levels = [*(40 + 10 * (n % 2) for n in range(24)), *range(40, 100, 2)]
    pictures = [np.full((48, 64, 3), level, np.uint8) for level in levels]
    assert not any(stream.update(picture, n / 24).boundary for n, picture in enumerate(pictures))
