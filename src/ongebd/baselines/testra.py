"""TeSTra with a boundary head: an endless, fading memory at a constant cost per frame. Needs torch.

Zhao and Krähenbühl: Real-time Online Video Detection with Temporal Smoothing Transformers. ECCV 2022. The
long memory is attended to by queries that do not depend on the stream, with weights that fade exponentially
by age. So numerator and denominator of that attention are running sums: a frame costs the same, however long
the stream is (its section on streaming attention).

Facts on the shape and the training are those of its public configuration with decay 0.97
(github.com/zhaoyue-zephyrus/TeSTra); the code here is our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Annotated, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from ongebd.baselines.attention import Attention, DecoderLayer, causal_mask, sinusoids
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
from ongebd.common.settings import Range

_TOGETHER = 128  # frames of all streams that are computed together
_HIDDEN = -1e30  # in place of −∞, whose softmax has no value where everything is hidden


@dataclass(frozen=True, kw_only=True)
class TeSTraConfig(NetworkConfig):
    """The shape of a TeSTra; the published one has 56,763,393 parameters."""

    width: Size = 1024
    """Numbers in a token."""
    heads: Size = 16
    """Attention heads."""
    ffn: Size = 1024
    """Width of the feed-forward networks."""
    first_queries: Size = 16
    """Tokens that the long memory is first compressed to, in one layer."""
    second_queries: Size = 32
    """Tokens that those are compressed to."""
    second_layers: Layers = 2
    """In so many layers."""
    decoder_layers: Layers = 2
    """Layers over the work memory."""
    work: Size = 32
    """Frames in the work memory, the newest included; a frame that leaves it enters the long memory."""
    long: Size = 512
    """Frames of the long memory in training. In a stream it has no end: what is older has faded away."""
    decay: Annotated[float, Range(above=0, most=1)] = 0.97
    """What a frame's weight in the long memory is multiplied by at each further frame."""
    dropout: Dropout = 0.2
    """Everywhere."""

    shared_by: ClassVar[tuple[str, ...]] = ("heads",)


class TeSTraState(NamedTuple):
    """B streams. Its size never changes.

    Attributes:
        work: The work memory's tokens, oldest first, (B, work, W).
        waiting: The same frames as tokens of the long memory, (B, work, W).
        seen: How many frames there were, up to `work`, (B,).
        peak: The largest faded score in the long memory, (B, H, Q, 1): the sums are relative to its
            exponential, and so never overflow.
        weight: The sum of the faded weights, (B, H, Q, 1).
        value: The sum of the values, each by its faded weight, (B, H, Q, W/H).
    """

    work: Tensor
    waiting: Tensor
    seen: Tensor
    peak: Tensor
    weight: Tensor
    value: Tensor


FadingSums = tuple[Tensor, Tensor, Tensor]
"""The long memory of B streams: `peak`, `weight` and `value` of `TeSTraState`."""


class FadingAttention(Attention):
    """Attention of constant queries to an endless past whose weights fade by age."""

    def __init__(self, config: TeSTraConfig) -> None:
        super().__init__(config.width, config.heads)
        self.fade = log(config.decay)

    def whole(self, asking: Tensor, memory: Tensor, age: Tensor) -> Tensor:
        """What the newest frame sees of T entries of the memory, all of them at hand.

        Args:
            asking: The queries, (1, Q, W).
            memory: (B, T, W).
            age: How many frames ago each entered the memory, negative where it has not, (B, T).

        Returns:
            (B, Q, W); the bias alone where a frame sees nothing.
        """
        query, key, value = map(self.split, (self.query(asking), self.key(memory), self.value(memory)))
        scores = query @ key.transpose(-1, -2) / sqrt(key.shape[-1])  # (B, H, Q, T)
        known = (age >= 0)[:, None, None]  # (B, 1, 1, T)
        faded = scores + self.fade * age[:, None, None]
        seen = (faded.masked_fill(~known, _HIDDEN).softmax(-1) * known) @ value
        out: Tensor = self.out(seen.transpose(1, 2).flatten(2))
        return out

    def through(
        self, asking: Tensor, entering: Tensor, age: Tensor, sums: FadingSums
    ) -> tuple[Tensor, FadingSums]:
        """What each of F frames sees of an endless memory that E entries join meanwhile.

        What came before is summed up already, so the cost depends on F and E and not on how long the stream
        is.

        Args:
            asking: The queries, (1, Q, W).
            entering: What joins while these frames pass, (B, E, W).
            age: How many frames before each of the F each entered, negative where it comes later, (F, E).
            sums: Of all that entered before, as they were at the frame before these.

        Returns:
            (B, F, Q, W), the bias alone where a frame sees nothing; and the sums at the last frame.
        """
        peak, before, summed = sums
        query, key, value = map(self.split, (self.query(asking), self.key(entering), self.value(entering)))
        scores = query @ key.transpose(-1, -2) / sqrt(key.shape[-1])  # (B, H, Q, E)
        known = age >= 0  # (F, E)
        faded = (scores[:, :, :, None] + self.fade * age).masked_fill(~known, _HIDDEN)  # (B, H, Q, F, E)
        carried = peak + self.fade * torch.arange(1, len(age) + 1, device=age.device)  # (B, H, Q, F)
        highest = torch.cat([carried[..., None], faded], dim=-1).amax(-1).clamp_min(_HIDDEN)
        fresh, old = (faded - highest[..., None]).exp() * known, (carried - highest).exp()
        weight = fresh.sum(-1) + old * before  # (B, H, Q, F)
        total = fresh @ value[:, :, None] + old[..., None] * summed[:, :, :, None]  # (B, H, Q, F, W/H)
        seen = torch.where(weight[..., None] > 0, total / weight[..., None].clamp_min(1e-30), 0)
        out: Tensor = self.out(seen.permute(0, 3, 2, 1, 4).flatten(3))
        return out, (highest[..., -1:], weight[..., -1:], total[:, :, :, -1])

    def add(self, asking: Tensor, token: Tensor, sums: FadingSums) -> FadingSums:
        """Let every memory fade by one frame, and a token (B, W) enter it."""
        peak, weight, value = sums
        query = self.split(self.query(asking))  # (1, H, Q, W/H)
        key, new = (
            self.split(self.key(token[:, None])),
            self.split(self.value(token[:, None])),
        )  # (B, H, 1, W/H)
        score = query @ key.transpose(-1, -2) / sqrt(key.shape[-1])  # (B, H, Q, 1)
        faded = peak + self.fade
        highest = torch.maximum(faded, score)
        old, fresh = (faded - highest).exp(), (score - highest).exp()
        return highest, weight * old + fresh, value * old + fresh * new

    def read(self, sums: FadingSums) -> Tensor:
        """What the queries see of the memory, (B, Q, W)."""
        _, weight, value = sums
        seen = torch.where(weight > 0, value / weight.clamp_min(1e-30), 0)
        out: Tensor = self.out(seen.transpose(1, 2).flatten(2))
        return out


def _layer(config: TeSTraConfig, across: nn.Module | None = None) -> DecoderLayer:
    return DecoderLayer(config.width, config.heads, config.ffn, dropout=config.dropout, across=across)


class TeSTra(OnlineNetwork[TeSTraState]):
    """Long memory → 16 tokens → 32 tokens; the work memory attends to those and, causally, to itself.

    Before the work memory is full the first frame stands in it repeatedly, as if a still picture had been
    shown; only real frames enter the long memory.

    >>> network = TeSTra(TeSTraConfig(dim=16, width=8, heads=2, ffn=8, work=4)).eval()
    >>> network(torch.rand(2, 9, 16)).shape
    torch.Size([2, 9])
    """

    method: ClassVar[str] = "testra"
    shape: TeSTraConfig
    _positions: Tensor

    def __init__(self, config: TeSTraConfig = TeSTraConfig()) -> None:
        super().__init__()
        self.shape = config
        width = config.width
        self.embed_long = nn.Sequential(nn.Linear(config.dim, width), nn.ReLU())
        self.embed_work = nn.Sequential(nn.Linear(config.dim, width), nn.ReLU())
        self.first_queries = nn.Parameter(torch.randn(config.first_queries, width))
        self.second_queries = nn.Parameter(torch.randn(config.second_queries, width))
        self.fading = FadingAttention(config)
        self.first = _layer(config, across=nn.Identity())  # whose attention to the memory is `fading`
        self.second = nn.ModuleList(_layer(config) for _ in range(config.second_layers))
        self.decoder = nn.ModuleList(_layer(config) for _ in range(config.decoder_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.head = nn.Linear(width, 1)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("_positions", sinusoids(config.work, width), persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """(B, T, D) → logits (B, T)."""
        work, length = self.shape.work, features.shape[1]
        long = self.embed_long(features)  # (B, T, W)
        windows = sliding(begun_with_still(self.embed_work(features), work - 1), work)  # (B, T, work, W)
        place = torch.arange(length, device=features.device)
        parts = []
        asking, sums = self._asking(), self._no_sums(len(features))
        for part in chunks(length, max(1, _TOGETHER // len(features))):
            # The frame `work` back has just entered.
            entering = slice(max(0, part.start - work), max(0, part.stop - work))
            age = place[part, None] - work - place[entering]  # (F, E)
            seen, sums = self.fading.through(asking, long[:, entering], age, sums)
            compressed = self._compress(asking, seen.flatten(0, 1))
            logits = self._decode(windows[:, part].flatten(0, 1), compressed, last_only=True)
            parts.append(logits.view(len(features), -1))
        return torch.cat(parts, dim=1)

    def start(self, streams: int = 1) -> TeSTraState:
        """Empty memories."""
        tokens = self.zeros(streams, self.shape.work, self.shape.width)
        return TeSTraState(tokens, tokens.clone(), self.zeros(streams).long(), *self._no_sums(streams))

    def step(self, feature: Tensor, state: TeSTraState) -> tuple[Tensor, TeSTraState]:
        """(B, D) → logits (B,)."""
        work, asking = self.shape.work, self._asking()
        token, long_token = self.embed_work(feature), self.embed_long(feature)  # (B, W)
        before = state.peak, state.weight, state.value
        leaving = self.fading.add(asking, state.waiting[:, 0], before)
        full = (state.seen >= work)[:, None, None, None]
        peak, weight, value = (torch.where(full, new, old) for new, old in zip(leaving, before, strict=True))
        begun = (state.seen > 0)[:, None, None]
        window = latest(torch.where(begun, state.work, token[:, None]), token)
        waiting = latest(state.waiting, long_token)
        compressed = self._compress(asking, self.fading.read((peak, weight, value)))
        logits = self._decode(window, compressed, last_only=True)
        seen = (state.seen + 1).clamp_max(work)
        return logits.flatten(), TeSTraState(window, waiting, seen, peak, weight, value)

    def layout(self) -> Layout:
        """A work memory of targets, and the long memory before it."""
        return Layout(max(self.shape.long, self.shape.work), 0, self.shape.work)

    def losses(self, frames: Tensor, targets: Tensor, lead: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Cross-entropy over the whole work memory; the long memory is that of its first frame."""
        work = self.shape.work
        long = self.embed_long(frames[:, :-work])  # (S, L, W)
        ago = torch.arange(long.shape[1] - 1, -1, -1, device=frames.device)  # (L,): 0 for the newest
        known = (lead[:, :1] + 1).clamp_min(0)  # (S, 1): frames of the same stream before the work memory
        age = torch.where(ago < known, ago, -1)  # (S, L)
        asking = self._asking()
        compressed = self._compress(asking, self.fading.whole(asking, long, age))
        logits = self._decode(self.embed_work(frames[:, -work:]), compressed)
        return binary_losses(logits, targets, weight)

    def _no_sums(self, streams: int) -> FadingSums:
        """Of long memories that nothing has entered yet."""
        config = self.shape
        value = self.zeros(streams, config.heads, config.first_queries, config.width // config.heads)
        nothing = value[..., :1].clone()
        return nothing - torch.inf, nothing, value

    def _asking(self) -> Tensor:
        """The first queries as they ask the long memory, (1, Q, W): the same at every frame."""
        return self.first.before(self.first_queries[None])

    def _compress(self, asking: Tensor, seen: Tensor) -> Tensor:
        """From what the first queries saw, (N, Q, W), to the second stage's tokens, (N, M, W)."""
        x = self.norms[0](self.first.after(asking, seen))
        y = self.second_queries.expand(len(x), -1, -1)
        for layer in self.second:
            y = layer(y, x)
        out: Tensor = self.norms[1](y)
        return out

    def _decode(self, window: Tensor, compressed: Tensor, *, last_only: bool = False) -> Tensor:
        """Logits of the frames of work memories (N, P, W): (N, P), or (N, 1) of the last ones alone."""
        x = self.dropout(window + self._positions)
        memory = torch.cat([compressed, x], dim=1)  # (N, M + P, W)
        within = causal_mask(x.shape[1], x.device)
        across = torch.cat([within.new_ones(x.shape[1], compressed.shape[1]), within], dim=1)
        for number, layer in enumerate(self.decoder, start=1):
            last = last_only and number == len(self.decoder)
            x = layer(x, memory, within_mask=within, across_mask=across, last_only=last)
        logits: Tensor = self.head(self.norms[2](x)).squeeze(-1)
        return logits
