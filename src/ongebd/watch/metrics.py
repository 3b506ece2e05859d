"""A watcher's counters for Prometheus, read on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from ongebd.errors import import_extra
from ongebd.watch.records import STATES
from ongebd.watch.sink import HubSink
from ongebd.watch.stream import LAG_BUCKETS, WatchedStream

if TYPE_CHECKING:
    from prometheus_client import Metric


def metrics_text(streams: Iterable[WatchedStream], sinks: Iterable[HubSink]) -> bytes:
    """All counters in the text format of Prometheus.

    Raises:
        MissingExtraError: `prometheus_client` is not installed.
    """
    import_extra("prometheus_client", "live")
    from prometheus_client import generate_latest
    from prometheus_client.registry import Collector

    class Counters(Collector):
        def collect(self) -> Iterator[Metric]:
            return _metrics(streams, sinks)

    return generate_latest(Counters())  # type: ignore[arg-type,unused-ignore] # before 0.22, a registry


def _metrics(streams: Iterable[WatchedStream], sinks: Iterable[HubSink]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily as Counter
    from prometheus_client.core import GaugeMetricFamily as Gauge
    from prometheus_client.core import HistogramMetricFamily as Histogram

    # By the field of `StreamStatus` or attribute of a sink that they show.
    families: dict[str, Counter | Gauge] = {
        "frames": Counter("ongebd_frames", "Frames decided.", labels=["stream"]),
        "failed": Counter("ongebd_frames_failed", "Frames that could not be decided.", labels=["stream"]),
        "dropped": Counter("ongebd_frames_dropped", "Frames the model had no time for.", labels=["stream"]),
        "boundaries": Counter("ongebd_boundaries", "Boundaries that began.", labels=["stream"]),
        "reconnects": Counter("ongebd_reconnects", "Connections after a lost one.", labels=["stream"]),
        "epoch": Gauge("ongebd_epoch", "The newest epoch.", labels=["stream"]),
        "fps": Gauge("ongebd_frames_per_second", "Frames decided a second, recently.", labels=["stream"]),
        "sensitivity": Gauge("ongebd_sensitivity", "From 0.1 to 0.9.", labels=["stream"]),
    }
    work = {
        "done": Counter("ongebd_sink_records", "Records that a sink has handled.", labels=["sink"]),
        "failed": Counter("ongebd_sink_failures", "Of those, how many failed.", labels=["sink"]),
        "lost": Counter("ongebd_sink_lost", "Records that a sink was too slow for.", labels=["sink"]),
    }
    state = Gauge("ongebd_state", "1 for the stream's current state.", labels=["stream", "state"])
    lag = Histogram("ongebd_lag_seconds", "From a frame's arrival to its decision.", labels=["stream"])
    ends = [*map(str, LAG_BUCKETS), "+Inf"]
    for stream in streams:
        status = stream.status()
        for name, family in families.items():
            family.add_metric([stream.key], getattr(status, name))
        for name in STATES:
            state.add_metric([stream.key, name], float(name == status.state))
        lag.add_metric([stream.key], list(zip(ends, accumulate(stream.lags), strict=True)), stream.lag_sum)
    for sink in sinks:
        for name, counter in work.items():
            counter.add_metric([sink.name], getattr(sink, name))
    yield from (*families.values(), state, lag, *work.values())
