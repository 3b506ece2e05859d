"""The backbones in the package, which run as ONNX graphs in onnxruntime."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable
from functools import cached_property, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ongebd.backbones.base import Backbone, Features, FramesU8
from ongebd.errors import ConfigError, os_errors
from ongebd.video.picture import Squash

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

WEIGHTS = files("ongebd.backbones") / "weights"

LUMA = 56
"""Height and width of the luma, in its own pixels."""
_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114
_OVERFLOWN = 0.2
"""The mean error of the probe's features above which int8 sums have overflowed; those give 0.4 and more."""


class OnnxBackbone(Backbone):
    """A backbone with its weights in `weights/NAME.onnx` and their description in `weights/NAME.json`.

    The first `embed` opens the file; ConfigError if it is missing or damaged. Several threads may use one
    object: with `threads=1` each call computes in the thread that made it, and gets the same bits as alone.

    Args:
        name: The file's name without its ending.
        threads: Threads in which onnxruntime computes one call.
        int8: Compute in int8. Processors with VNNI take less than half the time; others get the same bits.
    """

    def __init__(self, name: str, threads: int = 1, *, int8: bool = False) -> None:
        try:
            about: dict[str, Any] = json.loads((WEIGHTS / f"{name}.json").read_text(encoding="utf-8"))
            identity, square = about["identity"] + ("-int8" if int8 else ""), about["input"]
            super().__init__(name, identity, about["dim"], square["size"], square["resize_size"])
            file = about["int8"] if int8 else about
            self.graph = partial(read_weights, WEIGHTS / file["file"], file["sha256"])
            self._probed: list[float] = file.get("probe", [])
        except (OSError, ValueError, LookupError, TypeError) as problem:
            raise ConfigError(f"{WEIGHTS / name}.json: damaged ({problem}); reinstall the package") from None
        self.threads = threads
        self._opening = threading.Lock()

    def _embed(self, frames: FramesU8) -> Features:
        with self._opening:
            run = self._run
        return run(frames)

    @cached_property
    def _run(self) -> Callable[[FramesU8], Features]:
        graph, known = self.graph(), len(self._probed)
        run = by_onnxruntime(graph, self.threads)
        if known and np.abs(run(probe())[0, :known] - self._probed).mean() > _OVERFLOWN:
            run = by_onnxruntime(graph, self.threads, wide_sums=True)
        return run


def probe() -> FramesU8:
    """A small picture of waves whose int8 features are known, (1, 64, 64, 3)."""
    y, x, colour = np.mgrid[:64, :64, :3] / [[[[64]]], [[[64]]], [[[1]]]]
    waves = np.sin(9 * (colour + 1) * x * y + 5 * colour * (x - y))
    picture: FramesU8 = (127.5 + 127 * waves).astype(np.uint8)[np.newaxis]
    return picture


def read_weights(file: Traversable, sha256: str) -> bytes:
    """The content of a file of weights; ConfigError if it is missing, or not what its description says."""
    with os_errors(file, "reinstall the package"):
        content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ConfigError(f"{file}: wrong checksum; reinstall the package")
    return content


def open_session(graph: bytes, threads: int, *, wide_sums: bool = False) -> InferenceSession:
    """An onnxruntime session that computes each call in `threads` threads.

    With one thread, a call computes in the thread that made it. So several streams can share a session, and
    each gets the same bits as alone.

    Args:
        graph: The content of an ONNX file.
        threads: At least 1.
        wide_sums: Whether int8 sums must not overflow, as they may on processors without VNNI. It takes
            twice as long.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # it would report to Microsoft from its import on
    import onnxruntime as ort  # here, because it takes 50 ms

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3  # errors only
    # A thread that waits for work must not burn a core that decoding needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", str(int(wide_sums)))
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def by_onnxruntime(graph: bytes, threads: int, *, wide_sums: bool = False) -> Callable[[FramesU8], Features]:
    """A function from pictures to features that runs a graph from `frames` to `features`."""
    session = open_session(graph, threads, wide_sums=wide_sums)
    return lambda frames: session.run(["features"], {"frames": frames})[0]


class WholePicture(Backbone):
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
