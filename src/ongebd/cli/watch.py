"""`ongebd watch`: cameras and feeds, watched until Ctrl-C."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from ongebd.cli.sources import Sources, check_sources
from ongebd.cli.standard_streams import ClosedOutput, say
from ongebd.common.text import printable, public_name
from ongebd.detector import StreamConfig
from ongebd.detector.models import DEFAULT_MODEL
from ongebd.errors import ConfigError
from ongebd.output import protect_sources
from ongebd.watch import ClipLength, HubSink, Patience, Watcher
from ongebd.watch.sinks import ClipSink, CommandSink, LineSink, PictureSink, RecordSink, Rotation, WebhookSink
from ongebd.watch.sinks.command import check_seconds
from ongebd.watch.sinks.folder import check_folder
from ongebd.watch.sinks.jsonl import check_recordable
from ongebd.watch.sources import sources_of

PORT = 8765
TOKEN = "ONGEBD_TOKEN"
_SIZE = re.compile(r"(\d{1,15})\s*([KMGT]?)i?B?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """What is done with what is seen, and how long a source is waited for."""

    serve: Annotated[str | bool, Parameter(negative=(), show_default=False)] = ""
    """Show a page at [HOST:]PORT; alone, as the last option, at 127.0.0.1:8765."""

    token: str | None = None
    """What a viewer of the page must know; needed for other hosts than 127.0.0.1. [ONGEBD_TOKEN, if set]"""

    jsonl: Path | None = None
    """File for all records, exchanged when it is full or a day old."""

    jsonl_size: str = "64M"
    """Size at which it is exchanged."""

    jsonl_files: int = 30
    """How many older ones are kept."""

    jsonl_frames: Annotated[bool, Parameter(negative=())] = False
    """A line for each decided frame too; about 0.4 GB a day and stream."""

    exec: str | None = None
    """Command for each boundary, without a shell; fills {time} {onset} {thumbnail} {clip} {stream} {wall}"""

    exec_timeout: float = 30.0
    """Seconds after which it is killed."""

    webhook: str | None = None
    """URL that boundaries, clips and changes of state are posted to, as JSON."""

    thumbnails: Path | None = None
    """Folder for a picture (JPEG) of each boundary."""

    thumbnails_size: str = "1G"
    """Size of that folder at most; the oldest go."""

    clips: Path | None = None
    """Folder for a clip (MP4) of each boundary."""

    clips_size: str = "4G"
    """Size of that folder at most; the oldest go."""

    clip_before: float = 5.0
    """Seconds of a clip before the onset, at least."""

    clip_after: float = 5.0
    """Seconds of a clip after it."""

    realtime: Annotated[bool, Parameter(negative=())] = False
    """Play files at their own pace, as if they were live."""

    retries: int | None = None
    """Attempts in a row to connect a lost source, after which it is given up. [for ever]"""

    open_timeout: float = Patience.open_timeout
    """Seconds that a source may take to open."""

    read_timeout: float = Patience.read_timeout
    """Seconds without data after which a source is connected anew."""

    stall_after: float = Patience.stall_after
    """Seconds without a frame after which a source is called stalled."""

    queue: int = 48
    """Frames of one source that may wait for the model; beyond, the oldest is dropped."""

    source_fps: float | None = None
    """Frames a second of a source without timestamps (raw H.264); --fps is taken where this is not given."""

    device: str = "cpu"
    """Where the model computes: cpu, cuda or cuda:N."""

    def check(self, sources: Sequence[str]) -> None:
        """Refuse what cannot be, before anything is begun or put aside; also where nothing asks for it yet.

        Args:
            sources: As given; what is written must be none of them.

        Raises:
            ConfigError: A number is out of its range, or something is written where something else is.
            OngebdError: A place cannot be looked at.
        """
        check_seconds(self.exec_timeout)
        ClipLength(before=self.clip_before, after=self.clip_after)
        folders = {"--thumbnails": self.thumbnails, "--clips": self.clips}
        read = [one.source for one in sources_of(sources)]
        for option, path in {"--jsonl": self.jsonl, **folders}.items():
            if path is not None:
                _spare(option, path, read)
        _ = self.rotation
        check_folder(self.thumbnails, "thumbnails", self.thumbnails_bytes)
        check_folder(self.clips, "clips", self.clips_bytes)
        if self.jsonl is not None:
            check_recordable(self.jsonl)
            for option, folder in folders.items():
                if folder is not None and _lies_in(folder, self.jsonl):
                    raise ConfigError(
                        f"--jsonl {self.jsonl} is where {option} puts its folder; name another file"
                    )

    @property
    def patience(self) -> Patience:
        """How long a source is waited for."""
        return Patience(
            open_timeout=self.open_timeout,
            read_timeout=self.read_timeout,
            stall_after=self.stall_after,
            retries=self.retries,
        )

    @property
    def rotation(self) -> Rotation:
        """When the file of records is exchanged."""
        return Rotation(size=_bytes("--jsonl-size", self.jsonl_size), files=self.jsonl_files)

    @property
    def thumbnails_bytes(self) -> int:
        """Bytes of all thumbnails at most."""
        return _bytes("--thumbnails-size", self.thumbnails_size)

    @property
    def clips_bytes(self) -> int:
        """Bytes of all clips at most."""
        return _bytes("--clips-size", self.clips_size)

    @property
    def clip_length(self) -> ClipLength | None:
        """What is in a clip; None where none is wanted."""
        if self.clips is None:
            return None
        return ClipLength(before=self.clip_before, after=self.clip_after)

    @property
    def wants_pictures(self) -> bool:
        """Whether boundaries need pictures."""
        asks = self.exec is not None and "{thumbnail}" in self.exec
        return bool(self.serve) or self.thumbnails is not None or asks


def watch(
    sources: Sources,
    /,
    *,
    options: Annotated[WatchOptions | None, Parameter(name="*")] = None,
    model: Annotated[str, Parameter(alias="-m")] = DEFAULT_MODEL,
    config: Annotated[StreamConfig | None, Parameter(name="*")] = None,
    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False,
) -> int:
    """Watch cameras and feeds until Ctrl-C, and tell what begins.

    Each boundary is printed as a line when it is known, and each change of a source's state as a line that
    begins with #. A source that is lost is connected anew, for ever or --retries times. Several sources are
    watched at once, by one model.

    Exit status: 0 when all sources are over, or 2 if one was refused or given up, or lines or records could
    not be written, or 130 after Ctrl-C (what was found so far is told first).

    Parameters
    ----------
    sources
        URLs (rtsp, rtmp, http, udp, tcp, …), camera:N, files, or - for standard input. NAME=URL names one.
    options
        Settings of the watch.
    model
        Which method, or the folder of a trained model; they are listed by: ongebd models.
    config
        Settings of the streams.
    quiet
        No lines for people; warnings only.
    """
    options = options or WatchOptions()
    check_sources(sources, "watch")
    host, port = _address(options.serve)
    options.check(sources)
    with ExitStack() as closing:
        watcher = Watcher(
            sources,
            model=model,
            config=config,
            device=options.device,
            patience=options.patience,
            realtime=options.realtime,
            max_pending=options.queue,
            source_fps=options.source_fps,
            thumbnails=options.wants_pictures,
            clips=options.clip_length,
        )
        closing.callback(watcher.stop)
        lines = None if quiet or isinstance(sys.stdout, ClosedOutput) else _lines(watcher)
        page = None
        if options.serve:  # before the sinks: what is refused of it leaves no file begun
            from ongebd.watch.server import serve

            watcher.metrics()  # raises now where what it needs is not installed
            server = serve(watcher, host, port, options.token or os.environ.get(TOKEN))
            closing.callback(server.stop)
            page = server.url
        _attach(watcher, options)
        if page is not None:
            say(f"ongebd: the page is at {page}")
        watcher.start()
        while not watcher.join(0.25):
            if lines is not None and lines.reader_gone.is_set():
                raise BrokenPipeError
        failed = [stream for stream in watcher.streams.values() if stream.status().state == "failed"]
    for stream in failed:
        reason, name = printable(stream.status().reason), f"{stream.name}: "
        say(f"ongebd: {reason if reason.startswith(name) else name + reason}")
    written = [sink for sink in watcher.sinks if isinstance(sink, LineSink | RecordSink)]
    return 2 if failed or any(sink.failed for sink in written) else 0


def _attach(watcher: Watcher, options: WatchOptions) -> None:
    """Attach the sinks that are asked for."""
    # Programs are checked first, and the file of records is begun last: a refusal leaves no file behind.
    programs: list[HubSink] = []
    if options.exec is not None:
        programs.append(CommandSink(options.exec, watcher, _complain, seconds=options.exec_timeout))
    if options.webhook is not None:
        programs.append(WebhookSink(options.webhook, watcher, _complain))
    if options.thumbnails is not None:
        most = options.thumbnails_bytes
        watcher.attach(PictureSink(options.thumbnails, watcher, _complain, most_bytes=most))
    if options.clips is not None:
        watcher.attach(ClipSink(options.clips, watcher, _complain, most_bytes=options.clips_bytes))
    if options.jsonl is not None:
        rotation, points = options.rotation, options.jsonl_frames
        watcher.attach(RecordSink(options.jsonl, watcher, _complain, rotation=rotation, points=points))
    for program in programs:
        watcher.attach(program)


def _lines(watcher: Watcher) -> LineSink:
    sink = LineSink(_colour_writer() if sys.stdout.isatty() else _plain, watcher, _complain)
    watcher.attach(sink)
    return sink


def _plain(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _colour_writer() -> Callable[[str], None]:
    console = Console(soft_wrap=True, highlight=False)

    def write(line: str) -> None:
        console.print(Text(line, style="dim" if line.startswith("#") else "bold"))

    return write


def _complain(line: str) -> None:
    say(f"ongebd: {printable(public_name(line))}")


def _spare(option: str, path: Path, sources: Sequence[str]) -> None:
    """Refuse to write over a source."""
    try:
        protect_sources([path], sources)
    except ConfigError:
        one = "the source itself" if len(sources) == 1 else "one of the sources"
        raise ConfigError(f"{option} {path} is {one} and would be overwritten; name another place") from None


def _lies_in(folder: Path, path: Path) -> bool:
    """Whether a folder is this path, or in it."""
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(path))


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


def _bytes(option: str, text: str) -> int:
    size = _SIZE.fullmatch(text.strip())
    if size is None:
        raise ConfigError(f"{option} {text}: give a size, as in 500M or 2G")
    return int(size[1]) << (10 * " KMGT".index(size[2].upper() or " "))
