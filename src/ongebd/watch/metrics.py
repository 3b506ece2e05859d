"""A watcher's counters for Prometheus, read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from ongebd.errors import MissingExtraError
from ongebd.watch.records import STATES
from ongebd.watch.stream import LAG_BUCKETS, WatchedStream

if TYPE_CHECKING:
    from prometheus_client import Metric


class Served(Protocol):
    """What is to be known of a sink.

    Attributes:
        name: As in the option that asks for it.
        done: Records that it has handled.
        failed: Of those, how many in vain.
    """

    name: str
    done: int
    failed: int

    @property
    def lost(self) -> int:
        """Records that it never saw, for it was too slow."""


def rendered(streams: Iterable[WatchedStream], sinks: Iterable[Served]) -> bytes:
    """All counters in the text format of Prometheus.

    Raises:
        MissingExtraError: `prometheus_client` is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.registry import Collector
    except ModuleNotFoundError as problem:
        raise MissingExtraError.of("prometheus_client", "live") from problem

    class Counters(Collector):
        def collect(self) -> Iterator[Metric]:
            yield from _of_streams(list(streams))
            yield from _of_sinks(list(sinks))

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Counters())
    return generate_latest(registry)


def _of_streams(streams: list[WatchedStream]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge
    from prometheus_client.core import HistogramMetricFamily as Histogram

    frames = Counter("ongebd_frames", "Frames decided.", labels=["stream"])
    failed = Counter("ongebd_frames_failed", "Frames that could not be decided.", labels=["stream"])
    dropped = Counter("ongebd_frames_dropped", "Frames that the model had no time for.", labels=["stream"])
    boundaries = Counter("ongebd_boundaries", "Boundaries that began.", labels=["stream"])
    reconnects = Counter("ongebd_reconnects", "Connections after one was lost.", labels=["stream"])
    epoch = Gauge("ongebd_epoch", "The newest epoch.", labels=["stream"])
    rate = Gauge("ongebd_frames_per_second", "Frames decided a second, lately.", labels=["stream"])
    sensitivity = Gauge("ongebd_sensitivity", "From 0.1 to 0.9.", labels=["stream"])
    state = Gauge("ongebd_state", "1 for the state that a stream is in.", labels=["stream", "state"])
    lag = Histogram("ongebd_lag_seconds", "From a frame's arrival to the decision on it.", labels=["stream"])
    for stream in streams:
        now, key = stream.status(), [stream.key]
        for family, value in (
            (frames, now.frames),
            (failed, stream.failed),
            (dropped, now.dropped),
            (boundaries, now.boundaries),
            (reconnects, now.reconnects),
            (epoch, now.epoch),
            (rate, now.fps),
            (sensitivity, now.sensitivity),
        ):
            family.add_metric(key, value)
        for name in STATES:
            state.add_metric([stream.key, name], float(name == now.state))
        ends = [*(str(end) for end in LAG_BUCKETS), "+Inf"]
        buckets = list(zip(ends, accumulate(stream.lags), strict=True))
        lag.add_metric(key, buckets, stream.lag_sum)
    yield from (frames, failed, dropped, boundaries, reconnects, epoch, rate, sensitivity, state, lag)


def _of_sinks(sinks: list[Served]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily as Counter

    done = Counter("ongebd_sink_records", "Records that a sink has handled.", labels=["sink"])
    failed = Counter("ongebd_sink_failures", "Of those, in vain.", labels=["sink"])
    lost = Counter("ongebd_sink_lost", "Records that a sink was too slow for.", labels=["sink"])
    for sink in sinks:
        done.add_metric([sink.name], sink.done)
        failed.add_metric([sink.name], sink.failed)
        lost.add_metric([sink.name], sink.lost)
    yield from (done, failed, lost)
