"""Frames that come into a pool from other processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import ongebd
from ongebd.errors import ConfigError, FeatureError, OngebdError
from waiting import until

SPAWN = multiprocessing.get_context("spawn")
SHAPE = (256, 300)
COUNT = 40


def picture(stream: int, n: int) -> np.ndarray:
    """Another picture for each frame; a gradient, then noise."""
    if n < 20:
        frame = np.tile(np.linspace(0, 40 * (stream + 1), 300)[None, :, None], (256, 1, 3)).astype(np.uint8)
    else:
        frame = np.random.default_rng(stream).integers(0, 255, (*SHAPE, 3)).astype(np.uint8)
    frame[n % 256] = 255
    return frame


def give(handles, first: int) -> None:
    """What a process of a producer does: all frames of its streams, in turn, then their end."""
    producers = [handle.open() for handle in handles]
    for n in range(COUNT):
        for place, producer in enumerate(producers):
            producer.submit(picture(first + place, n), n / 24)
        if n == 7:
            producers[0].new_epoch()
    for producer in producers:
        producer.close()


def give_some_and_wait(handle, count: int) -> None:
    with handle.open() as producer:
        for n in range(count):
            producer.submit(picture(0, n), n / 24)
        time.sleep(600)


@pytest.fixture
def pool():
    with ongebd.StreamPool("window-mean") as pool:
        yield pool


def outcomes(results) -> dict:
    """What each stream got, in order."""
    by_stream = defaultdict(list)
    for result in results:
        by_stream[result.stream.name].append((result.decision, result.boundary, result.ended))
    return dict(by_stream)


def test_other_processes_get_the_decisions_that_threads_of_this_one_get():
    with ongebd.StreamPool("window-mean", on_result=(here := []).append) as pool:
        streams = [pool.add(name=k) for k in range(3)]
        for n in range(COUNT):
            for k, stream in enumerate(streams):
                stream.submit(picture(k, n), n / 24)
            if n == 7:
                streams[0].new_epoch()
                streams[2].new_epoch()
        for stream in streams:
            stream.close()
        pool.wait()
    with ongebd.StreamPool("window-mean", on_result=(there := []).append) as pool:
        streams = [pool.add(name=k) for k in range(3)]
        with pool.shared_input(streams, SHAPE, slots=3) as shared:
            children = [
                SPAWN.Process(target=give, args=(shared.handles[:2], 0)),
                SPAWN.Process(target=give, args=(shared.handles[2:], 2)),
            ]
            for child in children:
                child.start()
            for child in children:
                child.join(60)
            assert [child.exitcode for child in children] == [0, 0]
        pool.wait()
        assert pool.counts() == type(pool.counts())(3 * COUNT, 0, 3 * COUNT, 0)
    assert outcomes(there) == outcomes(here)
    assert any(decision is not None and decision.onset for decision, _, _ in outcomes(here)[1]), (
        "something fires"
    )


def test_a_process_that_is_killed_leaves_what_it_gave_and_its_stream_restarts(pool):
    stream = pool.add()
    with pool.shared_input([stream], SHAPE) as shared:
        path = Path(shared.handles[0].path)
        child = SPAWN.Process(target=give_some_and_wait, args=(shared.handles[0], 10))
        child.start()
        until(lambda: stream.counts().decided == 10)
        os.kill(child.pid, signal.SIGKILL)  # not reaped yet: a zombie is dead too
        until(lambda: not shared._shared.pid[0])
        child.join()
        with shared.handles[0].open() as next_one:
            next_one.submit(picture(0, 0), 0.0)
        pool.wait(60)
        until(lambda: stream.counts().decided == 11)
        results = pool.poll()
        assert [result.ended for result in results if result.ended] == ["epoch"]
        assert not results[-1].decision.ready, "the first frame of an epoch"
    assert not path.exists(), "nothing is left in the shared memory's folder"


def test_a_frame_without_a_slot_waits_or_is_dropped(pool):
    stream = pool.add()
    with pool.shared_input([stream], SHAPE, slots=2) as shared:
        shared._stop.set()  # so slots stay full
        shared._thread.join()
        with shared.handles[0].open() as producer:
            taken = [producer.submit(picture(0, n), n / 24, timeout=0.01 * (n % 2)) for n in range(4)]
        assert taken == [True, True, False, False]
        shared._stop.clear()
        shared._thread = type(shared._thread)(target=shared._watch)
        shared._thread.start()
    pool.wait(60)
    assert stream.counts().decided == 2


@pytest.mark.parametrize(("streams", "shape", "slots"), [(0, SHAPE, 4), (1, SHAPE, 0), (1, (0, 5), 4)])
def test_a_shared_input_of_nothing_is_refused(pool, streams, shape, slots):
    with pytest.raises(ConfigError, match="needs streams, slots and frames with pixels"):
        pool.shared_input([pool.add() for _ in range(streams)], shape, slots=slots)


def test_what_a_producer_cannot_give_is_refused(pool):
    stream = pool.add()
    with pool.shared_input([stream], SHAPE) as shared:
        producer = shared.handles[0].open()
        with pytest.raises(FeatureError, match=r"wanted uint8 of \(256, 300, 3\)"):
            producer.submit(np.zeros((4, 4, 3), np.uint8), 0.0)
        with pytest.raises(ConfigError, match="a number"):
            producer.submit(picture(0, 0), float("nan"))
        assert not shared._shared.head[0]
        assert shared._shared.pid[0] == os.getpid()
        producer.close()
        until(lambda: not stream.open)
        with pytest.raises(OngebdError, match="closed"):
            producer.submit(picture(0, 0), 0.0)
        with pytest.raises(OngebdError, match="closed; add another"):
            shared.handles[0].open()
    with pytest.raises(OngebdError, match="closed"):
        producer.submit(picture(0, 0), 0.0)


def test_a_shared_input_has_one_thread_and_leaves_none(pool):
    before = threading.active_count()
    shared = pool.shared_input([pool.add() for _ in range(5)], SHAPE)
    assert threading.active_count() == before + 1
    shared.close()
    shared.close()
    assert threading.active_count() == before
