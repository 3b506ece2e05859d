"""Results written for people and programs."""

from ongebd.output.formats import FORMATS, check_formats, open_writers, output_paths, protect_sources
from ongebd.output.jsonl import JsonlWriter, Recording, read_jsonl
from ongebd.output.naming import check_stem, clock, output_stems
from ongebd.output.text import LineWriter
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
