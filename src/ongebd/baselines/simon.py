"""Sim-On with a boundary head: attends to the last 6 frames and to its own past probabilities. Needs torch.

Tang, Park, Kim and Sohn: SimOn: A Simple Framework for Online Temporal Action Localization. 2022
(arXiv:2211.04905).

Facts on the shape and the training are those of its public configuration (github.com/TuanTNG/SimOn); the
code here is our own. Where a choice is ours: a probability is fed back as the pair (p, 1 − p), the two
classes that a one-logit head stands for; it is fed back without gradient, as published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ongebd.baselines.attention import DecoderLayer, sinusoids
from ongebd.baselines.network import (
    Dropout,
    Layers,
    Layout,
    NetworkConfig,
    OnlineNetwork,
    Size,
    binary_losses,
    latest,
)


@dataclass(frozen=True, kw_only=True)
class SimOnConfig(NetworkConfig):
    """The shape of a Sim-On; the published one has 3,295,489 parameters."""

    width: Size = 256
    """Numbers in a token."""
    layers: Layers = 4
    """Decoder layers."""
    heads: Size = 8
    """Their attention heads."""
    ffn: Size = 256
    """Width of their feed-forward networks."""
    history: Size = 6
    """Frames before the newest, and probabilities, that it looks at."""
    dropout: Dropout = 0.1
    """Everywhere."""
    run: Size = 128
    """Neighbouring frames that are trained together, one after the other."""

    shared_by: ClassVar[tuple[str, ...]] = ("heads",)


class SimOnState(NamedTuple):
    """B streams.

    Attributes:
        frames: The last frames as tokens, oldest first, (B, history, W).
        chances: Their probabilities, (B, history).
        before: How many frames there were, up to `history` + 1, (B,).
    """

    frames: Tensor
    chances: Tensor
    before: Tensor


class SimOn(OnlineNetwork[SimOnState]):
    """Decoder layers in which the newest frame attends to those before it and to their probabilities.

    A learned token stands before the first frame of a stream, as published; what would lie before that is
    masked out. A frame's position is counted from the newest one backwards.

    >>> network = SimOn(SimOnConfig(dim=16, width=8, heads=2, ffn=8)).eval()
    >>> network(torch.rand(2, 5, 16)).shape
    torch.Size([2, 5])
    """

    method: ClassVar[str] = "simon"
    shape: SimOnConfig
    focus: ClassVar[float] = 2.0
    """γ of the focal loss."""
    balance: ClassVar[float] = 0.25
    """α of the focal loss."""
    _positions: Tensor

    def __init__(self, config: SimOnConfig = SimOnConfig()) -> None:
        super().__init__()
        self.shape = config
        width = config.width
        self.embed = nn.Linear(config.dim, width)
        self.begin = nn.Parameter(torch.randn(width))
        self.chance = nn.Linear(2, width)
        self.join = nn.Linear(2 * width, width)
        drop = config.dropout
        self.decoder = nn.ModuleList(
            DecoderLayer(width, config.heads, config.ffn, dropout=drop, attention_dropout=drop)
            for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("_positions", sinusoids(config.history + 1, width), persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """(B, T, D) → logits (B, T), one after the other: each needs the probabilities before it."""
        streams, length, _ = features.shape
        before = torch.arange(length, device=features.device).expand(streams, -1)
        tokens = self.embed(features)  # (B, T, W), the greater part of the work
        return self._logits(functional.pad(tokens, (0, 0, self.shape.history, 0)), before)

    def start(self, streams: int = 1) -> SimOnState:
        """No frame before."""
        frames = self.zeros(streams, self.shape.history, self.shape.width)
        return SimOnState(frames, frames[..., 0].clone(), self.zeros(streams).long())

    def step(self, feature: Tensor, state: SimOnState) -> tuple[Tensor, SimOnState]:
        """(B, D) → logits (B,)."""
        token = self.embed(feature)
        logits = self._judge(token, *state)
        chances = latest(state.chances, logits.detach().sigmoid())
        before = (state.before + 1).clamp_max(self.shape.history + 1)
        return logits, SimOnState(latest(state.frames, token), chances, before)

    def layout(self) -> Layout:
        """Neighbouring frames; those before them that give the first probabilities have no loss."""
        history = self.shape.history
        return Layout(history + 1, history, self.shape.run)

    def losses(self, frames: Tensor, targets: Tensor, lead: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Focal cross-entropy (Lin et al., 2017): each is multiplied by α_t · (1 − p_t)^γ."""
        tokens = self.embed(frames[:, 1:])  # `history` frames before the first target's
        logits = self._logits(tokens, (lead + 1).clamp_min(0))[:, -self.shape.run :]
        truth = targets[:, -self.shape.run :].bool()
        chance = logits.sigmoid()
        wrong = torch.where(truth, 1 - chance, chance)
        balance = torch.where(truth, self.balance, 1 - self.balance)
        return balance * wrong**self.focus * binary_losses(logits, truth, weight)

    def _logits(self, tokens: Tensor, before: Tensor) -> Tensor:
        """Logits (B, T) of the last T of the tokens (B, history + T, W); `before`: where each stands."""
        history = self.shape.history
        chances = tokens.new_zeros(len(tokens), history)
        logits = []
        for place in range(before.shape[1]):
            newest, frames = tokens[:, place + history], tokens[:, place : place + history]
            logit = self._judge(newest, frames, chances, before[:, place])
            chances = latest(chances, logit.detach().sigmoid())
            logits.append(logit)
        return torch.stack(logits, dim=1)

    def _judge(self, newest: Tensor, frames: Tensor, chances: Tensor, before: Tensor) -> Tensor:
        """Logits (B,) of the newest frames (B, W) from those before (B, history, W)."""
        history = self.shape.history
        lag = torch.arange(history, 0, -1, device=newest.device)  # (history,)
        beyond = lag > before[:, None]  # (B, history): before the first frame of its stream
        first = lag == before[:, None] + 1
        frames = torch.where(beyond[..., None], self.begin.to(frames.dtype), frames)
        chances = torch.where(beyond, 0, chances)
        placed = self.dropout(frames + self._positions[:-1])
        chance = self.chance(torch.stack([chances, 1 - chances], dim=-1))  # (B, history, W)
        memory = self.join(torch.cat([placed, chance], dim=-1))
        visible = (~beyond | first)[:, None, None]  # (B, 1, 1, history)
        x = self.dropout(newest + self._positions[-1])[:, None]  # (B, 1, W)
        for layer in self.decoder:
            x = layer(x, memory, across_mask=visible)
        logits: Tensor = self.head(self.norm(x)).flatten()
        return logits
