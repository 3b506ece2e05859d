"""Batches: the same from everywhere, shared fairly, and never of broken features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from ongebd.errors import FeatureError
from ongebd.lab.training.batches import Batch, BatchLoader, DeviceFeatures, HostFeatures, place_features
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.dataset import Dataset
from ongebd.lab.training.processes import Processes

CPU = torch.device("cpu")


def loader(dataset: Dataset, *, host: bool = False, rank: int = 0, world: int = 1) -> BatchLoader:
    features = (HostFeatures if host else DeviceFeatures)(dataset.training, CPU)
    return BatchLoader(dataset.tape, features, Processes(rank, world, CPU), runs=4, seed=5)


def parts(batch: Batch) -> list[torch.Tensor]:
    return [batch.frames, batch.targets, batch.lead, batch.weight, batch.count]


def test_features_in_memory_and_in_the_store_give_the_same_batches(dataset: Dataset) -> None:
    here, there = loader(dataset), loader(dataset, host=True)
    pairs = list(zip(here.epoch(1), there.epoch(1), strict=True))
    assert len(pairs) == here.steps(1) > 3
    for one, other in pairs:
        assert all(torch.equal(a, b) for a, b in zip(parts(one), parts(other), strict=True))


@pytest.mark.parametrize("host", [True, False])
def test_an_epoch_can_be_entered_in_the_middle(dataset: Dataset, host: bool) -> None:
    whole, rest = list(loader(dataset).epoch(2)), list(loader(dataset, host=host).epoch(2, skip=3))
    assert len(rest) == len(whole) - 3
    assert torch.equal(whole[3].frames, rest[0].frames)
    assert torch.equal(whole[-1].lead, rest[-1].lead)


def test_processes_share_a_batch_and_agree_on_its_balance(dataset: Dataset) -> None:
    alone = loader(dataset)
    first, second = (loader(dataset, rank=rank, world=2) for rank in (0, 1))
    for whole, a, b in zip(alone.epoch(0), first.epoch(0), second.epoch(0), strict=True):
        assert torch.equal(whole.frames, torch.cat([a.frames, b.frames]))
        assert torch.equal(whole.targets, torch.cat([a.targets, b.targets]))
        assert torch.equal(whole.weight, a.weight)
        assert torch.equal(whole.weight, b.weight)
        assert a.count == b.count == whole.count / 2  # DDP takes the mean of what the processes have


def test_the_weight_balances_the_targets_of_the_batch(dataset: Dataset) -> None:
    for batch in loader(dataset).epoch(0):
        counted = batch.lead >= 0
        counted[:, : dataset.tape.region] = False
        boundaries = int((batch.targets & counted).sum())
        others = int((~batch.targets & counted).sum())
        wanted = others / boundaries if boundaries else 1.0
        assert batch.weight.item() == pytest.approx(wanted)
        assert batch.count.item() == max(1, boundaries + others)


def test_all_targets_of_an_epoch_are_in_its_batches(dataset: Dataset) -> None:
    total = sum(int((batch.lead[:, dataset.tape.region :] >= 0).sum()) for batch in loader(dataset).epoch(0))
    assert total == dataset.tape.target_count


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity"), (0.0, "norm zero")])
@pytest.mark.parametrize("host", [True, False])
def test_a_broken_feature_is_named(
    config: TrainConfig, make: Callable[..., Dataset], value: float, what: str, host: bool
) -> None:
    dataset = make(config)
    broken = dataset.training[3]
    broken.features[7] = value
    with pytest.raises(FeatureError, match=rf"{broken.id}.*{what}.*extract the video again"):
        list(loader(dataset, host=host).epoch(0))


def test_an_epoch_that_is_left_early_leaves_no_thread(dataset: Dataset) -> None:
    import threading

    batches: Iterator[Batch] = loader(dataset, host=True).epoch(0)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name == "ongebd-features"]


def test_what_does_not_fit_stays_in_the_store(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    videos = [replace(video) for video in dataset.training]
    monkeypatch.setattr("ongebd.lab.training.batches.free_memory", lambda _: 1000)
    assert isinstance(place_features(videos, CPU, "auto"), HostFeatures)
    assert isinstance(place_features(videos, CPU, "device"), DeviceFeatures)
    monkeypatch.undo()
    assert isinstance(place_features(videos, CPU, "auto"), DeviceFeatures)


def test_a_batch_of_the_paper_is_512_targets_drawn_by_themselves(
    make: Callable[..., Dataset], config: TrainConfig
) -> None:
    dataset = make(replace(config, run=1, batch=512), videos=12, frames=100)
    tape = dataset.tape
    batches = BatchLoader(tape, DeviceFeatures(dataset.training, CPU), Processes(0, 1, CPU), runs=512, seed=0)
    first = next(iter(batches.epoch(0)))
    assert first.frames.shape[:2] == (512, 8 + 9 + 1)  # each with its own windows: L + K + 1 frames
    assert first.targets.shape == (512, 9 + 1)
    order = tape.epoch(0, 0)
    assert len(set(order.tolist())) == len(order) == len(tape.rows) - 8 - 9
    assert (np.abs(np.diff(order)) == 1).mean() < 0.01  # neighbours come one after the other by chance only
