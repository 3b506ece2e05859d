"""The runtime of tensors: on the CPU here, and on a GPU where there is one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ongebd
from ongebd.detector import Model, StreamConfig
from ongebd.errors import ConfigError, FeatureError
from ongebd.estimator import BoundaryDiscriminator
from ongebd.pool.runtime import Work

torch = pytest.importorskip("torch")

from ongebd.backbones.torch_backbone import TorchBackbone  # noqa: E402
from ongebd.baselines.methods import make_network, network_shape  # noqa: E402
from ongebd.baselines.naive import Persistence, WindowMean  # noqa: E402
from ongebd.baselines.network import NetworkScorer  # noqa: E402
from ongebd.estimator.anticipator import AnticipatorConfig, ConsistentEventAnticipator  # noqa: E402
from ongebd.estimator.torch_anticipator import TorchAnticipator  # noqa: E402
from ongebd.pool.gpu import DeviceStream, GpuRuntime  # noqa: E402
from ongebd.pool.gpu.discriminator import judge  # noqa: E402

DIM = 8
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]


def tiny_backbone() -> TorchBackbone:
    torch.manual_seed(3)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, DIM, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    )
    return TorchBackbone("tiny", network, dim=DIM, input_size=16, resize_size=20)


def method(kind: str, folder: Path):
    """What a model of that kind puts into a stream."""
    torch.manual_seed(4)
    if kind == "persistence":
        return lambda config: Persistence()
    if kind == "window-mean":
        return lambda config: WindowMean(config.window)
    if kind == "cea":
        shape = AnticipatorConfig(dim=DIM, width=16, ffn=16, heads=2, layers=2)
        ConsistentEventAnticipator(shape).save_pretrained(folder)
        return lambda config: TorchAnticipator(folder, "cea")
    small = {
        "miniroad": {"embedding": 8, "hidden": 8},
        "testra": {"width": 8, "heads": 2, "ffn": 8, "work": 4},
        "simon": {"width": 8, "heads": 2, "ffn": 8},
        "oadtr": {"width": 8, "window": 4, "encoder_heads": 2, "decoder_heads": 2, "ffn": 8},
    }
    network = make_network(kind, network_shape(kind, small[kind], dim=DIM)).eval()
    return lambda config: NetworkScorer(network, kind)


KINDS = ["persistence", "window-mean", "cea", "miniroad", "testra", "simon", "oadtr"]


@pytest.fixture
def model(tmp_path):
    def make(kind: str = "window-mean", **changes) -> Model:
        defaults = replace(ongebd.load("window-mean").defaults, **changes)
        return Model(kind, "for tests", tiny_backbone(), defaults, method=method(kind, tmp_path))

    return make


def features(seed: int, count: int = 80) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = random.uniform(0.1, 1, (5, DIM))
    return (centres[np.arange(count) * 5 // count] + random.normal(0, 0.02, (count, DIM))).astype(np.float32)


def alike(ours, wanted, within: float = 1e-6) -> None:
    """Two decisions: equal in everything but the numbers, and those nearly."""
    numbers = ("error", "mean", "std", "threshold")
    plain = ("index", "time", "is_boundary", "ready", "onset", "pending")
    assert [getattr(ours, name) for name in plain] == [getattr(wanted, name) for name in plain]
    assert [getattr(ours, name) for name in numbers] == pytest.approx(
        [getattr(wanted, name) for name in numbers], abs=within
    )
    assert ours.z == pytest.approx(wanted.z, abs=within * 1e4, rel=within * 1e4)
    times = [b and (b.time, b.onset, b.decided) for b in (ours.boundary, wanted.boundary)]
    assert times[0] == times[1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_is_what_it_is_on_the_cpu(model, kind, device):
    loaded = model(kind)
    ours = DeviceStream(loaded, device=device, precision="float32", compiles=kind == "cea")
    wanted = loaded.stream()
    numbers = iter(range(10_000))
    for seed in range(3):
        for feature in features(seed):
            time = Fraction(next(numbers), 24)
            alike(ours.update_feature(feature, time), wanted.update_feature(feature, time), 1e-5)
        match seed:
            case 0:
                assert (ours.new_epoch() is None) == (wanted.new_epoch() is None)
            case 1:
                for broken in (np.full(DIM, np.nan), np.zeros(DIM)):
                    for stream in (ours, wanted):
                        with pytest.raises(FeatureError, match=r"^frame 160 at 0\.000 s: the feature has"):
                            stream.update_feature(broken, 0.0)
                numbers = iter(range(10_000))  # the clock steps back
    assert (ours.flush() is None) == (wanted.flush() is None)
    ours.new_epoch()
    wanted.new_epoch()
    for n, feature in enumerate(features(9)):
        alike(ours.update_feature(feature, n / 24), wanted.update_feature(feature, n / 24), 1e-5)
    ours.close()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (torch.OutOfMemoryError("no more"), (ConfigError, "too little memory for 1 frames")),
        (OSError("x"), (OSError, "x")),
    ],
)
def test_a_step_that_cannot_begin_leaves_the_stream_as_it_was(model, device, monkeypatch, error, raised):
    loaded = model("window-mean")
    ours, wanted = DeviceStream(loaded, device=device, precision="float32"), loaded.stream()
    given = features(0, 20)
    for n, feature in enumerate(given):
        if n == 10:
            with monkeypatch.context() as patch:
                patch.setattr(ours.runtime, "_write_control", lambda *_: (_ for _ in ()).throw(error))
                for _ in range(5):  # more often than steps can be under way
                    with pytest.raises(raised[0], match=raised[1]):
                        ours.update_feature(feature, n / 24)
        alike(ours.update_feature(feature, n / 24), wanted.update_feature(feature, n / 24), 1e-5)
    ours.close()


@pytest.mark.parametrize("device", DEVICES)
def test_many_streams_in_any_order_are_what_each_is_alone(model, device):
    loaded = model("cea")
    options = {"device": device, "precision": "float32", "max_streams": 9, "compiles": False}
    runtime = GpuRuntime(loaded, max_batch=6, **options)
    random = np.random.default_rng(5)
    taus = [1.5 + n / 3 for n in range(9)]
    slots = [runtime.open(loaded.configured(tau=tau, delta=21 - n)) for n, tau in enumerate(taus)]
    alone = [loaded.stream(tau=tau, delta=21 - n) for n, tau in enumerate(taus)]
    queues = [list(enumerate(features(n, 40))) for n in range(9)]
    while any(queues):
        left = [n for n in range(9) if queues[n]]
        some = random.permutation(left)[: random.integers(1, 7)]
        batch = [(n, *queues[n].pop(0)) for n in some]
        work = [Work(slots[n], runtime.accept_feature(f), i / 24) for n, i, f in batch]
        for (n, i, feature), outcome in zip(batch, runtime.begin(work)(), strict=True):
            alike(outcome, alone[n].update_feature(feature, i / 24), 1e-5)
    runtime.close()


@pytest.mark.parametrize("device", DEVICES)
def test_pictures_of_any_size_and_features_share_a_step(model, device, make_scene):
    loaded = model("window-mean", min_error=0.0)
    options = {"max_batch": 8, "device": device, "precision": "float32", "max_streams": 8, "compiles": False}
    runtime = GpuRuntime(loaded, **options)
    sizes = [(20, 20), (20, 37), (64, 48), (41, 90), None, (64, 48), (15, 19), (20, 37)]
    slots = [runtime.open(loaded.configured()) for _ in sizes]
    alone = [loaded.stream() for _ in sizes]
    for n in range(12):
        work, wanted = [], []
        for place, (size, slot, single) in enumerate(zip(sizes, slots, alone, strict=True)):
            if size is None:
                feature = features(1)[n]
                work.append(Work(slot, runtime.accept_feature(feature), n / 24))
                wanted.append(single.update_feature(feature, n / 24))
            else:
                shot = make_scene(place + 100 * (n > 7), size[1], size[0])
                work.append(Work(slot, runtime.accept(shot), n / 24))
                wanted.append(single.update(shot, n / 24))
        for ours, theirs in zip(runtime.begin(work)(), wanted, strict=True):
            assert (ours.index, ours.time, ours.ready) == (theirs.index, theirs.time, theirs.ready)
            # Pictures that are resized differ by one of 255 here and there.
            assert ours.error == pytest.approx(theirs.error, abs=2e-4)
    runtime.close()


@pytest.mark.parametrize("device", DEVICES)
def test_a_slot_remembers_nothing_of_the_stream_before(model, device):
    loaded = model("miniroad")
    runtime = GpuRuntime(loaded, device=device, precision="float32", max_streams=1, max_batch=1)

    def run(slot) -> list:
        work = ((Work(slot, runtime.accept_feature(f), n / 24)) for n, f in enumerate(features(7, 30)))
        return [runtime.begin([item])()[0] for item in work]

    first = runtime.open(loaded.configured())
    decisions = run(first)
    with pytest.raises(ConfigError, match="all 1 streams are taken"):
        runtime.open(loaded.configured())
    runtime.release(first)
    assert run(runtime.open(loaded.configured())) == decisions
    runtime.close()


@pytest.mark.parametrize("device", DEVICES)
def test_a_pool_runs_on_it(model, device):
    loaded = model("cea")
    options = {"device": device, "precision": "float32", "max_streams": 4, "max_batch": 4, "compiles": False}
    alone = [loaded.stream() for _ in range(3)]
    with ongebd.StreamPool(loaded, runtime=GpuRuntime(loaded, **options)) as pool:
        pooled = [pool.add(name=n) for n in range(3)]
        for n in range(80):
            for seed, stream in enumerate(pooled):
                stream.submit_feature(features(seed)[n], n / 24)
            if n == 40:
                pooled[1].new_epoch()
        pooled[2].submit_feature(np.full(DIM, np.inf), 9.0)
    results = list(pool.results())
    for seed, stream in enumerate(pooled):
        decisions = [r.decision for r in results if r.stream is stream and r.decision]
        for n, feature in enumerate(features(seed)):
            alike(decisions[n], alone[seed].update_feature(feature, n / 24), 1e-5)
            if (n, seed) == (40, 1):
                alone[1].new_epoch()
    assert "NaN or infinity" in str(next(r.error for r in results if r.error))
    assert pool.counts().failed == 1


def test_another_head_works_on_the_scores(model):
    loaded = model("miniroad", head="threshold", threshold=0.5)
    ours, wanted = DeviceStream(loaded, device="cpu", precision="float32"), loaded.stream()
    for n, feature in enumerate(features(3)):
        alike(ours.update_feature(feature, n / 24), wanted.update_feature(feature, n / 24))


@settings(max_examples=60)
@given(
    errors=st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5]), max_size=40),
    tau=st.floats(0.1, 4),
    delta=st.integers(2, 12),
    floors=st.sampled_from([(0.0, 0.0), (0.01, 0.05)]),
    inliers_only=st.booleans(),
    data=st.data(),
)
def test_the_discriminator_is_the_one_of_the_cpu(errors, tau, delta, floors, inliers_only, data):
    warmup = data.draw(st.integers(2, delta))
    min_std, min_error = floors
    wanted = BoundaryDiscriminator(
        tau, delta, warmup=warmup, min_std=min_std, min_error=min_error, inliers_only=inliers_only
    )
    row = torch.tensor([[tau, delta, warmup, min_std, min_error, inliers_only]], dtype=torch.float64)
    queue, filled = torch.zeros(1, 12, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    for error in errors:
        verdict, queue, filled = judge(
            torch.tensor([error], dtype=torch.float64), torch.tensor([True]), queue, filled, row
        )
        wanted.update(error)
        near = abs(wanted.z - tau) < 1e-6 * max(1.0, abs(wanted.z)) or 0 < wanted.std < 1e-8
        if near:  # rounding decides there
            return
        assert [bool(verdict.positive), bool(verdict.ready)] == [wanted.is_boundary, wanted.ready]
        numbers = [float(v) for v in (verdict.mean, verdict.std, verdict.threshold, verdict.z)]
        assert numbers == pytest.approx([wanted.mean, wanted.std, wanted.threshold, wanted.z], 1e-6, 1e-12)


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        ({"device": "abacus"}, "unknown device"),
        ({"device": "cuda:77"}, "PyTorch sees"),
        ({"device": "cpu", "precision": "int8"}, "precision must be one of"),
        ({"device": "cpu", "max_batch": 0}, "max_batch must be at least 1"),
    ],
)
def test_what_cannot_be_is_refused(model, bad, cause):
    with pytest.raises(ConfigError, match=cause):
        GpuRuntime(model(), **bad)


def test_a_method_without_a_gpu_form_is_refused():
    with pytest.raises(ConfigError, match="predictability: this method can't run on a GPU"):
        GpuRuntime(ongebd.load("predictability"), device="cpu")
    with pytest.raises(ConfigError, match="this backbone can't run on a GPU"):
        GpuRuntime(replace(ongebd.load("window-mean"), backbone=ongebd.load("clock").backbone), device="cpu")


def test_every_stream_has_the_window_of_the_runtime_and_no_longer_queue(model):
    loaded = model()
    runtime = GpuRuntime(loaded, device="cpu", max_batch=1, max_streams=2)
    with pytest.raises(ConfigError, match="a window of 8 frames, not 5"):
        runtime.open(loaded.configured(window=5))
    with pytest.raises(ConfigError, match="delta may be at most 21 here, not 22"):
        runtime.open(loaded.configured(delta=22))
    assert runtime.open(loaded.configured(delta=9)).config.delta == 9
    runtime.close()


def test_a_models_own_batched_form_is_taken(model):
    from ongebd.pool.gpu.scorers import BatchedPersistence

    class Mine(NetworkScorer):
        def batched(self, device, dtype):
            return BatchedPersistence(DIM, device)

    network = make_network("miniroad", network_shape("miniroad", {"embedding": 4, "hidden": 4}, dim=DIM))
    loaded = Model("mine", "", tiny_backbone(), model().defaults, method=lambda _: Mine(network, "mine"))
    stream = DeviceStream(loaded, StreamConfig(), device="cpu", precision="float32")
    wanted = model("persistence").stream()
    for n, feature in enumerate(features(1)):
        alike(stream.update_feature(feature, n / 24), wanted.update_feature(feature, n / 24))
