"""The learned models in the runtime of tensors: on the CPU here, and on a GPU where there is one."""

from __future__ import annotations

import numpy as np
import pytest

import ongebd
from ongebd.estimator.cues import LUMA_DIM, Context, CueStream
from ongebd.estimator.learned import learned_model
from ongebd.pool.runtime import Work

torch = pytest.importorskip("torch")

from ongebd.pool.gpu import DeviceStream, GpuRuntime  # noqa: E402
from ongebd.pool.gpu.learned import BatchedLearned, DeviceForest  # noqa: E402

NETWORK_DIM = 1280
DIM = NETWORK_DIM + LUMA_DIM
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]


def features(seed: int, count: int, still: bool = False, trembles: float = 0.0) -> np.ndarray:
    """A made stream, (count, D): a scene every 25 frames, with its own texture that drifts.

    A still one may tremble: what never changes is judged otherwise on a CPU only (docs/inputs.md).
    """
    random = np.random.default_rng(seed)
    rows = []
    for scene in range(-(-count // 25)):
        centre = random.gamma(0.5, 0.5, NETWORK_DIM)
        texture = random.uniform(0, 255, (84, 84))
        for axis in (0, 1):
            texture = sum(np.roll(texture, shift, axis) for shift in range(-2, 3)) / 5
        drift = random.uniform(0, 0.7, 2) * (scene % 3 > 0)
        for n in range(25):
            down, right = (drift * n).astype(int)
            luma = np.full((56, 56), 90.0 + scene) if still else texture[down:, right:][:56, :56]
            noise = trembles if still else 1.0
            network = np.maximum(centre + noise * random.normal(0, 0.05, NETWORK_DIM), 0)
            luma = np.clip(luma + noise * random.normal(0, 0.7, luma.shape), 0, 255)
            rows.append(np.concatenate([network, luma.ravel()]))
    return np.array(rows[:count], np.float32)


NEARLY, SELDOM = 0.02, 0.1
"""If sums are rounded in another way, a cue may cross a threshold of a tree; seldom, one that many share."""


def alike(ours, wanted) -> bool:
    """Two decisions: equal in everything but the scores; whether those are `NEARLY` equal, as most are."""
    plain = ("index", "time", "is_boundary", "ready", "onset", "pending", "mean", "std", "threshold")
    assert [getattr(ours, name) for name in plain] == [getattr(wanted, name) for name in plain]
    assert [ours.error, ours.z] == pytest.approx([wanted.error, wanted.z], abs=SELDOM)
    assert ends(ours.boundary) == ends(wanted.boundary)
    return wanted.error is None or abs(ours.error - wanted.error) <= NEARLY


def ends(boundary):
    return boundary and (boundary.time, boundary.onset, boundary.decided)


def known(stream):
    """What has become known of boundaries that were told; without the peak, which is nearly the same."""
    return [(b.onset, b.kind) for b in stream.closed()]


@pytest.mark.parametrize("device", DEVICES)
def test_cues_and_their_context_are_those_of_the_cpu(device):
    batched = BatchedLearned(learned_model("immediate"), DIM, torch.device(device))
    streams = [features(1, 450), features(2, 450), features(3, 450, still=True)]
    begins = [0, 5, 0]  # the second one starts fresh
    state = tuple(row.expand(3, *row.shape[1:]).clone() for row in batched.empty)
    cues = [CueStream(DIM) for _ in streams]
    contexts = [Context(len(CueStream.names)) for _ in streams]
    for n in range(420):
        given = np.stack([stream[n] for stream in streams])
        there = torch.from_numpy(given).to(device)
        seen = torch.tensor([n - begin if n >= begin else n for begin in begins], device=device)
        inputs, after = batched.inputs(there, state, seen)
        rows = [cue.update(row) for cue, row in zip(cues, given, strict=True)]
        wanted = [context.update(row) for context, row in zip(contexts, rows, strict=True)]
        apart = np.abs(inputs.cpu().numpy() - np.stack(wanted)).max()
        assert apart < (1e-4 if device == "cpu" else 2e-4), f"frame {n}"
        state = after
        if n + 1 == begins[1]:
            cues[1].reset()
            contexts[1].reset()
            for rows, empty in zip(state, batched.empty[:9], strict=True):
                rows[1] = empty[0]


@pytest.mark.parametrize("device", DEVICES)
def test_the_forest_says_what_it_says_on_the_cpu(device):
    forest = learned_model("immediate").forest
    inputs = int(forest.feature.max()) + 1
    random = np.random.default_rng(0)
    # Every node is met on either side, and some inputs lie on a threshold exactly.
    lowest, highest = np.full(inputs, np.inf), np.full(inputs, -np.inf)
    finite = np.isfinite(forest.threshold)
    np.minimum.at(lowest, forest.feature[finite], forest.threshold[finite])
    np.maximum.at(highest, forest.feature[finite], forest.threshold[finite])
    used = np.isfinite(lowest)
    x = random.normal(0, 1, (64, inputs)).astype(np.float32)
    x[:, used] = random.uniform(lowest[used] - 0.1, highest[used] + 0.1, (64, int(used.sum())))
    for row in x:
        node = random.choice(np.flatnonzero(finite), 40)
        row[forest.feature[node]] = forest.threshold[node]
    ours = DeviceForest(forest, torch.device(device)).scores(torch.from_numpy(x).to(device))
    np.testing.assert_allclose(ours.cpu().numpy(), forest.scores(x), atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_interleaved_streams_that_restart_are_what_each_is_alone(device):
    model = ongebd.load("immediate")
    options = {"max_streams": 3, "max_batch": 3, "compiles": False}
    runtime = GpuRuntime(model, device=device, precision="float32", **options)
    sensitivities = [0.3, 0.5, 0.8]
    slots = [runtime.open(model.configured(sensitivity=s)) for s in sensitivities]
    alone = [model.stream(sensitivity=s) for s in sensitivities]
    assert sum(rows[0].nbytes for rows in runtime.engine.state.rows) < 580_000
    # (With seeds from 10, a score lies within rounding of the threshold.)
    queues = [list(enumerate(features(n + 11, 200, n == 2, trembles=0.2))) for n in range(3)]
    random = np.random.default_rng(1)
    found, closed, near = 0, [], []
    while any(queues):
        batch = [(n, *queues[n].pop(0)) for n in random.permutation(3) if queues[n] and random.random() < 0.8]
        # The first stream's clock steps back; the second one begins a new epoch.
        times = [(i - 90 if n == 0 and i >= 90 else i) / 24 for n, i, _ in batch]
        for n, i, _ in batch:
            if (n, i) == (1, 110):
                runtime.restart_ahead(slots[1])
                assert [ends(b) for b in ended(slots[1])] == [ends(b) for b in ended(alone[1])]
        work = [
            Work(slots[n], runtime.accept_feature(f), time)
            for (n, _, f), time in zip(batch, times, strict=True)
        ]
        for (n, _, feature), time, ours in zip(batch, times, runtime.begin(work)(), strict=True):
            wanted = alone[n].update_feature(feature, time)
            near.append(alike(ours, wanted))
            found += wanted.boundary is not None
            closed.append(known(alone[n]))
            assert known(slots[n]) == closed[-1]
    for slot, detector in zip(slots, alone, strict=True):
        for ours, wanted in zip(slot.drain(), detector.drain(), strict=True):
            alike(ours, wanted)
            found += wanted.boundary is not None
        assert ends(slot.flush()) == ends(detector.flush())
        closed.append(known(detector))
        assert known(slot) == closed[-1]
    runtime.close()
    assert np.mean(near) > 0.98
    assert sum(map(len, closed)) >= found >= 3


def ended(stream) -> list:
    """All boundaries that a new epoch decides."""
    said = []
    while (boundary := stream.flush()) is not None:
        said.append(boundary)
    stream.new_epoch()
    return said


def test_the_discriminator_may_decide_on_their_scores():
    model = ongebd.load("immediate")
    settings = {"head": "obd", "tau": 2.0, "delta": 21, "warmup": 8, "min_std": 0.004, "min_error": 0.02}
    ours, wanted = (
        DeviceStream(model, ongebd.StreamConfig(**settings), device="cpu", precision="float32"),
        model.stream(**settings),
    )
    for n, feature in enumerate(features(6, 60)):
        a, b = (stream.update_feature(feature, n / 24) for stream in (ours, wanted))
        assert (a.is_boundary, a.onset, a.ready) == (b.is_boundary, b.onset, b.ready)
        assert [a.error, a.mean, a.std] == pytest.approx([b.error, b.mean, b.std], abs=NEARLY)
    ours.close()


@pytest.mark.parametrize("device", DEVICES)
def test_pictures_of_any_size_give_the_cpus_scores_nearly(device, make_scene):
    model = ongebd.load("immediate")
    runtime = GpuRuntime(
        model, device=device, precision="float32", max_streams=2, max_batch=2, compiles=False
    )
    sizes = [(224, 224), (90, 160)]
    slots, alone = [runtime.open(model.configured()) for _ in sizes], [model.stream() for _ in sizes]
    for n in range(14):
        shots = [make_scene(place + 10 * (n > 10), w, h) for place, (h, w) in enumerate(sizes)]
        work = [Work(slot, runtime.accept(shot), n / 24) for slot, shot in zip(slots, shots, strict=True)]
        outcomes = runtime.begin(work)()
        for ours, detector, shot in zip(outcomes, alone, shots, strict=True):
            wanted = detector.update(shot, n / 24)
            assert (ours.index, ours.ready) == (wanted.index, wanted.ready)
            # Pixels that differ by one of 255 move a cue across a tree's threshold here and there.
            assert ours.error == pytest.approx(wanted.error, abs=0.03)
    runtime.close()


def test_a_pool_on_the_cpu_drains_what_a_look_ahead_held_back():
    model = ongebd.load("predictability")
    alone = [model.stream() for _ in range(2)]
    given = [features(30 + n, 60)[:, :NETWORK_DIM] for n in range(2)]
    with ongebd.StreamPool(model) as pool:
        pooled = [pool.add(name=n) for n in range(2)]
        for n in range(60):
            for k, stream in enumerate(pooled):
                stream.submit_feature(given[k][n], n / 24)
    results = list(pool.results())
    for k, stream in enumerate(pooled):
        said = [result.decision for result in results if result.stream is stream and result.decision]
        wanted = [alone[k].update_feature(feature, n / 24) for n, feature in enumerate(given[k])]
        assert said == [*wanted, *alone[k].drain()]
