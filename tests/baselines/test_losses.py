"""Each baseline's own loss, against the published rule written out one target at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
from torch.nn.functional import binary_cross_entropy_with_logits as bce  # noqa: E402

DIM = 16
S = 3


def batch(network: Any, first_lead: int) -> tuple[Any, Any, Any]:
    window, region, run, _ = network.layout()
    generator = torch.Generator().manual_seed(0)
    frames = torch.randn(S, window + region + run, DIM, generator=generator)
    targets = torch.rand(S, region + run, generator=generator) < 0.3
    lead = torch.arange(region + run).expand(S, -1) + first_lead
    return frames, targets, lead


def test_one_finite_loss_for_each_target_and_a_gradient_everywhere(network: Any) -> None:
    frames, targets, lead = batch(network, 40)
    losses = network.train().losses(frames, targets, lead)
    assert losses.shape == (S, network.layout().run)
    assert losses.isfinite().all()
    losses.mean().backward()
    assert [name for name, p in network.named_parameters() if p.grad is None] == []


def test_weight_multiplies_the_loss_of_boundaries_alone(network: Any) -> None:
    if network.method == "oadtr":  # its loss on a frame holds those on the frames to come
        network.future_share = 0.0
    frames, targets, lead = batch(network, 40)
    one, three = (network.losses(frames, targets, lead, weight) for weight in (1.0, 3.0))
    own = targets[:, -network.layout().run :]
    torch.testing.assert_close(three, torch.where(own, 3 * one, one))


def test_miniroad_trains_the_last_step_alone(small: Callable[[str], Any]) -> None:
    network = small("miniroad")
    frames, targets, lead = batch(network, 40)
    logits = network(frames)[:, -1:]
    torch.testing.assert_close(
        network.losses(frames, targets, lead), bce(logits, targets.float(), reduction="none")
    )


def test_a_short_window_of_miniroad_begins_at_its_stream(small: Callable[[str], Any]) -> None:
    network = small("miniroad")
    frames, targets, lead = batch(network, 2)  # the target is the fourth frame of its stream
    logits = network(frames[:, -4:])[:, -1:]
    torch.testing.assert_close(
        network.losses(frames, targets, lead), bce(logits, targets.float(), reduction="none")
    )


def test_testra_trains_its_whole_work_memory(small: Callable[[str], Any]) -> None:
    """With all earlier frames in the long memory, the last place has the stream's score."""
    network = small("testra")
    work, before = network.shape.work, 20
    _, targets, _ = batch(network, 0)
    stream = torch.randn(S, before + work, DIM, generator=torch.Generator().manual_seed(1))
    filler = torch.full((S, network.shape.long - before, DIM), 9.0)  # another video's; must not be seen
    lead = torch.arange(work).expand(S, -1) + before - 1
    losses = network.losses(torch.cat([filler, stream], dim=1), targets, lead)
    last = bce(network(stream)[:, -1], targets[:, -1].float(), reduction="none")
    torch.testing.assert_close(losses[:, -1], last, atol=1e-5, rtol=0)


def test_oadtr_adds_half_the_loss_on_the_frames_to_come(small: Callable[[str], Any]) -> None:
    network = small("oadtr")
    frames, targets, lead = batch(network, 40)
    lead = lead.clone()
    lead[1, 7:] = torch.arange(5)  # another stream begins within the second run
    losses, size = network.losses(frames, targets, lead), network.shape.window
    for row in range(S):
        for place in range(network.shape.run):
            end = network.layout().window + place + 1
            now, ahead = network.judge(network.embed(frames[row : row + 1, end - size : end]))
            known = [
                k
                for k in range(network.shape.future)
                if place + k + 1 < targets.shape[1] and lead[row, place + k + 1] == lead[row, place] + k + 1
            ]
            wanted = bce(now[0], targets[row, place].float())
            if known:
                truth = targets[row, [place + k + 1 for k in known]].float()
                wanted = wanted + 0.5 * bce(ahead[0, known], truth)
            torch.testing.assert_close(losses[row, place], wanted, atol=1e-5, rtol=0)


def test_simon_has_the_focal_loss_of_its_stream_scores(small: Callable[[str], Any]) -> None:
    network = small("simon")
    window, _, run, _ = network.layout()
    frames, targets, lead = batch(network, -1)  # the first place is the first frame of its stream
    logits, truth = network(frames[:, window:])[:, -run:], targets[:, -run:].float()
    chance = torch.where(truth.bool(), logits.sigmoid(), 1 - logits.sigmoid())
    balance = torch.where(truth.bool(), 0.25, 0.75)
    wanted = balance * (1 - chance) ** 2 * bce(logits, truth, reduction="none")
    torch.testing.assert_close(network.losses(frames, targets, lead), wanted)
