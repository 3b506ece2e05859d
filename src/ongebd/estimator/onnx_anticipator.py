"""A trained anticipator on the CPU, with onnxruntime; no torch."""

from __future__ import annotations

import threading
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ongebd.backbones.cpu_runtime import open_session
from ongebd.errors import ConfigError
from ongebd.estimator.start import full_window
from ongebd.types import Feature

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


class OnnxAnticipator:
    """The anticipator in a `model.onnx` that `ongebd export` wrote. It keeps no state; share it freely.

    Args:
        path: The file; opened at the first call.
        name: What to call it.
        window: L.
        threads: Threads in which one call computes.
    """

    def __init__(self, path: Path, name: str, window: int, threads: int = 1) -> None:
        self.path = path
        self.name = name
        self.window = window
        self.threads = threads
        self._opening = threading.Lock()

    def anticipate(self, past: npt.NDArray[np.float32]) -> Feature:
        """f̂_t, (D,), from the features before it, (n, D) with 1 ≤ n ≤ L."""
        with self._opening:  # held only while a session is made, or for a moment
            session = self._session
        whole = np.ascontiguousarray(full_window(past, self.window), np.float32)
        (anticipated,) = session.run(["anticipated"], {"past": whole})
        result: Feature = anticipated
        return result

    @cached_property
    def _session(self) -> InferenceSession:
        try:
            return open_session(self.path, self.threads)
        except Exception as problem:  # noqa: BLE001 - onnxruntime has no error class of its own
            raise ConfigError(
                f"{self.path}: onnxruntime cannot open it ({problem}); write it again: ongebd export"
            ) from None
