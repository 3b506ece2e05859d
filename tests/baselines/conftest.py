from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ongebd.baselines.methods import METHODS, make_network, network_shape

SMALL: dict[str, dict[str, Any]] = {
    "miniroad": {"embedding": 12, "hidden": 8, "window": 9},
    "testra": {
        "width": 8,
        "heads": 2,
        "ffn": 12,
        "first_queries": 3,
        "second_queries": 5,
        "work": 4,
        "long": 24,
    },
    "simon": {"width": 8, "heads": 2, "ffn": 12, "layers": 2, "run": 8},
    "oadtr": {"width": 8, "window": 6, "encoder_heads": 2, "decoder_heads": 4, "ffn": 12, "run": 12},
}


@pytest.fixture(params=list(METHODS))
def method(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def small() -> Callable[[str], Any]:
    """A tiny network of a baseline, for 16 numbers a frame, with weights so large that its past matters."""

    torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
    torch.set_num_threads(1)

    def make(name: str) -> Any:
        torch.manual_seed(0)
        network = make_network(name, network_shape(name, SMALL[name], dim=16)).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(2)
        return network

    return make


@pytest.fixture
def network(small: Callable[[str], Any], method: str) -> Any:
    return small(method)
