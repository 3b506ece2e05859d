"""Several videos in one source, encoders that come back otherwise, clocks that leap, folders of pictures."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.stream import Disposition

from ongebd.errors import SourceError
from ongebd.video import VideoReader
from ongebd.video.connecting import Connecting
from ongebd.video.picture import Squash
from ongebd.video.stills import gathered
from ongebd.video.timing import Clock

HEVC = {"x265-params": "log-level=none", "preset": "ultrafast"}


@pytest.fixture
def part(tmp_path: Path, make_video: Callable[..., Path], make_numbered: Callable[..., Any]) -> Any:
    """Make a video of thirty numbered frames, counted from some number on."""

    def make(name: str, begin: int = 0, **how: Any) -> bytes:
        pictures = make_numbered(begin + 30)[begin:]
        return make_video(tmp_path / name, pictures, **how).read_bytes()

    return make


@pytest.mark.parametrize(
    ("ending", "codec", "muxing"),
    [
        ("mp4", "libx264", {}),
        ("mp4", "libx264", {"movflags": "faststart"}),
        ("mp4", "libx264", {"movflags": "frag_keyframe+empty_moov"}),
        ("mov", "mpeg4", {}),
        ("flv", "libx264", {}),
        ("wmv", "wmv2", {}),
        ("mkv", "libx264", {}),
        ("ts", "libx264", {}),
        ("ts", "libx264", {"mpegts_start_pid": "801"}),
        ("ts", "libx264", {"mpegts_start_pid": "801", "mpegts_service_id": "7"}),
    ],
)
@pytest.mark.parametrize("opened", [str, lambda path: io.BytesIO(path.read_bytes())], ids=["path", "object"])
def test_every_video_of_a_joined_file_is_read(
    tmp_path: Path, part: Any, read: Any, read_number: Any, ending: str, codec: str, muxing: Any, opened: Any
) -> None:
    first = part(
        f"a.{ending}", codec=codec, container_options={k: v for k, v in muxing.items() if "f" in k[:4]}
    )
    second = part(f"b.{ending}", 30, codec=codec, container_options=muxing)
    (tmp_path / f"joined.{ending}").write_bytes(first + second)
    video, frames = read(opened(tmp_path / f"joined.{ending}"))
    numbers = [read_number(frame.rgb) for frame in frames]
    if muxing == {"mpegts_start_pid": "801"}:  # FFmpeg gives the packet of the seam at the end
        assert numbers[:59] == [n for n in range(60) if n != 29]
        return
    assert numbers == [*range(60)]
    times = [frame.time for frame in frames]
    assert times == sorted(times)
    assert float(times[-1]) == pytest.approx(59 / 25, abs=0.1)
    assert len(video.epochs) == 1


@pytest.mark.parametrize(
    ("codecs", "least"),
    [(("libx264", "libx265"), 1), (("libx264", "mpeg2video"), 20), (("mpeg2video", "libx264"), 20)],
)
def test_another_codec_on_the_same_number_is_decoded_as_what_it_is(
    tmp_path: Path, part: Any, read: Any, read_number: Any, codecs: Any, least: int
) -> None:
    how = {"libx265": HEVC}
    data = [
        part(f"{n}.ts", 30 * n, codec=one, options={"g": "8", **how.get(one, {})})
        for n, one in enumerate(codecs)
    ]
    (tmp_path / "joined.ts").write_bytes(b"".join(data))
    video, frames = read(tmp_path / "joined.ts")
    numbers = [read_number(frame.rgb) for frame in frames]
    assert numbers[:28] == [*range(28)]
    assert sum(number >= 30 for number in numbers) >= least
    assert {frame.rgb.shape for frame in frames} == {(64, 96, 3)}
    assert "changed from" in video.epochs[0].reason


def test_a_live_feed_that_changes_codec_breaks_off_to_be_connected_again(part: Any) -> None:
    data = part("a.ts") + part("b.ts", codec="mpeg2video", options={"g": "8"}) * 2
    with socket.create_server(("127.0.0.1", 0)) as server:
        serve = threading.Thread(target=lambda: server.accept()[0].sendall(data))
        serve.start()
        with VideoReader(f"tcp://127.0.0.1:{server.getsockname()[1]}") as video:
            frames = list(video)
        serve.join()
    assert len(frames) >= 29
    assert "the video changed from h264 to mpeg2video" in str(video.broken)


def test_bytes_without_a_frame_are_a_failure_after_the_read_time_out(part: Any) -> None:
    other = part("b.ts", container_options={"mpegts_start_pid": "801", "mpegts_service_id": "7"})
    over = threading.Event()

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(part("a.ts") * 40)
            while not over.wait(0.02):
                try:
                    connection.sendall(other)
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        connecting = Connecting(read_timeout=1, open_timeout=60, live=True)
        url = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with VideoReader(url, connecting=connecting) as video:
            count = sum(1 for _ in video)
        over.set()
        thread.join()
    assert count > 0
    assert "for 1 s" in str(video.broken)


@pytest.mark.parametrize("ahead", [12, 3600, 36_000])
def test_a_leap_of_a_transport_streams_clock_begins_an_epoch_and_time_goes_on(
    tmp_path: Path, part: Any, read: Any, ahead: int
) -> None:
    late = part("b.ts", 30, pts=range(25 * ahead, 25 * ahead + 30))
    (tmp_path / "joined.ts").write_bytes(part("a.ts") + late)
    video, frames = read(tmp_path / "joined.ts")
    assert [frame.time for frame in frames] == [Fraction(n, 25) for n in range(60)]
    assert ["jumped ahead" in epoch.reason for epoch in video.epochs] == [True]


def test_a_frame_held_for_long_is_no_leap_of_the_clock(
    tmp_path: Path, make_video: Any, make_numbered: Any, read: Any
) -> None:
    pts = [0, 1, 2, 500, 501, 90_000]
    for ending in ("mkv", "mp4"):
        path = make_video(tmp_path / f"slides.{ending}", make_numbered(6), pts=pts)
        video, frames = read(path)
        assert [frame.time for frame in frames] == [Fraction(n, 25) for n in pts]
        assert video.epochs == []


def test_a_slow_steady_stream_has_no_leaps() -> None:
    clock = Clock(leaps=True)
    ticks = [clock.tick(20 * n, None, 0, Fraction(1)) for n in range(5)]
    assert [tick.broke for tick in ticks] == [None] * 5


def test_a_live_source_without_timestamps_has_the_time_of_arrival(make_numbered: Any) -> None:
    pictures = []
    for picture in make_numbered(8):
        out = io.BytesIO()
        with av.open(out, "w", format="mjpeg") as container:
            stream = container.add_stream("mjpeg", rate=25)
            stream.width, stream.height, stream.pix_fmt = 96, 64, "yuvj420p"
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
            container.mux(stream.encode(None))
        pictures.append(out.getvalue())

    class Camera(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
            self.end_headers()
            for data in pictures:
                head = b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(data)
                self.wfile.write(head + data + b"\r\n")
                time.sleep(0.2)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Camera) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        began = time.monotonic()
        with VideoReader(f"http://127.0.0.1:{server.server_port}/", 24, source_fps=24) as video:
            times = [float(frame.time) for frame in video]
        thread.join()
    assert 0.2 * (len(times) - 1) - 0.9 < times[-1] < time.monotonic() - began, "not eight 24ths of a second"
    assert video.warnings == [] or "timestamp" not in " ".join(video.warnings)


def test_the_default_track_is_taken_with_a_note(
    tmp_path: Path, make_numbered: Any, read: Any, read_number: Any
) -> None:
    path = tmp_path / "tracks.mp4"
    with av.open(str(path), "w") as out:
        streams = [out.add_stream("libx264", rate=25) for _ in range(2)]
        streams[0].disposition, streams[1].disposition = Disposition(0), Disposition.default
        for stream in streams:
            stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for n, stream in enumerate(streams):
            for i, picture in enumerate(make_numbered(10 * n + 10)[10 * n :]):
                frame = av.VideoFrame.from_ndarray(picture, "rgb24")
                frame.pts = i
                out.mux(stream.encode(frame))
            out.mux(stream.encode(None))
    video, frames = read(path)
    assert [read_number(frame.rgb) for frame in frames] == [*range(10, 20)]
    assert "using 1, choose another with --stream" in video.warnings[0]
    video, frames = read(path, stream=0)
    assert (read_number(frames[0].rgb), video.warnings) == (0, [])


def test_a_local_playlist_without_an_end_is_read_from_its_beginning_and_ends(
    tmp_path: Path, part: Any, read: Any, read_number: Any
) -> None:
    for n in range(5):
        part(f"{n}.ts", 30 * n, pts=range(30 * n, 30 * n + 30))
    lines = "".join(f"#EXTINF:1.2,\n{n}.ts\n" for n in range(5))
    (tmp_path / "cut.m3u8").write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n{lines}#EXTINF:1.2,\n9.ts")
    video, frames = read(tmp_path / "cut.m3u8")
    assert [read_number(frame.rgb) for frame in frames] == [*range(150)]
    assert any("no end mark" in one for one in video.warnings)
    assert any("missing: 9.ts" in one for one in video.warnings)


@pytest.mark.parametrize(
    "rest", ["#EXTINF:1.2,\n0.ts#EXT-X-ENDLIST", "#EXT-X-ENDLIST", "#EXTINX:1.2,\n0.ts\n"]
)
def test_a_local_playlist_always_ends(tmp_path: Path, part: Any, read: Any, rest: str) -> None:
    part("0.ts", 0, pts=range(30))
    (tmp_path / "list.m3u8").write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n{rest}")
    with contextlib.suppress(SourceError):
        read(tmp_path / "list.m3u8")


@pytest.mark.parametrize("name", ["b.m3u8", "b.txt"])
def test_a_playlist_in_a_playlist_ends_too_whatever_its_name(
    tmp_path: Path, part: Any, read: Any, capfd: Any, name: str
) -> None:
    part("0.ts", 0, pts=range(30))
    (tmp_path / "list.m3u8").write_text(f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{name}\n")
    lines = b"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1.2,\n0.ts\n#EXTINF:1.2,\n\xe4.ts\n"
    (tmp_path / name).write_bytes(lines)  # in Latin-1, without an end
    assert len(read(tmp_path / "list.m3u8")[1]) == 30
    assert "Traceback" not in capfd.readouterr().err


def test_a_playlist_with_an_empty_map_is_refused_in_one_line(
    tmp_path: Path, make_numbered: Any, read: Any, capfd: Any
) -> None:
    parts = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}
    with av.open(str(tmp_path / "1.ts"), "w", format="mp4", container_options=parts) as out:
        stream = out.add_stream("libx264", 12, options={"g": "4"})
        stream.width, stream.height = 96, 64
        for picture in make_numbered(12):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        out.mux(stream.encode(None))
    (tmp_path / "0.mp4").touch()
    pieces = '#EXT-X-MAP:URI="0.mp4"\n' + 2 * "#EXTINF:0.8,\n1.ts\n"
    (tmp_path / "list.m3u8").write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n{pieces}#EXT-X-ENDLIST\n")
    with pytest.raises(SourceError):
        read(tmp_path / "list.m3u8")
    assert "Traceback" not in capfd.readouterr().err


def test_pieces_elsewhere_in_the_middle_of_a_playlist_are_told(
    tmp_path: Path, part: Any, read: Any, capfd: Any
) -> None:
    for n in range(3):
        part(f"{n}.ts", 30 * n, pts=range(30 * n, 30 * n + 30))
    names = ("0.ts", "/elsewhere/1.ts", "2.ts", "http://[", "file://[", "crypto+http://[")
    lines = "".join(f"#EXTINF:1.2,\n{name}\n" for name in names)
    (tmp_path / "list.m3u8").write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n{lines}#EXT-X-ENDLIST\n")
    video, frames = read(tmp_path / "list.m3u8")
    assert len(frames) == 60
    assert any("may not open /elsewhere/1.ts" in one for one in video.warnings)
    assert "Traceback" not in capfd.readouterr().err


def test_thermal_pictures_in_the_dark_are_stretched_to_their_range(
    tmp_path: Path, make_video: Any, read: Any
) -> None:
    shape = np.linspace(0, 1, 96 * 64).reshape(64, 96)
    dark = [(3000 + 200 * shape).astype(np.uint16)] * 3
    full = [(65535 * shape).astype(np.uint16)] * 3
    how = {"codec": "ffv1", "pix_fmt": "gray16le", "array_format": "gray16le"}
    for pictures in (dark, full):
        _, frames = read(make_video(tmp_path / "thermal.mkv", pictures, **how))
        assert frames[0].rgb.min() < 5
        assert frames[0].rgb.max() > 250
        assert abs(float(frames[-1].rgb.mean()) - 127) < 5


@pytest.fixture
def folder(tmp_path: Path, make_video: Any, make_numbered: Any) -> Path:
    (tmp_path / "frames").mkdir()
    for n, picture in enumerate(make_numbered(12)):
        make_video(
            tmp_path / "frames" / f"img_{n}.png", [picture], codec="png", pix_fmt="rgb24", container="image2"
        )
    return tmp_path / "frames"


@pytest.mark.parametrize("name", ["", "img_%d.png", "img_%04d.png", "*.png"])
def test_a_folder_or_a_pattern_of_pictures_is_one_source(
    folder: Path, read: Any, read_number: Any, name: str
) -> None:
    video, frames = read(folder / name, source_fps=10)
    assert [read_number(frame.rgb) for frame in frames] == [*range(12)]
    assert [frame.time for frame in frames] == [Fraction(n, 10) for n in range(12)]
    assert video.epochs == []
    (folder / "img_3.png").write_bytes(b"\x89PNG broken")
    video, frames = read(folder / name, source_fps=10)
    assert [frame.time * 10 for frame in frames] == [n for n in range(12) if n != 3]
    assert any("img_3.png" in one for one in video.warnings)


def test_pictures_named_one_by_one_are_one_source_too(folder: Path) -> None:
    names = [str(path) for path in sorted(folder.iterdir())]
    assert gathered(["a.mp4", *names, "b.png"]) == ["a.mp4", str(folder / "*.png"), "b.png"]
    with pytest.raises(SourceError, match="name their folder or a pattern"):
        gathered(names[:4])


def test_folders_without_one_kind_of_pictures_are_refused(folder: Path, clip: Path) -> None:
    with pytest.raises(SourceError, match="directory without pictures"):
        VideoReader(clip.parent)
    for n in range(3):
        shutil.copy(folder / "img_0.png", folder / f"b{n}.jpg")
    with pytest.raises(SourceError, match=r"several kinds \(.jpg, .png\)"):
        VideoReader(folder)
    with pytest.raises(SourceError, match="no picture matches"):
        VideoReader(folder / "x_%03d.png")


def test_an_animated_webp_is_refused_with_advice_that_helps(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    pictures = [image.fromarray(np.full((32, 48, 3), 80 * n, np.uint8)) for n in range(3)]
    pictures[0].save(tmp_path / "a.webp", save_all=True, append_images=pictures[1:], duration=500)
    with (
        pytest.raises(SourceError, match="convert it to GIF or MP4"),
        VideoReader(tmp_path / "a.webp") as video,
    ):
        list(video)


def test_a_joined_pipe_is_followed_or_told(part: Any) -> None:
    code = "from ongebd.video import VideoReader as V\nwith V('-') as v: print(len(list(v)), v.warnings)"

    def piped(data: bytes) -> str:
        run = subprocess.run(
            [sys.executable, "-c", code], input=data, capture_output=True, check=True, env=os.environ
        )
        return run.stdout.decode()

    first = part("a.ts")
    assert piped(first + part("b.ts", container_options={"mpegts_start_pid": "801"})).startswith("60 ")
    other = part("c.ts", container_options={"mpegts_start_pid": "801", "mpegts_service_id": "7"})
    assert "save it as a file" in piped(first * 60 + other * 60)


@pytest.mark.parametrize(
    "problem", [IndexError("x"), MemoryError(), OverflowError("a\nb"), struct.error("y")]
)
@pytest.mark.parametrize("where", ["_pictures_of_part", "_tick", "_begin"])
def test_whatever_reading_raises_is_one_line_about_the_source(
    clip: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception, where: str
) -> None:
    def fail(*_: object) -> None:
        raise problem

    monkeypatch.setattr(VideoReader, where, fail)
    with (
        pytest.raises(SourceError, match=r"clip\.mp4: can't read it: ") as refused,
        VideoReader(clip) as video,
    ):
        list(video)
    assert "\n" not in str(refused.value)


def test_pictures_that_cannot_be_resized_are_refused(tmp_path: Path, make_video: Any) -> None:
    path = make_video(tmp_path / "wide.ts", [np.zeros((8, 16384, 3), np.uint8)] * 3)
    with (
        pytest.raises(SourceError, match="can't resize its pictures"),
        VideoReader(path, view=Squash(224, 224)) as video,
    ):
        list(video)


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_duration_of_any_length_is_no_fault(
    tmp_path: Path, make_numbered: Any, read: Any, digits: int
) -> None:
    with av.open(str(tmp_path / "tag.nut"), "w") as out:
        stream = out.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        stream.metadata["DURATION"] = "9" * digits + ":00:00.0"
        for picture in make_numbered(5):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        out.mux(stream.encode(None))
    _, frames = read(tmp_path / "tag.nut")
    assert len(frames) == 5
