"""Who is told of what a watcher sees: files, commands, web hooks; each with a thread and a bounded queue."""

from ongebd.watch.sinks.base import Complain, HubSink
from ongebd.watch.sinks.command import CommandSink
from ongebd.watch.sinks.folder import ClipSink, PictureSink
from ongebd.watch.sinks.lines import LineSink
from ongebd.watch.sinks.records import RecordSink, Rotation
from ongebd.watch.sinks.webhook import WebhookSink

__all__ = [
    "ClipSink",
    "CommandSink",
    "Complain",
    "HubSink",
    "LineSink",
    "PictureSink",
    "RecordSink",
    "Rotation",
    "WebhookSink",
]
