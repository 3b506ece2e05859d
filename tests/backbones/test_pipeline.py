"""The pipeline that the stream and extraction share: order, bounds, batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from ongebd.backbones.pipeline import frame_features
from ongebd.types import Frame
from waiting import until


def frames(count: int, taken: list[int] | None = None) -> Iterator[Frame]:
    for i in range(count):
        if taken is not None:
            taken.append(i)
        yield Frame(i, Fraction(i, 24), np.full((40, 60, 3), i, np.uint8))


@pytest.mark.parametrize("batch", [1, 3, 64])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_each_frame_gets_its_own_feature_in_order(backbone: object, workers: int, batch: int) -> None:
    found = list(frame_features(frames(20), backbone, workers, batch))
    assert [frame.index for frame, _ in found] == list(range(20))
    assert [round(float(feature[0]) - 1) for _, feature in found] == list(range(20))


def test_the_backbone_is_called_with_as_many_frames_as_asked_for(backbone: object) -> None:
    list(frame_features(frames(10), backbone, 1, 4))
    assert backbone.calls == [4, 4, 2]


def test_no_more_frames_are_taken_than_are_worked_on(backbone: object) -> None:
    taken: list[int] = []
    found = frame_features(frames(100, taken), backbone, workers=2, batch=3)
    next(found)
    until(lambda: len(taken) >= 3 * (1 + 2 * 2 + 1))
    time.sleep(0.05)  # let it take what it will
    assert len(taken) == 3 * (1 + 2 * 2 + 1), "one handed out, two waiting for each worker, one in hand"
    found.close()


def test_when_it_is_closed_its_threads_are_gone(backbone: object) -> None:
    before = threading.active_count()
    found = frame_features(frames(100), backbone, workers=4)
    next(found)
    assert threading.active_count() > before
    found.close()
    assert threading.active_count() == before


def test_an_error_of_the_backbone_comes_out_at_its_frame(backbone: object) -> None:
    def embed(some: np.ndarray) -> np.ndarray:
        if some[0, 0, 0, 0] == 5:
            raise ValueError("no feature of this one")
        return np.ones((len(some), 48), np.float32)

    backbone.embed = embed
    found = frame_features(frames(10), backbone, workers=2)
    assert [next(found)[0].index for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="no feature of this one"):
        next(found)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_feature_is_given_before_the_next_frame_has_come(backbone: object, workers: int) -> None:
    given = threading.Semaphore(0)

    def slow() -> Iterator[Frame]:
        for frame in frames(10):
            yield frame
            assert given.acquire(timeout=60), "the feature of the last frame was held back"

    for _ in frame_features(slow(), backbone, workers):
        given.release()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_an_error_of_the_frames_comes_after_the_features_of_those_before_it(
    backbone: object, workers: int
) -> None:
    def breaking() -> Iterator[Frame]:
        yield from frames(7)
        raise OSError("the source broke")

    found = frame_features(breaking(), backbone, workers)
    assert [next(found)[0].index for _ in range(7)] == list(range(7))
    with pytest.raises(OSError, match="the source broke"):
        next(found)
