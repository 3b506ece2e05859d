"""Measuring, and what it was measured on."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.errors import ConfigError
from ongebd.lab.benchmark import machine as room
from ongebd.lab.benchmark.machine import machine, processor, short_machine
from ongebd.lab.benchmark.plan import BenchPlan, parse_methods, parse_streams
from ongebd.lab.benchmark.timing import Cell, OneByOne, Sample, Spread, percentiles, ratio


@given(st.lists(st.floats(0, 1e3), min_size=1))
def test_a_spread_holds_its_median_and_percentiles_rise(values):
    spread = Spread.of(values)
    assert spread.low <= spread.median <= spread.high
    found = list(percentiles(sorted(values)).values())
    assert found == sorted(found)
    assert found[-1] == max(values)


def test_a_turn_is_a_whole_number_of_chunks_and_frames_are_numbered_on():
    seen = []
    measure = OneByOne(seen.append, chunk=5)
    first, second = measure(0.0), measure(0.0)
    assert first.frames % 5 == second.frames % 5 == 0
    assert len(first.latencies) == first.frames > 0
    assert seen == list(range(len(seen)))
    assert len(seen) > first.frames + second.frames  # some were for warming up


def test_a_ratio_is_taken_turn_by_turn():
    ours, theirs = Cell(lambda _: Sample(8, 1.0)), Cell(lambda _: Sample(2, 1.0))
    ours.turn(1)
    assert ratio(ours, theirs) is None
    theirs.turn(1)
    ours.turn(1)
    assert ratio(ours, theirs) == Spread(4.0, 4.0, 4.0, (4.0,))


@given(st.sets(st.integers(1, 4096), min_size=1))
def test_numbers_of_streams_in_any_order(counts):
    assert parse_streams(" , ".join(map(str, counts))) == tuple(sorted(counts))


@pytest.mark.parametrize("text", ["", "1,", "0", "a", "1;2", "1.5", "-4", "4097", "1,,2"])
def test_a_wrong_list_of_streams(text):
    with pytest.raises(ConfigError, match="--streams takes whole numbers"):
        parse_streams(text)


def test_a_method_named_twice_is_measured_once():
    assert parse_methods("clock, persistence,clock") == ("clock", "persistence")
    with pytest.raises(ConfigError, match="names none"):
        parse_methods(" , ")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"repeats": 0}, "--repeats must be at least 1"),
        ({"threads": 0}, "--threads must be at least 1"),
        ({"seconds": 0.0}, "--seconds must be above 0"),
        ({"seconds": float("nan")}, "--seconds must be a finite number"),
        ({"device": "tpu"}, "--device tpu: unknown device|torch is not installed"),
        ({"device": "meta"}, "--device must be cpu, cuda or cuda:N|torch is not installed"),
        ({"device": "cuda:x"}, "--device cuda:x: unknown device|torch is not installed"),
        ({"device": "cuda:99"}, "--device cuda:99: PyTorch sees|torch is not installed"),
        ({"runtime": "tensorrt"}, "runtime must be onnxruntime or openvino"),
        ({"precision": "bfloat16"}, "onnxruntime computes in float32"),
        ({"precision": "int8", "runtime": "openvino"}, "float32 or bfloat16, not in int8"),
    ],
)
def test_a_plan_that_makes_no_sense(wrong, said):
    with pytest.raises((ConfigError, ImportError), match=said):
        BenchPlan(**wrong)


def test_the_machine_is_named():
    facts = machine()
    assert {"date", "processor", "cores", "python", "ongebd", "onnxruntime"} <= set(facts)
    assert all(str(value) for value in facts.values())


@pytest.fixture
def info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(room, "_INFO", path)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    return path


def test_the_first_models_name_is_taken(info: Path) -> None:
    info.write_bytes(b"vendor_id\t: \xff\nmodel name\t: Fast: 9000 @ 3 GHz \nmodel name\t: Slow\n")
    assert processor() == "Fast: 9000 @ 3 GHz"


@pytest.mark.parametrize("text", [None, "", "processor\t: 0\nhart\t: 1\n"])
def test_without_a_model_name_it_is_the_kind_of_machine(text: str | None, info: Path) -> None:
    if text is not None:
        info.write_text(text)
    assert processor() == "riscv64"


def test_benchmarks_and_experiments_name_the_same(info: Path) -> None:
    info.write_text("model name\t: Fast 9000\n")
    assert machine()["processor"] == short_machine("cpu")["processor"] == "Fast 9000"
