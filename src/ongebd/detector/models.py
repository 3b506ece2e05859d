"""Loads a model by its name, or a trained one from its folder."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from ongebd import backbones
from ongebd.backbones import Backbone
from ongebd.detector.model import LEARNED, Model, Recipe, learned_recipe
from ongebd.errors import ConfigError, a_whole_number, meant, shown

__all__ = ["DEFAULT_MODEL", "Model", "load", "model_names", "runtime_of"]

DEFAULT_MODEL = "immediate"


def model_names() -> list[str]:
    """The names that `load` takes, and those that need a folder."""
    from ongebd.detector.recipes import RECIPES, TRAINABLE

    return [*sorted(RECIPES), *(f"{name}:FOLDER" for name in TRAINABLE)]


def load(
    name: str | os.PathLike[str] = DEFAULT_MODEL,
    *,
    threads: int = 1,
    device: str = "cpu",
    weights: Path | str | None = None,
    backbone: Backbone | None = None,
) -> Model:
    """Load a model by name, or a trained one from its folder.

    Args:
        name: One of `model_names()`, or the path of a folder that `ongebd train` wrote. `clock:2` has an
            argument, the period; `miniroad:FOLDER` is the folder, which then must hold a MiniROAD.
        threads: CPU threads for one frame's inference. Streams of one process are best served by one each.
        device: Where networks run. "cpu": with onnxruntime if possible, otherwise with torch. "cuda" or
            "cuda:N": what torch can run (trained models, ResNet-50). "openvino" or "openvino:bfloat16": on
            the CPU with OpenVINO.
        weights: The checkpoint of a trained model's backbone, if the wheel doesn't have it and it isn't
            downloaded.
        backbone: Replaces the model's own, for example with one that reads a store. A trained model
            takes only the backbone that it was trained on.

    Raises:
        ConfigError: The model is unknown, its folder is damaged, or it can't run on that device.
        MissingExtraError: An extra is needed and not installed.
    """
    text = os.fspath(name) if isinstance(name, os.PathLike) else name
    if not isinstance(text, str) or not text:  # type: ignore[redundant-expr]
        raise ConfigError(f"a model is a name or a folder, not {name!r}; see: ongebd models")
    a_whole_number("threads", threads)
    runtime, precision = runtime_of(device)
    model = _loaded(text, threads, "cpu" if runtime else device, weights, backbone)
    if precision is not None:
        from ongebd.detector.openvino import on_openvino

        model = on_openvino(model, precision, threads)
    return model.loaded_by(
        partial(load, text, threads=threads, device=device, weights=weights, backbone=backbone)
    )


def runtime_of(device: str) -> tuple[str, str] | tuple[None, None]:
    """The CPU runtime that a device names, and its precision; none for torch's devices.

    >>> runtime_of("openvino:bfloat16"), runtime_of("cuda:1")
    (('openvino', 'bfloat16'), (None, None))
    """
    kind, colon, precision = device.partition(":")
    if kind != "openvino":
        return None, None
    return kind, precision if colon else "float32"


def _loaded(
    name: str, threads: int, device: str, weights: Path | str | None, backbone: Backbone | None
) -> Model:
    kind, colon, argument = name.partition(":")
    if kind in LEARNED:
        return _named(name, learned_recipe(kind), threads, device, weights, backbone)

    from ongebd.detector.recipes import RECIPES, TRAINABLE
    from ongebd.detector.trained import load_trained

    if kind in RECIPES:
        return _named(name, RECIPES[kind], threads, device, weights, backbone)
    if kind in TRAINABLE and (colon or not _is_folder(name)):
        if not argument:
            raise ConfigError(f"{kind} needs trained weights: train it, then name {kind}:FOLDER")
        return load_trained(Path(argument), threads, device, weights, kind, backbone)
    if not _is_folder(name):
        hint = meant(name, model_names(), "`ongebd models` lists them, or give a trained model's folder")
        raise ConfigError(f"unknown model {shown(name)}; {hint}")
    return load_trained(Path(name), threads, device, weights, backbone=backbone)


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # too long for a name
        return False


def _named(
    name: str, recipe: Recipe, threads: int, device: str, weights: Path | str | None, given: Backbone | None
) -> Model:
    kind, colon, text = name.partition(":")
    argument = text if colon else None
    if argument is not None and recipe.argument is None:
        raise ConfigError(f"{kind} takes no argument after the colon")
    if weights is not None:
        raise ConfigError(f"{kind} comes with its weights; drop --weights")
    if device != "cpu" and not recipe.on_gpu:
        raise ConfigError(f"{kind} doesn't run on {device}; drop device")
    if argument is not None or recipe.extra is not None or recipe.trained_on is not None:
        recipe.method(recipe.defaults, argument, device)  # raises now for what can't be made later
    backbone = recipe.pictures or backbones.get(recipe.backbone_name, threads=threads)
    if given is not None:
        if (recipe.pictures or recipe.parameters) and given.identity != backbone.identity:  # else any will do
            make = f"make another store: ongebd extract … --backbone {backbone.name} --out FOLDER"
            advice = make if recipe.pictures is None else "give it the videos"
            raise ConfigError(f"{kind} looks at {backbone.identity}, not at {given.identity}; {advice}")
        backbone = given
    return Model(
        name,
        recipe.summary,
        backbone,
        recipe.defaults,
        lambda config: recipe.method(config, argument, device),
        threshold_at=recipe.threshold_at,
        offline=recipe.offline,
    )
