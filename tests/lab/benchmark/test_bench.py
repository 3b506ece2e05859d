"""A whole benchmark, as small as possible."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import ongebd
from ongebd.detector import load
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.lab.benchmark import Bench, BenchPlan, timing
from ongebd.lab.benchmark.report import bench_tables, headline, to_markdown, write_bench
from ongebd.lab.benchmark.result import printed_cost, to_json
from ongebd.lab.benchmark.subjects import USUAL


def tiny(**changes) -> BenchPlan:
    return BenchPlan(**{"methods": ("window-mean",), "repeats": 2, "seconds": 0.001, **changes})


@pytest.fixture
def light(monkeypatch):
    """With little warming up."""
    monkeypatch.setattr(timing, "WARM_UP", 0.0)


def test_every_value_is_there_with_all_its_turns(light, tmp_path):
    shown = []
    bench = Bench(tiny(streams=(1, 3)), lambda *what: shown.append(what))
    result = bench.run()
    (method,) = result.methods
    assert result.complete
    for way in method.ways:
        for cell in (way.features, way.method, way.overall):
            assert len(cell.samples) == 2
    assert {count: len(cell.samples) for count, cell in method.many.items()} == {1: 2, 3: 2}
    assert method.many[3].samples[0].frames % 3 == 0
    done = [part for _, part, _ in shown]
    assert done == sorted(done)
    assert shown[-1][1] < shown[-1][2]

    files = write_bench(result, tmp_path / "new" / "out")
    assert [file.name for file in files] == ["bench.md", "bench.json"]
    values = json.loads(files[1].read_text())
    assert values["complete"]
    assert values["plan"]["precision"] == "float32"
    assert len(values["methods"][0]["many"]["3"]["turns"]) == 2
    assert values["methods"][0]["ways"][0]["latency"]["p50"] > 0
    text = files[0].read_text()
    for part in ("## Many streams", "## One stream", "window-mean"):
        assert part in text


def test_turns_are_interleaved(light, monkeypatch):
    order = []
    monkeypatch.setattr(timing.Cell, "turn", lambda cell, _seconds: order.append(id(cell)))
    Bench(tiny(methods=("persistence", "window-mean"))).run()
    half = len(order) // 2
    assert order[:half] == order[half:]
    assert len(set(order)) == half


def test_an_interrupt_leaves_what_was_measured(light, monkeypatch, tmp_path):
    turn, count = timing.Cell.turn, iter(range(100))

    def interrupted(cell, seconds):
        if next(count) == 4:
            raise KeyboardInterrupt
        turn(cell, seconds)

    monkeypatch.setattr(timing.Cell, "turn", interrupted)
    bench = Bench(tiny(streams=(1, 2)))
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert bench.result.measured
    assert not bench.result.complete
    assert "stopped before its end" in headline(bench.result)
    write_bench(bench.result, tmp_path)
    assert json.loads((tmp_path / "bench.json").read_text())["complete"] is False
    assert "Many streams" not in (tmp_path / "bench.md").read_text()


def test_nothing_measured_makes_a_report_all_the_same():
    result = Bench(tiny()).result
    assert not result.measured
    assert to_markdown(result)
    assert json.dumps(to_json(result))


def test_a_named_method_must_be_available(light):
    with pytest.raises(ConfigError, match="unknown model 'no-such'"):
        Bench(tiny(methods=("no-such",))).run()


def test_without_torch_what_runs_without_it_is_measured(light, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("ongebd.lab.benchmark.subjects.USUAL", ("persistence", "estimator", "miniroad"))
    result = Bench(tiny(methods=None)).run()
    assert [method.name for method in result.methods] == ["persistence"]
    assert [way.name for way in result.methods[0].ways] == ["ours, onnxruntime float32"]
    assert set(result.left_out) == {"estimator", "miniroad"}
    notes = bench_tables(result)[0].notes
    assert [note for note in notes if "estimator, miniroad" in note and "install" in note]
    with pytest.raises(MissingExtraError, match="torch is not installed"):
        Bench(tiny(methods=("miniroad",))).run()


def test_the_usual_methods_exist():
    assert set(USUAL) <= {name.split(":")[0] for name in ongebd.detector.model_names()}


def test_a_video_is_read_to_its_end_by_every_method(light, make_video, make_scene, tmp_path):
    path = make_video(tmp_path / "clip.mp4", [make_scene(n // 10, 96, 64) for n in range(20)], rate=24)
    result = Bench(tiny(methods=("persistence", "clock"), video=path)).run()
    assert result.video is not None
    assert result.video.frames == 20
    names = [name for name, _ in result.video.rows]
    assert names[:2] == ["persistence", "clock"]
    for _, cell in result.video.rows:
        assert [sample.frames for sample in cell.samples] == [20, 20]
    assert any("clip.mp4, 20 frames" in table.title for table in bench_tables(result))


def test_the_papers_values_are_those_of_its_table_of_costs():
    assert printed_cost("estimator")["parameters-millions"] == 42.41
    assert printed_cost("testra")["fps"] == 72.5
    assert printed_cost("window-mean") == {}


class TestEager:
    """Torch's own way gives the same as ours."""

    @pytest.fixture(autouse=True)
    def _torch(self):
        pytest.importorskip("torch")
        pytest.importorskip("onnx")

    @pytest.mark.parametrize("name", ["window-mean", "immediate"])
    def test_the_same_scores(self, name, make_scene):
        from ongebd.lab.benchmark.eager import EagerStream

        model = load(name)
        eager, ours = EagerStream(model, "cpu"), model.stream()
        frames = [make_scene(3), make_scene(4)]
        for n in range(20):
            frame = frames[n // 14]
            eager.update(frame, n / 24)
            decision = ours.update(frame, n / 24)
        feature = eager.embed(frames[1])
        assert feature.shape == (1, model.backbone.dim)
        score = eager.score(feature, 20 / 24)
        assert score == pytest.approx(ours.update(frames[1], 20 / 24).error, abs=1e-4)
        assert decision.ready

    def test_an_anticipator_and_a_baseline(self, tmp_path):
        import torch

        from ongebd.lab.benchmark.cost import cost, gflops
        from ongebd.lab.benchmark.eager import EagerStream
        from ongebd.lab.benchmark.random_weights import random_model

        random = np.random.default_rng(0)
        features = random.uniform(0.1, 1, (12, 2048)).astype(np.float32)
        for name in ("estimator", "simon"):
            model = random_model(name, tmp_path)
            ours, eager = model.stream(), EagerStream(model, "cpu")
            for n, feature in enumerate(features):
                decision = ours.update_feature(feature, n / 24)
                score = eager.score(torch.from_numpy(feature)[None], n / 24)
                if n:
                    assert score == pytest.approx(decision.error, abs=1e-4)
        price = cost(model)
        assert price.method_parameters == 3_295_489
        assert price.backbone_gflops == pytest.approx(8.174, abs=0.01)
        assert gflops(lambda: torch.zeros(2, 3) @ torch.zeros(3, 5)) == pytest.approx(2 * 2 * 3 * 5 / 1e9)

    def test_the_gpu_way_as_tensors_on_the_cpu(self):
        from ongebd.lab.benchmark.ways import device_way

        way = device_way(load("persistence"), "cpu", "float32")
        frame = np.random.default_rng(0).integers(0, 256, (256, 300, 3), np.uint8)
        way.features(frame)
        assert way.overall(frame, 0.0).error == 0
        assert way.overall(frame, 0.1).error == pytest.approx(0, abs=1e-6)
        assert way.method(np.ones(1280, np.float32), 0.2).error > 0
        assert way.device_bytes is None
        way.close()

    def test_the_backbones_size(self):
        from ongebd.backbones.efficientnet_lite0_network import EfficientNetLite0
        from ongebd.lab.benchmark.cost import EFFICIENTNET_LITE0

        assert sum(p.numel() for p in EfficientNetLite0().parameters()) == EFFICIENTNET_LITE0
