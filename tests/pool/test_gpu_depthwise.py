"""Our own kernel for depthwise convolutions against torch's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")
pytest.importorskip("onnx", reason="the extra `train` is not installed")

from ongebd.backbones.efficientnet_lite0_network import EfficientNetLite0  # noqa: E402
from ongebd.pool.gpu.cuda import triton_available  # noqa: E402
from ongebd.pool.gpu.lite0 import depthwise_clipped, is_depthwise, taps  # noqa: E402


def test_the_backbone_has_sixteen_of_them():
    assert sum(map(is_depthwise, EfficientNetLite0().convolutions)) == 16


@pytest.mark.skipif(not triton_available(), reason="there is no GPU here, or no Triton")
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
