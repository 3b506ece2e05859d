"""A model whose networks another CPU runtime runs, or in another precision."""

from __future__ import annotations

from functools import partial

from ongebd.backbones.graph_backbone import on_cpu_runtime as backbone_on_cpu_runtime
from ongebd.estimator import Anticipator
from ongebd.estimator.onnx_anticipator import OnnxAnticipator
from ongebd.estimator.openvino_anticipator import OpenVinoAnticipator
from ongebd.streaming.config import StreamConfig
from ongebd.streaming.models import Model
from ongebd.streaming.scorers import Scorer


def on_cpu_runtime(
    model: Model, runtime: str = "onnxruntime", precision: str = "float32", threads: int = 1
) -> Model:
    """A model that computes so on the CPU; streams, pools and sources take it as any other.

    Backbone and trained anticipator are run by it; what has no network, and what torch alone runs, stays as
    it is.

    Args:
        model: A loaded model, in float32 on the CPU.
        runtime: `onnxruntime` or `openvino`.
        precision: `float32`, or with OpenVINO `bfloat16`.
        threads: Threads for one frame's inference.

    Raises:
        ConfigError: Runtime and precision are not to be had for its backbone, or on this processor.
        MissingExtraError: OpenVINO, or for a ResNet-50 `onnx`, is not installed.

    >>> import ongebd
    >>> on_cpu_runtime(ongebd.load("window-mean"), "onnxruntime").name
    'window-mean'
    """
    backbone = backbone_on_cpu_runtime(model.backbone, runtime, precision, threads)
    made: dict[OnnxAnticipator, OpenVinoAnticipator] = {}

    def method(config: StreamConfig) -> Anticipator | Scorer:
        own = model._made(config)
        if runtime != "openvino" or not isinstance(own, OnnxAnticipator):
            return own
        theirs = OpenVinoAnticipator(own.path, own.name, own.window, precision, threads)
        return made.setdefault(own, theirs)  # one network, opened when it is first used, for all streams

    changed = Model(
        model.name,
        model.summary,
        backbone,
        model.defaults,
        _error=model._error,
        _method=method,
        _threshold=model._threshold,
    )
    if model._loading is not None:
        object.__setattr__(changed, "_loading", partial(on_cpu_runtime, model, runtime, precision, threads))
    return changed
