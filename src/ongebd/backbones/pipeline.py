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
from ongebd.backbones.onnx_backbone import LUMA, small_luma
from ongebd.types import Feature, Frame, ImageU8

T = TypeVar("T")

_END = object()

LUMA_DIM = LUMA * LUMA
"""Numbers of a feature that are luma: the last ones."""
AGAIN = 0.24
"""Seconds after which the network looks again: six frames of 24 a second."""
MOVES, ANOTHER = 6.0, 6.0
"""Levels of luma, of 255: what no cell exceeds while nothing moves, and the mean change from the frame before
above which a sudden change may be a cut."""
SUDDEN, LEAST_MOVED, AS_A_CUT, AT_ONCE = 1.2, 0.5, 1.6, 0.9
"""A change of the luma is sudden at SUDDEN times that of the frame before, which counts as LEAST_MOVED levels
at least. A cut has AS_A_CUT times that, and AT_ONCE of what changed since the network looked. On 336 cuts."""
FLASH_FRAMES, FLAT = 3, 4.0
"""Frames that a flash may last; a flat picture, whose luma spreads less, can't show a flash."""
ALL_ONE_WAY, SAME_SHAPES = 0.005, 0.4
NEARLY_ONE_WAY, NO_SHAPES = 0.02, 20.0
"""Of a change of light: shares of the change that go the other way, and the shapes. Set on 113 cuts, 22
composites and 3,000 pairs of frames from our clips."""


class Glance:
    """Whether the network must look at the next picture of one stream, or its last feature still holds.

    It looks four times a second if something has moved since, and at once where the luma changes suddenly,
    as at a cut. Of a still camera it looks at hardly any picture. The picture before a flash stands for it.

    Attributes:
        moved: By how many levels the luma of some cell differs from the picture that was looked at last.
        sudden: Whether the luma has changed as at a cut.
    """

    def __init__(self) -> None:
        self.moved, self.sudden = 0.0, False
        self._network: Feature = np.empty(0, np.float32)
        self.reset()

    def reset(self) -> None:
        """Look at the next picture."""
        self._seen: tuple[float, Feature] | None = None
        self._last: Feature = np.zeros(LUMA_DIM, np.float32)
        self._step = 0.0  # the mean change of the last picture's luma
        self._flash = 0  # frames that it has lasted

    def __call__(self, luma: Feature, time: float) -> bool:
        """Whether it must look; ask once about each picture.

        Args:
            luma: The luma of the picture, as in the features of `WholePicture`, (3136,), 0 to 255.
            time: Seconds. After a time before the last one it looks.
        """
        step = float(np.abs(luma - self._last).mean())
        before = max(self._step, LEAST_MOVED)
        another = step > ANOTHER and step > SUDDEN * before
        begun = self._seen is None or time < self._seen[0]
        light = another and not begun and light_changed(luma, self._last)
        self.sudden = False
        brighter = light and luma.mean() > self._last.mean() and self._last.std() > FLAT
        if brighter and self._flash < FLASH_FRAMES:
            self._flash += 1
            return False
        self._last, self._step, self._flash = luma, step, 0
        if self._seen is not None and not begun:
            moved = np.abs(luma - self._seen[1])
            self.moved = float(moved.max())
            at_once = step > max(AS_A_CUT * before, AT_ONCE * float(moved.mean()))
            self.sudden = another and at_once and not light
            if self.moved <= MOVES or (time - self._seen[0] <= AGAIN and not another):
                return False
        self._seen, self.moved = (time, luma), 0.0
        return True

    def counted(self, feature: Feature, time: float) -> Feature:
        """A picture's feature (D,) as the method sees it: what the network last looked at, and the luma.

        Where the network needn't look, the luma alone will do. In a flash, the luma is that before it.
        """
        network, luma = feature[:-LUMA_DIM], feature[-LUMA_DIM:]
        if self(luma, time):
            self._network = network
        return np.concatenate([self._network, self._last])

    def unseen(self, square: ImageU8, time: float) -> Feature | None:
        """The luma of a picture that the network needn't look at; None if it must.

        Args:
            square: RGB, as `WholePicture.crop` gives it.
            time: Seconds.
        """
        luma: Feature = small_luma(square[np.newaxis])[0]
        return None if self(luma, time) else luma


def light_changed(luma: Feature, before: Feature) -> bool:
    """Whether two pictures' lumas, (N,) each, differ as at a flash or in a fade, not as at a cut.

    The whole picture became brighter, or all of it darker, and its shapes stay, or there are none.
    """
    change = luma - before
    up, down = float(np.maximum(change, 0).sum()), float(np.maximum(-change, 0).sum())
    other_way = min(up, down) / max(up + down, 1e-6)
    if other_way > NEARLY_ONE_WAY:
        return False
    new, old = luma - luma.mean(), before - before.mean()
    contrasts = float(np.sqrt(np.mean(new * new))), float(np.sqrt(np.mean(old * old)))
    alike = float(np.mean(new * old)) > SAME_SHAPES * contrasts[0] * contrasts[1]
    return max(contrasts) < NO_SHAPES or (alike and other_way <= ALL_ONE_WAY)


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
    glance: Glance | None = None,
) -> Generator[tuple[Frame, Feature], None, None]:
    """The feature of each frame, in order, with a bounded number of frames in work.

    Another thread reads the frames, so each feature comes out as soon as it is computed, however long the
    next frame takes. An error of the frames is raised after the features of those before it. Close the
    generator, or read it to the end, to end its threads.

    Args:
        frames: Upright pictures of any size. At most 2 · `workers` + 2 batches are read ahead; with a glance,
            at most 4 · `workers` + 6.
        backbone: Any; all can be called from several threads.
        workers: Calls of `embed` in parallel; with a glance, half as many.
        batch: Frames in one call. 1 has the least delay and suits a CPU; a GPU wants more.
        wake: Ends the wait for a slow frame when this generator is closed or interrupted.
        glance: Of `OnlineDetector.glance`, for a batch of 1: where the network needn't look, the feature is
            the luma alone, which `OnlineDetector.take` understands.
    """

    def embed(some: list[Frame]) -> Features:  # (batch, D)
        return backbone.embed(np.stack([backbone.crop(frame.rgb) for frame in some]))

    def glanced(glance: Glance, frame: Frame) -> Future[Features] | Feature:
        sized = frame.rgb.shape == (backbone.input_size, backbone.input_size, 3)  # by the reader
        square = frame.rgb if sized else backbone.crop(frame.rgb)
        luma = glance.unseen(square, float(frame.time))
        return pool.submit(backbone.embed, square[np.newaxis]) if luma is None else luma

    def begun() -> Iterator[tuple[list[Frame], Future[Features] | Feature]]:
        source, epoch = iter(frames), 0
        while some := list(islice(source, batch)):
            if glance is not None and some[0].epoch != epoch:
                glance.reset()
            epoch = some[0].epoch
            yield some, (pool.submit(embed, some) if glance is None else glanced(glance, some[0]))

    ahead = 2 * workers
    if glance is not None:  # most frames need no network, so decoding needs the cores more
        workers = (workers + 1) // 2
        ahead = 8 * workers
    pool = ThreadPoolExecutor(workers, thread_name_prefix="ongebd-backbone")
    try:
        with closing(prefetch(begun(), ahead, wake=wake)) as in_work:
            for some, features in in_work:
                if isinstance(features, Future):
                    yield from zip(some, features.result(), strict=True)
                else:
                    yield some[0], features
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
