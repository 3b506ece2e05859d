"""The models that can be named, each with its calibrated settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ongebd import backbones
from ongebd.backbones import Backbone
from ongebd.baselines.naive import Persistence, WindowMean
from ongebd.errors import ConfigError
from ongebd.estimator import Anticipator
from ongebd.streaming.config import StreamConfig
from ongebd.streaming.detector import OnlineDetector

DEFAULT_MODEL = "window-mean"

# Chosen on 66 real clips rated by a model: see docs/calibration.md. Δ and L are the paper's; its τ of 1.5
# belongs to a trained anticipator. The floor on the error keeps sensor noise and compression silent.
_UNTRAINED = StreamConfig(
    fps=24.0, tau=2.5, delta=21, window=8, warmup=8, min_std=0.004, min_error=0.02, min_gap=0.5, max_run=1.0
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a named model is put together.

    Attributes:
        summary: One line for people.
        backbone: The name of its backbone.
        anticipator: Makes the anticipator for a window of L frames.
        defaults: Its calibrated settings, every one filled in.
    """

    summary: str
    backbone: str
    anticipator: Callable[[int], Anticipator]
    defaults: StreamConfig


_RECIPES = {
    "window-mean": Recipe(
        "untrained: the next feature is the mean of the last L", "efficientnet_lite0", WindowMean, _UNTRAINED
    ),
    "persistence": Recipe(
        "untrained: the next feature is the last one",
        "efficientnet_lite0",
        lambda _window: Persistence(),
        _UNTRAINED,
    ),
}


@dataclass(frozen=True, slots=True)
class Model:
    """A named model: a frozen backbone, an anticipator, and settings. It keeps no state; share it freely."""

    name: str
    summary: str
    backbone: Backbone
    defaults: StreamConfig
    _anticipator: Callable[[int], Anticipator]

    def configured(self, config: StreamConfig | None = None, **settings: Any) -> StreamConfig:
        """The settings of a stream: `config` changed by `settings`, the model's own where it has None."""
        filled = (config or StreamConfig()).changed(settings).filled(self.defaults)
        filled.discriminator(), filled.runs()  # raises for a value outside its range
        return filled

    def stream(self, config: StreamConfig | None = None, **settings: Any) -> OnlineDetector:
        """Begin a stream.

        Args:
            config: Settings; what is None takes the model's own value.
            **settings: Single settings by name, as in `StreamConfig` (fps, tau, delta, window, …).

        Raises:
            ConfigError: A setting is unknown or outside its range.

        >>> import numpy as np, ongebd
        >>> detector = ongebd.load("window-mean").stream(fps=10)
        >>> picture = np.zeros((120, 160, 3), np.uint8)
        >>> detector.update(picture, time=0.0).is_boundary
        False
        """
        filled = self.configured(config, **settings)
        return OnlineDetector(self.backbone, self._anticipator(filled.window or 1), filled)


def model_names() -> list[str]:
    """The names that `load` takes."""
    return sorted(_RECIPES)


def load(name: str = DEFAULT_MODEL, *, threads: int = 1) -> Model:
    """Load a model by name.

    Args:
        name: One of `model_names()`.
        threads: CPU threads for one frame's inference. Streams of one process are best served by one each.

    Raises:
        ConfigError: There is no model of that name.
    """
    if name not in _RECIPES:
        raise ConfigError(f"unknown model {name!r}; there are {', '.join(model_names())}")
    recipe = _RECIPES[name]
    backbone = backbones.get(recipe.backbone, threads=threads)
    return Model(name, recipe.summary, backbone, recipe.defaults, recipe.anticipator)
