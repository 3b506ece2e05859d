"""EST, REST, their sum, and batch-wise weighting."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ongebd.estimator.anticipator import AnticipatorConfig, ConsistentEventAnticipator
from ongebd.estimator.losses import balancing_weight, est_loss, prediction_errors, region_mean, total_loss


def whole(errors: Tensor) -> Tensor:
    """The lead of rows that begin with the first error of their stream."""
    return torch.arange(errors.shape[-1]).expand(errors.shape)


def test_est_is_the_binary_cross_entropy_of_the_error() -> None:
    errors = torch.tensor([0.2, 0.2, 0.9])
    targets = torch.tensor([True, False, True])
    wanted = [-math.log(0.2), -math.log(0.8), -math.log(0.9)]
    assert est_loss(errors, targets).tolist() == pytest.approx(wanted, rel=1e-6)


def test_targets_may_be_numbers() -> None:
    errors = torch.tensor([0.2, 0.7])
    assert torch.equal(
        est_loss(errors, torch.tensor([1.0, 0.0])), est_loss(errors, torch.tensor([True, False]))
    )


def test_the_weight_is_the_boundaries_alone() -> None:
    errors, targets = torch.tensor([0.2, 0.2]), torch.tensor([True, False])
    plain, weighted = est_loss(errors, targets), est_loss(errors, targets, weight=7.0)
    assert weighted[0] == pytest.approx(7 * plain[0].item())
    assert weighted[1] == plain[1]


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("boundary", [True, False])
def test_both_losses_are_finite_at_zero_and_one(value: float, boundary: bool) -> None:
    errors = torch.full((2, 12), value, requires_grad=True)
    targets = torch.full((2, 12), boundary)
    loss = est_loss(errors, targets).sum() + est_loss(region_mean(errors, 9, whole(errors)), targets).sum()
    loss.backward()
    assert loss.isfinite()
    assert errors.grad is not None
    assert errors.grad.isfinite().all()


def test_the_region_is_divided_by_its_number_of_terms() -> None:
    # The paper divides K + 1 terms by K: a region of errors of 1 would then have a mean above 1.
    errors = torch.ones(1, 15)
    assert region_mean(errors, 9, whole(errors)).tolist() == [[1.0] * 15]
    rising = torch.arange(15.0)[None]
    assert region_mean(rising, 9, whole(rising))[0, 12].item() == sum(range(3, 13)) / 10
    assert region_mean(rising, 9, whole(rising))[0, 3].item() == (0 + 1 + 2 + 3) / 4


def test_rest_is_est_of_the_region_mean() -> None:
    torch.manual_seed(0)
    errors, targets = torch.rand(3, 20), torch.rand(3, 20) < 0.2
    wanted = est_loss(region_mean(errors, 9, whole(errors)), targets, 3.0)
    assert torch.equal(
        total_loss(errors, targets, whole(errors), region=9, alpha=1.0, weight=3.0, est=False), wanted
    )


def test_balancing_balances() -> None:
    targets = torch.tensor([True] * 2 + [False] * 8)
    everywhere = torch.ones(10, dtype=torch.bool)
    weight = balancing_weight(targets, everywhere)
    assert weight.item() == 4.0
    each = est_loss(torch.full((10,), 0.5), targets, weight)
    assert each[targets].sum().item() == pytest.approx(each[~targets].sum().item())


@pytest.mark.parametrize("boundary", [True, False])
def test_a_batch_of_one_kind_weighs_one(boundary: bool) -> None:
    targets = torch.full((6,), boundary)
    assert balancing_weight(targets, torch.ones(6, dtype=torch.bool)).item() == 1.0
    assert balancing_weight(targets, torch.zeros(6, dtype=torch.bool)).item() == 1.0


def literal_total(errors: Tensor, targets: Tensor, alpha: float, weight: float) -> Tensor:
    """The paper's L(ε_t, t) for one target, from its own K + 1 errors (K + 1,) and labels (K + 1,)."""
    rest = est_loss(errors.mean(), targets[-1], weight)
    return alpha * rest + est_loss(errors, targets, weight).sum()


@pytest.mark.parametrize(("est", "rest"), [(True, True), (True, False), (False, True)])
def test_shared_windows_equal_the_literal_form_gradients_included(est: bool, rest: bool) -> None:
    window, region, weight, alpha = 4, 3, 2.5, 0.5
    torch.manual_seed(0)
    config = AnticipatorConfig(dim=10, width=16, heads=2, ffn=16, window=window, layers=2)
    model = ConsistentEventAnticipator(config).double()
    features = torch.rand(2, 20, 10, dtype=torch.float64)
    targets = torch.rand(2, 20) < 0.3

    # Shared: a run of 20 features has 16 errors; those of the first `region` serve as context.
    errors = prediction_errors(features[:, window:], model(features[:, :-1]))
    each = total_loss(
        errors,
        targets[:, window:],
        whole(errors),
        region=region,
        alpha=alpha,
        weight=weight,
        est=est,
        rest=rest,
    )
    shared = each[:, region:].mean()
    wanted_gradients = torch.autograd.grad(shared, list(model.parameters()))

    # Literal: every target has K + 1 windows of its own.
    losses = []
    for row in range(2):
        for t in range(window + region, 20):
            frames = range(t - region, t + 1)
            windows = torch.stack([features[row, i - window : i] for i in frames])  # (K + 1, L, D)
            own = prediction_errors(features[row, t - region : t + 1], model(windows)[:, 0])
            labels = targets[row, t - region : t + 1]
            loss = literal_total(own, labels, alpha if rest else 0.0, weight)
            if not est:
                loss = loss - est_loss(own, labels, weight).sum()
            losses.append(loss)
    literal = torch.stack(losses).mean()
    gradients = torch.autograd.grad(literal, list(model.parameters()))

    torch.testing.assert_close(shared, literal, rtol=1e-6, atol=1e-6)
    for ours, theirs in zip(wanted_gradients, gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_a_region_stops_at_the_start_of_its_video() -> None:
    torch.manual_seed(0)
    errors, targets = torch.rand(1, 8), torch.rand(1, 8) < 0.3
    lead = torch.tensor([[5, 6, -1, 0, 1, 2, 3, 4]])  # a video ends after two places, another one begins
    joined = total_loss(errors, targets, lead, region=3)
    alone = total_loss(errors[:, 3:], targets[:, 3:], whole(errors[:, 3:]), region=3)
    torch.testing.assert_close(joined[:, 3:], alone)
