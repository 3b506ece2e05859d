"""MiniROAD with a boundary head: one GRU, trained on the last step of a window. Needs torch.

An, Kang, Han, Yang and Kim: MiniROAD: Minimal RNN Framework for Online Action Detection. ICCV 2023. Its point
is the loss: training windows are cut anywhere, so the early steps of one know less of the past than the same
frames do in a stream, and only the last step is trained.

Facts on the shape and the training are those of its public configuration (github.com/jbistanbul/MiniROAD);
the code here is our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from ongebd.baselines.network import Dropout, Layout, NetworkConfig, OnlineNetwork, Size, binary_losses


@dataclass(frozen=True, kw_only=True)
class MiniRoadConfig(NetworkConfig):
    """The shape of a MiniROAD; the published one has 13,644,801 parameters."""

    embedding: Size = 2048
    """Numbers that the GRU takes."""
    hidden: Size = 1024
    """Numbers in its hidden state."""
    dropout: Dropout = 0.2
    """Dropout before the GRU."""
    window: Size = 128
    """Frames in a training window. In a stream there is none: the hidden state goes on."""
    stride: Size = 4
    """Frames between two training windows of one epoch."""


class MiniRoadState(NamedTuple):
    """B streams: the hidden state, (B, hidden)."""

    hidden: Tensor


class MiniRoad(OnlineNetwork[MiniRoadState]):
    """Linear, LayerNorm, ReLU, dropout; GRU; ReLU; boundary head.

    >>> network = MiniRoad(MiniRoadConfig(dim=16, embedding=8, hidden=8)).eval()
    >>> network(torch.rand(2, 5, 16)).shape
    torch.Size([2, 5])
    """

    method: ClassVar[str] = "miniroad"
    shape: MiniRoadConfig

    def __init__(self, config: MiniRoadConfig = MiniRoadConfig()) -> None:
        super().__init__()
        self.shape = config
        self.embed = nn.Sequential(
            nn.Linear(config.dim, config.embedding),
            nn.LayerNorm(config.embedding),
            nn.ReLU(),
            nn.Dropout(config.dropout),
        )
        self.gru = nn.GRU(config.embedding, config.hidden, batch_first=True)
        self.head = nn.Linear(config.hidden, 1)

    def forward(self, features: Tensor) -> Tensor:
        """(B, T, D) → logits (B, T)."""
        hidden, _ = self.gru(self.embed(features))  # (B, T, hidden), from a hidden state of zero
        return self._decide(hidden)

    def start(self, streams: int = 1) -> MiniRoadState:
        """A hidden state of zero."""
        return MiniRoadState(self.zeros(streams, self.shape.hidden))

    def step(self, feature: Tensor, state: MiniRoadState) -> tuple[Tensor, MiniRoadState]:
        """(B, D) → logits (B,)."""
        _, hidden = self.gru(self.embed(feature)[:, None], state.hidden[None])  # (1, B, hidden)
        return self._decide(hidden[0]), MiniRoadState(hidden[0])

    def layout(self) -> Layout:
        """A window for each target, which is its last frame."""
        return Layout(self.shape.window - 1, 0, 1, self.shape.stride)

    def losses(self, frames: Tensor, targets: Tensor, lead: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Cross-entropy on the last step of each window.

        A window at the start of a stream is as short as the stream: it begins with a hidden state of zero at
        the first frame, and not at a repetition of it.
        """
        runs, length, _ = frames.shape
        known = (lead[:, 0] + 2).clamp(1, length)  # (S,): frames of the window that are its stream's
        places = torch.arange(length, device=frames.device) + (length - known)[:, None]  # (S, window)
        row = torch.arange(runs, device=frames.device)
        begun = frames[row[:, None], places.clamp_max(length - 1)]  # moved to the left: (S, window, D)
        logits = self(begun)[row, known - 1]  # (S,)
        return binary_losses(logits[:, None], targets, weight)

    def _decide(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.head(hidden.relu()).squeeze(-1)
        return logits
