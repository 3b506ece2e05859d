"""From frames to features, in order and several at a time; streams and extraction share it."""

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
