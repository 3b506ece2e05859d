"""Who is told of what a watcher sees: files, commands, web hooks; each with a thread and a bounded queue."""

from ongebd.live.sinks.base import Complain, HubSink
from ongebd.live.sinks.command import CommandSink
from ongebd.live.sinks.folder import ClipSink, PictureSink
from ongebd.live.sinks.lines import LineSink
from ongebd.live.sinks.records import RecordSink, Rotation
from ongebd.live.sinks.webhook import WebhookSink

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
