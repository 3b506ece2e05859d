"""`ongebd watch`: cameras and feeds, watched until Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token
from rich.console import Console
from rich.text import Text

from ongebd.cli.options import TOKEN, AccessOption, ModelName, Sources, Whole, checked_sources
from ongebd.cli.terminal import ClosedOutput, say
from ongebd.common.settings import Range, check_fields
from ongebd.detector import StreamConfig
from ongebd.detector.models import DEFAULT_MODEL
from ongebd.errors import ConfigError, OngebdError, uninterrupted
from ongebd.output import protect_sources
from ongebd.watch import Alerts, Camera, ClipLength, HubSink, Patience, Watcher
from ongebd.watch.cameras import read_cameras
from ongebd.watch.sinks.command import CommandSink
from ongebd.watch.sinks.folder import ClipSink, PictureSink, check_folder
from ongebd.watch.sinks.jsonl import RecordSink, check_recordable
from ongebd.watch.sinks.kept import KeptIncidents
from ongebd.watch.sinks.lines import LineSink, WarningSink
from ongebd.watch.sinks.mqtt import MqttSink
from ongebd.watch.sinks.notify import NotifySink
from ongebd.watch.sinks.webhook import WebhookSink
from ongebd.watch.sources import is_source, sources_of

PORT = 8765
_SIZE = re.compile(r"(\d{1,15})\s*([KMGT]?)i?B?", re.IGNORECASE | re.ASCII)


def _size(_hint: Any, tokens: Sequence[Token]) -> int:
    """Convert a size, such as 500M, to bytes."""
    size = _SIZE.fullmatch(tokens[0].value.strip())
    if size is None:
        raise ConfigError(f"{tokens[0].keyword} {tokens[0].value}: give a size, such as 500M or 2G")
    return int(size[1]) << (10 * " KMGT".index(size[2].upper() or " "))


def _shown(size: int) -> str:
    return f"{size >> 30}G" if size >= 1 << 30 else f"{size >> 20}M"


Size = Annotated[int, Parameter(converter=_size, show_default=_shown, metavar="SIZE")]
Flag = Annotated[bool, Parameter(negative=())]


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """Where results go, and how long to wait for sources."""

    serve: Annotated[str | bool, Parameter(negative=(), show_default=False)] = ""
    """Serve a web page at [HOST:]PORT. As the last option it needs no value: 127.0.0.1:8765."""

    token: str | None = None
    """Password of the page. ONGEBD_TOKEN is safer: other users can see options. [none for 127.0.0.1]"""

    jsonl: Path | None = None
    """File for all records. A new one starts when it is full or a day old."""

    jsonl_size: Annotated[Size, Range(least=1024)] = 64 << 20
    """Size of a full file."""

    jsonl_files: Annotated[int, Range(least=0)] = 30
    """How many old files to keep."""

    jsonl_frames: Flag = False
    """Also write a line for each frame: about 0.4 GB a day for each stream."""

    exec: str | None = None
    """Command to run for each boundary (no shell), with {time} {onset} {thumbnail} {clip} {stream} {wall}"""

    exec_timeout: Annotated[float, Range(above=0, most=86_400)] = 30.0
    """Seconds until the command is killed."""

    webhook: str | None = None
    """URL to post boundaries, clips, changes of state and warnings to, as JSON."""

    notify: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """Apprise address for a message with a picture of each alert; put secrets into ONGEBD_NOTIFY."""

    mqtt: str | None = None
    """Broker for Home Assistant: mqtt://[USER:PASSWORD@]HOST[/NAME]; put secrets into ONGEBD_MQTT."""

    keep: Path | None = None
    """Folder that keeps incidents and pictures, so that the page of a later run shows them too."""

    keep_days: Annotated[float, Range(above=0)] = 30.0
    """Days until kept incidents are deleted."""

    keep_size: Size = 2 << 30
    """Maximum size of that folder; the oldest incidents are deleted."""

    thumbnails: Path | None = None
    """Folder for a picture (JPEG) of each boundary."""

    thumbnails_size: Size = 1 << 30
    """Maximum size of that folder; the oldest files are deleted."""

    clips: Path | None = None
    """Folder for a clip (MP4) of each boundary."""

    clips_size: Size = 4 << 30
    """Maximum size of that folder; the oldest files are deleted."""

    clip_before: float = 5.0
    """Seconds of a clip before the onset, at least."""

    clip_after: float = 5.0
    """Seconds of a clip after the onset."""

    realtime: Flag = False
    """Play files at their own pace, as if they were live."""

    check: Flag = False
    """Only check the options and cameras.toml for mistakes."""

    retries: int | None = None
    """Failed attempts in a row before ongebd gives up on a source. [no limit]"""

    open_timeout: float = Patience.open_timeout
    """Seconds that a source may take to open."""

    read_timeout: float = Patience.read_timeout
    """Seconds without data before reconnecting."""

    stall_after: float = Patience.stall_after
    """Seconds without a frame before a source counts as stalled."""

    queue: Annotated[int, Range(least=1, most=100_000)] = 48
    """Frames of each source that may wait for the model; then the oldest are dropped."""

    source_fps: float | None = None
    """Frames per second of a source without timestamps (raw H.264). [--fps, or 25]"""

    device: str = "cpu"
    """Where the model runs: cpu, cuda or cuda:N."""

    def refuse(self, sources: Sequence[str | Camera]) -> None:
        """Refuse every wrong option, also unused ones, before anything starts or any file is put aside."""
        check_fields(self)
        self.clip_length()
        folders = {"--thumbnails": self.thumbnails, "--clips": self.clips, "--keep": self.keep}
        for option, path in {"--jsonl": self.jsonl, **folders}.items():
            if path is not None:
                protect_sources([path], [one.source for one in sources_of(sources)], option)
        check_folder(self.thumbnails, "thumbnails", self.thumbnails_size)
        check_folder(self.clips, "clips", self.clips_size)
        check_folder(self.keep, "keep", self.keep_size)
        if self.jsonl is None:
            return
        check_recordable(self.jsonl)
        for option, folder in folders.items():
            if folder is not None and Path(os.path.realpath(folder)).is_relative_to(
                os.path.realpath(self.jsonl)
            ):
                raise ConfigError(f"--jsonl {self.jsonl} is where {option} needs a folder; name another file")

    def wants_pictures(self, sources: Sequence[str | Camera]) -> bool:
        told: list[Any] = [self, *(one for one in sources if isinstance(one, Camera))]
        shown = any(one.notify or one.mqtt or "{thumbnail}" in " ".join(_texts(one.exec)) for one in told)
        return bool(shown or self.serve or self.thumbnails or self.keep)

    def clip_length(self) -> ClipLength:
        return ClipLength(before=self.clip_before, after=self.clip_after)

    def patience(self) -> Patience:
        return Patience(
            open_timeout=self.open_timeout,
            read_timeout=self.read_timeout,
            stall_after=self.stall_after,
            retries=self.retries,
        )


def _texts(given: str | Sequence[str] | None) -> Sequence[str]:
    return (given,) if isinstance(given, str) else given or ()


def watch(
    sources: Sources | None = None,
    /,
    *,
    options: Annotated[WatchOptions | None, Whole] = None,
    alerts: Annotated[Alerts | None, Whole] = None,
    access: Annotated[AccessOption | None, Whole] = None,
    model: ModelName = DEFAULT_MODEL,
    config: Annotated[StreamConfig | None, Whole] = None,
    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False,
) -> int:
    """Watch cameras and feeds until Ctrl-C, and report new events.

    Each line is an incident: one or more boundaries that belong together. Lines that begin with # are
    incidents without an alert and changes of a source's state. A lost source is reconnected, without limit or
    --retries times. One model watches all sources.

    Parameters
    ----------
    sources
        URLs (rtsp, rtmp, http, udp, tcp, …), camera:N, files, or - for standard input; NAME=URL gives one a
        name. Or cameras.toml, a file with cameras and their settings; SIGHUP reloads it.
    quiet
        Print only alerts and warnings.
    """
    # No program that we start inherits them.
    given, notify, mqtt = (os.environ.pop(name, None) for name in (TOKEN, "ONGEBD_NOTIFY", "ONGEBD_MQTT"))
    options = options or WatchOptions()
    options = replace(options, notify=(*options.notify, *(notify or "").split()), mqtt=options.mqtt or mqtt)
    if isinstance(serve := options.serve, str) and serve:
        no_address = not (sources or serve.rpartition(":")[2].isdecimal())
        if no_address or is_source(serve):
            sources, options = [*(sources or ()), serve], replace(options, serve=True)
    given_sources = checked_sources("watch", sources)
    options, alerts = replace(options, token=options.token or given), alerts or Alerts()
    _address(options.serve)
    build = partial(
        Watcher,
        model=model,
        config=config,
        device=options.device,
        patience=options.patience(),
        realtime=options.realtime,
        max_pending=options.queue,
        source_fps=options.source_fps,
        **asdict(access or AccessOption()),
        clips=None if options.clips is None else options.clip_length(),
        alerts=alerts,
    )
    listed = any(one.endswith(".toml") for one in given_sources)
    if listed and len(given_sources) > 1:
        raise ConfigError("give cameras.toml alone, or put the other sources into it")
    read = partial(_cameras, given_sources, build, options, alerts)
    with ExitStack() as closing:
        hangups = list[int]()
        if listed and hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGHUP, lambda number, _: hangups.append(number))
            closing.callback(signal.signal, signal.SIGHUP, before)
        cameras = read()
        if options.check and cameras is not None:
            say(f"ongebd: no mistakes; cameras: {len(cameras)}")
            return 0
        status = 2
        while cameras is not None:
            status, cameras = _watch(cameras, build, options, quiet, hangups, read)
        return status


Given = Sequence[str | Camera]


def _watch(
    sources: Given,
    build: Callable[..., Watcher],
    options: WatchOptions,
    quiet: bool,
    hangups: list[int],
    read: Callable[[], Given | None],
) -> tuple[int, Given | None]:
    """Watch until the end, or until a file that is read again has other cameras: the status, and these."""
    options.refuse(sources)
    again: Given | None = None
    # A signal ends the loop below, not what is being begun or finished.
    with uninterrupted() as signals, ExitStack() as closing:
        watcher = build(sources, thumbnails=options.wants_pictures(sources))
        closing.callback(watcher.stop, signals)
        watcher.attach(WarningSink(watcher, _complain))
        lines = None
        if not isinstance(sys.stdout, ClosedOutput):
            write = _colour_writer() if sys.stdout.isatty() else _plain
            lines = LineSink(write, watcher, _complain, quiet=quiet)
            watcher.attach(lines)
        page, kept = None, None
        if options.keep is not None or options.serve:
            kept = KeptIncidents(watcher, _complain, options.keep, options.keep_days, options.keep_size)
            watcher.attach(kept)
        if options.serve:  # before the sinks: if it is refused, no file has been begun
            from ongebd.watch.server import serve

            watcher.metrics()  # reports a missing extra now
            server = serve(watcher, *_address(options.serve), options.token, kept=kept)
            closing.callback(server.stop)
            page = server.url
        _attach(watcher, options)
        if page is not None:
            say(f"ongebd: the page is at {page}")
        watcher.start()
        while not signals and again is None and not watcher.join(0.1):
            if lines is not None and lines.reader_gone.is_set():
                raise BrokenPipeError
            if hangups:
                hangups.clear()
                again = _adopted(watcher, read())
        failed = [stream for stream in watcher.streams.values() if stream.status().state == "failed"]
    for stream in failed:
        reason, name = stream.status().reason, f"{stream.name}: "
        if reason not in stream.status().warnings:
            say(f"ongebd: {reason if reason.startswith(name) else name + reason}")
    written = [sink for sink in watcher.sinks if isinstance(sink, LineSink | RecordSink)]
    return 2 if failed or any(sink.failed for sink in written) else 0, again


def _cameras(
    sources: Sequence[str], build: Callable[..., Watcher], options: WatchOptions, alerts: Alerts
) -> Given | None:
    """The sources, or the cameras of the file that they name; None after a line for each mistake.

    Nothing is opened. Sources without a file are only looked at with --check: the watch itself refuses them.
    """
    given: Given = sources
    mistakes = list[str]()
    if sources[0].endswith(".toml"):
        given, mistakes = read_cameras(Path(sources[0]), alerts)
    elif not options.check:
        return sources
    if given:
        try:
            options.refuse(given)
            watcher = build(given, thumbnails=options.wants_pictures(given))
            mistakes += _programs(watcher, options)[1]
            watcher.stop()
        except OngebdError as problem:
            mistakes.append(str(problem))
    for mistake in mistakes:
        _complain(mistake)
    return None if mistakes else given


def _adopted(watcher: Watcher, cameras: Given | None) -> Given | None:
    """Give the streams the settings of cameras; the cameras, if they need another watcher."""
    if cameras is None:
        _complain("the cameras keep their settings")
        return None
    new = [one for one in cameras if isinstance(one, Camera)]
    if [one.outline() for one in new] != [one.camera.outline() for one in watcher.streams.values()]:
        _complain("cameras or outputs changed: the watch starts again")
        return cameras
    for stream, camera in zip(watcher.streams.values(), new, strict=True):
        with suppress(ConfigError):  # it is over
            stream.adopt(camera)
    _complain("the new settings are active")
    return None


def _programs(watcher: Watcher, options: WatchOptions) -> tuple[list[HubSink], list[str]]:
    """The sinks that tell people or programs, each with the cameras that name it, and their mistakes."""
    command = partial(CommandSink, seconds=options.exec_timeout)
    kinds: list[tuple[str, Callable[..., HubSink]]]
    kinds = [("exec", command), ("webhook", WebhookSink), ("notify", NotifySink), ("mqtt", MqttSink)]
    sinks, mistakes = list[HubSink](), list[str]()
    for name, kind in kinds:
        given = _texts(getattr(options, name))
        cameras = {text: set(watcher.streams) for text in given}
        for key, stream in watcher.streams.items():
            for text in getattr(stream.camera, name):
                cameras.setdefault(text, set()).add(key)
        for text, keys in cameras.items():
            try:
                sinks.append(kind(text, watcher, _complain))
                sinks[-1].cameras = keys
            except OngebdError as problem:
                who, what = ", ".join(sorted(keys)), str(problem)
                mistakes.append(what if text in given else f"{who}: {what.removeprefix('--')}")
    return sinks, mistakes


def _attach(watcher: Watcher, options: WatchOptions) -> None:
    """Attach the sinks that the options and the cameras name."""
    # Programs are checked first, and the file of records is begun last: a refusal leaves no file behind.
    programs, mistakes = _programs(watcher, options)
    if mistakes:
        raise ConfigError(mistakes[0])
    if options.thumbnails is not None:
        most = options.thumbnails_size
        watcher.attach(PictureSink(options.thumbnails, watcher, _complain, most_bytes=most))
    if options.clips is not None:
        watcher.attach(ClipSink(options.clips, watcher, _complain, most_bytes=options.clips_size))
    if options.jsonl is not None:
        size, files, points = options.jsonl_size, options.jsonl_files, options.jsonl_frames
        sink = RecordSink(options.jsonl, watcher, _complain, size=size, files=files, points=points)
        watcher.attach(sink)
    for program in programs:
        watcher.attach(program)


def _plain(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _colour_writer() -> Callable[[str], None]:
    console = Console(soft_wrap=True, highlight=False)
    return lambda line: console.print(Text(line, style="dim" if line.startswith("#") else "bold"))


def _complain(line: str) -> None:
    say(f"ongebd: {line}")


def _address(serve: str | bool) -> tuple[str, int]:
    """Host and port of `--serve`."""
    if isinstance(serve, bool) or not serve:
        return "127.0.0.1", PORT
    host, _, port = serve.rpartition(":")
    if not (port.isascii() and port.isdecimal() and len(port) < 10):
        raise ConfigError(
            f"--serve {serve}: give [HOST:]PORT, as in 0.0.0.0:8765, or put --serve after the sources"
        )
    return host.strip("[]") or "127.0.0.1", int(port)
