"""Attention and decoder layers as TeSTra, Sim-On and OadTR have them. Needs torch."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.Module):
    """Multi-head scaled dot-product attention (Vaswani et al., 2017) with separate projections.

    Args:
        width: W, numbers in a token.
        heads: H; they share the width evenly.
        bias: Whether query, key and value projections have one; the output's has.
        dropout: Of the attention's weights.
    """

    def __init__(self, width: int, heads: int, *, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.query = nn.Linear(width, width, bias=bias)
        self.key = nn.Linear(width, width, bias=bias)
        self.value = nn.Linear(width, width, bias=bias)
        self.out = nn.Linear(width, width)

    def forward(self, asking: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each asking token's mean of the memory: (B, Q, W) and (B, M, W) → (B, Q, W).

        `mask` is True where a token may be seen, (Q, M) or (B, 1, 1, M).
        """
        query = self.split(self.query(asking))
        key, value = self.split(self.key(memory)), self.split(self.value(memory))
        dropout = self.dropout if self.training else 0.0
        seen = functional.scaled_dot_product_attention(query, key, value, mask, dropout)
        out: Tensor = self.out(seen.transpose(1, 2).flatten(2))
        return out

    def split(self, x: Tensor) -> Tensor:
        """(B, N, W) → (B, H, N, W/H)."""
        batch, tokens, width = x.shape
        return x.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)


class DecoderLayer(nn.Module):
    """A post-LN transformer decoder layer: attention within, attention to a memory, a feed-forward network.

    Args:
        width: W.
        heads: H.
        ffn: Width of the feed-forward network.
        activation: In it.
        dropout: After each of the three, and within.
        attention_dropout: Of the attentions' weights.
        across: The attention to the memory, where it is another than the usual one.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        ffn: int,
        *,
        across: nn.Module | None = None,
        activation: Callable[[Tensor], Tensor] = functional.relu,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.within = Attention(width, heads, dropout=attention_dropout)
        self.across = across or Attention(width, heads, dropout=attention_dropout)
        self.up = nn.Linear(width, ffn)
        self.down = nn.Linear(ffn, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.activation = activation

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        within_mask: Tensor | None = None,
        across_mask: Tensor | None = None,
        last_only: bool = False,
    ) -> Tensor:
        """Tokens to tokens.

        Args:
            x: (B, N, W).
            memory: (B, M, W).
            within_mask: True where a token may see another, (N, N).
            across_mask: True where a token may see one of the memory, (N, M) or (B, 1, 1, M).
            last_only: Compute the last token alone, which then sees all that the masks let it.

        Returns:
            (B, N, W), or (B, 1, W).
        """
        if last_only:
            within_mask = None if within_mask is None else within_mask[-1:]
            across_mask = None if across_mask is None else across_mask[..., -1:, :]
        x = self.before(x, within_mask, last_only=last_only)
        return self.after(x, self.across(x, memory, across_mask))

    def before(self, x: Tensor, mask: Tensor | None = None, *, last_only: bool = False) -> Tensor:
        """The part before the attention to the memory."""
        asking = x[:, -1:] if last_only else x
        out: Tensor = self.norms[0](asking + self.dropout(self.within(asking, x, mask)))
        return out

    def after(self, x: Tensor, seen: Tensor) -> Tensor:
        """The part after it, `seen` being what that attention gave."""
        x = self.norms[1](x + self.dropout(seen))
        inner = self.dropout(self.activation(self.up(x)))
        out: Tensor = self.norms[2](x + self.dropout(self.down(inner)))
        return out


def causal_mask(tokens: int, device: torch.device | None = None) -> Tensor:
    """True where the token of a row may see that of a column, (N, N): itself and those before.

    >>> causal_mask(2).tolist()
    [[True, False], [True, True]]
    """
    return torch.ones(tokens, tokens, dtype=torch.bool, device=device).tril()


def sinusoids(tokens: int, width: int) -> Tensor:
    """The sine and cosine positions of Vaswani et al. (2017), (N, W)."""
    steps = torch.exp(torch.arange(0, width, 2) * (-log(10000.0) / width))
    angles = torch.arange(tokens)[:, None] * steps  # (N, ⌈W/2⌉)
    table = torch.zeros(tokens, width)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : width // 2]
    return table
