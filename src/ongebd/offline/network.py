"""What the trained offline systems have in common. Needs torch.

A network takes a *clip*: a fixed number of frames of one video, taken at the rate that its authors use. A
shorter video is filled up with its last frame, and a mask says which frames are real. The network gives
each frame's logit of being a boundary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ongebd.baselines.network import NetworkConfig, Size, binary_losses
from ongebd.common.settings import Range
from ongebd.offline.whole_video import Scores, spread, stride_of

_CLIPS = 16  # scored together
Rate = Annotated[float, Range(above=0, most=1000)]


@dataclass(frozen=True, kw_only=True)
class OfflineConfig(NetworkConfig):
    """The shape of a system, and the clips it takes; the defaults are the published ones."""

    fps: Rate = 8.0
    """Frames a second that it looks at."""
    length: Size = 100
    """Frames in a clip."""


class OfflineNetwork(nn.Module, ABC):
    """A network that reads clips and scores their frames."""

    method: ClassVar[str]
    """The name under which it is loaded."""
    Shape: ClassVar[type[OfflineConfig]]
    """The class of its configuration."""
    scope: ClassVar[int | None] = None
    """How boundaries are chosen; see `ongebd.offline.whole_video.spread`."""
    shape: OfflineConfig
    """Its configuration."""

    @abstractmethod
    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        """Logits (B, N) of clips (B, N, D); `real`, (B, N), is False for frames that fill up a clip."""

    def losses(self, frames: Tensor, targets: Tensor, real: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """The loss of each frame, (B, N); meaningless where `real` is False.

        Args:
            frames: Features, (B, N, D).
            targets: y, (B, N).
            real: See `forward`.
            weight: Of the loss of boundaries.
        """
        return binary_losses(self(frames, real), targets, weight)

    def scores(self, frames: Tensor, real: Tensor) -> Tensor:
        """What the threshold is compared with, (B, N)."""
        return torch.sigmoid(self(frames, real))

    @torch.no_grad()
    def score_video(self, features: npt.NDArray[np.floating], fps: float) -> Scores:
        """The scores (T,) of an unbroken video's features (T, D).

        Clips overlap by half; at a clip's ends those beside it know better.
        """
        stride, length = stride_of(fps, self.shape.fps), self.shape.length
        rows = np.arange(0, len(features), stride)
        clips = clips_of(len(rows), length, max(1, length // 2))
        places = np.minimum(clips[:, None] + np.arange(length), len(rows) - 1)  # (C, N)
        weights = next(self.parameters())
        known = np.zeros(len(rows))
        for begin in range(0, len(clips), _CLIPS):
            some = slice(begin, begin + _CLIPS)
            frames = torch.from_numpy(np.asarray(features[rows[places[some]]], np.float32))
            real = torch.from_numpy(clips[some, None] + np.arange(length) < len(rows))
            given = frames.to(weights.device, weights.dtype), real.to(weights.device)
            found = self.scores(*given).double().cpu().numpy()
            for clip, scores in zip(clips[some], found, strict=True):
                skip = (length - length // 2) // 2 if clip else 0  # the clip before knows these better
                end = min(len(rows), clip + length)
                known[clip + skip : end] = scores[skip : end - clip]
        return spread(known, len(features), stride, self.scope)


def clips_of(frames: int, length: int, step: int) -> npt.NDArray[np.int64]:
    """The first frames of the clips that cover so many frames.

    >>> clips_of(250, 100, 50), clips_of(30, 100, 50)
    (array([  0,  50, 100, 150]), array([0]))
    """
    return step * np.arange(1 + max(0, -(-(frames - length) // step)))


def centres(targets: Tensor) -> Tensor:
    """The middle frame of each run of positive ones, (B, N).

    >>> centres(torch.tensor([[0, 1, 1, 1, 0, 1, 0, 1, 1]]).bool()).int()
    tensor([[0, 0, 1, 0, 0, 1, 0, 0, 1]], dtype=torch.int32)
    """
    before = _run_so_far(targets)
    apart = before - _run_so_far(targets.flip(1)).flip(1)
    return targets & ((apart == 0) | (apart == 1))


def _run_so_far(targets: Tensor) -> Tensor:
    """How many positive frames end with each one."""
    count = targets.long().cumsum(1)
    return count - torch.where(targets, 0, count).cummax(1).values


def bells(targets: Tensor, sigma: float = 1.0) -> Tensor:
    """Soft targets: a Gaussian around the middle of each run of positive frames, at most 1; (B, N)."""
    middle = centres(targets).float()
    place = torch.arange(targets.shape[1], device=targets.device)
    bell = torch.exp(-0.5 * ((place[:, None] - place) / sigma) ** 2)
    return (middle @ bell).clamp_max(1.0)


def windows(sequence: Tensor, side: int) -> Tensor:
    """The 2 · side + 1 frames around each one, (B, N, C) → (B, N, 2 · side + 1, C); the ends are repeated."""
    place = torch.arange(sequence.shape[1], device=sequence.device)
    around = place[:, None] + torch.arange(-side, side + 1, device=sequence.device)
    return sequence[:, around.clamp(0, sequence.shape[1] - 1)]
