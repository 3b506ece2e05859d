"""Runs an ONNX graph with OpenVINO on the CPU, in a precision that is asked for. Needs the extra `openvino`.

Left alone, OpenVINO picks bfloat16 by itself on processors that have it. Here it is always told.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError, MissingExtraError

CpuPrecision = Literal["float32", "bfloat16"]
"""In what a network computes on the CPU; what comes out is float32 always."""

CPU_PRECISIONS: dict[str, str] = {"float32": "f32", "bfloat16": "bf16"}
_NAMES = {"<Type: 'float32'>": "float32", "<Type: 'bfloat16'>": "bfloat16"}


class OpenVinoNetwork:
    """A graph with one input and one output, compiled. It may be called from several threads at once.

    Args:
        graph: The content of an ONNX file.
        precision: In what it computes.
        threads: Threads in which one call computes.
        shape: Of the input, where the graph leaves it open.
        attends: Whether the network has attention in it. OpenVINO's own kernels for that crash while they are
            made for a single thread and a small network (2026.4); oneDNN's take their place.

    Raises:
        ConfigError: There is no such precision on this processor, or OpenVINO cannot read the graph.
        MissingExtraError: OpenVINO is not installed.
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
        check_precision(precision)
        openvino = import_openvino()
        calls = max(1, (os.cpu_count() or 1) // threads)  # at once
        settings: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": CPU_PRECISIONS[precision],
            "NUM_STREAMS": calls,
            "INFERENCE_NUM_THREADS": calls * threads,
            "ENABLE_CPU_PINNING": False,  # decoding needs the processors too
        }
        if attends:
            settings["SNIPPETS_MODE"] = "DISABLE"
        core = openvino.Core()
        try:
            model = core.read_model(graph)
            if shape is not None:
                model.reshape(list(shape))
            self._compiled: Any = core.compile_model(model, "CPU", settings)
        except RuntimeError as problem:
            raise ConfigError(f"openvino cannot run the graph: {_first_line(problem)}") from None
        in_use = _NAMES.get(str(self._compiled.get_property("INFERENCE_PRECISION_HINT")))
        if in_use != precision:
            raise ConfigError(f"this processor does not compute in {precision}; take float32")
        self._own = threading.local()

    def __call__(self, given: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """The output for an input of the graph's shape."""
        request = getattr(self._own, "request", None)
        if request is None:  # one a thread, since one can do but one thing at a time
            request = self._own.request = self._compiled.create_infer_request()
        request.infer([np.ascontiguousarray(given)], share_inputs=True)
        result: npt.NDArray[np.float32] = request.get_output_tensor(0).data.copy()
        return result


def check_precision(precision: str) -> None:
    """Refuse what no network computes in on the CPU.

    Raises:
        ConfigError: It is none of `CPU_PRECISIONS`.
    """
    if precision not in CPU_PRECISIONS:
        known = " or ".join(CPU_PRECISIONS)
        raise ConfigError(f"on the CPU networks compute in {known}, not in {precision}")


def import_openvino() -> Any:
    """The package.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return import_module("openvino")
    except ModuleNotFoundError as problem:
        raise MissingExtraError.of(problem.name, "openvino") from None


def _first_line(problem: object) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[-1] if lines else type(problem).__name__
