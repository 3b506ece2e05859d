"""A trained anticipator on the CPU, with OpenVINO in a precision that is asked for; no torch."""

from __future__ import annotations

import threading
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ongebd.backbones.cpu_runtime import OpenVinoNetwork
from ongebd.errors import ConfigError
from ongebd.estimator.start import full_window
from ongebd.types import Feature


class OpenVinoAnticipator:
    """The anticipator in a `model.onnx` that `ongebd export` wrote. It keeps no state; share it freely.

    Args:
        path: The file; opened at the first call.
        name: What to call it.
        window: L.
        precision: In what it computes: `float32` or `bfloat16`.
        threads: Threads in which one call computes.
    """

    def __init__(self, path: Path, name: str, window: int, precision: str, threads: int = 1) -> None:
        self.path = path
        self.name = name
        self.window = window
        self.precision = precision
        self.threads = threads
        self._opening = threading.Lock()

    def anticipate(self, past: npt.NDArray[np.float32]) -> Feature:
        """f̂_t, (D,), from the features before it, (n, D) with 1 ≤ n ≤ L."""
        with self._opening:  # held only while the network is made ready, or for a moment
            network = self._network
        return network(np.ascontiguousarray(full_window(past, self.window), np.float32))

    @cached_property
    def _network(self) -> OpenVinoNetwork:
        try:
            graph = self.path.read_bytes()
        except OSError as problem:
            raise ConfigError(
                f"{self.path}: cannot be read ({problem.strerror}); write it: ongebd export"
            ) from None
        return OpenVinoNetwork(graph, self.precision, self.threads, attends=True)
