"""The processor's model, for reports of measurements."""

from __future__ import annotations

import platform
from pathlib import Path

_INFO = Path("/proc/cpuinfo")


def processor() -> str:
    """The processor's model as Linux names it, or what Python knows."""
    if _INFO.exists():
        for line in _INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
