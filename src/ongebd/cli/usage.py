"""The command line's own checks: strict values, cyclopts' errors in plain words, and missing extras."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    Token,
    convert,
)

from ongebd.errors import ConfigError, MissingExtraError

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
