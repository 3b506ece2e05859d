"""Decoding ahead in a thread: bounded, in order, and gone afterwards."""

from __future__ import annotations

import gc
import threading
from contextlib import closing

import pytest

from ongebd.backbones.pipeline import prefetch
from waiting import until

NAME = "decode-in-test"


def running() -> bool:
    return any(thread.name.startswith(NAME) for thread in threading.enumerate())


@pytest.mark.parametrize("count", [0, 1, 100])
def test_the_same_items_in_the_same_order(count):
    assert list(prefetch(range(count), ahead=3, name=NAME)) == list(range(count))
    assert not running()


def test_no_more_than_so_many_are_made_early():
    made = []

    def items():
        for n in range(100):
            made.append(n)
            yield n

    with closing(prefetch(items(), ahead=4, name=NAME)) as ahead:
        assert not made, "nothing is read before the first is asked for"
        for taken in range(1, 20):
            next(ahead)
            # Four wait in the queue, and the thread is making one.
            until(lambda taken=taken: len(made) >= taken + 5)
            assert len(made) == taken + 5
    assert not running()


def test_an_error_comes_after_the_items_before_it():
    def items():
        yield 1
        yield 2
        raise ValueError("broken")

    ahead = prefetch(items(), name=NAME)
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(ValueError, match="broken"):
        next(ahead)
    assert not running()


def test_the_thread_is_gone_after_close_with_a_full_queue():
    ahead = prefetch(iter(int, 1), ahead=1, name=NAME)  # zeros without end
    next(ahead)
    assert running()
    ahead.close()
    assert not running()


def test_the_thread_is_gone_after_a_break():
    for item in prefetch(iter(int, 1), ahead=2, name=NAME):
        assert item == 0
        break
    gc.collect()
    assert not running()


def test_the_thread_is_gone_after_an_error_of_the_consumer():
    with pytest.raises(ZeroDivisionError), closing(prefetch(iter(int, 1), name=NAME)) as ahead:
        print(1 / next(ahead))
    assert not running()


def test_a_wait_of_the_thread_is_ended_when_it_is_closed():
    awake = threading.Event()

    def items():
        yield 1
        assert awake.wait(60), "nobody woke it"

    ahead = prefetch(items(), name=NAME, wake=awake.set)
    assert next(ahead) == 1
    ahead.close()
    assert awake.is_set()
