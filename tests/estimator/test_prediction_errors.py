"""The prediction error: in training (torch, many frames) and in the stream (numpy, one frame)."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ongebd.estimator.anticipation import ERRORS, Metric
from ongebd.estimator.losses import min_max_normalised, prediction_errors


@pytest.mark.parametrize("metric", ERRORS)
def test_training_and_stream_agree(metric: Metric) -> None:
    rng = np.random.default_rng(0)
    features, anticipated = rng.standard_normal((2, 7, 40)).astype(np.float32)
    many = prediction_errors(torch.from_numpy(features), torch.from_numpy(anticipated), metric)
    single = [ERRORS[metric](f, g) for f, g in zip(features, anticipated, strict=True)]
    np.testing.assert_allclose(many.numpy(), single, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("metric", ERRORS)
def test_an_error_is_smallest_where_the_anticipation_is_right(metric: Metric) -> None:
    feature = torch.rand(30)
    assert prediction_errors(feature, feature, metric).item() == pytest.approx(0, abs=1e-6)
    assert prediction_errors(feature, feature.flip(0), metric).item() > 0.001


def test_the_cosine_error_spans_zero_to_one() -> None:
    east = torch.tensor([1.0, 0.0])
    others = torch.tensor([[3.0, 0.0], [0.0, 2.0], [-1.0, 0.0]])
    assert prediction_errors(east.expand(3, 2), others).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("metric", ERRORS)
def test_a_zero_norm_makes_no_nan(metric: Metric) -> None:
    anticipated = torch.zeros(2, 6, requires_grad=True)
    features = torch.stack([torch.zeros(6), torch.rand(6)])
    errors = prediction_errors(features, anticipated, metric)
    errors.sum().backward()
    assert errors.isfinite().all()
    assert anticipated.grad is not None
    assert anticipated.grad.isfinite().all()
    if metric == "cosine":
        assert errors.tolist() == [0.5, 0.5]


def test_half_precision_features_lose_nothing_more() -> None:
    features = (torch.rand(5, 2048) * 30).half()
    anticipated = features.float() + torch.randn(5, 2048) * 0.01
    exact = prediction_errors(features.double(), anticipated.double())
    torch.testing.assert_close(prediction_errors(features, anticipated), exact, atol=2e-7, rtol=0)


def test_min_max_looks_at_known_errors_only() -> None:
    errors = torch.tensor([[5.0, 1.0, 3.0, 100.0]], requires_grad=True)
    known = torch.tensor([[True, True, True, False]])
    scaled = min_max_normalised(errors, known)
    assert scaled.tolist() == [[1.0, 0.0, 0.5, 1.0]]
    assert min_max_normalised(torch.full((3,), 2.0), torch.ones(3, dtype=torch.bool)).tolist() == [0.0] * 3
