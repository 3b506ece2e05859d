"""Watches cameras and feeds for days: their sources, what they show, and the alerts.

>>> from ongebd.watch import Onset, Watcher
>>> with Watcher(["door=rtsp://camera/1"]) as watcher:  # doctest: +SKIP
...     with watcher.hub.subscribe(Onset) as onsets:
...         print(onsets.get(timeout=60))
"""

from ongebd.watch.cameras import Camera
from ongebd.watch.clips import ClipLength
from ongebd.watch.incidents import Alerts
from ongebd.watch.records import (
    Clip,
    Digest,
    Dropped,
    Found,
    Incident,
    Onset,
    Point,
    Retuned,
    StateChanged,
    Updated,
    Warned,
)
from ongebd.watch.sink import HubSink
from ongebd.watch.sources import Patience
from ongebd.watch.watcher import Watcher

__all__ = [
    "Alerts",
    "Camera",
    "Clip",
    "ClipLength",
    "Digest",
    "Dropped",
    "Found",
    "HubSink",
    "Incident",
    "Onset",
    "Patience",
    "Point",
    "Retuned",
    "StateChanged",
    "Updated",
    "Warned",
    "Watcher",
]
