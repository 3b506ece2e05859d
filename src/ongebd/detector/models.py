"""The models that can be named, each with its calibrated settings."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

from ongebd import backbones
from ongebd.backbones import Backbone
from ongebd.baselines.methods import METHODS
from ongebd.detector.config import StreamConfig, asked_for
from ongebd.detector.detector import OnlineDetector
from ongebd.detector.recipes import RECIPES, Recipe
from ongebd.detector.scorers import Scorer
from ongebd.detector.sensitivity import check_uses, with_sensitivity
from ongebd.detector.trained import ESTIMATOR, method_in, read_trained
from ongebd.detector.trained_baseline import TrainedBaseline
from ongebd.errors import ConfigError, a_whole_number
from ongebd.estimator import Anticipator, cosine_error
from ongebd.estimator.distances import ERRORS, ErrorFunction

DEFAULT_MODEL = "immediate"
TRAINABLE = (ESTIMATOR, *METHODS)
"""Methods that are nothing without the folder of a training: `miniroad:FOLDER`, or the folder alone."""


@dataclass(frozen=True, slots=True)
class Model:
    """A named model: a frozen backbone, a method, and settings. It keeps no state; share it freely.

    It can be pickled, for another process: what is pickled is how it was loaded, not the weights. A copy is
    the model itself.
    """

    name: str
    summary: str
    backbone: Backbone
    defaults: StreamConfig
    _anticipator: Callable[[int], Anticipator] | None = None
    _error: ErrorFunction = cosine_error
    _method: Callable[[StreamConfig], Anticipator | Scorer] | None = None
    _threshold: Callable[[float], float] | None = None
    _loading: Callable[[], Model] | None = field(default=None, init=False, repr=False, compare=False)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[[], Model], tuple[()]]:
        if self._loading is None:
            raise ConfigError(f"{self.name}: only a model as ongebd.load(…) gave it can be pickled")
        return self._loading, ()

    def configured(self, config: StreamConfig | None = None, **settings: Any) -> StreamConfig:
        """The settings of a stream: `config` changed by `settings`, the model's own where it has None.

        A sensitivity is turned into the τ or the threshold that it stands for.

        Raises:
            ConfigError: A setting is unknown, outside its range, or without meaning for this model.
        """
        asked = asked_for(config, settings)
        filled = asked.filled(self.defaults)
        filled = with_sensitivity(asked, filled, self.defaults, self._threshold, self.name)
        check_uses(asked, filled, self.defaults, self.name)
        filled.rate(), filled.new_head(), filled.runs()  # raises where out of range
        if not filled.missing():
            filled.discriminator()  # likewise, though another head may take its place
        return filled

    def stream(self, config: StreamConfig | None = None, **settings: Any) -> OnlineDetector:
        """Begin a stream.

        Args:
            config: Settings; what is None takes the model's own value.
            **settings: Single settings by name, as in `StreamConfig` (fps, sensitivity, tau, …).

        Raises:
            ConfigError: A setting is unknown or outside its range.

        >>> import numpy as np, ongebd
        >>> detector = ongebd.load("immediate").stream(sensitivity=0.7)
        >>> picture = np.zeros((120, 160, 3), np.uint8)
        >>> detector.update(picture, time=0.0).is_boundary
        False
        """
        filled = self.configured(config, **settings)
        return OnlineDetector(self.backbone, self._made(filled), filled, self._error)

    def _made(self, config: StreamConfig) -> Anticipator | Scorer:
        if self._method is not None:
            return self._method(config)
        if self._anticipator is not None:
            return self._anticipator(1 if config.window is None else config.window)
        raise ConfigError(f"{self.name} has no method")


def model_names() -> list[str]:
    """The names that `load` takes, those that need a folder with it."""
    return [*sorted(RECIPES), *(f"{name}:FOLDER" for name in TRAINABLE)]


def load(
    name: str | os.PathLike[str] = DEFAULT_MODEL,
    *,
    threads: int = 1,
    device: str | None = None,
    weights: Path | str | None = None,
) -> Model:
    """Load a model by name, or a trained one from its folder.

    Args:
        name: One of `model_names()`, or the path of a folder that `ongebd train` wrote. `clock:2` has an
            argument, the period; `miniroad:FOLDER` is the folder, which then must hold a MiniROAD.
        threads: CPU threads for one frame's inference. Streams of one process are best served by one each.
        device: Where a trained network computes, with torch: "cuda", say. None: on the CPU, without torch
            where the folder has the ONNX file. A PyTorch backbone computes there too.
        weights: The checkpoint of a trained model's backbone, where that is neither in our wheel nor fetched
            by itself.

    Raises:
        ConfigError: There is no model of that name, or the folder is none or does not fit.
        MissingExtraError: An extra is needed and not installed.
    """
    text = _as_text(name)
    a_whole_number("threads", threads)
    model = _loaded(text, threads, device, weights)
    how = partial(load, text, threads=threads, device=device, weights=weights)
    object.__setattr__(model, "_loading", how)
    return model


def _as_text(name: object) -> str:
    if isinstance(name, str | os.PathLike) and isinstance(text := os.fspath(name), str) and text:
        return text
    what = "an empty text" if name == "" else "None" if name is None else type(name).__name__
    raise ConfigError(f"a model is given by its name or folder, not by {what}; see: ongebd models")


def _loaded(name: str, threads: int, device: str | None, weights: Path | str | None) -> Model:
    kind, colon, argument = name.partition(":")
    if kind in RECIPES:
        recipe = RECIPES[kind]
        if colon and recipe.argument is None:
            raise ConfigError(f"{kind} takes nothing behind a colon")
        if weights is not None or (device is not None and not recipe.device):
            raise ConfigError(f"{kind} takes no device and no weights: it is complete, and runs on the CPU")
        return _named(name, recipe, argument if colon else None, threads, device)
    if kind in TRAINABLE and (colon or not Path(name).is_dir()):
        if not argument:
            raise ConfigError(f"{kind} is nothing without its weights: train it, and name {kind}:FOLDER")
        return _trained(Path(argument), threads, device, weights, kind)
    if not Path(name).is_dir():
        raise ConfigError(
            f"unknown model {name!r}; there are {', '.join(model_names())}, and folders of trained models"
        )
    return _trained(Path(name), threads, device, weights)


def _named(name: str, recipe: Recipe, argument: str | None, threads: int, device: str | None) -> Model:
    def method(config: StreamConfig) -> Anticipator | Scorer:
        return recipe.method(config, argument, device)

    if argument is not None or recipe.extra is not None or recipe.trained_on is not None:
        method(recipe.defaults)  # raises now for what cannot be made later
    backbone = recipe.backbone(threads)
    return Model(name, recipe.summary, backbone, recipe.defaults, _method=method, _threshold=recipe.threshold)


def _trained(
    folder: Path, threads: int, device: str | None, weights: Path | str | None, wanted: str | None = None
) -> Model:
    """A trained model with the very backbone that it was trained on."""
    if wanted is not None and not folder.is_dir():
        raise ConfigError(f"{wanted}:{folder}: there is no such folder")
    found = method_in(folder)
    if wanted is not None and found != wanted:
        raise ConfigError(f"{folder}: holds the weights of {found}, not of {wanted}")
    if found != ESTIMATOR:
        baseline = TrainedBaseline(folder, device, threads)
        backbone = _backbone(folder, baseline.about.backbone, baseline.dim, threads, device, weights)
        about = baseline.about
        return Model(
            baseline.name, about.summary, backbone, about.settings, _method=lambda _config: baseline.scorer()
        )
    trained = read_trained(folder)
    backbone = _backbone(folder, trained.backbone, trained.shape.dim, threads, device, weights)
    window = trained.settings.window or trained.shape.window
    anticipator = trained.anticipator(window, threads=threads, device=device)

    def anticipating(asked: int) -> Anticipator:
        return anticipator if asked == window else trained.anticipator(asked)  # which says what is wrong

    return Model(
        trained.name, trained.summary, backbone, trained.settings, anticipating, ERRORS[trained.shape.metric]
    )


def _backbone(
    folder: Path, identity: str, dim: int, threads: int, device: str | None, weights: Path | str | None
) -> Backbone:
    """The backbone of that identity.

    Raises:
        ConfigError: The one that is here is another, or gives features of another size.
    """
    name = identity.split("@")[0]
    if name not in backbones.names():
        raise ConfigError(
            f"{folder}: was trained on features of {identity!r}, and here there is none of that name, but"
            f" {', '.join(backbones.names())}"
        )
    place = device if device is not None and backbones.takes_device(name) else "cpu"
    backbone = backbones.get(name, threads=threads, weights=weights, device=place)
    if "@" in identity and backbone.identity != identity:
        raise ConfigError(
            f"{folder}: was trained on features of {identity}, and here there is {backbone.identity};"
            " extract and train again"
        )
    if backbone.dim != dim:
        raise ConfigError(f"{folder}: takes features of {dim} numbers, {backbone.name} gives {backbone.dim}")
    return backbone
