from __future__ import annotations

import threading

import pytest

from ongebd.errors import ConfigError
from ongebd.watch import Dropped, Retuned
from ongebd.watch.hub import Hub, Subscription
from waiting import until


def retuned(number):
    return Retuned("cam", float(number), 0.5)


def test_each_subscriber_gets_the_kinds_that_it_asked_for_in_order():
    hub = Hub()
    all_of_them, some = hub.subscribe(), hub.subscribe(Dropped)
    hub.publish(retuned(1))
    hub.publish(Dropped("cam", 2.0, 1, 1))
    assert [all_of_them.get(0).wall, all_of_them.get(0).wall, all_of_them.get(0)] == [1.0, 2.0, None]
    assert [some.get(0).wall, some.get(0)] == [2.0, None]


def test_a_subscription_notices_each_record_that_is_dropped_and_no_other():
    hub, dropped = Hub(), []

    class Noting(Subscription):
        def missed(self, record):
            dropped.append(record)

    reader = hub.add(Noting((), limit=2))
    for number in range(5):
        hub.publish(retuned(number))
    assert dropped == [retuned(0), retuned(1), retuned(2)]
    hub.close()
    hub.publish(retuned(9))
    assert [reader.get(0), reader.get(0), reader.get(0)] == [retuned(3), retuned(4), None]
    assert len(dropped) == reader.lost == 3


def test_closing_wakes_who_waits_and_leaves_what_came():
    hub = Hub()
    subscription = hub.subscribe()
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.append(subscription.get()))
    thread.start()
    until(lambda: subscription._news._waiters)
    hub.close()
    thread.join(60)
    assert got == [None]
    with hub.subscribe() as late:
        assert late.closed
    other = Hub()
    with other.subscribe() as kept:
        other.publish(retuned(1))
    other.publish(retuned(2))
    assert kept.closed
    assert [kept.get(0), kept.get(0)] == [retuned(1), None]


def test_a_limit_below_one_is_refused():
    with pytest.raises(ConfigError, match="limit"):
        Hub().subscribe(limit=0)
