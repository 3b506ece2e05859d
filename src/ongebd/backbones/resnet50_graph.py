"""A ResNet-50 with its weights as an ONNX graph, for the CPU runtimes. Needs torch and `onnx`.

It takes pictures as they lie in memory, and normalises them itself.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ongebd.backbones.onnx_graph import GraphWriter
from ongebd.backbones.resnet50 import DIM, Bottleneck, ResNet50


def resnet50_graph(
    network: ResNet50, mean: tuple[float, ...], deviation: tuple[float, ...], size: int
) -> bytes:
    """The ONNX file: `frames` (N, size, size, 3) uint8 → `features` (N, 2048) float32.

    Args:
        network: In float32 on the CPU, with its weights; not changed.
        mean: Of the pixels, 0 to 255, for each colour; `deviation` too.
        deviation: See `mean`.
        size: Height and width of the pictures, in pixels.
    """
    graph, colours = _Graph(), (1, 3, 1, 1)
    x = graph.node("Cast", "frames", to=TensorProto.FLOAT)
    x = graph.node("Transpose", x, perm=[0, 3, 1, 2])
    x = graph.node("Sub", x, graph.weight(np.reshape(mean, colours)))
    x = graph.node("Mul", x, graph.weight(1 / np.reshape(deviation, colours)))
    x = graph.node("Relu", graph.convolution(x, network.conv1, network.bn1))
    x = graph.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for block in network.modules():
        if isinstance(block, Bottleneck):
            y = graph.node("Relu", graph.convolution(x, block.conv1, block.bn1))
            y = graph.node("Relu", graph.convolution(y, block.conv2, block.bn2))
            y = graph.convolution(y, block.conv3, block.bn3)
            if block.downsample is not None:
                x = graph.convolution(x, *block.downsample.children())
            x = graph.node("Relu", graph.node("Add", y, x))
    graph.node("Flatten", graph.node("GlobalAveragePool", x), output="features", axis=1)
    pictures = helper.make_tensor_value_info("frames", TensorProto.UINT8, ["N", size, size, 3])
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["N", DIM])
    written: bytes = graph.model("resnet50", pictures, features).SerializeToString()
    return written


class _Graph(GraphWriter):
    def convolution(self, x: str, conv: nn.Module, norm: nn.Module) -> str:
        """A convolution with its normalisation folded in."""
        assert isinstance(conv, nn.Conv2d)
        assert isinstance(norm, nn.BatchNorm2d)
        folded = fuse_conv_bn_eval(conv, norm)
        assert folded.bias is not None
        (stride, _), (kernel, _) = folded.stride, folded.kernel_size
        weight, bias = (self.weight(each.detach().numpy()) for each in (folded.weight, folded.bias))
        strides, pads = [stride] * 2, [kernel // 2] * 4
        return self.node("Conv", x, weight, bias, kernel_shape=[kernel] * 2, strides=strides, pads=pads)
