"""Segments as timelines that video editors open, written by the libraries made for them."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from ongebd.common.text import printable, public_name
from ongebd.errors import OngebdError, import_extra
from ongebd.output.jsonl import Recording
from ongebd.output.runs import address_of
from ongebd.output.writer import Frames, mark
from ongebd.video.source import local_path, open_container

otio = import_extra("opentimelineio", "editors")
scenedetect = import_extra("scenedetect", "editors")

_NTSC = [Fraction(rate * 1000, 1001) for rate in (24, 30, 60)]
_RATES = [*_NTSC, *map(Fraction, (24, 25, 30, 48, 50, 60))]
"""Frames a second that time codes can count."""


def edl(runs: Sequence[Recording]) -> str:
    """A CMX 3600 edit decision list."""
    timeline, rate = _timeline(runs[0], code=True)
    text = otio.adapters.write_to_string(timeline, "cmx_3600", rate=float(rate), style="premiere")
    said = f"* {mark(runs[0].header.source)}; frame rate {rate}"
    return re.sub(r"^001 .*", rf"\g<0>\n{said}", text, count=1, flags=re.MULTILINE)


def otio_json(runs: Sequence[Recording]) -> str:
    """An OpenTimelineIO timeline, with sound if the source has any."""
    timeline, _ = _timeline(runs[0])
    with suppress(OngebdError), open_container(runs[0].header.source) as container:
        if container.streams.audio:
            sound = timeline.tracks[0].deepcopy()
            sound.kind, sound.name = otio.schema.TrackKind.Audio, "A1"
            timeline.tracks.append(sound)
    return str(otio.adapters.write_to_string(timeline, "otio_json"))


def fcp7(runs: Sequence[Recording]) -> str:
    """An XML project of Final Cut Pro 7, which Premiere and Resolve open."""
    timeline, _ = _timeline(runs[0], code=True)
    return _marked(otio.adapters.write_to_string(timeline, "fcp_xml"), runs[0])


def fcpxml(runs: Sequence[Recording]) -> str:
    """An FCPXML project, whose times are exact fractions."""
    header, (cuts, rate) = runs[0].header, _cuts(runs[0])
    scenes = [[scenedetect.FrameTimecode(frame, rate) for frame in cut] for cut in cuts]
    path, text = Path(local_path(public_name(header.source))), io.StringIO()
    size = header.width, header.height
    scenedetect.output.write_scene_list_fcpx(text, scenes, path, rate, size, printable(path.name))
    return _marked(text.getvalue(), runs[0])


def _marked(xml: str, run: Recording) -> str:
    return xml.replace("\n", f"\n<!-- {mark(run.header.source)} -->\n", 1)


def _cuts(run: Recording, *, code: bool = False) -> tuple[list[tuple[int, int]], Fraction]:
    """First frame and end of each segment, and frames a second: the source's, or what editors know best."""
    frames = Frames(run.header)
    exact = frames.rate
    if exact not in _RATES and (code or exact.denominator > 2):
        frames.rate = min(_RATES, key=lambda rate: ((rate / exact).denominator > 1, abs(rate - exact)))
    edges = sorted({frames(time) for one in run.segments for time in (one.start, one.end)})
    run.warnings.extend(frames.note())
    if not edges:
        raise OngebdError(f"{public_name(run.header.source)}: has no frames, so there is nothing to write")
    return list(pairwise(edges)), frames.rate


def _timeline(run: Recording, *, code: bool = False) -> tuple[Any, Fraction]:
    """A timeline, and its frames a second."""
    (cuts, rate), source = _cuts(run, code=code), run.header.source

    def span(start: int, end: int) -> Any:
        time = otio.opentime.RationalTime
        return otio.opentime.TimeRange(time(start, float(rate)), time(end - start, float(rate)))

    name, address = printable(Path(public_name(source)).name), address_of(run)
    track = otio.schema.Track("V1", kind=otio.schema.TrackKind.Video)
    for number, (start, end) in enumerate(cuts, 1):
        media = otio.schema.ExternalReference(address, span(0, cuts[-1][1]))
        media.name = name
        track.append(otio.schema.Clip(f"Event {number}", media, span(start, end)))
    timeline = otio.schema.Timeline(name, global_start_time=otio.opentime.RationalTime(0, float(rate)))
    timeline.metadata["ongebd"] = mark(source)
    timeline.tracks.append(track)
    return timeline, rate
