"""A trained model's folder: what `ongebd train` writes, and a stream reads.

    config.json         the network's shape
    model.safetensors   its weights
    model.onnx          an anticipator for the CPU, without torch
    ongebd.json         the backbone that it was trained on, the rate, and the calibrated settings

Torch is needed for a baseline, for a GPU, and where the ONNX file is missing.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ongebd import backbones
from ongebd.backbones import Backbone
from ongebd.detector.config import StreamConfig, asked_for
from ongebd.detector.model import Method, Model
from ongebd.errors import ConfigError, import_extra
from ongebd.estimator.anticipation import ERRORS, Anticipator, ErrorFunction, cosine_error
from ongebd.estimator.anticipator_config import AnticipatorConfig
from ongebd.estimator.onnx_anticipator import OnnxAnticipator
from ongebd.offline.systems import SYSTEMS, make_system

FORMAT = 1
ESTIMATOR = "estimator"
"""The paper's own method among the names of trained ones."""
ONNX_FILE, SHAPE_FILE, ABOUT_FILE = "model.onnx", "config.json", "ongebd.json"
_AGAIN = "train or export the model again"


class About(NamedTuple):
    """What `ongebd.json` says.

    Attributes:
        backbone: The identity of the backbone on whose features the model was trained.
        settings: Of a stream with it, those of the discriminator too.
        summary: One line for people.
    """

    backbone: str
    settings: StreamConfig
    summary: str


def read_about(folder: Path) -> About:
    """Read the `ongebd.json` in a trained model's folder."""
    path = folder / ABOUT_FILE
    if not path.is_file():
        inner = folder / "model"
        hint = f"; did you mean {inner}?" if (inner / ABOUT_FILE).is_file() else ""
        raise ConfigError(f"{folder}: no trained model ({ABOUT_FILE} is missing){hint}")
    about = _read(path)
    if about.get("format") != FORMAT:
        raise ConfigError(f"{path}: format {about.get('format')!r}, but this version reads {FORMAT}")
    try:
        settings = asked_for(None, dict(about["settings"]))
        settings.check_complete()
        return About(str(about["backbone"]), settings, str(about["summary"]))
    except (KeyError, TypeError, ValueError) as problem:
        raise ConfigError(f"{path}: damaged ({problem}); {_AGAIN}") from None


def write_about(folder: Path, *, backbone: str, settings: StreamConfig, summary: str) -> None:
    """Write `ongebd.json` beside the weights; see `About`."""
    settings.check_complete()
    about = {"format": FORMAT, "backbone": backbone, "settings": asdict(settings), "summary": summary}
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    (folder / ABOUT_FILE).write_text(text, encoding="utf-8")


def read_shape(folder: Path) -> AnticipatorConfig:
    """The shape of the trained anticipator in a folder."""
    read_about(folder)  # has the best message for a folder without a model
    try:
        shape = AnticipatorConfig(**_read(folder / SHAPE_FILE))
    except (TypeError, ConfigError) as problem:  # TypeError: an unknown name
        raise ConfigError(f"{folder / SHAPE_FILE}: {problem}; {_AGAIN}") from None
    if shape.head != "anticipation":
        raise ConfigError(f"{folder}: a classifier, the ablation's baseline, which anticipates nothing")
    return shape


def load_trained(
    folder: Path,
    threads: int = 1,
    device: str = "cpu",
    weights: Path | str | None = None,
    wanted: str | None = None,
    backbone: Backbone | None = None,
) -> Model:
    """A trained model with the backbone that it was trained on.

    Args:
        folder: What `ongebd train` wrote.
        threads: CPU threads for one frame.
        device: A torch device.
        weights: The backbone's checkpoint, where it needs one.
        wanted: The method that the folder must hold; None: any.
        backbone: Used instead of loading one. The network then computes many frames in one call, with torch.
    """
    about = read_about(folder)
    found = str(_read(folder / SHAPE_FILE).get("method", ESTIMATOR))
    if wanted is not None and found != wanted:
        raise ConfigError(f"{folder}: has the weights of {found}, not of {wanted}")
    whole = folder.resolve()
    name = whole.parent.name if whole.name == "model" else whole.name  # OUT/model of `ongebd train --out OUT`
    error: ErrorFunction = cosine_error
    offline = found in SYSTEMS
    if found == ESTIMATOR:
        shape = read_shape(folder)
        dim, error = shape.dim, ERRORS[shape.metric]
        by_onnx = device == "cpu" and (backbone is None or find_spec("torch") is None)
        method = _anticipating(folder, name, shape.window, threads, device, by_onnx)
    elif offline:
        dim, method = _offline(folder, name, device)
    else:
        dim, method = _baseline(folder, name, threads, device)
    if backbone is None:
        backbone = _backbone(folder, about.backbone, threads, device, weights)
    _check_backbone(folder, about.backbone, dim, backbone)
    return Model(name, about.summary, backbone, about.settings, method, error, one_rate=True, offline=offline)


def _anticipating(folder: Path, name: str, window: int, threads: int, device: str, by_onnx: bool) -> Method:
    anticipator: Anticipator
    if by_onnx and (folder / ONNX_FILE).is_file():
        anticipator = OnnxAnticipator(folder / ONNX_FILE, name, window, threads)
    else:
        import_extra("torch", "train")
        from ongebd.estimator.torch_anticipator import TorchAnticipator

        anticipator = TorchAnticipator(folder, name, device, threads)

    def method(config: StreamConfig) -> Anticipator:
        if config.window not in (None, window):
            raise ConfigError(
                f"{name}: was trained with a window of {window} frames, not {config.window}; leave window out"
            )
        return anticipator

    return method


def _baseline(folder: Path, name: str, threads: int, device: str) -> tuple[int, Method]:
    """D, and what makes a stream's scorer."""
    import_extra("torch", "train")
    from ongebd.backbones.torch_backbone import torch_device
    from ongebd.baselines.network import NetworkScorer
    from ongebd.baselines.weights import load_network

    network = load_network(folder).to(torch_device(device))
    return network.shape.dim, lambda _config: NetworkScorer(network, name, threads)


def _offline(folder: Path, name: str, device: str) -> tuple[int, Method]:
    """D, and what makes the scorer of a whole video."""
    import_extra("torch", "train")
    from ongebd.backbones.torch_backbone import torch_device
    from ongebd.baselines.weights import load_made
    from ongebd.offline.whole_video import WholeVideo

    network = load_made(folder, make_system).to(torch_device(device))
    return network.shape.dim, lambda _config: WholeVideo(name, network.score_video)


def _backbone(folder: Path, identity: str, threads: int, device: str, weights: Path | str | None) -> Backbone:
    name = identity.split("@")[0]
    if name not in backbones.names():
        known = ", ".join(backbones.names())
        raise ConfigError(f"{folder}: was trained on features of {identity!r}; known backbones are {known}")
    place = device if backbones.takes_device(name) else "cpu"
    return backbones.get(name, threads=threads, weights=weights, device=place)


def _check_backbone(folder: Path, identity: str, dim: int, backbone: Backbone) -> None:
    """Refuse features on which the model wasn't trained."""
    if identity not in (backbone.identity, backbone.identity.partition("@")[0]):
        raise ConfigError(
            f"{folder}: was trained on features of {identity}, but these are of {backbone.identity};"
            " extract and train again"
        )
    if backbone.dim != dim:
        raise ConfigError(
            f"{folder}: takes features of {dim} numbers, but {backbone.name} gives {backbone.dim}"
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as problem:
        raise ConfigError(f"{path}: can't read ({problem}); {_AGAIN}") from None
