"""The score of every frame of many videos: errors or probabilities of a network, errors without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ongebd.baselines.network import OnlineNetwork
from ongebd.data.files import FloatArray
from ongebd.data.labelled import LabelledVideo
from ongebd.data.windows import build_tape, stretches
from ongebd.estimator.anticipation import Metric
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.losses import prediction_errors
from ongebd.lab.training.batches import Features
from ongebd.offline.whole_video import ScoreVideo, rate_of

Naive = Literal["persistence", "window-mean"]

_RUN, _RUNS = 128, 16  # targets in a run, and runs that are computed together
_STREAMS, _FRAMES = 16, 8192  # of a baseline, computed together: memory doesn't grow with a stream's length

FramesToErrors = Callable[[Tensor, Tensor], Tensor]
"""From features (S, F, D) and the number of errors before each (S, F − L) to errors (S, F − L)."""


def frame_errors(model: ConsistentEventAnticipator, frames: Tensor) -> Tensor:
    """The error of every frame of a run but the first L, or a classifier's probability.

    Args:
        model: The network.
        frames: Features of runs, (S, F, D), any floating type.

    Returns:
        float32, (S, F − L).
    """
    length = model.config.window
    inputs = frames.float()  # once per frame, not once per window; fused with autocast's own cast
    if model.config.head == "classifier":  # its L frames end with the frame in question
        logits: Tensor = model(inputs[:, 1:])
        return logits.float().squeeze(-1).sigmoid()
    anticipated = model(inputs[:, :-1])  # (S, F − L, D)
    return prediction_errors(frames[:, length:], anticipated, model.config.metric)


def errors_of_model(
    model: ConsistentEventAnticipator, videos: Sequence[LabelledVideo], features: Features
) -> list[FloatArray]:
    """ε of each frame of each video by a network, (T,), in float32 like the stream.

    The first frame of each stretch, which nothing predicts, has NaN.
    """
    model.eval()
    return _errors(lambda frames, _: frame_errors(model, frames), videos, features, model.config.window)


def errors_of_naive(
    name: Naive,
    videos: Sequence[LabelledVideo],
    features: Features,
    *,
    window: int,
    metric: Metric = "cosine",
) -> list[FloatArray]:
    """The same by persistence or by the window's mean (`ongebd.baselines.naive`)."""

    def errors(frames: Tensor, lead: Tensor) -> Tensor:
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

    return _errors(errors, videos, features, window)


@torch.no_grad()
def _errors(
    errors: FramesToErrors, videos: Sequence[LabelledVideo], features: Features, window: int
) -> list[FloatArray]:
    tape = build_tape(videos, window=window, region=0, run=_RUN)
    span = np.arange(tape.frames_in_run)
    first = np.arange(0, len(tape.rows) - len(span) + 1, _RUN)
    groups = [first[start : start + _RUNS] for start in range(0, len(first), _RUNS)]
    rows = (tape.rows[group[:, None] + span] for group in groups)
    out = np.full(sum(map(len, videos)), np.nan)
    for group, frames in zip(groups, features.stream(rows), strict=True):
        places = group[:, None] + span[window:]  # (S, run)
        lead = tape.lead[places]
        found = errors(frames, torch.from_numpy(lead).to(features.device)).double().cpu().numpy()
        out[tape.rows[places][lead >= 0]] = found[lead >= 0]
    return np.split(out, np.cumsum([len(video) for video in videos])[:-1])


@torch.no_grad()
def probabilities_of_baseline(
    network: OnlineNetwork[Any], videos: Sequence[LabelledVideo], features: Features
) -> list[FloatArray]:
    """The probability of each frame of each video, (T,); NaN for the first of each stretch.

    Each stretch is one stream; streams of similar length are computed together.
    """
    ends = np.cumsum([0, *map(len, videos)])
    spans = [
        (int(start) + first, int(start) + end)
        for video, start in zip(videos, ends, strict=False)
        for first, end in stretches(video.epochs)
    ]
    groups = group_by_length(spans)
    # A shorter stream is padded with its last frame; methods are online, so earlier frames don't change.
    lengths = [np.arange(group[-1][1] - group[-1][0]) for group in groups]
    rows = (
        np.stack([np.minimum(first + length, end - 1) for first, end in group])
        for group, length in zip(groups, lengths, strict=True)
    )
    out = np.full(int(ends[-1]), np.nan)
    network.eval()
    for group, frames in zip(groups, features.stream(rows), strict=True):
        chances = network(frames.float()).float().sigmoid().double().cpu().numpy()  # (S, T)
        for (first, end), each in zip(group, chances, strict=True):
            out[first + 1 : end] = each[1 : end - first]
    return np.split(out, ends[1:-1])


def scores_of_videos(score: ScoreVideo, videos: Sequence[LabelledVideo]) -> list[FloatArray]:
    """The scores of each video's frames by an offline system, (T,); each stretch is a video of its own.

    The first frame of each, which ends nothing, has NaN.
    """
    found = []
    for video in videos:
        scores = np.full(len(video), np.nan)
        for first, end in stretches(video.epochs):
            part = np.asarray(video.features[first:end], np.float32)
            scores[first + 1 : end] = score(part, rate_of(video.times[first:end]))[1:]
        found.append(scores)
    return found


def group_by_length(spans: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Stretches (first, end) in groups of similar length, longest last; groups of long ones are smaller."""
    groups: list[list[tuple[int, int]]] = []
    for span in sorted(spans, key=lambda span: span[1] - span[0]):
        room = min(_STREAMS, _FRAMES // (span[1] - span[0]))
        if groups and len(groups[-1]) < room:
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups
