"""Runs an iterator in a thread of its own, a bounded number of items ahead."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

_DONE = object()


class _Failed:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def prefetch(
    items: Iterable[T],
    ahead: int = 4,
    name: str = "ongebd-decode",
    wake: Callable[[], object] = lambda: None,
) -> Generator[T, None, None]:
    """Yield the same items in the same order, made by a thread at most `ahead` items early.

    An error in the thread is raised here, after the items that came before it. When the generator is
    closed or dropped, or whoever waits in it is interrupted, `wake` is called, which may end the thread's
    wait for its item; the thread stops after the item that it is working on, and is joined.
    """
    todo: queue.Queue[object] = queue.Queue(maxsize=ahead)
    stopped = threading.Event()

    def put(item: object) -> bool:
        while not stopped.is_set():
            with suppress(queue.Full):
                todo.put(item, timeout=0.1)
                return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(item):
                    return
        except BaseException as error:  # noqa: BLE001 - handed over and raised again by the consumer
            put(_Failed(error))
        else:
            put(_DONE)

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    try:
        while (item := todo.get()) is not _DONE:
            if isinstance(item, _Failed):
                raise item.error
            yield item  # type: ignore[misc]  # the queue holds T, _DONE and _Failed only
    finally:
        stopped.set()
        wake()
        while not todo.empty():
            with suppress(queue.Empty):
                todo.get_nowait()
        thread.join()
