"""One frame at a time, a whole sequence, or several streams together: always the same numbers."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from ongebd.baselines.network import NetworkScorer  # noqa: E402
from ongebd.baselines.weights import load_network, save_network  # noqa: E402
from ongebd.errors import ConfigError  # noqa: E402

DIM = 16
LENGTH = 80  # more than a window, a work memory and a chunk of either


def features(seed: int, streams: int = 1, length: int = LENGTH) -> Any:
    return torch.randn(streams, length, DIM, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def stepped(network: Any, sequence: Any) -> Any:
    state, logits = network.start(len(sequence)), []
    for frame in range(sequence.shape[1]):
        logit, state = network.step(sequence[:, frame], state)
        logits.append(logit)
    return torch.stack(logits, dim=1)


def test_steps_equal_the_whole_sequence(network: Any) -> None:
    sequence = features(1, streams=2)
    with torch.no_grad():
        whole = network(sequence)
    assert whole.shape == (2, LENGTH)
    torch.testing.assert_close(stepped(network, sequence), whole, atol=1e-5, rtol=0)
    assert whole.std() > 1e-3, "a constant would agree as well"


def test_nothing_depends_on_the_future(network: Any) -> None:
    early, late = features(2), features(3)
    joined = torch.cat([early[:, :50], late[:, 50:]], dim=1)
    with torch.no_grad():
        torch.testing.assert_close(network(early)[:, :50], network(joined)[:, :50], atol=1e-6, rtol=0)
        assert not torch.allclose(network(early)[:, 50:], network(joined)[:, 50:], atol=1e-4)


def test_two_interleaved_streams_equal_two_separate_ones(network: Any) -> None:
    sequences = [features(seed)[0].numpy() for seed in (4, 5)]

    def alone(sequence: Any) -> list[float | None]:
        scorer = NetworkScorer(network, "alone")
        return [scorer.update(feature, 0.0) for feature in sequence]

    together = [NetworkScorer(network, name) for name in ("first", "second")]
    interleaved: list[list[float | None]] = [[], []]
    for pair in zip(*sequences, strict=True):
        for scorer, out, feature in zip(together, interleaved, pair, strict=True):
            out.append(scorer.update(feature, 0.0))
    assert interleaved == [alone(sequence) for sequence in sequences]


def test_a_batch_of_streams_equals_each_alone(network: Any) -> None:
    sequence = features(6, streams=3, length=40)
    alone = torch.cat([stepped(network, row[None]) for row in sequence])
    torch.testing.assert_close(stepped(network, sequence), alone, atol=1e-5, rtol=0)


def test_reset_forgets_everything(network: Any) -> None:
    scorer = NetworkScorer(network, "x")
    sequence = features(7)[0].numpy()
    first = [scorer.update(feature, 0.0) for feature in sequence[:20]]
    scorer.reset()
    assert [scorer.update(feature, 0.0) for feature in sequence[:20]] == first
    assert first[0] is None, "the first frame of a stream ends nothing"
    assert all(isinstance(score, float) and 0 <= score <= 1 for score in first[1:])
    assert scorer.flush() == []


@pytest.mark.parametrize("steps", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_memory_is_flat(network: Any, steps: int) -> None:
    scorer = NetworkScorer(network, "long")
    block = np.random.default_rng(0).standard_normal((200, DIM)).astype(np.float32)

    def run(count: int) -> None:
        for step in range(count):
            score = scorer.update(block[step % len(block)], 0.0)
            assert score is None or 0 <= score <= 1

    run(100)
    size = scorer.state_bytes
    assert size == sum(tensor.nbytes for tensor in network.start())
    tracemalloc.start()
    run(50)
    before = tracemalloc.get_traced_memory()[0]
    run(steps)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert scorer.state_bytes == size
    assert grown < 20_000


def test_the_long_memory_stays_finite_and_exact(small: Callable[[str], Any]) -> None:
    """Sums relative to the largest score don't overflow or vanish, however far scores lie apart."""
    network = small("testra")
    with torch.no_grad():
        network.fading.query.weight.mul_(40)  # scores in the hundreds, whose exponentials float32 has not
    sequence = features(8, length=300) * 4
    with torch.no_grad():
        whole = network(sequence)
    assert whole.isfinite().all()
    torch.testing.assert_close(stepped(network, sequence), whole, atol=1e-4, rtol=0)


@pytest.mark.parametrize("length", [1, 3, 4, 5, 63, 64, 65, 200])
def test_any_cut_of_the_long_memory_gives_the_same(
    small: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """Work memories that end within, at and after a part; parts of one frame, and all in one."""
    network, sequence = small("testra"), features(10, streams=2, length=length)
    steps = stepped(network, sequence)
    for together in (1, 10, 256, 4096):
        monkeypatch.setattr("ongebd.baselines.testra._TOGETHER", together)
        with torch.no_grad():
            torch.testing.assert_close(network(sequence), steps, atol=1e-5, rtol=0)


class LargestTensor(TorchDispatchMode):
    """Records the size of every operation's result."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for each in out if isinstance(out, list | tuple) else (out,):
            if isinstance(each, torch.Tensor):
                self.numbers = max(self.numbers, each.untyped_storage().nbytes() // each.element_size())
        return out


def test_memory_grows_linearly_with_the_length_of_a_sequence(network: Any) -> None:
    """Four times the length needs at most four times the largest tensor: no table of frames by frames."""
    largest = []
    for length in (400, 1600):
        sequence = features(11, length=length)
        with torch.no_grad(), LargestTensor() as mode:
            network(sequence)
        largest.append(mode.numbers / length)
    assert largest[1] <= 1.05 * largest[0]


def test_weights_come_back_from_the_disk(network: Any, tmp_path: Path) -> None:
    save_network(tmp_path / "model", network)
    again = load_network(tmp_path / "model")
    sequence = features(9)
    with torch.no_grad():
        assert torch.equal(again(sequence), network(sequence))
    assert again.shape == network.shape


def test_a_damaged_folder_is_named(small: Callable[[str], Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.json: No such file"):
        load_network(tmp_path)
    save_network(tmp_path, small("miniroad"))
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match=r"model\.safetensors: no weights of miniroad"):
        load_network(tmp_path)
