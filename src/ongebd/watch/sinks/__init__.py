"""What passes a watcher's records on: files, commands, messages. Each has its own thread and queue."""

from ongebd.watch.sinks.command import CommandSink
from ongebd.watch.sinks.folder import ClipSink, PictureSink
from ongebd.watch.sinks.jsonl import RecordSink
from ongebd.watch.sinks.kept import KeptIncidents
from ongebd.watch.sinks.lines import LineSink, WarningSink
from ongebd.watch.sinks.mqtt import MqttSink
from ongebd.watch.sinks.notify import NotifySink
from ongebd.watch.sinks.webhook import WebhookSink

__all__ = [
    "ClipSink",
    "CommandSink",
    "KeptIncidents",
    "LineSink",
    "MqttSink",
    "NotifySink",
    "PictureSink",
    "RecordSink",
    "WarningSink",
    "WebhookSink",
]
