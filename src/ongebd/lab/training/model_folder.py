"""Writing a trained model's folder (`ongebd.detector.trained` reads it)."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from ongebd.detector.trained import ONNX_FILE, write_about
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.estimator.anticipator import ConsistentEventAnticipator
from ongebd.estimator.torch_anticipator import load_anticipator
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.dataset import Dataset

MODEL = "model"
"""The model's folder in the folder of a training."""

_UNUSED_TAU = 1.5  # a stream with a fixed threshold never looks at it


def save_model(
    folder: Path, model: ConsistentEventAnticipator, config: TrainConfig, dataset: Dataset, threshold: float
) -> None:
    """Write weights, shape, settings, and the ONNX file if `onnx` is installed.

    Args:
        folder: Where to; files of an older model there are overwritten.
        model: The network.
        config: How it was trained.
        dataset: On what.
        threshold: The best τ on the validation videos; the configuration's own goes before.

    Raises:
        ConfigError: The folder cannot be written to.
    """
    tau = threshold if config.obd and config.tau is None else config.tau or _UNUSED_TAU
    chosen = "given" if config.obd and config.tau is not None else "chosen on the validation videos"
    what = f"τ = {tau:g}" if config.obd else f"a fixed threshold of {threshold:.4g}"
    summary = (
        f"CEA trained on {len(dataset.training)} videos of {dataset.labels.dataset}; {what} was {chosen}"
    )
    try:
        model.save_pretrained(folder)
        settings = config.stream(dataset.fps, tau)
        if not config.obd:
            settings = replace(settings, head="threshold", threshold=threshold)
        write_about(folder, backbone=dataset.backbone, settings=settings, summary=summary)
    except OSError as problem:
        raise ConfigError(f"{folder}: cannot be written ({problem.strerror})") from None
    if model.config.head == "anticipation" and find_spec("onnx") is not None:
        export(folder, model)


def export(folder: Path, model: ConsistentEventAnticipator | None = None) -> Path:
    """Write `model.onnx` beside a model's weights.

    Args:
        folder: The model's.
        model: The network; None reads it from the folder.

    Returns:
        The file.

    Raises:
        ConfigError: There is no model, or the file cannot be written.
        MissingExtraError: `onnx` is not installed.
    """
    try:
        from ongebd.lab.training.onnx_export import export_onnx
    except ModuleNotFoundError as problem:
        raise MissingExtraError.of(problem.name, "train") from None
    export_onnx(model or load_anticipator(folder), folder / ONNX_FILE)
    return folder / ONNX_FILE
