"""A part of a source: sought, with the times of the whole."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from ongebd.errors import ConfigError, SourceError
from ongebd.video import VideoReader
from ongebd.video.timing import part_of, seconds_of

RATE, COUNT = 25, 500
GOP = {"g": "50", "keyint_min": "50", "sc_threshold": "0"}

FORMATS = {
    "mp4": ("a.mp4", {"options": {**GOP, "bf": "3", "preset": "fast"}}),
    "open GOP": (
        "a.mkv",
        {"options": {"x264-params": "keyint=50:open-gop=1:bframes=3:scenecut=0", "preset": "fast"}},
    ),
    "transport stream": ("a.ts", {"options": GOP}),
    "AVI": ("a.avi", {"codec": "mpeg4", "options": GOP}),
    "AVI with B-frames": ("a.avi", {"options": {**GOP, "bf": "2", "preset": "fast"}}),
    "WebM": ("a.webm", {"codec": "libvpx", "options": {"g": "50", "deadline": "realtime"}}),
    "GIF": ("a.gif", {"codec": "gif", "pix_fmt": "rgb8"}),
    "raw": ("a.h264", {"container": "h264", "options": GOP}),
    "late first stamp": ("a.mkv", {"pts": range(100, 100 + COUNT), "options": GOP}),
    "negative stamps": ("a.mp4", {"pts": range(-40, COUNT - 40), "options": GOP}),
    "variable rate": ("a.mkv", {"pts": [n + n // 7 * 5 for n in range(COUNT)], "options": GOP}),
}


def read(path, read_number, **how):
    with VideoReader(path, **how) as video:
        return [(frame.time, read_number(frame.rgb)) for frame in video], video


@pytest.fixture(scope="module")
def numbered(make_numbered):
    return make_numbered(COUNT)


@pytest.mark.parametrize("form", FORMATS)
def test_a_part_has_the_frames_and_times_of_the_whole(form, tmp_path, make_video, numbered, read_number):
    name, how = FORMATS[form]
    path = make_video(tmp_path / name, numbered, rate=RATE, **how)
    whole, _ = read(path, read_number)
    assert len(whole) >= COUNT - 40  # an edit list hides those before 0
    for start, end in ((Fraction(1, 2), Fraction(2)), (Fraction(191, 25), Fraction(9)), (Fraction(15), None)):
        part, video = read(path, read_number, start=start, end=end)
        assert part == [one for one in whole if one[0] >= start and (end is None or one[0] < end)]
        assert (video.damaged, video.cut_off, video.epochs) == (0, None, [])
        assert end is None or video.duration <= end


@pytest.mark.parametrize("form", ["mp4", "open GOP", "AVI", "WebM", "variable rate"])
def test_a_file_is_sought_not_read_from_its_beginning(form, tmp_path, make_video, numbered):
    name, how = FORMATS[form]
    path = make_video(tmp_path / name, numbered, rate=RATE, **how)
    with VideoReader(path, start=Fraction(16), end=Fraction(17)) as video:
        assert len(list(video)) > 5
        assert video.decoded < 120


def test_a_pipe_is_skipped_by_time(tmp_path, make_video, numbered):
    path = make_video(tmp_path / "a.ts", numbered, rate=RATE, options=GOP)
    code = (
        "from ongebd.video import VideoReader; from fractions import Fraction\n"
        "with VideoReader('-', start=Fraction(8), end=Fraction(10)) as video:\n"
        "    print([float(frame.time) for frame in video][::49])"
    )
    with path.open("rb") as file, subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE) as cat:
        shown = subprocess.run([sys.executable, "-c", code], stdin=cat.stdout, capture_output=True, text=True)
    assert shown.stdout == "[8.0, 9.96]\n", shown.stderr


def test_a_start_after_the_end_of_the_video_is_refused(tmp_path: Path, make_video, numbered):
    path = make_video(tmp_path / "a.mp4", numbered[:50], rate=RATE)
    with (
        pytest.raises(SourceError, match=r"a\.mp4: ends at 2\.000 s, before the start at 60 s"),
        VideoReader(path, start=Fraction(60)) as video,
    ):
        list(video)


def test_a_part_of_pictures_counts_by_their_rate(tmp_path, make_numbered, read_number):
    import av

    for number, picture in enumerate(make_numbered(30)):
        with av.open(str(tmp_path / f"p{number:02}.png"), "w", format="image2") as out:
            stream = out.add_stream("png", rate=1, width=96, height=64, pix_fmt="rgb24")
            out.mux([*stream.encode(av.VideoFrame.from_ndarray(picture)), *stream.encode(None)])
    part, _ = read(tmp_path / "p%02d.png", read_number, source_fps=10, start=Fraction(1), end=Fraction(2))
    assert [number for _, number in part] == list(range(10, 20))


def test_times_are_seconds_or_as_people_write_them():
    given = {"90": 90, "1:30": 90, "0:01:30.5": 90.5, "100:00:00": 360_000, 1.25: 1.25, " 3 ": 3, "61": 61}
    assert {text: seconds_of(text, "start") for text in given} == given


@pytest.mark.parametrize(
    "text", ["", "1:75", "1:2:3:4", "-5", "soon", "1:60:00", "nan", "1e3", -1.0, True, "1.5:20"]
)
def test_another_time_is_refused(text):
    with pytest.raises(ConfigError, match="start"):
        seconds_of(text, "start")


@pytest.mark.parametrize("part", [(5, 3, None), (5, 5, None), (None, 0, None), (1, None, 0), (None, 4, 4)])
def test_an_empty_part_and_one_that_is_said_twice_are_refused(part):
    with pytest.raises(ConfigError, match=r"no video is left|not both"):
        part_of(*part)
