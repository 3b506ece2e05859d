"""Runs an iterator in another thread, a bounded number of items ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_END = object()


def prefetch(
    items: Iterable[T],
    ahead: int = 4,
    name: str = "ongebd-decode",
    wake: Callable[[], object] = lambda: None,
) -> Generator[T, None, None]:
    """Yield the same items in the same order, made by a thread, with at most `ahead` finished early.

    An error in the thread is raised here, after the items that came before it. When the generator is closed,
    dropped or interrupted, it calls `wake`, which may end the thread's wait for its item, and joins the
    thread, which finishes that item.
    """
    iterator = iter(items)
    thread = ThreadPoolExecutor(1, thread_name_prefix=name)
    try:
        coming = deque(thread.submit(next, iterator, _END) for _ in range(ahead + 1))
        while (item := coming.popleft().result()) is not _END:
            coming.append(thread.submit(next, iterator, _END))
            yield item  # type: ignore[misc]  # T, for it isn't _END
    finally:
        wake()
        thread.shutdown(cancel_futures=True)
