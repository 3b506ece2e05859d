"""A model whose networks another CPU runtime runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ongebd.backbones.cpu_runtime import on_cpu_runtime as backbone_on_cpu_runtime
from ongebd.detector.config import StreamConfig
from ongebd.detector.detector import Scorer
from ongebd.detector.model import Model
from ongebd.errors import ConfigError
from ongebd.estimator.anticipation import Anticipator
from ongebd.estimator.onnx_anticipator import OnnxAnticipator


def on_cpu_runtime(
    model: Model, runtime: str = "onnxruntime", precision: str = "float32", threads: int = 1
) -> Model:
    """A model whose backbone and trained anticipator another CPU runtime runs. The rest stays as it is.

    Args:
        model: A loaded model, in float32 on the CPU.
        runtime: `onnxruntime` or `openvino`.
        precision: `float32`, or with OpenVINO `bfloat16`.
        threads: Threads for one frame's inference.

    >>> import ongebd
    >>> on_cpu_runtime(ongebd.load("window-mean"), "onnxruntime").name
    'window-mean'
    """
    backbone = backbone_on_cpu_runtime(model.backbone, runtime, precision, threads)
    made: dict[OnnxAnticipator, OnnxAnticipator] = {}

    def method(config: StreamConfig) -> Anticipator | Scorer:
        own = model.method(config)
        if runtime != "openvino" or not isinstance(own, OnnxAnticipator):
            return own
        if own not in made:  # one network for all streams
            made[own] = OnnxAnticipator(own.path, own.name, own.window, threads, openvino=precision)
        return made[own]

    return replace(model, backbone=backbone, method=method)


def on_openvino(model: Model, precision: str, threads: int = 1) -> Model:
    """A model on OpenVINO. Its backbone is made ready here, so that a processor's limits show early."""
    if model.backbone.name == "pictures":
        raise ConfigError(f"{model.name} has no network that OpenVINO could run; drop device")
    changed = on_cpu_runtime(model, "openvino", precision, threads)
    size = changed.backbone.input_size
    changed.backbone.embed(np.zeros((1, size, size, 3), np.uint8))
    return changed
