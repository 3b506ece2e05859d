"""Backbones that run as ONNX graphs on the CPU: the ones in the package, and torch's in another runtime."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import cached_property
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

import numpy as np

from ongebd.backbones.base import Backbone, Features, FramesU8, check_frames, resize_and_crop
from ongebd.backbones.cpu_runtime import OpenVinoNetwork, check_runtime, open_session
from ongebd.backbones.whole_picture import WholePicture
from ongebd.common.geometry import Fit, View
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.types import ImageU8

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_WEIGHTS = files("ongebd.backbones") / "weights"


class OnnxBackbone:
    """A backbone with its weights in `weights/NAME.onnx` and their description in `weights/NAME.json`.

    The first `embed` opens the file. Several threads may use one object: with `threads=1` each call computes
    in the thread that made it, and gets the same bits as a call alone.

    Args:
        name: The file's name without its ending.
        threads: Threads in which onnxruntime computes one call.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        about: dict[str, Any] = json.loads((_WEIGHTS / f"{name}.json").read_text(encoding="utf-8"))
        self.name = name
        self.threads = threads
        self.dim: int = about["dim"]
        self.input_size: int = about["input"]["shape"][1]
        self.resize_size: int = about["input"]["resize_size"]
        self.view: View = Fit(self.resize_size)
        self.identity = f"{name}@{about['sha256'][:12]}"
        self._opening = threading.Lock()

    def __repr__(self) -> str:
        return f"<backbone {self.identity}: {self.dim} numbers a frame>"

    def crop(self, rgb: ImageU8) -> ImageU8:
        """The centre of the picture, after bicubic resizing; see `Backbone.crop`."""
        return resize_and_crop(rgb, self.resize_size, self.input_size)

    def embed(self, frames: FramesU8) -> Features:
        """See `Backbone.embed`."""
        frames = check_frames(frames, self.input_size)
        if not len(frames):
            return np.empty((0, self.dim), np.float32)
        with self._opening:
            session = self._session
        features: Features = session.run(["features"], {"frames": frames})[0]
        return features

    @cached_property
    def _session(self) -> InferenceSession:
        with as_file(_WEIGHTS / f"{self.name}.onnx") as path:
            return open_session(path, self.threads)


class GraphBackbone:
    """The features of another backbone, by another runtime or in another precision.

    Several threads may use one object. It computes one picture after another, so that a picture's feature has
    the same bits in any batch.

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
        self.runtime, self.precision, self.threads = runtime, precision, threads
        self.name, self.dim, self.crop, self.view = like.name, like.dim, like.crop, like.view
        self.input_size, self.resize_size = like.input_size, like.resize_size
        self.identity = like.identity + ("" if precision == "float32" else f"+{precision}")
        self._opening = threading.Lock()

    def __repr__(self) -> str:
        return f"<backbone {self.identity}: {self.dim} numbers a frame, by {self.runtime}>"

    def embed(self, frames: FramesU8) -> Features:
        """See `Backbone.embed`."""
        frames = check_frames(frames, self.input_size)
        with self._opening:
            run = self._run
        features = [run(frames[place : place + 1]) for place in range(len(frames))]
        return np.concatenate(features) if features else np.empty((0, self.dim), np.float32)

    @cached_property
    def _run(self) -> Callable[[FramesU8], Features]:
        if self.runtime == "openvino":
            shape = (1, self.input_size, self.input_size, 3)
            return OpenVinoNetwork(self._graph, self.precision, self.threads, shape)
        session = open_session(self._graph, self.threads)
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
    if backbone.name == "pictures" or (isinstance(backbone, OnnxBackbone) and runtime == "onnxruntime"):
        return backbone
    return GraphBackbone(backbone, runtime, precision, threads)


def _graph_of(backbone: Backbone) -> bytes:
    """The ONNX file of a backbone's network: `frames` (N, S, S, 3) uint8 → `features` (N, D) float32."""
    if isinstance(backbone, OnnxBackbone):
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
