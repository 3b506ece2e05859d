"""Parameters of the published shapes, to the digit that the paper and the public configurations print."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from ongebd.backbones.resnet50 import ResNet50  # noqa: E402
from ongebd.baselines.attention import Attention  # noqa: E402
from ongebd.baselines.methods import METHODS, make_network  # noqa: E402
from ongebd.baselines.network import parameter_count  # noqa: E402

RESNET50 = 23_508_032  # without its classifier


def published(name: str) -> Any:
    with torch.device("meta"):  # shapes only: nothing is filled
        return make_network(name)


def test_the_backbone_without_its_classifier() -> None:
    with torch.device("meta"):
        assert parameter_count(ResNet50()) == RESNET50


def test_the_catalogue_has_the_networks_parameters(method: str) -> None:
    assert parameter_count(published(method)) == METHODS[method].parameters


@pytest.mark.parametrize(
    ("name", "millions"), [("miniroad", 37.153), ("testra", 80.271), ("simon", 26.804), ("oadtr", 97.104)]
)
def test_full_count_with_the_backbone(name: str, millions: float) -> None:
    assert round((METHODS[name].parameters + RESNET50) / 1e6, 3) == millions


def counted_by_thop(name: str) -> int:
    """What thop sees: modules of kinds that it knows.

    Not among them: parameters that belong to no module of their own (queries, tokens), the packed projection
    of query, key and value in an attention, and, in torch's own `nn.MultiheadAttention`, which the public
    Sim-On uses, the projection of the output too.
    """
    network = published(name)
    left_out = sum(p.numel() for p in network.parameters(recurse=False))
    for module in network.modules():
        if isinstance(module, Attention):
            hidden = [module.query, module.key, module.value]
            if name == "simon":
                hidden.append(module.out)
            left_out += sum(map(parameter_count, hidden))
    return parameter_count(network) + RESNET50 - left_out


@pytest.mark.parametrize(("name", "millions", "paper"), [("testra", 48.734, 48.73), ("simon", 24.698, 24.70)])
def test_where_the_paper_counts_with_thop(name: str, millions: float, paper: float) -> None:
    count = counted_by_thop(name) / 1e6
    assert round(count, 3) == millions
    assert round(count, 2) == paper


@pytest.mark.parametrize(("name", "paper"), [("miniroad", 37.15), ("oadtr", 97.10)])
def test_where_the_paper_counts_all(name: str, paper: float) -> None:
    assert round((METHODS[name].parameters + RESNET50) / 1e6, 2) == paper
