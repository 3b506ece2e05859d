"""The Consistent Event Anticipator (CEA): predicts the next feature from the last ones. Needs torch.

Section "Consistent Event Anticipator" of the paper:

    X_t = concat(F_t, T),   f̂_t = M_θ(X_t)      (its equation "transformer_decoder")

F_t being the L features before frame t, T one learnable token, and M_θ transformer decoder layers with a
causal mask; f̂_t is the output at the token.

**The start of a stream.** The paper does not say what fills the window before L features are known. Here
the first feature is repeated to the left until the window is full, as if the stream had begun with a still
picture. Training, validation and the stream all do so, and no window reaches across a break of the clock.

**Shared work.** A run of F consecutive features holds F − L + 1 windows. `forward` takes the run: each
feature is projected once, not once a window; on the CPU, for the first layer too. The last layer computes its
token alone. Numbers change by rounding only, and almost half of the arithmetic is saved.
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

    def forward(self, x: Tensor) -> Tensor:
        """Tokens to tokens, (B, S, W)."""
        normed = self.attention_norm(x)
        return self._attend(x, self.query(normed), self.key_value(normed))

    def of_windows(self, x: Tensor, places: Tensor) -> Tensor:
        """`forward` of the tokens that x, (B, F, W), and their places, (S, W), add up to; see `windows_of`.

        With x̄ and p̄ less their means, LN(x + p) = (x̄ + p̄) r g + β, so x̄ g and p̄ g are projected before they
        are added. The tokens that go on lack their mean: all that reads them takes it away anyway.
        """
        norm = self.attention_norm
        x, places = (part - part.mean(dim=-1, keepdim=True) for part in (x, places))
        tokens = windows_of(x, len(places) - 1) + places
        scale = (tokens.norm(dim=-1, keepdim=True).square() / x.shape[-1] + norm.eps).rsqrt()

        def projected(linear: nn.Linear) -> Tensor:
            frames, added = (functional.linear(part * norm.weight, linear.weight) for part in (x, places))
            return windows_of(frames, len(places) - 1).add(added).mul(scale).add(linear(norm.bias))

        return self._attend(tokens, projected(self.query), projected(self.key_value))

    def last(self, x: Tensor) -> Tensor:
        """The last token of `forward`, (B, W), for which no other needs a key or a value.

        q · (K n) = (Kᵀ q) · n, and Σ a V n = V Σ a n. The key's bias adds the same to all scores, so none of
        the a changes.
        """
        normed = self.attention_norm(x)
        key, value = self.key_value.weight.view(2, self.heads, -1, x.shape[-1])  # (H, W/H, W) each
        query = self.query(normed[:, -1]).view(len(x), self.heads, -1)  # (B, H, W/H)
        scores = torch.einsum("bhd,hdw->bhw", query, key) @ normed.mT / query.shape[-1] ** 0.5  # (B, H, S)
        seen = torch.einsum("bhw,hdw->bhd", scores.softmax(dim=-1) @ normed, value).flatten(1)
        return self._finish(x[:, -1], seen + self.key_value.bias.chunk(2)[1])

    def _attend(self, x: Tensor, query: Tensor, key_value: Tensor) -> Tensor:
        parts = (query, *key_value.chunk(2, dim=-1))
        query, key, value = (part.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for part in parts)
        out = functional.scaled_dot_product_attention(query, key, value, is_causal=True)  # (B, H, S, W/H)
        return self._finish(x, out.transpose(1, 2).flatten(2))

    def _finish(self, x: Tensor, seen: Tensor) -> Tensor:
        x = x + self.dropout(self.attended(seen))
        out: Tensor = x + self.dropout(self.down(functional.gelu(self.up(self.ffn_norm(x)))))
        return out


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
        token = functional.pad(self.project(self.token)[None], (0, 0, length, 0))
        places = self.positions.to(x.dtype) + token  # (L + 1, W)
        *layers, last = list[Any](self.layers)
        if layers and windows > 1 and x.device.type == "cpu":
            x = layers.pop(0).of_windows(x, places)
        else:
            x = windows_of(x, length) + places
        for layer in layers:  # (B · windows, L + 1, W)
            x = layer(x)
        out: Tensor = self.head(self.norm(last.last(x))).view(features.shape[0], windows, -1)
        if self.config.residual and self.config.head == "anticipation":
            out = out + window_means(features, length).to(out.dtype)
        return out

    @classmethod
    def _from_pretrained(cls, *, strict: bool = True, **rest: Any) -> Self:
        """As the mixin's, but a file that does not fit is an error, and nothing is printed."""
        with redirect_stdout(io.StringIO()):
            model: Self = super()._from_pretrained(strict=strict, **rest)
        return model


def windows_of(x: Tensor, length: int) -> Tensor:
    """Each window of a run, with zeros for the token after it: (B, F, W) → (B · windows, length + 1, W)."""
    windows = x.shape[1] - length + 1
    parts = [x[:, place : place + windows] for place in range(length)]
    return torch.stack([*parts, torch.zeros_like(parts[0])], dim=2).flatten(0, 1)


def window_means(features: Tensor, length: int) -> Tensor:
    """The mean of each window of a run: (B, F, D) → (B, F − length + 1, D)."""
    return features.float().unfold(1, length, 1).mean(dim=-1)
