"""Results written for people and programs."""

from ongebd.output.files import (
    Reading,
    check_formats,
    check_stem,
    detect_source,
    open_writers,
    output_paths,
    output_stems,
    protect_others,
    protect_sources,
)
from ongebd.output.formats import FORMATS
from ongebd.output.jsonl import JsonlWriter, Recording, read_jsonl
from ongebd.output.text import LineWriter, clock
from ongebd.output.writer import RunEnd, RunHeader, Writer, writing

__all__ = [
    "FORMATS",
    "JsonlWriter",
    "LineWriter",
    "Reading",
    "Recording",
    "RunEnd",
    "RunHeader",
    "Writer",
    "check_formats",
    "check_stem",
    "clock",
    "detect_source",
    "open_writers",
    "output_paths",
    "output_stems",
    "protect_others",
    "protect_sources",
    "read_jsonl",
    "writing",
]
