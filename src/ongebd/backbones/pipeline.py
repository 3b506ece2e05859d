"""Work ahead in threads: any iterator in another thread, and from frames to features, several at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import TypeVar

import numpy as np

from ongebd.backbones import Backbone, Features
from ongebd.types import Feature, Frame

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


def frame_features(
    frames: Iterable[Frame],
    backbone: Backbone,
    workers: int,
    batch: int = 1,
    wake: Callable[[], object] = lambda: None,
) -> Generator[tuple[Frame, Feature], None, None]:
    """The feature of each frame, in order, with a bounded number of frames in work.

    Another thread reads the frames, so each feature comes out as soon as it is computed, however long the
    next frame takes. An error of the frames is raised after the features of those before it. Close the
    generator, or read it to the end, to end its threads.

    Args:
        frames: Upright pictures of any size. At most 2 · `workers` + 2 batches are read ahead.
        backbone: Any; all can be called from several threads.
        workers: Calls of `embed` in parallel.
        batch: Frames in one call. 1 has the least delay and suits a CPU; a GPU wants more.
        wake: Ends the wait for a slow frame when this generator is closed or interrupted.
    """

    def embed(some: list[Frame]) -> Features:  # (batch, D)
        return backbone.embed(np.stack([backbone.crop(frame.rgb) for frame in some]))

    def begun() -> Iterator[tuple[list[Frame], Future[Features]]]:
        source = iter(frames)
        while some := list(islice(source, batch)):
            yield some, pool.submit(embed, some)

    pool = ThreadPoolExecutor(workers, thread_name_prefix="ongebd-backbone")
    try:
        with closing(prefetch(begun(), ahead=2 * workers, wake=wake)) as in_work:
            for some, features in in_work:
                yield from zip(some, features.result(), strict=True)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
