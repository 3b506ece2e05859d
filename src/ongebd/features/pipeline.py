"""From frames to features, many at once and in order: the one pipeline of the stream and of extraction."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

import numpy as np

from ongebd.backbones import Backbone, Features
from ongebd.types import Feature, Frame


def frame_features(
    frames: Iterable[Frame], backbone: Backbone, workers: int, batch: int = 1
) -> Generator[tuple[Frame, Feature], None, None]:
    """The feature of each frame, in order; a bounded number of frames is worked on at once.

    Close it, or read it to the end: its threads are joined then.

    Args:
        frames: Upright pictures, of any size each.
        backbone: Safe to call from several threads at once, as all are.
        workers: Calls of `embed` under way at once.
        batch: Frames in one call. 1 gives each feature as soon as can be, and suits a CPU; a GPU wants more.

    Yields:
        (frame, feature), the feature float32 of shape (D,).
    """

    def embed(some: list[Frame]) -> Features:  # (batch, D)
        return backbone.embed(np.stack([backbone.crop(frame.rgb) for frame in some]))

    under_way: deque[tuple[list[Frame], Future[Features]]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="ongebd-backbone")
    try:
        for some in _groups(frames, batch):
            under_way.append((some, pool.submit(embed, some)))
            if len(under_way) > workers:
                yield from _oldest(under_way)
        while under_way:
            yield from _oldest(under_way)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _groups(frames: Iterable[Frame], size: int) -> Iterator[list[Frame]]:
    frames = iter(frames)
    while some := list(islice(frames, size)):
        yield some


def _oldest(under_way: deque[tuple[list[Frame], Future[Features]]]) -> Iterator[tuple[Frame, Feature]]:
    frames, features = under_way.popleft()
    return zip(frames, features.result(), strict=True)
