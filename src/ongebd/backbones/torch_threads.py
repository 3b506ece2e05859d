"""In how many threads PyTorch computes, for as long as a call takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def computing_threads(threads: int | None, device: torch.device) -> Iterator[None]:
    """PyTorch's number of threads is the calling thread's own; it is given back as it was.

    Args:
        threads: How many; None leaves them as they are.
        device: Where is computed; only on the CPU does it matter.
    """
    before = torch.get_num_threads()
    if threads is None or device.type != "cpu" or before == threads:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
