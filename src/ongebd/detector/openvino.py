"""A model whose networks another CPU runtime runs, or in another precision."""

from __future__ import annotations

from functools import partial

import numpy as np

from ongebd.backbones.cpu_runtime import CPU_RUNTIMES
from ongebd.backbones.onnx_backbone import on_cpu_runtime as backbone_on_cpu_runtime
from ongebd.detector.config import StreamConfig
from ongebd.detector.models import Model
from ongebd.detector.scorers import Scorer
from ongebd.errors import ConfigError
from ongebd.estimator import Anticipator
from ongebd.estimator.onnx_anticipator import OnnxAnticipator
from ongebd.estimator.openvino_anticipator import OpenVinoAnticipator


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


def asked_runtime(runtime: str | None, precision: str | None) -> tuple[str, str] | tuple[None, None]:
    """Runtime and precision, of which a user may name one alone; neither where neither is named.

    >>> asked_runtime("openvino", None)
    ('openvino', 'float32')
    """
    if runtime is None and precision is None:
        return None, None
    return runtime or CPU_RUNTIMES[0], precision or "float32"


def as_asked(model: Model, runtime: str | None, precision: str | None) -> Model:
    """A model that computes as a user asked: as it is where nothing is asked for.

    Its backbone is made ready here, so that what the processor lacks is told before a source is opened.

    Args:
        model: A loaded model, in float32 on the CPU.
        runtime: As in `on_cpu_runtime`; None takes onnxruntime where a precision is asked for.
        precision: Likewise; None takes float32 where a runtime is asked for.

    Raises:
        ConfigError: Runtime and precision are not to be had, or nothing in the model is run by one.
        MissingExtraError: A package is not installed.
    """
    runtime, precision = asked_runtime(runtime, precision)
    if runtime is None or precision is None:
        return model
    changed = on_cpu_runtime(model, runtime, precision)
    backbone = changed.backbone
    if backbone.name == "pictures":
        raise ConfigError(
            f"{model.name} has no network that another runtime could run; leave out runtime and precision"
        )
    backbone.embed(np.zeros((1, backbone.input_size, backbone.input_size, 3), np.uint8))
    return changed
