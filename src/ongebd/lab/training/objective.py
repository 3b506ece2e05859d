"""The loss of a batch of runs: the network, its errors and the paper's objective, as one module."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.losses import est_loss, total_loss
from ongebd.estimator.torch_errors import min_max_normalised, prediction_errors
from ongebd.lab.training.config import TrainConfig


class Objective(nn.Module):
    """From features to a loss. One module, so that compiling and DDP see all of it.

    Args:
        model: The network.
        config: Which losses, K and α.
    """

    def __init__(self, model: ConsistentEventAnticipator, config: TrainConfig) -> None:
        super().__init__()
        self.model = model
        self.config = config

    def forward(
        self, frames: Tensor, targets: Tensor, lead: Tensor, weight: Tensor, count: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The loss of S runs of R targets each.

        Args:
            frames: Features, (S, L + K + R, D), as `ongebd.data.windows` lays them.
            targets: y of the last K + R of them, (S, K + R).
            lead: How many errors precede each of those, negative where it has none itself, (S, K + R).
            weight: What the loss of boundaries is multiplied by, a scalar.
            count: What the sum over the targets is divided by, a scalar.

        Returns:
            The loss, and the errors that it was made of, (S, K + R), without gradient.
        """
        region = self.config.region
        errors = frame_errors(self.model, frames)
        known = lead >= 0
        bounded = errors
        if self.model.config.metric != "cosine" and not self.config.is_baseline:
            bounded = min_max_normalised(errors, known)
        if self.config.is_baseline:
            each = est_loss(bounded, targets, weight)  # the binary cross-entropy of the classifier
        else:
            config = self.config
            each = total_loss(
                bounded,
                targets,
                region=region,
                alpha=config.alpha,
                weight=weight,
                est=config.est,
                rest=config.rest,
                lead=lead,
            )
        each = torch.where(known, each, 0)[:, region:]  # (S, R): the places before are context
        return each.sum() / count, errors.detach()


def frame_errors(model: ConsistentEventAnticipator, frames: Tensor) -> Tensor:
    """The error of every frame of a run but the first L; a classifier's probability in its place.

    Args:
        model: The network.
        frames: Features of runs, (S, F, D), any floating type.

    Returns:
        float32, (S, F − L).
    """
    length = model.config.window
    inputs = frames.float()  # once a frame, not once a window; fused with autocast's own cast
    if model.config.head == "classifier":  # it looks at the L frames that end with the one in question
        logits: Tensor = model(inputs[:, 1:])
        return logits.float().squeeze(-1).sigmoid()
    anticipated = model(inputs[:, :-1])  # (S, F − L, D)
    return prediction_errors(frames[:, length:], anticipated, model.config.metric)
