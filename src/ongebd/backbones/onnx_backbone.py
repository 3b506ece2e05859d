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
import numpy.typing as npt

from ongebd.backbones.base import Backbone, Features, FramesU8, NetworkBackbone, squash
from ongebd.backbones.cpu_runtime import OpenVinoNetwork, check_runtime, open_session
from ongebd.errors import ConfigError, MissingExtraError
from ongebd.types import ImageU8
from ongebd.video.picture import Squash

_WEIGHTS = files("ongebd.backbones") / "weights"

LUMA = 56
"""Height and width of the luma, in its own pixels."""
_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114


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


class WholePicture(NetworkBackbone):
    """Squashes the whole picture to the network's square. A centre crop would miss people at the sides.

    The feature is the network's (1280 numbers of EfficientNet-Lite0), then the luma of the same picture at
    56 × 56, 0 to 255, row by row: means of 4 × 4 pixels of 0.299 R + 0.587 G + 0.114 B. It shows motion.

    Args:
        network: Whose features; its input must be a square of a multiple of 56 pixels. Shared.
    """

    def __init__(self, network: Backbone) -> None:
        name, size = f"{network.name}_whole", network.input_size
        weights = network.identity.partition("@")[2]
        super().__init__(name, f"{name}@{weights}", network.dim + LUMA * LUMA, size, size)
        self.network = network
        self.view = Squash(size, size)

    def crop(self, rgb: ImageU8) -> ImageU8:
        """See `Backbone`."""
        return squash(rgb, self.input_size, self.input_size)

    def _embed(self, frames: FramesU8) -> Features:
        return np.concatenate([self.network.embed(frames), small_luma(frames)], axis=1)


def small_luma(frames: FramesU8) -> npt.NDArray[np.float32]:
    """The luma of square pictures at 56 × 56, 0 to 255: (N, S, S, 3) uint8 → (N, 3136) float32."""
    count, size = len(frames), frames.shape[1]
    step = size // LUMA
    rows = frames.reshape(count, LUMA, step, 3 * size)
    sums = rows[:, :, 0].astype(np.uint16)
    for row in range(1, step):
        sums += rows[:, :, row]
    red, green, blue = (sums[..., colour::3].astype(np.float32) for colour in range(3))  # (N, 56, S)
    luma = (np.float32(_RED) * red + np.float32(_GREEN) * green) + np.float32(_BLUE) * blue
    means = luma[..., 0::step].copy()
    for column in range(1, step):
        means += luma[..., column::step]
    result: npt.NDArray[np.float32] = (means * np.float32(1 / step**2)).reshape(count, LUMA * LUMA)
    return result


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
