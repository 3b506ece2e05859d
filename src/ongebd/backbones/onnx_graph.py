"""Writes ONNX graphs layer by layer. Needs `onnx`.

Nothing is traced, so a graph doesn't depend on torch's version.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

_OPSET, _IR_VERSION = 17, 8  # old enough for every onnxruntime that we support


class GraphWriter:
    """Collects nodes and weights; each method adds one and returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Any node."""
        name = output or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def weight(self, value: npt.ArrayLike, kind: npt.DTypeLike = np.float32) -> str:
        """A constant."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value, kind), name))
        return name

    def model(self, name: str, takes: onnx.ValueInfoProto, gives: onnx.ValueInfoProto) -> onnx.ModelProto:
        """The whole graph, with one input and one output."""
        graph = helper.make_graph(self.nodes, name, [takes], [gives], self.weights)
        opset = helper.make_opsetid("", _OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="ongebd")
