"""Results written for people and programs."""

from ongebd.output.files import (
    FORMATS,
    check_formats,
    check_stem,
    open_writers,
    output_paths,
    output_stems,
    protect_sources,
)
from ongebd.output.jsonl import JsonlWriter, Recording, read_jsonl
from ongebd.output.text import LineWriter, clock
from ongebd.output.writer import Results, RunEnd, RunHeader, Writer, writing

__all__ = [
    "FORMATS",
    "JsonlWriter",
    "LineWriter",
    "Recording",
    "Results",
    "RunEnd",
    "RunHeader",
    "Writer",
    "check_formats",
    "check_stem",
    "clock",
    "open_writers",
    "output_paths",
    "output_stems",
    "protect_sources",
    "read_jsonl",
    "writing",
]
