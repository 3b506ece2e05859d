"""Runs a command at each boundary, without a shell, for a limited time, a few at once."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from ongebd.errors import ConfigError, OngebdError, a_number
from ongebd.watch.hub import Hub
from ongebd.watch.records import Filmed, Found, Record
from ongebd.watch.sinks.base import Complain, HubSink

FIELDS = ("time", "onset", "thumbnail", "clip", "stream", "wall", "number", "score")
_FIELD = re.compile(r"\{([^{}]*)\}")


class CommandSink(HubSink):
    """Runs a program for each boundary: when its centre is known, or, with {clip}, when its clip is written.

    The line is split once, as a shell splits it; then each {field} in a word is replaced. So no value,
    whatever it holds, becomes a word of its own or a command. The fields are {time} and {onset} (media
    seconds), {wall} (Unix seconds of the decision), {stream}, {number}, {score}, and {thumbnail}: a JPEG file
    that is there while the program runs, or nothing where there is none. {clip} is the clip's file; where it
    could not be made, or the watch ends before it is, the program runs then, and {clip} is nothing.

    Args:
        line: The program and its arguments.
        hub: Where records come from.
        thumbnail: The picture of a stream's boundary, by key and number.
        complain: Who hears of trouble.
        clips: Whether clips are kept, so that {clip} may be asked for.
        seconds: After which a program is killed, with all that it started.
        at_once: How many may run.

    Raises:
        ConfigError: The line cannot be split, names no program that is there, or has a field that is
            unknown or not to be had; or the seconds are out of their range (`check_seconds`).
    """

    def __init__(
        self,
        line: str,
        hub: Hub,
        thumbnail: Callable[[str, int], bytes | None],
        complain: Complain,
        *,
        clips: bool = False,
        seconds: float = 30.0,
        at_once: int = 2,
    ) -> None:
        check_seconds(seconds)
        self._words = _words(line, clips)
        self._thumbnail, self._seconds = thumbnail, seconds
        self._wants_picture = self._asks_for("thumbnail")
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        kind = Filmed if self._asks_for("clip") else Found
        super().__init__("exec", hub, (kind,), complain, limit=256, threads=at_once)

    def handle(self, record: Record) -> None:
        """Run the program, and wait for it."""
        assert isinstance(record, Found | Filmed)
        found, clip = (record.found, record.path) if isinstance(record, Filmed) else (record, None)
        picture = self._thumbnail(found.stream, found.number) if self._wants_picture else None
        if picture is None:
            self._run(self._command(found, None, clip))
            return
        with tempfile.TemporaryDirectory(prefix="ongebd-") as folder:
            path = Path(folder) / f"{found.stream}-{found.number}.jpg"
            path.write_bytes(picture)
            self._run(self._command(found, path, clip))

    def abandon(self) -> None:
        """Kill what runs."""
        with self._lock:
            for process in self._running:
                _kill(process)

    def _asks_for(self, field: str) -> bool:
        return any(field in _FIELD.findall(word) for word in self._words)

    def _command(self, found: Found, picture: Path | None, clip: Path | None) -> list[str]:
        boundary = found.boundary
        values = {
            "time": f"{boundary.time:.6f}",
            "onset": f"{boundary.onset:.6f}",
            "thumbnail": "" if picture is None else str(picture),
            "clip": "" if clip is None else str(clip),
            "stream": found.stream,
            "wall": f"{found.wall:.6f}",
            "number": str(found.number),
            "score": f"{boundary.score:.6f}",
        }
        return [_FIELD.sub(lambda field: values[field[1]], word) for word in self._words]

    def _run(self, command: list[str]) -> None:
        name = Path(command[0]).name
        # What it prints is no output of ours; a group of its own, so that all of it can be killed.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
        with self._lock:
            self._running.add(process)
        try:
            status = process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.wait()
            raise OngebdError(f"{name} was killed after {self._seconds:g} s") from None
        finally:
            with self._lock:
                self._running.discard(process)
        if status:
            how = f"status {status}" if status > 0 else f"signal {-status}"
            raise OngebdError(f"{name} ended with {how}")


def check_seconds(seconds: float) -> None:
    """Refuse a time after which no program can be killed.

    Raises:
        ConfigError: It is not above 0 and at most a day.
    """
    if not 0 < a_number("--exec-timeout", seconds) <= 86_400:
        raise ConfigError(f"--exec-timeout must be above 0 and at most 86400 s, not {seconds}")


def _words(line: str, clips: bool) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError as problem:
        raise ConfigError(f"--exec: {problem} in: {line}") from None
    if not words:
        raise ConfigError("--exec is empty; name a program")
    for field in _FIELD.findall(line):
        if field not in FIELDS:
            known = ", ".join(f"{{{name}}}" for name in FIELDS)
            raise ConfigError(f"--exec: there is no field {{{field}}}; there are {known}")
        if field == "clip" and not clips:
            raise ConfigError("--exec: {clip} is there only where clips are kept; add --clips FOLDER")
    if shutil.which(words[0]) is None:
        raise ConfigError(f"--exec: {words[0]} is no program that can be run; check its name and path")
    return words


def _kill(process: subprocess.Popen[bytes]) -> None:
    if os.name == "nt":
        process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has ended by itself
        return
