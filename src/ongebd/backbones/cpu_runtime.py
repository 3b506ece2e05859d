"""Runs ONNX graphs on the CPU, with onnxruntime or with OpenVINO."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ongebd.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

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
        _import_openvino()


def open_session(graph: Path | bytes, threads: int) -> InferenceSession:
    """An onnxruntime session that computes each call in `threads` threads.

    With one thread, a call computes in the thread that made it. So several streams can share a session, and
    each gets the same bits as alone.

    Args:
        graph: An ONNX file, or its content.
        threads: At least 1.
    """
    import onnxruntime as ort  # here, because it takes 50 ms

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3  # errors only
    # A thread that waits for work must not burn a core that decoding needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    model = graph if isinstance(graph, bytes) else str(graph)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


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
        core = _import_openvino().Core()
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


def _check_precision(precision: str) -> None:
    if precision not in _PRECISIONS:
        raise ConfigError(f"the CPU computes in {' or '.join(_PRECISIONS)}, not in {precision}")


def _import_openvino() -> Any:
    try:
        return import_module("openvino")
    except ModuleNotFoundError as problem:
        raise MissingExtraError.of(problem.name, "openvino") from None
