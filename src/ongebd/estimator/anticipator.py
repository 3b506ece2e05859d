"""The Consistent Event Anticipator (CEA): predicts the next feature from the last ones. Needs torch.

Section "Consistent Event Anticipator" of the paper:

    X_t = concat(F_t, T),   f̂_t = M_θ(X_t)      (its equation "transformer_decoder")

F_t being the L features before frame t, T one learnable token, and M_θ transformer decoder layers with a
causal mask; f̂_t is the output at the token.

**The start of a stream.** The paper does not say what fills the window before L features are known. Here
the first feature is repeated to the left until the window is full, as if the stream had begun with a still
picture. Training, validation and the stream all do so, and no window reaches across a break of the clock.

**Shared work.** A run of F consecutive features holds F − L + 1 windows. `forward` takes the run: each
feature is projected once, not once a window, and the last layer computes its token alone, for nothing else of
it is used. Both leave every number as it is and save a quarter of the arithmetic.
"""
# No `from __future__ import annotations` here: the hub mixin reads the annotation of `config` at run time.

import io
from contextlib import redirect_stdout
from typing import Any, Self

import torch
from huggingface_hub import PyTorchModelHubMixin
from torch import Tensor, nn
from torch.nn import functional

from ongebd.estimator.anticipator_config import AnticipatorConfig

__all__ = ["AnticipatorConfig", "ConsistentEventAnticipator", "DecoderLayer"]


class DecoderLayer(nn.Module):
    """One pre-LN transformer decoder layer: causal self-attention, then a feed-forward network with GELU."""

    def __init__(self, config: AnticipatorConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.attention_norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.attended = nn.Linear(width, width)
        self.ffn_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, config.ffn)
        self.down = nn.Linear(config.ffn, width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, last_only: bool = False) -> Tensor:
        """Tokens to tokens.

        Args:
            x: (B, S, W).
            last_only: Compute the last token alone, from all of them.

        Returns:
            (B, S, W), or (B, 1, W) where `last_only`.
        """
        normed = self.attention_norm(x)
        x, asking = (x[:, -1:], normed[:, -1:]) if last_only else (x, normed)
        x = x + self.dropout(self.attended(self._attend(asking, normed)))
        out: Tensor = x + self.dropout(self.down(functional.gelu(self.up(self.ffn_norm(x)))))
        return out

    def _attend(self, asking: Tensor, normed: Tensor) -> Tensor:
        query = self._split(self.query(asking))  # (B, H, S or 1, W/H)
        key, value = (self._split(part) for part in self.key_value(normed).chunk(2, dim=-1))
        # A lone last token may see all before it, so it needs no mask.
        causal = query.shape[-2] > 1
        out = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        return out.transpose(1, 2).flatten(2)  # (B, S or 1, W)

    def _split(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        return x.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)


class ConsistentEventAnticipator(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="ongebd",
    license="apache-2.0",
    tags=["event-boundary-detection", "video"],
):
    """The paper's anticipator, trainable.

    `save_pretrained(folder)` writes `model.safetensors` and `config.json`; `from_pretrained(folder)` reads
    them, without a network.

    Args:
        config: Its shape.

    >>> import torch
    >>> model = ConsistentEventAnticipator(AnticipatorConfig(dim=16, width=32, ffn=32, heads=4)).eval()
    >>> model(torch.rand(2, 8, 16)).shape  # one window each: the feature that comes next
    torch.Size([2, 1, 16])
    >>> model(torch.rand(2, 20, 16)).shape  # a run of 20 features holds 13 windows
    torch.Size([2, 13, 16])
    """

    def __init__(self, config: AnticipatorConfig = AnticipatorConfig()) -> None:  # noqa: B008 - frozen
        super().__init__()
        self.config = config
        classifies = config.head == "classifier"
        self.token = nn.Parameter(torch.randn(config.dim) * 0.02)  # T, (D,)
        self.positions = nn.Parameter(torch.randn(config.window + 1, config.width) * 0.02)  # (L + 1, W)
        self.project = nn.Linear(config.dim, config.width)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, 1 if classifies else config.dim)
        if config.residual and not classifies:  # begins as the window's mean, and learns from there
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)

    def forward(self, features: Tensor) -> Tensor:
        """What comes after each window of L features in a run.

        Args:
            features: Consecutive features, oldest first, (B, F, D) with F ≥ L.

        Returns:
            f̂ for the frames L … F of each run, (B, F − L + 1, D); the last one lies after the run. With the
            classifier head, the logit that the *last frame of each window* is a boundary, (B, F − L + 1, 1).
        """
        length = self.config.window
        windows = features.shape[1] - length + 1
        x = self.project(features)  # (B, F, W)
        token = self.project(self.token)  # (W,)
        parts = [x[:, place : place + windows] for place in range(length)]
        parts.append(token.expand_as(parts[0]))
        x = torch.stack(parts, dim=2) + self.positions.to(x.dtype)  # (B, windows, L + 1, W)
        x = x.flatten(0, 1)  # (B · windows, L + 1, W)
        for layer in self.layers[:-1]:
            x = layer(x)
        x = self.layers[-1](x, last_only=True)  # (B · windows, 1, W)
        out: Tensor = self.head(self.norm(x[:, 0]))  # (B · windows, D or 1)
        out = out.view(features.shape[0], windows, -1)
        if self.config.residual and self.config.head == "anticipation":
            out = out + window_means(features, length).to(out.dtype)
        return out

    @classmethod
    def _from_pretrained(cls, *, strict: bool = True, **rest: Any) -> Self:
        """As the mixin's, but a file that does not fit is an error, and nothing is printed."""
        with redirect_stdout(io.StringIO()):
            model: Self = super()._from_pretrained(strict=strict, **rest)
        return model


def window_means(features: Tensor, length: int) -> Tensor:
    """The mean of each window of a run: (B, F, D) → (B, F − length + 1, D)."""
    windows = features.shape[1] - length + 1
    total = features[:, :windows].float()
    for place in range(1, length):
        total = total + features[:, place : place + windows]
    return total / length
