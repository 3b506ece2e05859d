"""EfficientNet-Lite0 as a PyTorch network, made from the ONNX file in our wheel. Needs torch and onnx.

The file is a straight list of convolutions (with their normalisation folded in), clips to [0, 6], additions
and one mean over the picture. Each convolution becomes a module with the file's own numbers; `steps` holds
their order. A test checks that float32 on the CPU gives onnxruntime's features up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn
from torch.nn import functional

from ongebd.backbones.onnx_backbone import OnnxBackbone
from ongebd.errors import ConfigError

MEAN, SCALE = 127.0, 128.0
"""The network takes (pixel − MEAN) / SCALE."""


class Convolution(NamedTuple):
    """A convolution takes the result of one step (−1 is the picture), and may add that of another.

    It may clip its own result to [0, 6], but never a sum.
    """

    takes: int
    adds: int | None
    clips: bool


class PaddedConvolution(nn.Conv2d):
    """A convolution whose padding (top, left, bottom, right) may differ, as in TensorFlow."""

    def __init__(
        self, weight: Tensor, bias: Tensor, stride: int, groups: int, pads: tuple[int, int, int, int]
    ) -> None:
        outputs, inputs, size, _ = weight.shape
        top, left, bottom, right = pads
        even = top == left == bottom == right
        super().__init__(
            inputs * groups, outputs, size, stride, padding=top if even else 0, groups=groups, bias=True
        )
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.bias = nn.Parameter(bias, requires_grad=False)
        self.sides = None if even else (left, right, top, bottom)

    def padded(self, x: Tensor) -> Tensor:
        """The picture with the padding that the convolution itself can't do."""
        return x if self.sides is None else functional.pad(x, self.sides)

    def forward(self, x: Tensor) -> Tensor:
        """(B, I, H, W) → (B, O, H/stride, W/stride)."""
        return super().forward(self.padded(x))


class EfficientNetLite0(nn.Module):
    """Normalised pictures (B, 3, S, S) → features (B, 1280).

    Args:
        model: The ONNX file's content; None reads the one in the package.

    Raises:
        ConfigError: The graph has nodes that this network doesn't know, or the file is damaged.
    """

    def __init__(self, model: onnx.ModelProto | None = None) -> None:
        super().__init__()
        graph = (model or onnx.load_model_from_string(OnnxBackbone("efficientnet_lite0").graph())).graph
        weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.convolutions: list[PaddedConvolution] = []
        self.steps: list[Convolution] = []  # one for each of them
        made: dict[str, int] = {}  # the step that gives a value of the graph
        for node in graph.node:
            match node.op_type:
                case "Transpose" | "Cast" | "Sub" | "Mul":  # the normalisation, which the caller does
                    made[node.output[0]] = -1
                case "Conv":
                    made[node.output[0]] = len(self.steps)
                    self.steps.append(Convolution(made[node.input[0]], None, False))
                    self.convolutions.append(_convolution(node, weights))
                # Nothing else uses the result of a convolution that is clipped or added to.
                case "Clip":
                    last = made[node.output[0]] = made[node.input[0]]
                    self.steps[last] = self.steps[last]._replace(clips=True)
                case "Add":
                    other, last = sorted(made[name] for name in node.input)
                    made[node.output[0]] = last
                    self.steps[last] = self.steps[last]._replace(adds=other)
                case "GlobalAveragePool" | "Flatten":
                    made[node.output[0]] = made[node.input[0]]
                case kind:
                    raise ConfigError(f"{graph.name}: unknown node {kind}; export the file again")
        self.modules_of_convolutions = nn.ModuleList(self.convolutions)
        # A result is dropped after its last use: all results of a batch together would take gigabytes.
        self._last_use = {len(self.steps) - 1: len(self.steps)}
        for place, step in enumerate(self.steps):
            self._last_use[step.takes] = place
            if step.adds is not None:
                self._last_use[step.adds] = place

    def forward(self, x: Tensor) -> Tensor:
        """(B, 3, S, S) → (B, 1280), float32."""
        return self.run(x, clipped_at_six)

    def run(
        self,
        x: Tensor,
        clipped: Callable[[PaddedConvolution, Tensor], Tensor],
        seen: Callable[[PaddedConvolution, Tensor], None] | None = None,
    ) -> Tensor:
        """As `forward`, with another way to compute a convolution that is clipped to [0, 6].

        Args:
            x: (B, 3, S, S).
            clipped: Computes such a convolution of a tensor.
            seen: Gets each convolution and its input.
        """
        results: dict[int, Tensor] = {-1: x}
        for place, (conv, step) in enumerate(zip(self.convolutions, self.steps, strict=True)):
            taken = results[step.takes]
            if seen is not None:
                seen(conv, taken)
            y = clipped(conv, taken) if step.clips else conv(taken)
            results[place] = y if step.adds is None else y + results[step.adds]
            results = {known: results[known] for known in results if self._last_use[known] > place}
        return results[len(self.steps) - 1].float().mean(dim=(2, 3))


def clipped_at_six(conv: PaddedConvolution, x: Tensor) -> Tensor:
    """A convolution, its result clipped to [0, 6]."""
    y: Tensor = conv(x)
    return y.clamp(0, 6)


def _convolution(node: onnx.NodeProto, weights: dict[str, np.ndarray[Any, Any]]) -> PaddedConvolution:
    about = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    weight, bias = (torch.from_numpy(weights[name].copy()) for name in node.input[1:])
    top, left, bottom, right = about["pads"]
    return PaddedConvolution(weight, bias, about["strides"][0], about["group"], (top, left, bottom, right))
