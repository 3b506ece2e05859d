"""The shape of a trainable anticipator. Apart from the network, so that it can be read without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from ongebd.common.settings import Range, check_fields
from ongebd.errors import ConfigError
from ongebd.estimator.anticipation import Metric

# Beyond these sizes a network fills gigabytes before anyone can see that its file is damaged.
_Size = Annotated[int, Range(least=1, most=2**16)]


@dataclass(frozen=True, kw_only=True)
class AnticipatorConfig:
    """The shape of a Consistent Event Anticipator. The paper states D, L and the number of layers only.

    The default has 23.1 M parameters. It is our own choice: no configuration that we could enumerate has the
    number of parameters and of operations that the paper prints, so we claim neither.
    """

    dim: _Size = 2048
    """D, numbers in a feature: 2048 for ResNet-50, 1280 for EfficientNet-Lite0."""

    window: Annotated[int, Range(least=1, most=4096)] = 8
    """L, how many past features it looks at."""

    width: _Size = 1024
    """Numbers in a token inside the transformer."""

    layers: Annotated[int, Range(least=1, most=1000)] = 3
    """Transformer decoder layers."""

    heads: Annotated[int, Range(least=1, most=4096)] = 8
    """Attention heads; they share `width` evenly."""

    ffn: _Size = 1024
    """Width of the feed-forward network in each layer."""

    dropout: Annotated[float, Range(least=0, below=1)] = 0.0
    """Dropout after attention and feed-forward."""

    residual: bool = False
    """Predict the change from the window's mean instead of the feature itself. Not in the paper."""

    metric: Metric = "cosine"
    """The distance that is the error; the paper's table compares cosine, l1, l2 and kl."""

    head: Literal["anticipation", "classifier"] = "anticipation"
    """ "classifier" gives one logit instead of a feature: the paper's baseline without any of its parts."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.width % self.heads:
            raise ConfigError(f"width ({self.width}) must be a multiple of heads ({self.heads})")

    @classmethod
    def for_dim(cls, dim: int, **changes: Any) -> Self:
        """Our default for a backbone: full width from 2048 numbers on, half of it (6.1 M at 1280) below.

        >>> AnticipatorConfig.for_dim(1280).width
        512
        """
        half = {} if dim >= 2048 else {"width": 512, "ffn": 512}
        return cls(dim=dim, **{**half, **changes})
