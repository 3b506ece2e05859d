"""The anticipator as an ONNX file for the CPU runtime. Needs `onnx` and torch.

Constants are folded into the graph: the projected token, the positions, and the scale of the attention.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper
from torch import Tensor, nn

from ongebd.backbones.onnx_graph import GraphWriter
from ongebd.common.writing import write_whole
from ongebd.detector.trained import ONNX_FILE
from ongebd.errors import ConfigError, os_errors
from ongebd.estimator.anticipator import ConsistentEventAnticipator, DecoderLayer
from ongebd.estimator.torch_anticipator import load_anticipator

Floats = npt.NDArray[np.float32]


def export_onnx(model: ConsistentEventAnticipator, path: Path) -> None:
    """Write the file: `past` (L, D) float32 → `anticipated` (D,) float32.

    Raises:
        ConfigError: The network is a classifier, or the file can't be written.
    """
    config = model.config
    if config.head != "anticipation":
        raise ConfigError("a classifier, the ablation's baseline, can't be exported: it anticipates nothing")
    writer = _Graph(config.heads)
    writer.network(model)
    past = helper.make_tensor_value_info("past", TensorProto.FLOAT, [config.window, config.dim])
    anticipated = helper.make_tensor_value_info("anticipated", TensorProto.FLOAT, [config.dim])
    proto = writer.model("anticipator", past, anticipated)
    onnx.checker.check_model(proto)
    with os_errors(path), write_whole(path) as part:
        part.write_bytes(proto.SerializeToString())


def export_folder(folder: Path) -> Path:
    """Write `model.onnx` for the weights in a model's folder.

    Raises:
        ConfigError: The folder has no model, or the file can't be written.
    """
    export_onnx(load_anticipator(folder), folder / ONNX_FILE)
    return folder / ONNX_FILE


class _Graph(GraphWriter):
    """Each method adds a part and returns the name of its output."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def network(self, model: ConsistentEventAnticipator) -> None:
        """From past (L, D) to anticipated (D,)."""
        project, bias = _linear(model.project)
        positions = _array(model.positions)  # (L + 1, W)
        token = _array(model.token) @ project + bias + positions[-1]  # (W,), constant
        x = self.node("MatMul", "past", self.weight(project))  # (L, W)
        x = self.node("Add", x, self.weight(bias + positions[:-1]))
        x = self.node("Concat", x, self.weight(token[None]), axis=0)  # (L + 1, W)
        layers = [layer for layer in model.layers if isinstance(layer, DecoderLayer)]
        for place, layer in enumerate(layers):
            x = self.layer(layer, x, tokens=len(positions), last_only=place == len(layers) - 1)
        out = self.linear(self.normalised(x, model.norm), *_linear(model.head))  # (1, D)
        if model.config.residual:
            mean = self.node("ReduceMean", "past", axes=[0], keepdims=1)  # (1, D)
            out = self.node("Add", out, mean)
        self.node("Reshape", out, self.integers(-1), output="anticipated")

    def layer(self, layer: DecoderLayer, x: str, *, tokens: int, last_only: bool) -> str:
        """One decoder layer: (S, W) → (S, W), or (1, W) where `last_only`."""
        normed = asking = self.normalised(x, layer.attention_norm)
        if last_only:
            last = self.integers(tokens - 1)
            x, asking = self.node("Gather", x, last, axis=0), self.node("Gather", normed, last, axis=0)
        attended = self.attention(layer, asking, normed, causal=None if last_only else tokens)
        x = self.node("Add", x, self.linear(attended, *_linear(layer.attended)))
        hidden = self.gelu(self.linear(self.normalised(x, layer.ffn_norm), *_linear(layer.up)))
        return self.node("Add", x, self.linear(hidden, *_linear(layer.down)))

    def attention(self, layer: DecoderLayer, asking: str, normed: str, *, causal: int | None) -> str:
        """Attention of `asking` (Q, W) to `normed` (S, W), masked if `causal` tokens are given."""
        weight, bias = _linear(layer.query)
        width = weight.shape[0]
        scale = np.float32(1 / math.sqrt(width / self.heads))
        query = self.split(self.linear(asking, weight * scale, bias * scale), (1, 0, 2))  # (H, Q, W/H)
        pair, pair_bias = _linear(layer.key_value)
        key = self.linear(normed, pair[:, :width].copy(), pair_bias[:width])
        value = self.linear(normed, pair[:, width:].copy(), pair_bias[width:])
        scores = self.node("MatMul", query, self.split(key, (1, 2, 0)))  # (H, Q, S)
        if causal is not None:
            mask = np.triu(np.full((causal, causal), -np.inf, np.float32), 1)
            scores = self.node("Add", scores, self.weight(mask))
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), self.split(value, (1, 0, 2)))
        mixed = self.node("Transpose", mixed, perm=[1, 0, 2])
        return self.node("Reshape", mixed, self.integers(-1, width))

    def split(self, x: str, order: tuple[int, int, int]) -> str:
        """(S, W) → (S, H, W/H), with its axes reordered."""
        parts = self.node("Reshape", x, self.integers(0, self.heads, -1))
        return self.node("Transpose", parts, perm=list(order))

    def normalised(self, x: str, norm: object) -> str:
        """Layer normalisation over the last axis."""
        assert isinstance(norm, nn.LayerNorm)
        scale, bias = self.weight(_array(norm.weight)), self.weight(_array(norm.bias))
        return self.node("LayerNormalization", x, scale, bias, epsilon=norm.eps, axis=-1)

    def linear(self, x: str, weight: Floats, bias: Floats) -> str:
        """The product with a weight, and a bias."""
        return self.node("Gemm", x, self.weight(weight), self.weight(bias))

    def gelu(self, x: str) -> str:
        """GELU, as x · (1 + erf(x / √2)) / 2, which onnxruntime fuses."""
        erf = self.node("Erf", self.node("Div", x, self.weight(math.sqrt(2))))
        one_more = self.node("Add", erf, self.weight(1))
        return self.node("Mul", self.node("Mul", x, one_more), self.weight(0.5))

    def integers(self, *values: int) -> str:
        """A constant shape, or constant indices."""
        return self.weight(values, np.int64)


def _array(tensor: object) -> Floats:
    assert isinstance(tensor, Tensor)
    return tensor.detach().float().cpu().numpy()


def _linear(module: object) -> tuple[Floats, Floats]:
    """Weight (in, out) and bias (out,) of a linear layer."""
    assert isinstance(module, nn.Linear)
    return np.ascontiguousarray(_array(module.weight).T), _array(module.bias)
