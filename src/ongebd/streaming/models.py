"""The models that can be named, each with its calibrated settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ongebd import backbones
from ongebd.backbones import Backbone
from ongebd.baselines.naive import Persistence, WindowMean
from ongebd.errors import ConfigError
from ongebd.estimator import Anticipator, cosine_error
from ongebd.estimator.distances import ERRORS, ErrorFunction
from ongebd.streaming.config import StreamConfig
from ongebd.streaming.detector import OnlineDetector
from ongebd.streaming.trained import read_trained

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
    _error: ErrorFunction = cosine_error

    def configured(self, config: StreamConfig | None = None, **settings: Any) -> StreamConfig:
        """The settings of a stream: `config` changed by `settings`, the model's own where it has None."""
        filled = (config or StreamConfig()).changed(settings).filled(self.defaults)
        filled.rate(), filled.discriminator(), filled.runs()  # raises for a value outside its range
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
        window = 1 if filled.window is None else filled.window
        return OnlineDetector(self.backbone, self._anticipator(window), filled, self._error)


def model_names() -> list[str]:
    """The names that `load` takes."""
    return sorted(_RECIPES)


def load(
    name: str = DEFAULT_MODEL,
    *,
    threads: int = 1,
    device: str | None = None,
    weights: Path | str | None = None,
) -> Model:
    """Load a model by name, or a trained one from its folder.

    Args:
        name: One of `model_names()`, or the path of a folder that `ongebd train` wrote.
        threads: CPU threads for one frame's inference. Streams of one process are best served by one each.
        device: Where a trained anticipator computes, with torch: "cuda", say. None: on the CPU, without torch
            where the folder has the ONNX file. A PyTorch backbone computes there too.
        weights: The checkpoint of a trained model's backbone, where that is neither in our wheel nor fetched
            by itself.

    Raises:
        ConfigError: There is no model of that name, or the folder is none or does not fit.
        MissingExtraError: Torch is needed and not installed.
    """
    if name not in _RECIPES:
        folder = Path(name)
        if not folder.is_dir():
            raise ConfigError(
                f"unknown model {name!r}; there are {', '.join(model_names())}, and folders of trained models"
            )
        return _load_trained(folder, threads, device, weights)
    if device is not None or weights is not None:
        raise ConfigError(f"{name} takes no device and no weights: nothing in it was trained")
    recipe = _RECIPES[name]
    backbone = backbones.get(recipe.backbone, threads=threads)
    return Model(name, recipe.summary, backbone, recipe.defaults, recipe.anticipator)


def _load_trained(folder: Path, threads: int, device: str | None, weights: Path | str | None) -> Model:
    """A trained model with the very backbone that it was trained on."""
    trained = read_trained(folder)
    name = trained.backbone.split("@")[0]
    if name == backbones.DEFAULT:
        backbone = backbones.get(name, threads=threads, weights=weights)
    else:
        backbone = backbones.get(name, threads=threads, weights=weights, device=device or "cpu")
    if "@" in trained.backbone and backbone.identity != trained.backbone:
        raise ConfigError(
            f"{folder}: was trained on features of {trained.backbone}, and here there is {backbone.identity};"
            " extract and train again"
        )
    if backbone.dim != trained.shape.dim:
        raise ConfigError(
            f"{folder}: takes features of {trained.shape.dim} numbers, {backbone.name} gives {backbone.dim}"
        )
    window = trained.settings.window or trained.shape.window
    anticipator = trained.anticipator(window, threads=threads, device=device)

    def anticipating(asked: int) -> Anticipator:
        return anticipator if asked == window else trained.anticipator(asked)  # which says what is wrong

    return Model(
        trained.name, trained.summary, backbone, trained.settings, anticipating, ERRORS[trained.shape.metric]
    )
