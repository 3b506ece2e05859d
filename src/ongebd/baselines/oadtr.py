"""OadTR with a boundary head: a transformer over the last 64 frames, which guesses the next 8. Needs torch.

Wang, Zhang, Qing, Shao, Zuo, Gao and Sang: OadTR: Online Action Detection with Transformers. ICCV 2021.

Facts on the shape and the training are those of its public configuration (github.com/wangxiang1230/OadTR);
the code here is our own. The published code makes learned positions for the decoder's queries and leaves them
unused; here they are added, since a learned query plus a learned position is a learned query, and the count
of parameters stays the published one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ongebd.baselines.attention import Attention, DecoderLayer, causal_mask
from ongebd.baselines.network import (
    Dropout,
    Layers,
    Layout,
    NetworkConfig,
    OnlineNetwork,
    Size,
    begun_with_still,
    binary_losses,
    chunks,
    latest,
    sliding,
)

_TOGETHER = 64  # windows that are computed together


@dataclass(frozen=True, kw_only=True)
class OadTrConfig(NetworkConfig):
    """The shape of an OadTR; the published one has 73,595,906 parameters."""

    width: Size = 1024
    """Numbers in a token."""
    window: Size = 64
    """Frames that it looks at, the newest included."""
    encoder_layers: Layers = 3
    """Layers over the frames and the class token."""
    encoder_heads: Size = 8
    """Their attention heads."""
    decoder_layers: Layers = 5
    """Layers over the queries for the frames to come."""
    decoder_heads: Size = 4
    """Their attention heads."""
    ffn: Size = 1024
    """Width of the feed-forward networks."""
    future: Size = 8
    """Frames to come that are guessed."""
    dropout: Dropout = 0.1
    """Everywhere."""
    run: Size = 32
    """Neighbouring windows that are trained together, so that labels of the frames to come are at hand."""

    shared_by: ClassVar[tuple[str, ...]] = ("encoder_heads", "decoder_heads")


class OadTrState(NamedTuple):
    """B streams.

    Attributes:
        window: The last frames as tokens, (B, window, W); meaningless before the first.
        seen: Whether there was a first, (B,).
    """

    window: Tensor
    seen: Tensor


class EncoderLayer(nn.Module):
    """A pre-LN transformer encoder layer without biases for query, key and value: (B, N, W) → (B, N, W)."""

    def __init__(self, config: OadTrConfig) -> None:
        super().__init__()
        self.attention = Attention(config.width, config.encoder_heads, bias=False, dropout=config.dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in range(2))
        self.up = nn.Linear(config.width, config.ffn)
        self.down = nn.Linear(config.ffn, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, W) → (B, N, W)."""
        normed = self.norms[0](x)
        x = x + self.dropout(self.attention(normed, normed))
        inner = self.dropout(functional.gelu(self.up(self.norms[1](x))))
        out: Tensor = x + self.dropout(self.down(inner))
        return out


def _decoder_layer(config: OadTrConfig) -> DecoderLayer:
    drop, gelu = config.dropout, functional.gelu
    heads = config.decoder_heads
    return DecoderLayer(
        config.width, heads, config.ffn, activation=gelu, dropout=drop, attention_dropout=drop
    )


class OadTr(OnlineNetwork[OadTrState]):
    """Encoder over the window with a class token at its end, decoder over queries for the frames to come.

    The boundary head sees the class token and the mean of the decoder's tokens. Until the window is full, the
    first frame fills it, like a still picture.

    >>> config = OadTrConfig(dim=16, width=8, window=4, encoder_heads=2, decoder_heads=2, ffn=8)
    >>> OadTr(config).eval()(torch.rand(2, 5, 16)).shape
    torch.Size([2, 5])
    """

    method: ClassVar[str] = "oadtr"
    shape: OadTrConfig
    future_share: ClassVar[float] = 0.5
    """What the loss on the frames to come is multiplied by."""

    def __init__(self, config: OadTrConfig = OadTrConfig()) -> None:
        super().__init__()
        self.shape = config
        width = config.width
        self.embed = nn.Linear(config.dim, width)
        self.token = nn.Parameter(torch.randn(width) * 0.02)
        self.positions = nn.Parameter(torch.randn(config.window + 1, width) * 0.02)
        self.encoder = nn.Sequential(*(EncoderLayer(config) for _ in range(config.encoder_layers)))
        self.encoder_norm = nn.LayerNorm(width)
        self.queries = nn.Parameter(torch.randn(config.future, width) * 0.02)
        self.query_positions = nn.Parameter(torch.randn(config.future, width) * 0.02)
        self.decoder = nn.ModuleList(_decoder_layer(config) for _ in range(config.decoder_layers))
        self.decoder_norm = nn.LayerNorm(width)
        self.head = nn.Linear(2 * width, 1)
        self.future_head = nn.Linear(width, 1)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, features: Tensor) -> Tensor:
        """(B, T, D) → logits (B, T)."""
        tokens = begun_with_still(self.embed(features), self.shape.window - 1)
        windows = sliding(tokens, self.shape.window)  # (B, T, window, W)
        parts = [
            self.judge(windows[:, part].flatten(0, 1))[0].view(len(features), -1)
            for part in chunks(features.shape[1], _TOGETHER)
        ]
        return torch.cat(parts, dim=1)

    def judge(self, window: Tensor) -> tuple[Tensor, Tensor]:
        """The newest frame of each window, and those to come.

        Args:
            window: Tokens, oldest first, (B, window, W).

        Returns:
            Logits (B,), and of the frames to come (B, future).
        """
        batch = len(window)
        x = torch.cat([window, self.token.expand(batch, 1, -1)], dim=1) + self.positions
        memory = self.encoder_norm(self.encoder(self.dropout(x)))  # (B, window + 1, W)
        y = (self.queries + self.query_positions).expand(batch, -1, -1)
        causal = causal_mask(self.shape.future, y.device)
        for layer in self.decoder:
            y = layer(y, memory, within_mask=causal)
        y = self.dropout(self.decoder_norm(y))  # (B, future, W)
        both = torch.cat([memory[:, -1], y.mean(dim=1)], dim=-1)
        return self.head(both).squeeze(-1), self.future_head(y).squeeze(-1)

    def start(self, streams: int = 1) -> OadTrState:
        """An empty window."""
        empty = self.zeros(streams, self.shape.window, self.shape.width)
        return OadTrState(empty, self.zeros(streams).bool())

    def step(self, feature: Tensor, state: OadTrState) -> tuple[Tensor, OadTrState]:
        """(B, D) → logits (B,)."""
        token = self.embed(feature)  # (B, W)
        filled = torch.where(state.seen[:, None, None], state.window, token[:, None])
        window = latest(filled, token)
        return self.judge(window)[0], OadTrState(window, torch.ones_like(state.seen))

    def layout(self) -> Layout:
        """Neighbouring windows."""
        return Layout(max(1, self.shape.window - 1), 0, self.shape.run)

    def losses(self, frames: Tensor, targets: Tensor, lead: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Cross-entropy on the newest frame, and half of that on the frames to come.

        The latter is the mean over those with a known label: in the run and in the same stream.
        """
        runs, count = targets.shape
        windows = sliding(self.embed(frames)[:, -count - self.shape.window + 1 :], self.shape.window)
        logits, future = self.judge(windows.flatten(0, 1))
        each = binary_losses(logits.view(runs, count), targets, weight)
        ahead = torch.arange(1, self.shape.future + 1, device=frames.device)
        places = torch.arange(count, device=frames.device)[:, None] + ahead  # (R, future)
        inside = places.clamp_max(count - 1)
        same = (places < count) & (lead[:, inside] == lead[..., None] + ahead)  # (S, R, future)
        guessed = binary_losses(future.view(runs, count, -1), targets[:, inside], weight)
        mean = (guessed * same).sum(-1) / same.sum(-1).clamp_min(1)
        return each + self.future_share * mean
