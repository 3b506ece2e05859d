"""Which stream of a source is read: a video, never its cover."""

from __future__ import annotations

import io

import av
import pytest
from av.stream import Disposition

from ongebd.errors import SourceError
from ongebd.video import VideoReader


def _encode(out, stream, pictures) -> None:
    for n, picture in enumerate(pictures):
        frame = av.VideoFrame.from_ndarray(picture, "rgb24")
        frame.pts = n
        out.mux(stream.encode(frame))
    out.mux(stream.encode(None))


def _add_video(out, width, height, codec="libx264", pix_fmt="yuv420p"):
    stream = out.add_stream(codec, rate=25)
    stream.width, stream.height, stream.pix_fmt = width, height, pix_fmt
    return stream


def _silence(out, stream) -> None:
    samples = av.AudioFrame(format="fltp", layout="mono", samples=1024)
    samples.sample_rate, samples.pts = 8000, 0
    for plane in samples.planes:
        plane.update(bytes(plane.buffer_size))
    out.mux([*stream.encode(samples), *stream.encode(None)])


@pytest.fixture
def cover(make_scene) -> bytes:
    jpeg = io.BytesIO()
    with av.open(jpeg, "w", format="mjpeg") as out:
        _encode(out, _add_video(out, 64, 64, "mjpeg", "yuvj420p"), [make_scene(1, 64, 64)])
    return jpeg.getvalue()


def test_sound_alone_is_refused(tmp_path):
    path = tmp_path / "song.m4a"
    with av.open(str(path), "w", format="mp4") as out:
        _silence(out, out.add_stream("aac", rate=8000))
    with pytest.raises(SourceError, match=r"song\.m4a: has no video stream \(it holds audio\); give a file"):
        VideoReader(path)


@pytest.mark.parametrize("ending", ["mp4", "mkv"])
def test_sound_before_the_video_does_not_matter(
    tmp_path, make_video, make_numbered, read, read_number, ending
):
    path = make_video(tmp_path / f"loud.{ending}", make_numbered(10), audio="first")
    with av.open(str(path)) as container:
        assert [stream.type for stream in container.streams] == ["audio", "video"]
    video, frames = read(path)
    assert [read_number(frame.rgb) for frame in frames] == [*range(10)]
    assert video.warnings == [], "longer sound doesn't mean missing video"


@pytest.fixture
def two_videos(tmp_path, make_numbered):
    path = tmp_path / "two.mkv"
    with av.open(str(path), "w") as out:
        first, second = _add_video(out, 96, 64), _add_video(out, 144, 96)
        _encode(out, first, make_numbered(10))
        _encode(out, second, make_numbered(110, 144, 96)[100:])
    return path


def test_of_several_videos_the_first_is_read_or_the_one_asked_for(two_videos, read, read_number):
    for settings, first_number in (({}, 0), ({"stream": 0}, 0), ({"stream": 1}, 100)):
        _, frames = read(two_videos, **settings)
        assert [read_number(frame.rgb) for frame in frames] == [*range(first_number, first_number + 10)]


@pytest.mark.parametrize("number", [2, -1])
def test_a_stream_that_is_not_there_is_refused_with_the_list(two_videos, number):
    with pytest.raises(
        SourceError, match=f"no video stream {number}; choose --stream from 0: h264 96x64, 1: "
    ):
        VideoReader(two_videos, stream=number)


def test_a_cover_in_an_mp4_before_the_video_is_never_taken_for_it(
    tmp_path, make_scene, make_numbered, read, read_number
):
    path = tmp_path / "covered.mp4"
    with av.open(str(path), "w") as out:
        picture = _add_video(out, 64, 64, "mjpeg", "yuvj420p")
        picture.disposition = Disposition.attached_pic
        video = _add_video(out, 96, 64)
        _encode(out, picture, [make_scene(1, 64, 64)])
        _encode(out, video, make_numbered(10))
    for settings in ({}, {"stream": 0}):
        _, frames = read(path, **settings)
        assert [read_number(frame.rgb) for frame in frames] == [*range(10)]
    with pytest.raises(SourceError, match="no video stream 1"):
        VideoReader(path, stream=1)


def test_a_cover_attached_to_matroska_is_never_taken_for_the_video(tmp_path, make_numbered, read, cover):
    path = tmp_path / "covered.mkv"
    with av.open(str(path), "w") as out:
        out.add_attachment("cover.jpg", "image/jpeg", cover)
        _encode(out, _add_video(out, 96, 64), make_numbered(10))
    _, frames = read(path)
    assert len(frames) == 10


def test_a_song_with_a_cover_is_refused(tmp_path, cover):
    path = tmp_path / "song.mka"
    with av.open(str(path), "w", format="matroska") as out:
        out.add_attachment("cover.jpg", "image/jpeg", cover)
        _silence(out, out.add_stream("aac", rate=8000))
    with pytest.raises(SourceError, match=r"has no video stream \(it holds audio, cover art\)"):
        VideoReader(path)
