"""From frames to features, many at once and in order: the one pipeline of the stream and of extraction."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice

import numpy as np

from ongebd.backbones import Backbone, Features
from ongebd.common.prefetch import prefetch
from ongebd.types import Feature, Frame


def frame_features(
    frames: Iterable[Frame],
    backbone: Backbone,
    workers: int,
    batch: int = 1,
    wake: Callable[[], object] = lambda: None,
) -> Generator[tuple[Frame, Feature], None, None]:
    """The feature of each frame, in order; a bounded number of frames is worked on at once.

    The frames are read in a thread of their own, so that a feature is given as soon as it is there, however
    long the next frame takes to come; an error of the frames is raised after the features of those before it.
    Close it, or read it to the end: its threads are joined then.

    Args:
        frames: Upright pictures, of any size each. At most 2 · `workers` + 2 calls' frames are taken early.
        backbone: Safe to call from several threads at once, as all are.
        workers: Calls of `embed` under way at once.
        batch: Frames in one call. 1 gives each feature as soon as can be, and suits a CPU; a GPU wants more.
        wake: Ends the wait for a frame that does not come, when this is closed or interrupted.

    Yields:
        (frame, feature), the feature float32 of shape (D,).
    """

    def embed(some: list[Frame]) -> Features:  # (batch, D)
        return backbone.embed(np.stack([backbone.crop(frame.rgb) for frame in some]))

    pool = ThreadPoolExecutor(workers, thread_name_prefix="ongebd-backbone")

    def begun() -> Iterator[tuple[list[Frame], Future[Features]]]:
        for some in _groups(frames, batch):
            yield some, pool.submit(embed, some)

    try:
        with closing(prefetch(begun(), ahead=2 * workers, wake=wake)) as under_way:
            for some, features in under_way:
                yield from zip(some, features.result(), strict=True)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _groups(frames: Iterable[Frame], size: int) -> Iterator[list[Frame]]:
    frames = iter(frames)
    while some := list(islice(frames, size)):
        yield some
