"""CUDA's streams and events, whose constructors torch leaves untyped, and cuDNN's settings. Needs torch."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch


def new_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream of the device."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def new_event(*, sleeps: bool = False) -> torch.cuda.Event:
    """An event.

    Args:
        sleeps: Whether who waits for it lets the processor go, which wakes some tens of microseconds late.
    """
    return torch.cuda.Event(blocking=sleeps)  # type: ignore[no-untyped-call]


def tuned() -> AbstractContextManager[None]:
    """Meanwhile cuDNN tries which of its kernels are the fastest, and float32 is float32, not TF32."""
    flags: AbstractContextManager[None] = torch.backends.cudnn.flags(
        enabled=True, benchmark=True, allow_tf32=False
    )
    return flags
