"""A trained model's folder with wrong values in its files is refused in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from ongebd import backbones
from ongebd.baselines.methods import make_network, network_shape
from ongebd.baselines.weights import save_network
from ongebd.detector import load
from ongebd.detector.trained import write_about
from ongebd.errors import ConfigError

DIM = 1280
BASELINES = {
    "miniroad": {"embedding": 4, "hidden": 4},
    "testra": {"width": 4, "heads": 1, "ffn": 4, "second_layers": 1, "decoder_layers": 1, "work": 2},
    "simon": {"width": 4, "heads": 1, "ffn": 4, "layers": 1},
    "oadtr": {"width": 4, "encoder_heads": 1, "decoder_heads": 1, "ffn": 4, "decoder_layers": 1, "window": 4},
}
ODD: tuple[Any, ...] = ("0.0", "x", None, [], {}, [1], -1, 0.5, 10**30, 1e400, True, "", float("nan"))


@pytest.fixture(scope="module")
def estimator(tmp_path_factory: pytest.TempPathFactory, train_small: Callable[..., Path]) -> Path:
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("estimator")
    return train_small(out, backbones.get("efficientnet_lite0").identity, DIM) / "model"


@pytest.fixture(scope="module", params=["estimator", *BASELINES])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "estimator":
        path: Path = request.getfixturevalue("estimator")
        return path
    made = tmp_path_factory.mktemp("models") / request.param
    save_network(
        made, make_network(request.param, network_shape(request.param, BASELINES[request.param], dim=DIM))
    )
    write_about(
        made,
        backbone=backbones.get("efficientnet_lite0").identity,
        settings=load("window-mean").defaults,
        summary="made for a test",
    )
    return made


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where a JSON value has members, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from places(inner, (*path, key))


def changed(value: Any, path: tuple[str, ...], to: Any) -> Any:
    if not path:
        return to
    return {**value, path[0]: changed(value[path[0]], path[1:], to)}


@pytest.mark.parametrize("file", ["config.json", "ongebd.json"])
def test_any_value_of_another_kind_is_refused_in_one_line_or_makes_a_model(
    folder: Path, tmp_path: Path, file: str
) -> None:
    copy = shutil.copytree(folder, tmp_path / "model")
    assert (copy / "model.onnx").exists() == (folder.name == "model"), "the estimator's is tried without, too"
    refused_with_odd_values(copy, file)
    if (copy / "model.onnx").exists():
        (copy / "model.onnx").unlink()
        refused_with_odd_values(copy, file)


def refused_with_odd_values(copy: Path, file: str) -> None:
    whole = json.loads((copy / file).read_text())
    refusals = []
    for place in places(whole):
        for text in (*(json.dumps(changed(whole, place, odd)) for odd in ODD), "[" * 100_000):
            (copy / file).write_text(text)
            try:
                load(str(copy)).stream()
            except ConfigError as problem:
                refusals.append(str(problem))
    assert len(refusals) > 20
    assert not [line for line in refusals if "\n" in line or "model" not in line]
    (copy / file).write_text(json.dumps(whole))


@pytest.mark.parametrize("odd", ["0.0", None, [0.1]])
def test_the_field_and_the_file_are_named(folder: Path, tmp_path: Path, odd: Any) -> None:
    copy = shutil.copytree(folder, tmp_path / "model")
    shape = json.loads((copy / "config.json").read_text())
    shape.get("shape", shape)["dropout"] = odd
    (copy / "config.json").write_text(json.dumps(shape))
    with pytest.raises(ConfigError, match=r"config\.json: dropout must be a number"):
        load(str(copy), device="cpu")
