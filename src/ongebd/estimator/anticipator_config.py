"""The shape of a trainable anticipator. Apart from the network, so that it can be read without torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

from ongebd.errors import ConfigError, a_number, a_whole_number

Head = Literal["anticipation", "classifier"]
Metric = Literal["cosine", "l1", "l2", "kl"]

METRICS: tuple[Metric, ...] = get_args(Metric)
HEADS: tuple[Head, ...] = get_args(Head)

# Beyond, a network fills gigabytes before anyone can see that its file is damaged.
_MOST = {"dim": 2**16, "window": 4096, "width": 2**16, "layers": 1000, "heads": 4096, "ffn": 2**16}


@dataclass(frozen=True, kw_only=True)
class AnticipatorConfig:
    """The shape of a Consistent Event Anticipator. The paper states D, L and the number of layers only.

    The default has 23.1 M parameters. It is our own choice: no configuration that we could enumerate has the
    number of parameters and of operations that the paper prints, so we claim neither.
    """

    dim: int = 2048
    """D, numbers in a feature: 2048 for ResNet-50, 1280 for EfficientNet-Lite0."""

    window: int = 8
    """L, how many past features it looks at."""

    width: int = 1024
    """Numbers in a token inside the transformer."""

    layers: int = 3
    """Transformer decoder layers."""

    heads: int = 8
    """Attention heads; they share `width` evenly."""

    ffn: int = 1024
    """Width of the feed-forward network in each layer."""

    dropout: float = 0.0
    """Dropout after attention and feed-forward, 0 to below 1."""

    residual: bool = False
    """Predict the change from the window's mean instead of the feature itself. Not in the paper."""

    metric: Metric = "cosine"
    """The distance that is the error; the paper's table compares cosine, l1, l2 and kl."""

    head: Head = "anticipation"
    """ "classifier" gives one logit instead of a feature: the paper's baseline without any of its parts."""

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = a_whole_number(name, getattr(self, name))
            if not 1 <= value <= most:
                raise ConfigError(f"{name} must be a whole number from 1 to {most}, not {value}")
        if not isinstance(self.residual, bool):
            raise ConfigError(f"residual must be true or false, not {self.residual!r}")
        if self.width % self.heads:
            raise ConfigError(f"width ({self.width}) must be a multiple of heads ({self.heads})")
        if not 0 <= a_number("dropout", self.dropout) < 1:
            raise ConfigError(f"dropout must be at least 0 and below 1, not {self.dropout}")
        if self.metric not in METRICS:
            raise ConfigError(f"metric must be one of {', '.join(METRICS)}, not {self.metric!r}")
        if self.head not in HEADS:
            raise ConfigError(f"head must be one of {', '.join(HEADS)}, not {self.head!r}")

    @classmethod
    def for_dim(cls, dim: int, **changes: Any) -> Self:
        """Our default for a backbone: full width from 2048 numbers on, half of it (6.1 M at 1280) below.

        >>> AnticipatorConfig.for_dim(1280).width
        512
        """
        half = {} if dim >= 2048 else {"width": 512, "ffn": 512}
        return cls(dim=dim, **{**half, **changes})

    @classmethod
    def from_dict(cls, values: dict[str, Any], where: str) -> Self:
        """The configuration in a `config.json`.

        Args:
            values: Its contents.
            where: The file, for messages.

        Raises:
            ConfigError: A key is unknown, or a value of another type or outside its range.
        """
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ConfigError(f"{where}: unknown {', '.join(unknown)}; is it a model of a newer ongebd?")
        try:
            return cls(**values)
        except ConfigError as problem:
            raise ConfigError(f"{where}: {problem}; train or export the model again") from None

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)
