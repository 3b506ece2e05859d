"""`ongebd export`."""

from __future__ import annotations

import sys
from pathlib import Path

from ongebd.errors import MissingExtraError

_EXPORTING = ("torch", "safetensors", "huggingface_hub", "onnx")


def export(folder: Path, /) -> int:
    """Write a trained model's ONNX file, with which it runs on a CPU without torch.

    `ongebd train` does it by itself where `onnx` is installed; this is for a model that came without. Needs
    the extra: pip install "ongebd[train]".

    Parameters
    ----------
    folder
        The model's folder: OUT/model of `ongebd train`.
    """
    from ongebd.detector.trained import read_shape

    read_shape(folder)  # says what is wrong, if this is no model
    try:
        from ongebd.lab.training.onnx_export import export_folder as run
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] in _EXPORTING:
            raise MissingExtraError.of(problem.name, "train") from None
        raise
    print(f"wrote {run(folder)}", file=sys.stderr)  # noqa: T201
    return 0
