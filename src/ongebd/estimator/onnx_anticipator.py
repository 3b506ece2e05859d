"""A trained anticipator on the CPU, with onnxruntime or OpenVINO; no torch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ongebd.backbones.cpu_runtime import OpenVinoNetwork
from ongebd.backbones.onnx_backbone import open_session
from ongebd.errors import ConfigError, os_errors
from ongebd.estimator.anticipation import full_window
from ongebd.types import Feature


class OnnxAnticipator:
    """The anticipator in a `model.onnx` that `ongebd export` wrote. It keeps no state; share it freely.

    Args:
        path: The file; opened at the first call.
        name: What to call it.
        window: L.
        threads: Threads in which one call computes.
        openvino: The precision in which OpenVINO computes, `float32` or `bfloat16`; None: onnxruntime does.
    """

    def __init__(
        self, path: Path, name: str, window: int, threads: int = 1, openvino: str | None = None
    ) -> None:
        self.path = path
        self.name = name
        self.window = window
        self.threads = threads
        self.openvino = openvino
        self._opening = threading.Lock()

    def anticipate(self, past: npt.NDArray[np.float32]) -> Feature:
        """f̂_t, (D,), from the features before it, (n, D) with 1 ≤ n ≤ L."""
        with self._opening:  # held only while the file is opened, or for a moment
            run = self._run
        return run(np.ascontiguousarray(full_window(past, self.window), np.float32))

    @cached_property
    def _run(self) -> Callable[[npt.NDArray[np.float32]], Feature]:
        if self.openvino is not None:
            with os_errors(self.path, "write it again: ongebd export"):
                graph = self.path.read_bytes()
            return OpenVinoNetwork(graph, self.openvino, self.threads, attends=True)
        try:
            session = open_session(self.path.read_bytes(), self.threads)  # bytes can't name other files
        except Exception as problem:  # noqa: BLE001 - onnxruntime has no common error class
            raise ConfigError(
                f"{self.path}: can't open ({' '.join(str(problem).split())}); write it again: ongebd export"
            ) from None
        return lambda past: session.run(["anticipated"], {"past": past})[0]
