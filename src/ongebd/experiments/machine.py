"""On what a report was made, in words."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from ongebd import __version__


def machine() -> dict[str, str]:
    """Processor, GPU and versions."""
    processor = platform.processor() or platform.machine()
    for line in _lines(Path("/proc/cpuinfo")):
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return {
        "processor": processor,
        "GPU": card,
        "torch": torch.__version__,
        "Python": platform.python_version(),
        "ongebd": __version__,
    }


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
