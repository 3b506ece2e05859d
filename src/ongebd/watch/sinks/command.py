"""Runs a command for each boundary: without a shell, for a limited time, a few at the same time."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from ongebd.errors import ConfigError, OngebdError, os_errors
from ongebd.watch.records import Filmed, Found
from ongebd.watch.sink import Complain, HubSink
from ongebd.watch.watcher import Watcher

_AT_ONCE = 2
_POLL = 0.01
FIELDS = ("time", "onset", "wall", "score", "stream", "number", "thumbnail", "clip")
_FIELD = re.compile(r"\{([^{}]*)\}")


class CommandSink(HubSink):
    """Runs a program for each boundary: when its centre is known, or, with {clip}, when its clip is written.

    The line is split once, as a shell does it; then each {field} in a word is replaced. So no value can
    become a word or a command. The fields are {time} and {onset} (media seconds), {wall} (Unix seconds of the
    decision), {stream}, {number}, {score}; {thumbnail}, a JPEG file that exists while the program runs; and
    {clip}, the clip's file. Both are empty words without a file.

    Args:
        line: The program and its arguments.
        seconds: When a program is killed, with everything that it started.

    Raises:
        ConfigError: The line can't be split, names no program, or has a field that is unknown or unavailable.
    """

    def __init__(self, line: str, watcher: Watcher, complain: Complain, seconds: float = 30.0) -> None:
        self._words = _words(line, clips=watcher.clips is not None)
        self._streams, self._seconds = watcher.streams, seconds
        self._fields = {field for word in self._words for field in _FIELD.findall(word)}
        self._late = threading.Event()
        kind = Filmed if "clip" in self._fields else Found
        super().__init__("exec", watcher.hub, (kind,), complain, limit=256, threads=_AT_ONCE)

    def handle(self, record: Found | Filmed) -> None:
        """Run the program, and wait for it."""
        found, clip = (record.found, record.path) if isinstance(record, Filmed) else (record, None)
        picture = self._streams[found.stream].history.picture(found.number)
        if picture is None or "thumbnail" not in self._fields:
            self._run(found, "", clip)
            return
        with tempfile.TemporaryDirectory(prefix="ongebd-") as folder:
            path = Path(folder) / f"{found.stream}-{found.number}.jpg"
            path.write_bytes(picture)
            self._run(found, path, clip)

    def abandon(self) -> None:
        """Kill the programs that run."""
        self._late.set()

    def _run(self, found: Found, picture: Path | str, clip: Path | None) -> None:
        numbers = found.boundary.time, found.boundary.onset, found.wall, found.boundary.score
        words = found.stream, found.number, picture, clip or ""
        values = dict(zip(FIELDS, [*(f"{number:.6f}" for number in numbers), *map(str, words)], strict=True))
        command = [_FIELD.sub(lambda field: values[field[1]], word) for word in self._words]
        name = Path(command[0]).name
        # Its output goes to stderr. Its session is its own, so that everything in it can be killed.
        with os_errors(f"can't run {name}", error=OngebdError):
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
        until = time.monotonic() + self._seconds
        while (status := process.poll()) is None and time.monotonic() < until and not self._late.wait(_POLL):
            pass
        if status is None:
            _kill(process)
            process.wait()
            when = "at the end" if self._late.is_set() else f"after {self._seconds:g} s"
            raise OngebdError(f"killed {name} {when}")
        if status:
            how = f"status {status}" if status > 0 else f"signal {-status}"
            raise OngebdError(f"{name} ended with {how}")


def _words(line: str, *, clips: bool) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError as problem:
        raise ConfigError(f"--exec: {problem} in: {line}") from None
    if not words:
        raise ConfigError("--exec is empty; name a program")
    for field in _FIELD.findall(line):
        if field not in FIELDS:
            known = ", ".join(f"{{{name}}}" for name in FIELDS)
            raise ConfigError(f"--exec: unknown field {{{field}}}; known are {known}")
        if field == "clip" and not clips:
            raise ConfigError("--exec: {clip} needs --clips FOLDER")
    if shutil.which(words[0]) is None:
        raise ConfigError(f"--exec: can't find the program {words[0]}; check its name and path")
    return words


def _kill(process: subprocess.Popen[bytes]) -> None:
    if os.name == "nt":
        process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has ended by itself
        return
