"""Backbones that run as ONNX graphs on the CPU: the ones in the package, and torch's in another runtime."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from ongebd.backbones.base import Backbone, Features, FramesU8, NetworkBackbone
from ongebd.backbones.cpu_runtime import OpenVinoNetwork, check_runtime, open_session
from ongebd.backbones.whole_picture import WholePicture
from ongebd.errors import ConfigError, MissingExtraError

_WEIGHTS = files("ongebd.backbones") / "weights"


class OnnxBackbone(NetworkBackbone):
    """A backbone with its weights in `weights/NAME.onnx` and their description in `weights/NAME.json`.

    The first `embed` opens the file. Several threads may use one object: with `threads=1` each call computes
    in the thread that made it, and gets the same bits as a call alone.

    Args:
        name: The file's name without its ending.
        threads: Threads in which onnxruntime computes one call.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        about: dict[str, Any] = json.loads((_WEIGHTS / f"{name}.json").read_text(encoding="utf-8"))
        size, resize_size = about["input"]["shape"][1], about["input"]["resize_size"]
        super().__init__(name, f"{name}@{about['sha256'][:12]}", about["dim"], size, resize_size)
        self.threads = threads
        self._opening = threading.Lock()

    def _embed(self, frames: FramesU8) -> Features:
        with self._opening:
            run = self._run
        return run(frames)

    @cached_property
    def _run(self) -> Callable[[FramesU8], Features]:
        with as_file(_WEIGHTS / f"{self.name}.onnx") as path:
            return _by_onnxruntime(path, self.threads)


class GraphBackbone(OnnxBackbone):
    """The features of another backbone, by another runtime or in another precision.

    It computes one picture after another, so that a picture's feature has the same bits in any batch.

    Args:
        like: EfficientNet-Lite0 or a ResNet-50 (TSN is one), in float32 on the CPU.
        runtime: What runs the network.
        precision: What it computes in: `float32`, or with OpenVINO `bfloat16`. Features are always float32.
        threads: Threads in which one picture is computed.

    Raises:
        ConfigError: There is no graph of it, or the runtime lacks the precision.
        MissingExtraError: OpenVINO, or for a ResNet-50 `onnx`, isn't installed.
    """

    def __init__(
        self, like: Backbone, runtime: str = "onnxruntime", precision: str = "float32", threads: int = 1
    ) -> None:
        check_runtime(runtime, precision)
        self._graph = _graph_of(like)
        identity = like.identity + ("" if precision == "float32" else f"+{precision}")
        NetworkBackbone.__init__(self, like.name, identity, like.dim, like.input_size, like.resize_size)
        self.runtime, self.precision, self.threads = runtime, precision, threads
        self._opening = threading.Lock()

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, by {self.runtime}>"

    @cached_property
    def _run(self) -> Callable[[FramesU8], Features]:
        shape = (1, self.input_size, self.input_size, 3)
        run = (
            _by_onnxruntime(self._graph, self.threads)
            if self.runtime == "onnxruntime"
            else OpenVinoNetwork(self._graph, self.precision, self.threads, shape)
        )
        return lambda frames: np.concatenate([run(frame[None]) for frame in frames])


def _by_onnxruntime(graph: Path | bytes, threads: int) -> Callable[[FramesU8], Features]:
    session = open_session(graph, threads)
    return lambda frames: session.run(["features"], {"frames": frames})[0]


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
        return (_WEIGHTS / f"{backbone.name}.onnx").read_bytes()
    if hasattr(backbone, "network"):  # a PyTorch backbone, so torch is here
        from ongebd.backbones.resnet50_network import ResNet50
        from ongebd.backbones.torch_backbone import TorchBackbone

        if isinstance(backbone, TorchBackbone) and isinstance(backbone.network, ResNet50):
            try:
                from ongebd.backbones.resnet50_graph import resnet50_graph
            except ModuleNotFoundError as problem:
                raise MissingExtraError.of(problem.name, "train") from None
            mean, deviation = backbone.normalisation
            return resnet50_graph(backbone.network, mean, deviation, backbone.input_size)
    raise ConfigError(f"{backbone.name}: can't run on another runtime; leave out runtime and precision")
