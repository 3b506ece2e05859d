"""The command line's own rules: short help, strict values, plain errors, and options that commands share."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    RepeatArgumentError,
    Token,
    UnknownOptionError,
    UnusedCliTokensError,
    convert,
)
from cyclopts.help.formatters import DefaultFormatter

from ongebd.cli.terminal import say
from ongebd.common import MAX_PIXELS
from ongebd.errors import ConfigError, OngebdError, os_errors

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

    from ongebd.cluster.connection import Cluster

ALL = "--help-all"
TOKEN = "ONGEBD_TOKEN"

SHORT = {
    "detect": "list out format plot stem model sensitivity chapters min-length max-per-minute cluster quiet",
    "keyframes": "max out model sensitivity start end quiet",
    "watch": "serve token jsonl exec clips keep notify model sensitivity alerts-per-hour device quiet",
    "evaluate": "labels predictions compare dataset score out missing ids id-pattern",
    "compose": "out videos minutes seed split boundaries distractors seconds labels groups workers quiet",
    "extract": "list out backbone fps weights device precision ids jobs cluster workers quiet",
}
"""The options in a command's `--help`; all of them for other commands."""

_OFF = ("False", "()")  # defaults that say nothing

_tokens: list[str] = []


def with_help(tokens: Sequence[str]) -> list[str]:
    """The command line as cyclopts takes it; it's remembered for `ShortHelp`.

    `--help-all` becomes `--help`, and a token that names a file isn't an option.
    """
    end = tokens.index("--") if "--" in tokens else len(tokens)
    # A name that a shell's glob gives may begin with -, as YouTube's ids do.
    _tokens[:] = [
        f"./{token}" if token[:1] == "-" != token and _is_file(token) else token for token in tokens[:end]
    ]
    return ["--help" if token == ALL else token for token in _tokens] + list(tokens[end:])


def _is_file(token: str) -> bool:
    try:
        return Path(token).exists() and not Path(token).is_dir()
    except OSError:  # too long for a name
        return False


class ShortHelp(DefaultFormatter):
    """Leaves out what the command line's model doesn't use and, without `--help-all`, all but `SHORT`."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        for entry in panel.entries:  # a line of the source isn't a line of the help
            if text := getattr(entry.description, "primary_renderable", None):
                text.plain = " ".join(text.plain.split())
        told = [one.copy(default=None) if one.default in _OFF else one for one in panel.entries]
        panel = panel.copy(entries=told)
        command = next((token for token in _tokens if token in SHORT), None)
        if command is None or panel.format != "parameter":
            super().__call__(console, options, panel)
            return
        unused, short = _unused(), {f"--{name}" for name in SHORT[command].split()}
        used = [entry for entry in panel.entries if not unused.intersection(entry.names)]
        shown = [entry for entry in used if not entry.names or short.intersection(entry.names)]
        if ALL in _tokens:
            shown = used
        super().__call__(console, options, panel.copy(entries=shown))
        if len(shown) < len(used):
            console.print(f"{len(used) - len(shown)} more options: add {ALL}")
        elif len(used) < len(panel.entries):
            console.print(f"Other models have other settings: ongebd {command} --model NAME {ALL}")


def _unused() -> set[str]:
    """The options of settings that the command line's model, or else the default one, doesn't use."""
    from ongebd.detector import StreamConfig, load
    from ongebd.detector.models import DEFAULT_MODEL

    name = DEFAULT_MODEL
    for token, following in zip(_tokens, [*_tokens[1:], ""], strict=True):
        if token in ("--model", "-m"):
            name = following
        elif token.startswith("--model="):
            name = token.partition("=")[2]
    try:
        used = load(name).settings()
    except OngebdError:  # the command itself reports it
        return set()
    return {f"--{field.name.replace('_', '-')}" for field in fields(StreamConfig) if field.name not in used}


def strict(hint: Any, tokens: Sequence[Token]) -> Any:
    """Convert an option's value as cyclopts does, but refuse an empty value, and 1.5 for a whole number."""
    for token in tokens:
        if token.keyword is not None and not token.value.strip() and token.source == "cli":
            raise ConfigError(f"{token.keyword} has an empty value; give one, or drop it")
        if _bare(hint) is int and "." in token.value:  # cyclopts rounds it
            raise ConfigError(f"{token.keyword or ''} {token.value}: must be a whole number".lstrip())
    return convert(hint, tokens)


def in_words(problem: CycloptsError) -> str:
    """A mistake on the command line in plain words, with where to read more."""
    chain = " ".join(("ongebd", *(problem.command_chain or ())))
    return f"{_in_words(problem).removesuffix('.')} (see: {chain} --help)"


def _in_words(problem: CycloptsError) -> str:
    match problem:
        case MissingArgumentError(argument=argument) if argument is not None:
            keyword = problem.keyword or next((t.keyword for t in argument.tokens if t.keyword), None)
            if keyword is not None:
                return f"{keyword} needs a value"
            return f"{argument.name} is missing"
        case CoercionError(__cause__=ConfigError() as cause):
            return str(cause)
        case CoercionError(token=token) if token is not None and _bare(problem.target_type) in (int, float):
            whole = "whole " if _bare(problem.target_type) is int else ""
            return f"{token.keyword or ''} {token.value}: must be a {whole}number".lstrip()
        case UnknownOptionError(token=token) if token.keyword in _THEIRS:
            return f"unknown option {token.keyword}: did you mean {_THEIRS[token.keyword]}?"
        case UnusedCliTokensError(unused_tokens=[token, *_]):
            return f"unexpected argument {token}; drop it"
        case RepeatArgumentError():
            return f"{problem.token.keyword} is given twice"
    return str(problem)


def _bare(hint: Any) -> Any:
    """A type without None and without annotations."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        return _bare(parts[0]) if len(parts) == 1 else hint
    return hint


_THEIRS = {
    "--min-scene-len": "--min-length SECONDS",
    "--merge-last-scene": "--min-length SECONDS",
    "--detector": "--model NAME",
    "--output": "--out DIR",
    "--stats": "--format jsonl",
    "--framerate": "--source-fps",
    "--frame-skip": "--fps",
    "--num-images": "ongebd keyframes --max",
}
"""Names of PySceneDetect, and ours."""

Quiet = Annotated[bool, Parameter(alias="-q", negative=(), help="Print only warnings and errors to stderr.")]
Force = Annotated[
    bool,
    Parameter(negative=(), help="Overwrite files in --out even if they don't come from the same source."),
]
ModelName = Annotated[
    str, Parameter(alias="-m", help="A method or the folder of a trained model; `ongebd models` lists them.")
]
WhichStream = Annotated[
    int | None,
    Parameter(help="Which video stream to read if a file has several, from 0. Cover art doesn't count."),
]
SourceFps = Annotated[
    float | None,
    Parameter(help="Frames per second of a source without timestamps (raw H.264, pictures). [--fps, or 25]"),
]
Whole = Parameter(name="*")
"""Of a dataclass whose fields are the options."""

Sources = Annotated[list[str], Parameter(allow_leading_hyphen=True, negative=())]
"""Files, folders, URLs, cameras, and `-` for standard input; see `checked_sources`."""

Listed = Annotated[Path | None, Parameter(name="--list")]
"""A file with one source per line."""


def checked_sources(command: str, sources: Sequence[str] | None, listed: Path | None = None) -> list[str]:
    """The sources of the command line, then those of a file without its empty lines.

    Refuses no source, an empty one, standard input twice, and a misspelt option taken for a source. A folder
    stands for its videos; all pictures of a folder, named one by one, are one source.
    """
    named = list(sources or ())
    if listed is not None:
        with os_errors(f"--list {listed}: can't read"):
            named += _names(listed.read_bytes(), listed)
    advice = f"(see: ongebd {command} --help)"
    if not named:
        raise ConfigError(f"no source: name a video file, a URL, or - for standard input {advice}")
    if named.count("-") > 1:
        raise ConfigError("standard input (-) is given twice; give it once")
    for source in named:
        if not source:
            raise ConfigError("a source has no name; name a video file, a URL, or - for standard input")
        if source.startswith("-") and source != "-" and not _is_file(source):
            if (ours := _THEIRS.get(source.partition("=")[0])) is not None:
                raise ConfigError(f"unknown option {source}: did you mean {ours}? {advice}")
            from difflib import get_close_matches

            known = [f"--{name}" for name in SHORT[command].split()]
            near = get_close_matches(source.partition("=")[0], known, 1, 0.75)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"unknown option, or no such file: {source}{meant} {advice}")
    if command == "watch" or (len(named) == 1 and not os.path.isdir(named[0])):  # noqa: PTH112
        return named
    from ongebd.video.stills import gathered  # here, because PyAV is slow to import

    return gathered(named)


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessOption:
    """What sources may reach and hold."""

    max_pixels: int = MAX_PIXELS
    """The largest picture to decode, in pixels."""

    private_network: Annotated[bool, Parameter(negative=())] = False
    """Allow playlists and redirects of web sources to reach private addresses."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartOption:
    """Which part of the sources is looked at."""

    start: str | None = None
    """Where to begin, in seconds or as h:mm:ss. Times still count from the start of the source."""

    end: str | None = None
    """Where to end, in seconds or as h:mm:ss."""

    duration: str | None = None
    """How long, in seconds or as h:mm:ss; replaces --end."""


_LONGEST_NAME = 8192  # bytes: no file has a longer one, and few servers take it
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _names(data: bytes, listed: Path) -> list[str]:
    """The lines of a list that aren't empty, also as Windows writes them (UTF-16, a byte order mark)."""
    if data[:2] in _UTF16 or b"\0" in data[:2]:
        try:
            order = "" if data[:2] in _UTF16 else "-le" if data[0] else "-be"
            data = data.decode(f"utf-16{order}").encode()
        except UnicodeDecodeError:
            data = b"\0"
    if b"\0" in data or max(map(len, data.split(b"\n"))) > _LONGEST_NAME:
        raise ConfigError(f"--list {listed}: not a list of names, one per line; save it as UTF-8 text")
    # As bytes: not every file name is UTF-8.
    lines = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
    return [os.fsdecode(line.removesuffix(b"\r")) for line in lines if line.strip()]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterOption:
    """Where a command does its work."""

    cluster: str | None = None
    """Run on a Ray cluster: local (only this machine), auto (this machine's cluster) or HOST:PORT."""

    workers: int | None = None
    """Workers of the cluster, or processes that read for `detect --device cuda`. [one per processor or
    GPU]"""

    verbose: Annotated[bool, Parameter(negative=())] = False
    """Show Ray's own messages."""

    def check(self, sources: Sequence[str], device: str, *, workers_here: bool = False) -> None:
        """Refuse what a cluster can't do, and cluster options without a cluster."""
        if self.cluster is None:
            several = self.workers is not None and not workers_here
            for name, value in (("--workers", several), ("--verbose", self.verbose)):
                if value:
                    raise ConfigError(f"{name} needs a cluster; add --cluster local, or drop {name}")
            return
        for source in sources:
            if source == "-" or source.startswith("camera:"):
                raise ConfigError(f"{source} is only on this machine; drop --cluster")
        if device.startswith("cuda:"):
            raise ConfigError(f"--device {device}: each cluster worker has its own GPU; use --device cuda")

    @contextmanager
    def connected(self, *, needed: bool, quiet: bool) -> Iterator[Cluster | None]:
        """The cluster, for as long as the context lasts; None (and a line that says so) if not needed."""
        from ongebd.cluster.connection import LOCAL, check_address, connected

        address = self.cluster or LOCAL
        where = "Ray on this machine" if address == LOCAL else f"the cluster at {address}"
        begins = f"{'starting' if address == LOCAL else 'connecting to'} {where} …"
        check_address(address, self.workers)
        if not quiet:
            say(f"ongebd: {begins if needed else f'everything is already done, without {where}'}")
        if needed:
            with connected(address, self.workers, verbose=self.verbose) as cluster:
                yield cluster
        else:
            yield None
