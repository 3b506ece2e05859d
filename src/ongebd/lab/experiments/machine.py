"""On what a report was made, in words."""

from __future__ import annotations

import platform

import torch

from ongebd import __version__
from ongebd.common.processor import processor


def machine() -> dict[str, str]:
    """Processor, GPU and versions."""
    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return {
        "processor": processor(),
        "GPU": card,
        "torch": torch.__version__,
        "Python": platform.python_version(),
        "ongebd": __version__,
    }
