"""What was found, written for people and programs."""

from ongebd.output.base import QuietSink, RunEnd, RunHeader, Sink, Tee
from ongebd.output.factory import FORMATS, check_formats, open_sinks, output_paths, spare_sources
from ongebd.output.jsonl import JsonlSink, Recording, read_jsonl
from ongebd.output.lines import LineSink
from ongebd.output.naming import check_stem, clock, output_stems, public_name
from ongebd.output.plot import PlotSink
from ongebd.output.table import CsvSink
from ongebd.output.vtt import VttSink

__all__ = [
    "FORMATS",
    "CsvSink",
    "JsonlSink",
    "LineSink",
    "PlotSink",
    "QuietSink",
    "Recording",
    "RunEnd",
    "RunHeader",
    "Sink",
    "Tee",
    "VttSink",
    "check_formats",
    "check_stem",
    "clock",
    "open_sinks",
    "output_paths",
    "output_stems",
    "public_name",
    "read_jsonl",
    "spare_sources",
]
