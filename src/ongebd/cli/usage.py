"""The command line's own rules: short help, strict values, errors in plain words, and missing extras."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    Token,
    convert,
)
from cyclopts.help.formatters import DefaultFormatter

from ongebd.errors import ConfigError, MissingExtraError, OngebdError

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

ALL = "--help-all"

SHORT = {
    "detect": "list out format plot stem model sensitivity fps device cluster quiet",
    "watch": "serve token jsonl exec webhook thumbnails clips model sensitivity retries device quiet",
    "evaluate": "labels predictions compare dataset score out missing ids id-pattern",
    "compose": "out videos minutes seed split boundaries distractors seconds labels groups workers quiet",
    "extract": "list out backbone fps weights device precision ids jobs cluster workers quiet",
    "figure": "labels out method baseline id dataset curve width tolerance start end title",
}
"""The options in a command's `--help`; all of them for other commands."""

_tokens: list[str] = []


def with_help(tokens: Sequence[str]) -> list[str]:
    """The command line as cyclopts takes it: `--help-all` becomes `--help`. Remembers it for `ShortHelp`."""
    end = tokens.index("--") if "--" in tokens else len(tokens)
    _tokens[:] = tokens[:end]
    return ["--help" if token == ALL else token for token in _tokens] + list(tokens[end:])


class ShortHelp(DefaultFormatter):
    """Leaves out options that are not in `SHORT`, and those that the command line's model does not use."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
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


def _unused() -> set[str]:
    """The options of settings that the model of the command line does not use; none if it names no model."""
    from ongebd.detector import StreamConfig, load

    name = None
    for token, following in zip(_tokens, [*_tokens[1:], ""], strict=True):
        if token in ("--model", "-m"):
            name = following
        elif token.startswith("--model="):
            name = token.partition("=")[2]
    if not name:
        return set()
    try:
        used = load(name).settings()
    except OngebdError:  # the command itself reports it
        return set()
    return {f"--{field.name.replace('_', '-')}" for field in fields(StreamConfig) if field.name not in used}


NO_SOURCE = "no source: name a video file, a URL, or - for standard input"


def strict(hint: Any, tokens: Sequence[Token]) -> Any:
    """Convert an option's value as cyclopts does, but refuse an empty value, and 1.5 for a whole number."""
    for token in tokens:
        if token.keyword is not None and not token.value.strip() and token.source == "cli":
            raise ConfigError(f"{token.keyword} has an empty value; give one, or drop it")
        if _bare(hint) is int and "." in token.value:  # cyclopts rounds it
            raise ConfigError(f"{_of(token)}{token.value}: must be a whole number")
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
            if argument.name == "SOURCES":
                return NO_SOURCE
            return f"missing required argument {argument.name}"
        case CoercionError(__cause__=ConfigError() as cause):
            return str(cause)
        case CoercionError(token=token) if token is not None and _bare(problem.target_type) in (int, float):
            whole = "whole " if _bare(problem.target_type) is int else ""
            return f"{_of(token)}{token.value}: must be a {whole}number"
        case RepeatArgumentError():
            return f"{problem.token.keyword} is given twice"
    return str(problem)


def _of(token: Token) -> str:
    return f"{token.keyword} " if token.keyword else ""


def _bare(hint: Any) -> Any:
    """A type without None and without annotations."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        return _bare(parts[0]) if len(parts) == 1 else hint
    return hint


_TRAINING = {"torch", "safetensors", "huggingface_hub", "filelock", "tensorboard", "yaml", "onnx"}


@contextmanager
def training_extra() -> Iterator[None]:
    """Turn a missing module of the extra `train` into one line for the user."""
    try:
        yield
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] in _TRAINING:
            raise MissingExtraError.of(problem.name, "train") from None
        raise
