"""Other ways to run a network on the CPU: OpenVINO, and torch's backbones in onnxruntime."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ongebd.backbones.base import Backbone, Features, FramesU8
from ongebd.backbones.onnx_backbone import OnnxBackbone, WholePicture, by_onnxruntime
from ongebd.errors import ConfigError, import_extra

CPU_RUNTIMES = ("onnxruntime", "openvino")
"""What runs a graph on the CPU; the first is the default."""

_PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}
_IN_USE = {"<Type: 'float32'>": "float32", "<Type: 'bfloat16'>": "bfloat16"}


def check_runtime(runtime: str, precision: str) -> None:
    """Refuse an unknown runtime, or a precision that it doesn't offer.

    Raises:
        ConfigError: It says what there is.
        MissingExtraError: OpenVINO isn't installed.
    """
    if runtime not in CPU_RUNTIMES:
        raise ConfigError(f"runtime must be {' or '.join(CPU_RUNTIMES)}, not {runtime!r}")
    _check_precision(precision)
    if runtime == "onnxruntime" and precision != "float32":
        raise ConfigError(f"onnxruntime computes in float32 only, not in {precision}; use openvino")
    if runtime == "openvino":
        import_extra("openvino", "openvino")


class OpenVinoNetwork:
    """A graph with one input and one output, compiled by OpenVINO; several threads may call it.

    Left alone, OpenVINO picks bfloat16 on processors that have it. So the precision is always set.

    Args:
        graph: The content of an ONNX file.
        precision: `float32` or `bfloat16`; the output is always float32.
        threads: Threads in which one call computes.
        shape: Of the input, if the graph leaves it open.
        attends: Whether the network contains attention. OpenVINO's own attention kernels crash when they are
            compiled for a single thread and a small network (2026.4); then oneDNN's are used.

    Raises:
        ConfigError: The processor lacks the precision, or OpenVINO can't read the graph.
        MissingExtraError: OpenVINO isn't installed.
    """

    def __init__(
        self,
        graph: bytes,
        precision: str,
        threads: int = 1,
        shape: Sequence[int] | None = None,
        *,
        attends: bool = False,
    ) -> None:
        _check_precision(precision)
        calls = max(1, (os.cpu_count() or 1) // threads)  # at the same time
        settings: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": _PRECISIONS[precision],
            "NUM_STREAMS": calls,
            "INFERENCE_NUM_THREADS": calls * threads,
            "ENABLE_CPU_PINNING": False,  # decoding needs the processors too
        }
        if attends:
            settings["SNIPPETS_MODE"] = "DISABLE"
        core = import_extra("openvino", "openvino").Core()
        try:
            model = core.read_model(graph)
            if shape is not None:
                model.reshape(list(shape))
            self._compiled: Any = core.compile_model(model, "CPU", settings)
        except RuntimeError as problem:
            lines = str(problem).split("\n")
            reason = next((line.strip() for line in reversed(lines) if line.strip()), "RuntimeError")
            raise ConfigError(f"openvino can't run the graph: {reason}") from None
        if _IN_USE.get(str(self._compiled.get_property("INFERENCE_PRECISION_HINT"))) != precision:
            raise ConfigError(f"this processor can't compute in {precision}; use float32")
        self._own = threading.local()

    def __call__(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """The output for an input of the graph's shape."""
        request = getattr(self._own, "request", None)
        if request is None:  # one per thread, since a request does one thing at a time
            request = self._own.request = self._compiled.create_infer_request()
        request.infer([np.ascontiguousarray(values)], share_inputs=True)
        result: npt.NDArray[np.float32] = request.get_output_tensor(0).data.copy()
        return result


class GraphBackbone(OnnxBackbone):
    """The features of another backbone, by another runtime or in another precision.

    It computes one picture after another, so that a picture's feature has the same bits in any batch.

    Args:
        like: EfficientNet-Lite0 or a ResNet-50 (TSN is one), in float32 on the CPU.
        runtime: What runs the network.
        precision: What it computes in: `float32`, or with OpenVINO `bfloat16`. Features are always float32.
        threads: Threads in which one picture is computed.

    Raises:
        ConfigError: The backbone can't become a graph, or the runtime lacks the precision.
        MissingExtraError: OpenVINO, or for a ResNet-50 `onnx`, isn't installed.
    """

    def __init__(
        self, like: Backbone, runtime: str = "onnxruntime", precision: str = "float32", threads: int = 1
    ) -> None:
        check_runtime(runtime, precision)
        self._graph = _graph_of(like)
        identity = like.identity + ("" if precision == "float32" else f"+{precision}")
        Backbone.__init__(self, like.name, identity, like.dim, like.input_size, like.resize_size)
        self.runtime, self.precision, self.threads = runtime, precision, threads
        self._opening = threading.Lock()

    @cached_property
    def _run(self) -> Callable[[FramesU8], Features]:
        shape = (1, self.input_size, self.input_size, 3)
        run = (
            by_onnxruntime(self._graph, self.threads)
            if self.runtime == "onnxruntime"
            else OpenVinoNetwork(self._graph, self.precision, self.threads, shape)
        )
        return lambda frames: np.concatenate([run(frame[None]) for frame in frames])


def on_cpu_runtime(
    backbone: Backbone, runtime: str = "onnxruntime", precision: str = "float32", threads: int = 1
) -> Backbone:
    """A backbone run like this; the same object if it is already, or has no network.

    Raises:
        ConfigError: The runtime or the precision doesn't suit it.
        MissingExtraError: A package isn't installed.
    """
    check_runtime(runtime, precision)
    if isinstance(backbone, WholePicture):
        network = on_cpu_runtime(backbone.network, runtime, precision, threads)
        return backbone if network is backbone.network else WholePicture(network)
    if backbone.name == "pictures" or (type(backbone) is OnnxBackbone and runtime == "onnxruntime"):
        return backbone
    return GraphBackbone(backbone, runtime, precision, threads)


def _graph_of(backbone: Backbone) -> bytes:
    """The ONNX file of a backbone's network: `frames` (N, S, S, 3) uint8 → `features` (N, D) float32."""
    if type(backbone) is OnnxBackbone:
        return backbone.graph()
    if hasattr(backbone, "network"):  # a PyTorch backbone, so torch is here
        from ongebd.backbones.resnet50 import ResNet50
        from ongebd.backbones.torch_backbone import TorchBackbone

        if isinstance(backbone, TorchBackbone) and isinstance(backbone.network, ResNet50):
            graph = import_extra("ongebd.backbones.resnet50_graph", "train").resnet50_graph
            mean, deviation = backbone.normalisation
            return graph(backbone.network, mean, deviation, backbone.input_size)  # type: ignore[no-any-return]
    raise ConfigError(f"{backbone.name}: can't run on another runtime; leave out runtime and precision")


def _check_precision(precision: str) -> None:
    if precision not in _PRECISIONS:
        raise ConfigError(f"the CPU computes in {' or '.join(_PRECISIONS)}, not in {precision}")
