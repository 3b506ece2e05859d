"""Pictures and backbones on the device: resizing, folded networks, and kernels of our own."""

from __future__ import annotations

import numpy as np
import pytest

import ongebd
from ongebd.backbones.base import cropped
from ongebd.backbones.onnx_backbone import WholePicture
from ongebd.video.picture import Fit, Squash

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
pytest.importorskip("onnx", reason="the extra `train` is not installed")

from ongebd.backbones.efficientnet_lite0_network import EfficientNetLite0  # noqa: E402
from ongebd.backbones.resnet50 import ResNet50  # noqa: E402
from ongebd.pool.gpu.cuda import triton_available, tuned  # noqa: E402
from ongebd.pool.gpu.fused import FoldedResNet50  # noqa: E402
from ongebd.pool.gpu.lite0 import (  # noqa: E402
    FoldedEfficientNetLite0,
    depthwise_clipped,
    is_depthwise,
    taps,
)
from ongebd.pool.gpu.networks import device_network  # noqa: E402
from ongebd.pool.gpu.resize import plan_crop, resized  # noqa: E402
from ongebd.pool.gpu.runtime import DTYPES  # noqa: E402

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize(("view", "square"), [(Fit(256), 224), (Squash(224, 224), 224)])
@pytest.mark.parametrize("size", [(720, 1280), (360, 640), (176, 144), (256, 455), (300, 257), (100, 100)])
def test_resizing_is_swscales_to_rounding(view, square, size, make_scene):
    shot = make_scene(1, size[1], size[0])
    wanted, plan = cropped(shot, view, square), plan_crop(*size, view, square)
    part = np.ascontiguousarray(plan.cut(shot))
    if plan.weights is None:
        np.testing.assert_array_equal(part, wanted)
        return
    weights = [torch.from_numpy(w.copy()).float() for w in (plan.weights[0], plan.weights[1].T)]
    ours = resized(torch.from_numpy(part)[None], *weights)[0].numpy()
    apart = np.abs(ours.astype(int) - wanted)
    assert (apart > 1).mean() < 2e-4
    assert apart.max() <= 2
    assert apart.mean() < 0.05


@pytest.mark.parametrize("name", ["window-mean", "immediate"])
@pytest.mark.parametrize(
    ("device", "precision", "within"),
    [
        ("cpu", "float32", 1e-5),
        pytest.param("cuda", "float32", 1e-4, marks=needs_gpu),
        pytest.param("cuda", "float16", 8e-3, marks=needs_gpu),
        pytest.param("cuda", "bfloat16", 6e-2, marks=needs_gpu),
    ],
)
def test_our_backbones_on_a_device_see_the_same(name, device, precision, within, make_scene):
    backbone = ongebd.load(name).backbone
    frames = np.stack([backbone.crop(make_scene(seed)) for seed in range(5)])
    network = device_network(backbone, torch.device(device), DTYPES[precision])
    with torch.inference_mode(), tuned():
        ours = network(torch.from_numpy(frames).to(device)).cpu().numpy()
    if name == "immediate":  # on a CPU it computes in int8, here as the other does
        backbone = WholePicture(ongebd.load("window-mean").backbone)
    wanted = backbone.embed(frames)
    assert np.linalg.norm(ours[:, :1280] - wanted[:, :1280]) < within * np.linalg.norm(wanted[:, :1280])
    np.testing.assert_allclose(ours[:, 1280:], wanted[:, 1280:], atol=1e-4)  # luma, which is float32


def test_rounding_the_weights_of_the_default_backbone_shifts_little(make_scene):
    frames = np.stack([ongebd.load("window-mean").backbone.crop(make_scene(seed)) for seed in range(3)])
    pictures = (torch.from_numpy(frames).permute(0, 3, 1, 2).float() - 127) / 128
    apart = []
    for dtype in (torch.float16, torch.float32):  # the latter's biases are the file's own
        folded = FoldedEfficientNetLite0(dtype)
        with torch.inference_mode():
            exact = EfficientNetLite0()(pictures)
            for convolution in folded.network.convolutions:
                convolution.weight.data = convolution.weight.half().float()
            apart.append(float((folded(pictures) - exact).norm() / exact.norm()))
    assert apart[0] < 0.5 * apart[1] < 0.01


def test_folding_the_normalisation_changes_nothing_but_rounding():
    torch.manual_seed(0)
    network = ResNet50().eval()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    with torch.inference_mode():
        pictures = torch.rand(1, 3, 64, 64)
        wanted = network(pictures)
        ours = FoldedResNet50(network)(pictures)
    assert torch.allclose(ours, wanted, rtol=1e-4, atol=1e-5 * float(wanted.abs().max()))


def test_the_backbone_has_sixteen_of_them():
    assert sum(map(is_depthwise, EfficientNetLite0().convolutions)) == 16


@pytest.mark.skipif(not triton_available(), reason="needs a GPU and Triton")
@pytest.mark.parametrize(("dtype", "within"), [("float32", 1e-5), ("float16", 2e-2)])
def test_each_gives_what_torch_gives_at_any_size(dtype, within, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    kind = getattr(torch, dtype)
    for conv in filter(is_depthwise, EfficientNetLite0().to("cuda", kind).convolutions):
        x = torch.randn(3, conv.in_channels, 28, 29, device="cuda", dtype=kind)
        x = x.to(memory_format=torch.channels_last)
        with torch.inference_mode():
            ours, theirs = depthwise_clipped(conv, taps(conv), x), conv(x).clamp(0, 6)
        assert ours.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(ours, theirs, atol=within, rtol=0)
