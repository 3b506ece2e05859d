"""A trained model's folder: what `ongebd train` writes, and a stream reads.

    config.json         the network's shape
    model.safetensors   its weights
    model.onnx          the same for the CPU, without torch
    ongebd.json         the backbone that it was trained on, the rate, and the calibrated settings

No network is needed to read one, and torch only where the ONNX file is missing or a GPU is asked for.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ongebd.detector.config import StreamConfig
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.estimator import Anticipator
from ongebd.estimator.anticipator_config import AnticipatorConfig
from ongebd.estimator.onnx_anticipator import OnnxAnticipator

FORMAT = 1
ESTIMATOR = "estimator"
"""The paper's own method among the names of trained ones."""
ONNX_FILE, SHAPE_FILE, ABOUT_FILE = "model.onnx", "config.json", "ongebd.json"


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """What is known of a trained model before its weights are read.

    Attributes:
        folder: Where it lies.
        shape: Of the network.
        backbone: The identity of the backbone whose features it was trained on.
        settings: Of a stream with it, every one filled in.
        summary: One line for people: on what it was trained, and how its τ was chosen.
    """

    folder: Path
    shape: AnticipatorConfig
    backbone: str
    settings: StreamConfig
    summary: str

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    def anticipator(self, window: int, *, threads: int = 1, device: str | None = None) -> Anticipator:
        """The anticipator, ready to be used.

        Args:
            window: The L that is asked for; a trained network has its own and no other.
            threads: CPU threads for one frame.
            device: A torch device; None takes onnxruntime on the CPU where the folder has the ONNX file.

        Raises:
            ConfigError: Another L, or the folder is damaged.
            MissingExtraError: Torch is needed and not installed.
        """
        if window != self.shape.window:
            raise ConfigError(
                f"{self.name}: was trained with a window of {self.shape.window} frames, not {window};"
                " leave window out"
            )
        if device is None and (self.folder / ONNX_FILE).is_file():
            return OnnxAnticipator(self.folder / ONNX_FILE, self.name, window, threads)
        for module in ("torch", "safetensors", "huggingface_hub"):
            if find_spec(module) is None:
                why = MissingExtraError.of(module, "train")
                hint = "" if device else f", or write {ONNX_FILE} where it is (ongebd export)"
                raise MissingExtraError(f"{why}{hint}")
        from ongebd.estimator.torch_anticipator import TorchAnticipator

        return TorchAnticipator(self.folder, self.name, device or "cpu", threads)


@dataclass(frozen=True, slots=True)
class About:
    """What `ongebd.json` says: see `TrainedModel`."""

    backbone: str
    settings: StreamConfig
    summary: str


def read_about(folder: Path) -> About:
    """Read the `ongebd.json` in a trained model's folder.

    Raises:
        ConfigError: There is none, or it is damaged.
    """
    if not (folder / ABOUT_FILE).is_file():
        inner = folder / "model"
        hint = f"; did you mean {inner}?" if (inner / ABOUT_FILE).is_file() else ""
        raise ConfigError(f"{folder}: no trained model in it ({ABOUT_FILE} is missing){hint}")
    about, where = _read(folder / ABOUT_FILE), str(folder / ABOUT_FILE)
    if about.get("format") != FORMAT:
        raise ConfigError(f"{where}: format {about.get('format')!r}, and this version reads {FORMAT}")
    try:
        backbone, settings, summary = about["backbone"], dict(about["settings"]), str(about["summary"])
    except (KeyError, TypeError, ValueError) as problem:
        raise ConfigError(f"{where}: damaged ({problem}); train or export the model again") from None
    if not isinstance(backbone, str):
        raise ConfigError(f"{where}: damaged (backbone is {backbone!r}); train or export the model again")
    try:
        stream = StreamConfig().changed({str(name): value for name, value in settings.items()})
        if missing := stream.missing():
            raise ConfigError(f"there is no {', '.join(missing)}")
        stream.rate(), stream.runs(), stream.discriminator(), stream.new_head()  # raises where out of range
    except ConfigError as problem:
        raise ConfigError(f"{where}: damaged ({problem}); train or export the model again") from None
    return About(backbone, stream, summary)


def method_in(folder: Path) -> str:
    """Which method's network a folder holds: ESTIMATOR, or the name of a baseline.

    Raises:
        ConfigError: It holds none.
    """
    read_about(folder)  # which says it best where it is no model's folder
    return str(_read(folder / SHAPE_FILE).get("method", ESTIMATOR))


def read_trained(folder: Path) -> TrainedModel:
    """Read the folder of a trained anticipator.

    Raises:
        ConfigError: It is none, or damaged.
    """
    about, shape = read_about(folder), _read(folder / SHAPE_FILE)
    network = AnticipatorConfig.from_dict(shape, str(folder / SHAPE_FILE))
    if network.head != "anticipation":
        raise ConfigError(f"{folder}: a classifier, the ablation's baseline, which anticipates nothing")
    return TrainedModel(folder, network, about.backbone, about.settings, about.summary)


def write_about(folder: Path, *, backbone: str, settings: StreamConfig, summary: str) -> None:
    """Write `ongebd.json` beside the weights.

    Args:
        folder: The model's.
        backbone: The identity of the backbone.
        settings: Of a stream with it, every one filled in.
        summary: One line for people.

    Raises:
        ConfigError: A setting is missing.
    """
    if missing := settings.missing():
        raise ConfigError(f"a trained model needs a value for {', '.join(missing)}")
    about = {"format": FORMAT, "backbone": backbone, "settings": asdict(settings), "summary": summary}
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    (folder / ABOUT_FILE).write_text(text, encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ConfigError(f"{path}: cannot be read ({problem}); train or export the model again") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: damaged; train or export the model again")
    return value
