"""Parts and copies of videos of every kind: whole, with their sound, as long together as the source."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from ongebd.common.writing import MUXERS
from ongebd.video import VideoReader
from ongebd.video.cutting import copy, key_frames

RATE, COUNT = 25, 100
CUTS = [1.32, 2.04, 3.4]


def film(path: Path, numbered: Any, make_video: Any, set_display_matrix: Any, kind: str) -> Path:
    """Four seconds whose pictures carry their numbers, with a tone as long."""
    pictures, how = numbered(COUNT), {"gop": 20, "offset": 0.0, "pix_fmt": "yuv420p"}
    pts = list(range(COUNT))
    if kind == "variable rate":
        pts = [n if n < 40 else 40 + 2 * (n - 40) for n in pts]
    if kind == "10 bit":
        how["pix_fmt"] = "yuv420p10le"
    if kind == "start offset":
        how["offset"] = 1.4
    suffix = {"start offset": ".ts", "matroska": ".mkv", "quicktime": ".mov"}.get(kind, ".mp4")
    path = path / ("Müsik & 会议 $x" + suffix if kind == "unicode" else f"film{suffix}")
    end = (pts[-1] + pts[-1] - pts[-2]) / RATE
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=RATE, options={"preset": "ultrafast", "bf": "2", "g": "20"})
        stream.width, stream.height, stream.pix_fmt = 96, 64, how["pix_fmt"]
        stream.codec_context.time_base = Fraction(1, RATE)
        sound = None if kind == "silent" else out.add_stream("aac", rate=16000)
        shift = round(how["offset"] * RATE)
        for number, picture in zip(pts, pictures, strict=True):
            frame = av.VideoFrame.from_ndarray(picture, "rgb24")
            frame.pts, frame.time_base = number + shift, Fraction(1, RATE)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
        if sound is not None:
            tone = np.sin(np.arange(int(end * 16000)) / 9).astype(np.float32)
            for begin in range(0, len(tone), 1024):
                frame = av.AudioFrame.from_ndarray(tone[None, begin : begin + 1024], "fltp", "mono")
                frame.sample_rate, frame.pts = 16000, begin + round(how["offset"] * 16000)
                out.mux(sound.encode(frame))
            out.mux(sound.encode(None))
    if kind == "rotated":
        set_display_matrix(path, 0, 1, -1, 0)
    return path


@pytest.fixture
def source(
    request: Any, tmp_path: Path, make_numbered: Any, make_video: Any, set_display_matrix: Any
) -> Path:
    return film(tmp_path, make_numbered, make_video, set_display_matrix, request.param)


def pictures(path: Path) -> tuple[list[np.ndarray], float, tuple[int, ...]]:
    with VideoReader(path) as reader:
        found = [frame.rgb for frame in reader]
        assert not [line for line in reader.warnings if "damaged" in line or "cut off" in line]
        return found, float(reader.duration), found[0].shape


@pytest.fixture
def packets(ffprobe: Any) -> Any:
    return lambda path, kind: ffprobe(path, "-select_streams", kind, "-show_packets")["packets"]


@pytest.mark.parametrize(
    ("source", "exact"),
    [
        *(
            (kind, False)
            for kind in ("silent", "variable rate", "rotated", "start offset", "unicode", "matroska")
        ),
        *((kind, True) for kind in ("variable rate", "rotated", "10 bit", "start offset")),
    ],
    indirect=["source"],
)
def test_the_parts_are_together_what_the_source_is(
    source: Path, exact: bool, read_number: Any, packets: Any, ffprobe: Any
):
    before, length, shape = pictures(source)
    assert len(before) == COUNT
    edges = CUTS if exact else key_frames(str(source), lambda _: None)[1::2]
    suffix = ".mkv" if source.suffix == ".ts" else source.suffix
    pattern, all_edges = source.with_name(f"part%d{suffix}"), [0, *edges, length + 1]
    assert copy(str(source), pattern, MUXERS[suffix], lambda _: None, edges=all_edges, exact=exact) == []
    paths = [source.with_name(f"part{n}{suffix}") for n in range(len(edges) + 1)]
    after = [pictures(path) for path in paths]
    assert {part[2] for part in after} == {shape}
    shown = [picture for part in after for picture in part[0]]
    turn = (lambda picture: picture) if shape[1] > shape[0] else (lambda picture: np.rot90(picture, 1))
    numbers = [read_number(np.ascontiguousarray(turn(picture))) for picture in shown]
    assert numbers in ([read_number(np.ascontiguousarray(turn(picture))) for picture in before],)
    longest = 2 / RATE
    with VideoReader(source) as reader:
        times = [float(frame.time) for frame in reader]
    firsts = np.cumsum([0, *(len(part[0]) for part in after)])[:-1]
    for (_, seconds, _), first, nxt in zip(after, firsts, [*firsts[1:], None], strict=True):
        end = length if nxt is None else times[nxt]
        assert seconds == pytest.approx(end - times[first], abs=longest + 0.002)
    for path, edge in zip(paths[1:], edges, strict=True):
        assert times[firsts[paths.index(path)]] == pytest.approx(float(edge), abs=longest)
    assert len(packets(source, "a")) == sum(len(packets(path, "a")) for path in paths)
    if sound := packets(paths[1], "a"):
        assert abs(float(sound[0]["pts_time"]) - float(packets(paths[1], "v")[0]["pts_time"])) <= 0.1
    if exact:
        assert {ffprobe(path, "-show_streams")["streams"][0]["pix_fmt"] for path in paths} == {
            ffprobe(source, "-select_streams", "v", "-show_streams")["streams"][0]["pix_fmt"]
        }


@pytest.mark.parametrize(
    ("source", "suffix"),
    [("variable rate", ".mp4"), ("start offset", ".mkv"), ("10 bit", ".mkv"), ("rotated", ".mov")],
    indirect=["source"],
)
def test_a_copy_with_chapters_has_the_same_packets(source: Path, suffix: str, packets: Any, ffprobe: Any):
    target = source.with_name(f"chapters{suffix}")
    assert copy(str(source), target, MUXERS[suffix], lambda _: None, chapters=[(0, 1.32), (1.32, 4)]) == []
    _, length, shape = pictures(source)
    found = ffprobe(target, "-show_chapters", "-show_streams")
    starts = [float(stream["start_time"]) for stream in found["streams"] if stream["codec_type"] == "video"]
    for one, (start, end) in zip(found["chapters"], [(0, 1.32), (1.32, 4)], strict=True):
        if start:  # the first one begins with the sound
            assert float(one["start_time"]) - starts[0] == pytest.approx(start, abs=0.0015)
        assert float(one["end_time"]) - starts[0] == pytest.approx(end, abs=0.0015)
    assert [one["tags"]["title"] for one in found["chapters"]] == ["Event 1", "Event 2"]
    assert pictures(target)[1] == pytest.approx(length, abs=0.002)
    assert pictures(target)[2] == shape
    for kind in ("v", "a"):
        sizes = [[one["size"] for one in packets(path, kind)] for path in (source, target)]
        # Matroska takes no sound from before 0, and MPEG-TS packs packets in its own way.
        assert len(sizes[0]) - len(sizes[1]) in ((0, 1) if suffix == ".mkv" and kind == "a" else (0,))
        assert sizes[0][-len(sizes[1]) :] == sizes[1] or source.suffix == ".ts"
