"""The docs' table of all systems is what the code and the results say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the extra `train` is not installed")

import torch

from ongebd.baselines.methods import METHODS, make_network
from ongebd.baselines.network import parameter_count
from ongebd.estimator.anticipator import AnticipatorConfig, ConsistentEventAnticipator
from ongebd.lab.benchmark.cost import gflops, network_gflops
from ongebd.lab.experiments.catalogue import EXPERIMENTS
from ongebd.offline.systems import NOT_BUILT, SYSTEMS, make_system

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")


def line_of(name: str) -> list[str]:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}`") and line.count("|") == 9]
    return [cell.strip() for cell in line.split("|")][1:-1]


def counted(name: str) -> list[str]:
    system = SYSTEMS.get(name)
    if system and not system.network:
        return ["0", "–"]
    with torch.device("meta"):  # shapes only
        estimator = ConsistentEventAnticipator(AnticipatorConfig.for_dim(2048))
        network: Any = make_system(name) if system else make_network(name) if name in METHODS else estimator
        network.eval().requires_grad_(False)
        if system:
            length = network.shape.length
            clip = torch.zeros(1, length, 2048), torch.ones(1, length, dtype=torch.bool)
            each = gflops(lambda: network(*clip)) / length
        else:
            each = network_gflops(network)[0]
    return [f"{parameter_count(network) / 1e6:.3f}", f"{each:.4f}" if each < 0.1 else f"{each:.2f}"]


@pytest.mark.parametrize("name", ["estimator", *METHODS, *SYSTEMS])
def test_a_system_has_its_source_parameters_and_gflops(name: str) -> None:
    assert line_of(name)[3:5] == counted(name)
    if system := SYSTEMS.get(name):
        labels = "yes" if system.supervised else "no"
        assert line_of(name)[:3] == [f"`{name}` {system.title}", system.source, labels]


def test_scores_are_those_of_the_results() -> None:
    results = json.loads((ROOT / "benchmarks/results/systems.json").read_text(encoding="utf-8"))
    assert {name: line_of(name)[5:] for name in results} == results


def test_every_row_of_the_papers_tables_runs_or_has_its_reason() -> None:
    for experiment in EXPERIMENTS.values():
        assert all(bool(row.why) == (row.kind == "printed") for row in experiment.rows)
    for row, why in NOT_BUILT.items():
        assert any(row in line and f"| printed only: {why} |" in line for line in PAGE.splitlines())
