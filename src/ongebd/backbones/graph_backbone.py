"""Another backbone's network as an ONNX graph, run on the CPU by onnxruntime or by OpenVINO."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ongebd.backbones.base import Backbone, Features, FramesU8, check_frames
from ongebd.backbones.onnx_backbone import OnnxBackbone
from ongebd.backbones.openvino_network import OpenVinoNetwork, check_precision, import_openvino
from ongebd.backbones.sessions import open_session
from ongebd.backbones.whole_picture import WholePicture
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.types import ImageU8

if TYPE_CHECKING:
    from ongebd.common.geometry import View

CpuRuntimeName = Literal["onnxruntime", "openvino"]
CPU_RUNTIMES: tuple[CpuRuntimeName, ...] = ("onnxruntime", "openvino")
"""What runs a graph on the CPU; the first is the default."""


class GraphBackbone:
    """The features of another backbone, by another runtime or in another precision.

    One object may be used from several threads at once. A call for several pictures takes one after another,
    so that a picture's feature has the same bits in any company.

    Args:
        like: EfficientNet-Lite0 or a ResNet-50 (TSN is one), in float32 on the CPU.
        runtime: What runs the network.
        precision: In what it computes: `float32`, or with OpenVINO `bfloat16`. Features are float32 always.
        threads: Threads in which one picture is computed.

    Attributes:
        name: That of `like`, and so are `dim`, `input_size`, `resize_size`, `view` and `crop`.
        identity: Name and weights of `like`, and the precision if not float32.

    Raises:
        ConfigError: There is no graph of it, or runtime and precision are not to be had.
        MissingExtraError: OpenVINO, or for a ResNet-50 `onnx`, is not installed.
    """

    def __init__(
        self, like: Backbone, runtime: str = "onnxruntime", precision: str = "float32", threads: int = 1
    ) -> None:
        check_runtime(runtime, precision)
        if runtime == "openvino":
            import_openvino()
        self._like = like
        self._graph = graph_of(like)
        self.runtime = runtime
        self.precision = precision
        self.threads = threads
        self.name = like.name
        self.dim = like.dim
        self.input_size = like.input_size
        self.resize_size = like.resize_size
        self.view: View = like.view
        self.identity = like.identity + ("" if precision == "float32" else f"+{precision}")
        self._opening = threading.Lock()

    def __repr__(self) -> str:
        return f"<backbone {self.identity}: {self.dim} numbers a frame, by {self.runtime}>"

    def crop(self, rgb: ImageU8) -> ImageU8:
        """As the backbone whose network it is."""
        return self._like.crop(rgb)

    def embed(self, frames: FramesU8) -> Features:
        """Features (N, D) of pictures (N, S, S, 3), S being `input_size`; N may be 0.

        Raises:
            FrameError: Another type or shape.
        """
        frames = check_frames(frames, self.input_size)
        with self._opening:  # held only while the network is made ready, or for a moment
            run = self._run
        features = [run(frames[place : place + 1]) for place in range(len(frames))]
        return np.concatenate(features) if features else np.empty((0, self.dim), np.float32)

    @cached_property
    def _run(self) -> Callable[[FramesU8], Features]:
        if self.runtime == "openvino":
            shape = (1, self.input_size, self.input_size, 3)
            return OpenVinoNetwork(self._graph, self.precision, self.threads, shape)
        session = open_session(self._graph, self.threads)

        def run(frames: FramesU8) -> Features:
            features: Features = session.run(["features"], {"frames": frames})[0]
            return features

        return run


def check_runtime(runtime: str, precision: str) -> None:
    """Refuse a runtime or a precision that there is not.

    Raises:
        ConfigError: There is none.
    """
    if runtime not in CPU_RUNTIMES:
        raise ConfigError(f"runtime must be {' or '.join(CPU_RUNTIMES)}, not {runtime!r}")
    check_precision(precision)
    if runtime == "onnxruntime" and precision != "float32":
        raise ConfigError(f"onnxruntime computes in float32 here, not in {precision}; take openvino")


def graph_of(backbone: Backbone) -> bytes:
    """The ONNX file of a backbone's network: `frames` (N, S, S, 3) uint8 → `features` (N, D) float32.

    Raises:
        ConfigError: There is none of this backbone.
        MissingExtraError: `onnx` is needed and not installed.
    """
    if isinstance(backbone, OnnxBackbone):
        return (files("ongebd.backbones") / "weights" / f"{backbone.name}.onnx").read_bytes()
    network: Any = getattr(backbone, "network", None)
    if network is not None:  # torch's, so torch is here
        from ongebd.backbones.resnet50_network import ResNet50
        from ongebd.backbones.torch_backbone import TorchBackbone

        if isinstance(network, ResNet50) and isinstance(backbone, TorchBackbone):
            try:
                from ongebd.backbones.resnet50_graph import resnet50_graph
            except ModuleNotFoundError as problem:
                raise MissingExtraError.of(problem.name, "train") from None
            mean, deviation = backbone.normalisation
            return resnet50_graph(network, mean, deviation, backbone.input_size)
    raise ConfigError(f"{backbone.name}: there is no graph of this backbone; leave out runtime and precision")


def on_cpu_runtime(
    backbone: Backbone, runtime: str = "onnxruntime", precision: str = "float32", threads: int = 1
) -> Backbone:
    """A backbone, run so: itself where it is run so already, or has no network.

    Raises:
        ConfigError: Runtime and precision are not to be had for it.
        MissingExtraError: A package is not installed.
    """
    check_runtime(runtime, precision)
    if isinstance(backbone, WholePicture):
        network = on_cpu_runtime(backbone.network, runtime, precision, threads)
        return backbone if network is backbone.network else WholePicture(network)
    if isinstance(backbone, OnnxBackbone) and runtime == "onnxruntime":
        return backbone
    if backbone.name == "pictures":
        return backbone
    return GraphBackbone(backbone, runtime, precision, threads)
