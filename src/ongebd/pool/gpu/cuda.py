"""Streams, events and pinned memory of CUDA, as the GPU runtime uses them. Needs torch.

At some twenty thousand pictures a second, copying them into pinned memory takes longer than what the GPU does
with them. The pictures of a `SharedInput` never move, so all their memory can be pinned once, and the GPU
reads each picture from there.
"""

from __future__ import annotations

import logging
import shutil
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

_PORTABLE, _MAPPED = 1, 2  # cudaHostRegister's flags
_BLOCK = 2048  # words of one program
T = TypeVar("T")
_log = logging.getLogger(__name__)


def new_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream of the device, whose constructor torch leaves untyped."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def new_event(*, sleeps: bool = False) -> torch.cuda.Event:
    """An event. If waiting for it sleeps, it frees the processor and wakes some tens of microseconds late."""
    return torch.cuda.Event(blocking=sleeps)  # type: ignore[no-untyped-call]


def tuned() -> AbstractContextManager[None]:
    """Within it, cuDNN picks its fastest kernels, and float32 is float32, not TF32."""
    return torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=False)


def captured(
    run: Callable[[], T], device: torch.device, *, warm_up: int, pool: Any = None
) -> tuple[torch.cuda.CUDAGraph, T]:
    """A CUDA graph of what `run` enqueues, and what `run` returns: memory that each replay writes."""
    stream = new_stream(device)
    with torch.cuda.stream(stream):
        for _ in range(warm_up):
            run()
    torch.cuda.synchronize(device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
        return graph, run()


@cache
def triton_available() -> bool:
    """Whether kernels of our own can run: with a GPU, Triton, and a C compiler for its launcher."""
    compiler = any(shutil.which(name) for name in ("cc", "gcc", "clang"))
    return torch.cuda.is_available() and compiler and find_spec("triton") is not None


class Pinned:
    """Pins memory for as long as this object lives.

    Args:
        memory: One dimension; it is kept alive.
        device: A GPU.

    Raises:
        RuntimeError: The driver refuses.
    """

    def __init__(self, memory: npt.NDArray[np.uint8], device: torch.device) -> None:
        address = memory.ctypes.data
        with torch.cuda.device(device):
            try:
                torch.cuda.check_error(_cuda().cudaHostRegister(address, memory.nbytes, _PORTABLE | _MAPPED))
            except RuntimeError:
                with suppress(RuntimeError):  # CUDA reports the error to the next call too
                    torch.zeros(1, device=device)
                raise
        finalizer = weakref.finalize(self, _unpin, memory, address)
        finalizer.atexit = False  # the driver releases everything then


def pin(memory: npt.NDArray[np.uint8], device: torch.device) -> Pinned | None:
    """Pinned memory; None if pictures must be copied: no GPU, no Triton, or the driver refuses."""
    if device.type != "cuda" or not triton_available():
        return None
    try:
        return Pinned(memory, device)
    except RuntimeError as problem:
        _log.warning("shared memory could not be pinned (%s): pictures are copied one by one", problem)
        return None


def gather(addresses: Tensor, out: Tensor) -> None:
    """Enqueue the copying of pictures from where they lie.

    Args:
        addresses: Of each, (B,), int64, on the device; multiples of 16.
        out: Where they go, contiguous, uint8, (B, …); its address is a multiple of 16 too.
    """
    from ongebd.pool.gpu.triton_kernels import gather_kernel

    size = out[0].numel()
    words = out.view(len(out), size)
    if size % 4 == 0:
        words, size = words.view(torch.int32), size // 4
    gather_kernel[len(out), -(-size // _BLOCK)](addresses, words, size, _BLOCK)


@cache
def compile_gather(size: int, device: torch.device) -> None:
    """Compile the kernel for pictures of so many bytes before the first one comes."""
    with torch.cuda.device(device), torch.cuda.stream(new_stream(device)):
        out = torch.zeros(1, size, dtype=torch.uint8, device=device)
        gather(torch.tensor([out.data_ptr()], device=device), out)
        torch.cuda.current_stream().synchronize()


def _unpin(memory: npt.NDArray[np.uint8], address: int) -> None:
    del memory  # alive until now
    torch.cuda.check_error(_cuda().cudaHostUnregister(address))


def _cuda() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]
