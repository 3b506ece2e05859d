"""Memory of the host that a GPU reads by itself, so that no processor copies pictures for it. Needs torch.

At some twenty thousand pictures a second copying them into pinned memory takes longer than what the GPU does
with them. The pictures of a door lie in memory that stays where it is, so it can be pinned as a whole.
"""

from __future__ import annotations

import logging
import weakref
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ongebd.pool.gpu.cuda import new_stream
from ongebd.pool.gpu.depthwise import available

ALIGNED = 16
"""Bytes of which every picture's address must be a multiple."""

_PORTABLE, _MAPPED = 1, 2  # cudaHostRegister's flags
_BLOCK = 2048  # words of one program
_log = logging.getLogger(__name__)


class Pinned:
    """Pins memory for as long as it is held.

    Args:
        memory: One dimension; it is kept alive.
        device: A GPU.

    Raises:
        RuntimeError: The driver does not pin it.
    """

    def __init__(self, memory: npt.NDArray[np.uint8], device: torch.device) -> None:
        address = memory.ctypes.data
        with torch.cuda.device(device):
            try:
                torch.cuda.check_error(_cuda().cudaHostRegister(address, memory.nbytes, _PORTABLE | _MAPPED))
            except RuntimeError:
                _forget_error(device)
                raise
        finalizer = weakref.finalize(self, _unpin, memory, address)
        finalizer.atexit = False  # the driver lets go of everything then


def pin(memory: npt.NDArray[np.uint8], device: torch.device) -> Pinned | None:
    """Pinned memory; None where pictures must be copied: no GPU, no Triton, or the driver refuses."""
    if device.type != "cuda" or not available():
        return None
    try:
        pinned = Pinned(memory, device)
    except RuntimeError as problem:
        _log.warning("pictures are copied one by one: shared memory could not be pinned (%s)", problem)
        return None
    return pinned


def address_of(pixels: npt.NDArray[np.uint8], pinned: Pinned | None) -> int:
    """Where the device reads a picture; 0 where it must be copied."""
    if pinned is None or not pixels.flags.c_contiguous or pixels.ctypes.data % ALIGNED:
        return 0
    return int(pixels.ctypes.data)


def gather(addresses: Tensor, out: Tensor) -> None:
    """Enqueue the copying of pictures from where they lie.

    Args:
        addresses: Of each, (B,), int64, on the device; multiples of `ALIGNED`.
        out: Where they go, contiguous, uint8, (B, …); likewise aligned.
    """
    size = out[0].numel()
    words = out.view(len(out), size)
    if size % 4 == 0:
        words, size = words.view(torch.int32), size // 4
    _kernel()[len(out), -(-size // _BLOCK)](addresses, words, size, _BLOCK)


@cache
def ready(size: int, device: torch.device) -> None:
    """Compile the kernel for pictures of so many bytes, where it is not: before the first one comes."""
    with torch.cuda.device(device), torch.cuda.stream(new_stream(device)):
        out = torch.zeros(1, size, dtype=torch.uint8, device=device)
        gather(torch.tensor([out.data_ptr()], device=device), out)
        torch.cuda.current_stream().synchronize()


@cache
def _kernel() -> Any:
    from ongebd.pool.gpu.gather_kernel import gather_kernel

    return gather_kernel


def _unpin(memory: npt.NDArray[np.uint8], address: int) -> None:
    del memory  # which was alive until now
    torch.cuda.check_error(_cuda().cudaHostUnregister(address))


def _forget_error(device: torch.device) -> None:
    """CUDA tells the next call too; let that be one that nobody needs."""
    with suppress(RuntimeError):
        torch.zeros(1, device=device)


def _cuda() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]
