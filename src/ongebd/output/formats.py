"""The table of formats: how files of each end, and what writes them."""

from __future__ import annotations

from typing import NamedTuple

from ongebd.common.writing import MUXERS


class Format(NamedTuple):
    """A way to write boundaries, segments or labels."""

    suffix: str
    write: str = ""  # `module:name` in `ongebd.output`; else it is a row of `ongebd.output.text.ROWS`
    how: str = "live"  # a `Writer`; "whole": makes a file of finished runs; "pictures": of a `Scene`
    frames: bool = False  # it counts frames, so it needs the source's frame rate
    many: bool = False  # a file holds several videos and annotators


FORMATS = {
    "jsonl": Format(".jsonl", "jsonl:JsonlWriter"),
    "csv": Format(".csv", "text:CsvWriter"),
    "scenes": Format(".scenes.csv", frames=True),
    "vtt": Format(".vtt"),
    "srt": Format(".srt"),
    "ffmetadata": Format(".ffmeta"),
    "youtube": Format(".youtube.txt"),
    "qp": Format(".qp", frames=True),
    "edl": Format(".edl", "editors:edl", "whole", frames=True),
    "otio": Format(".otio", "editors:otio_json", "whole", frames=True),
    "fcpxml": Format(".fcpxml", "editors:fcpxml", "whole", frames=True),
    "fcp7": Format(".xml", "editors:fcp7", "whole", frames=True),
    "elan": Format(".eaf", "labels:elan", "whole", many=True),
    "labelstudio": Format(".labelstudio.json", "labels:label_studio", "whole", frames=True, many=True),
    "fiftyone": Format(".fiftyone.json", "labels:fiftyone", "whole", many=True),
    "json": Format(".json", "labels:own", "whole", many=True),
    "gebd": Format(".pkl", "labels:gebd_pickle", "whole", many=True),
    "gebd-json": Format(".gebd.json", "labels:gebd_json", "whole", many=True),
    "html": Format(".html", "sheet:html", "pictures"),
    "png": Format(".png", "figure:png", "pictures"),
    "chapters": Format(".mp4", how="copy"),
}


def format_of(name: str) -> str | None:
    """The format that a file's name ends with, the longest first; None if none.

    >>> format_of("talk.scenes.csv"), format_of("talk.csv"), format_of("TALK.MKV")
    ('scenes', 'csv', 'chapters')
    """
    name = name.lower()
    if name.endswith(tuple(MUXERS)):
        return "chapters"
    fitting = [key for key, form in FORMATS.items() if name.endswith(form.suffix)]
    return max(fitting, key=lambda key: len(FORMATS[key].suffix), default=None)
