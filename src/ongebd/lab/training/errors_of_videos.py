"""The error of every frame of many videos: by the network, and by anticipators that need no training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ongebd.data.labelled import LabelledVideo
from ongebd.data.numbers import FloatArray
from ongebd.data.windows import IntArray, build_tape
from ongebd.estimator.anticipation import Metric
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.torch_errors import prediction_errors
from ongebd.lab.training.batches import Features
from ongebd.lab.training.objective import frame_errors

Naive = Literal["persistence", "window-mean"]

_RUN, _RUNS = 128, 16  # targets in a run, and runs that are computed together

FramesToErrors = Callable[[Tensor, Tensor], Tensor]
"""From features (S, F, D) and the errors before each (S, F − L) to errors (S, F − L)."""


def errors_of_model(
    model: ConsistentEventAnticipator,
    videos: Sequence[LabelledVideo],
    features: Features,
    device: torch.device,
) -> list[FloatArray]:
    """ε of each frame by a network, in float32 as the stream has it.

    Args:
        model: The network; it is left in the mode in which it was.
        videos: The videos.
        features: Their features.
        device: Where the network is.

    Returns:
        For each video, shape (T,); NaN for the first frame of each stretch, which nothing predicts.
    """
    was_training = model.training
    model.eval()
    try:
        return _errors(
            lambda frames, _: frame_errors(model, frames), videos, features, device, model.config.window
        )
    finally:
        model.train(was_training)


def errors_of_naive(
    name: Naive,
    videos: Sequence[LabelledVideo],
    features: Features,
    device: torch.device,
    *,
    window: int,
    metric: Metric = "cosine",
) -> list[FloatArray]:
    """The same by persistence or by the window's mean (`ongebd.baselines.naive`)."""

    def judge(frames: Tensor, lead: Tensor) -> Tensor:
        frames = frames.float()
        last = frames[:, window - 1 : -1]  # (S, F − L, D): f_{t−1}
        if name == "persistence":
            return prediction_errors(frames[:, window:], last, metric)
        known = (lead + 1).clamp(1, window)  # how many features the stream has by then
        unit = frames / torch.linalg.vector_norm(frames, dim=-1, keepdim=True).clamp_min(1e-12)
        total = torch.zeros_like(last)
        for back in range(1, window + 1):
            part = unit[:, window - back : frames.shape[1] - back]
            total = total + part * (back <= known).unsqueeze(-1)
        return prediction_errors(frames[:, window:], total / known.unsqueeze(-1), metric)

    return _errors(judge, videos, features, device, window)


@torch.no_grad()
def _errors(
    judge: FramesToErrors,
    videos: Sequence[LabelledVideo],
    features: Features,
    device: torch.device,
    window: int,
) -> list[FloatArray]:
    tape = build_tape(videos, window=window, region=0, run=_RUN)
    span = np.arange(tape.frames_in_run)
    first = np.arange(0, len(tape.rows) - len(span) + 1, _RUN)
    groups = [first[start : start + _RUNS] for start in range(0, len(first), _RUNS)]

    def rows() -> Iterator[IntArray]:
        return (tape.rows[group[:, None] + span] for group in groups)

    out = np.full(sum(map(len, videos)), np.nan)
    for group, frames in zip(groups, features.stream(rows()), strict=True):
        places = group[:, None] + span[window:]  # (S, run)
        lead = tape.lead[places]
        errors = judge(frames, torch.from_numpy(lead).to(device)).double().cpu().numpy()
        out[tape.rows[places][lead >= 0]] = errors[lead >= 0]
    edges = np.cumsum([len(video) for video in videos])[:-1]
    return np.split(out, edges)
