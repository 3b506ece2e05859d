"""EfficientNet-Lite0, the default backbone: 1280 numbers a frame, 0.4 G multiply-adds, weights in our wheel.

Trained on ImageNet-1k by Google, brought to PyTorch by ML Illustrated (Apache-2.0, see NOTICE), made into
ONNX by `scripts/export_efficientnet_lite0.py`. It wants (x − 127) / 128, which its graph computes, bicubic
resizing and a centre crop of 0.875. ImageNet's usual mean and standard deviation would cost it 11 points of
top-1.
"""

from __future__ import annotations

from functools import cache

from ongebd.backbones.onnx_backbone import OnnxBackbone


@cache
def efficientnet_lite0(threads: int = 1) -> OnnxBackbone:
    """The backbone, not yet loaded; the same object each time.

    Args:
        threads: Threads in which one call of `embed` computes.
    """
    return OnnxBackbone("efficientnet_lite0", threads)
