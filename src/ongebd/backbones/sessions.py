"""Opens ONNX files with onnxruntime, all in the same way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxruntime import InferenceSession


def open_session(graph: Path | bytes, threads: int) -> InferenceSession:
    """A session on the CPU that computes one call in so many threads.

    With one thread a call computes in the thread that made it, so that several streams may share a session
    and each gets the same bits as alone.

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
    given = graph if isinstance(graph, bytes) else str(graph)
    return ort.InferenceSession(given, options, providers=["CPUExecutionProvider"])
