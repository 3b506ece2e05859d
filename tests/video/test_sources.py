"""What a user can name: paths of every kind, URLs, pipes, open files."""

from __future__ import annotations

import functools
import http.server
import io
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import ongebd
from ongebd.errors import SourceError
from ongebd.video import VideoReader

POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="such a name or pipe is for POSIX systems")


@pytest.mark.parametrize(
    "name",
    [
        "with some spaces.mp4",
        'it\'s "quoted".mp4',
        "видео 動画 ビデオ.mp4",
        "-i.mp4",
        "a:b.mp4",
        "http:colon.mp4",
        "100%25 #1?.mp4",
        "frame-%03d.mp4",
        "pipe:0",
        "a|b.mp4",
        "new\nline.mp4",
        "[0]*.mp4",
    ],
)
@pytest.mark.parametrize("relative", [True, False], ids=["relative", "absolute"])
def test_any_name_is_a_name(clip, read, monkeypatch, name, relative):
    if os.name == "nt" and set(name) & set('"*?|:\n'):
        pytest.skip("this system has no such names")
    path = clip.with_name(name)
    clip.rename(path)
    monkeypatch.chdir(path.parent)
    _, frames = read(name if relative else str(path))
    assert len(frames) == 10


@POSIX_ONLY
def test_a_name_that_is_not_utf8(clip, read):
    path = clip.with_name(os.fsdecode(b"\xff\xe9.mp4"))
    try:
        clip.rename(path)
    except OSError:
        pytest.skip("this file system takes no such names")
    assert len(read(path)[1]) == 10
    assert len(read(str(path))[1]) == 10
    assert len(read(path.as_uri())[1]) == 10


@pytest.mark.parametrize("name", ["plain.mp4", "a b.mp4", "100%.mp4", "é#?.mp4"])
def test_a_file_url_is_decoded(clip, read, name):
    if os.name == "nt" and "?" in name:
        pytest.skip("this system has no such names")
    path = clip.with_name(name)
    clip.rename(path)
    assert len(read(path.as_uri())[1]) == 10


def test_a_file_url_without_slashes_is_a_path(clip, read, monkeypatch):
    monkeypatch.chdir(clip.parent)
    assert len(read("file:clip.mp4")[1]) == 10
    assert len(read(f"file:{clip}")[1]) == 10


@contextmanager
def served(folder):
    """The folder over HTTP on this machine; gives its URL."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=os.fspath(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def test_an_http_url(clip, make_video, make_numbered, read):
    make_video(clip.with_name("stream.ts"), make_numbered(10))
    with served(clip.parent) as url:
        assert len(read(f"{url}/clip.mp4")[1]) == 10
        assert len(read(f"{url}/stream.ts")[1]) == 10


@pytest.mark.parametrize("protocol", ["http", "https", "rtsp", "rtmp", "tcp"])
def test_the_wheel_speaks_the_protocol_and_a_server_that_is_not_there_is_refused(protocol):
    with pytest.raises(SourceError, match="can't open: Connection refused"):
        VideoReader(f"{protocol}://127.0.0.1:1/clip.mp4")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("rtsp://me:hunter2@nosuch.invalid/1", "can't open: (Name or|No address|nodename)"),
        ("tcp://127.0.0.1", "the address is wrong or lacks a port"),
        ("rtsp://me:hunter2/x@127.0.0.1:9/1", "write / as %2F"),
        ("rtsp://me:hunter2@127.0.0.1:1/1", "Connection refused; check the address and the network$"),
        ("http://me:hunter2@127.0.0.1:1/1.mp4", "or download it and name the file$"),
        ("nosuch://x/y", "^nosuch://x/y: unknown protocol; use one of"),
        ("camera:99", "^camera:99: can't open: no such device; check that it is plugged in"),
    ],
)
def test_the_cause_is_reported_in_plain_words_without_credentials(url, says):
    with pytest.raises(SourceError, match=says) as refused:
        VideoReader(url)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(("status", "says"), [(401, "check the user and password"), (404, "404: Not Found")])
def test_a_servers_answer_is_reported(status, says):
    class Refuses(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(status)

        def log_message(self, *_): ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with pytest.raises(SourceError, match=says):
                VideoReader(f"http://me:hunter2@127.0.0.1:{server.server_port}/x.ts")
        finally:
            server.shutdown()
            thread.join()


def test_a_web_page_is_reported_as_not_a_video(tmp_path):
    (tmp_path / "page.html").write_text("<p>Hello.</p>" * 200)
    with (
        served(tmp_path) as url,
        pytest.raises(SourceError, match=r"the server doesn't send a video.*check the"),
    ):
        VideoReader(f"{url}/page.html")


READ_STDIN = """
import sys
from ongebd.video import VideoReader
with VideoReader("-") as video:
    print([int(frame.time * 25) for frame in video])
"""


@POSIX_ONLY
@pytest.mark.parametrize("ending", ["ts", "mkv"])
def test_standard_input_from_a_pipe(tmp_path, make_video, make_numbered, ending):
    path = make_video(tmp_path / f"clip.{ending}", make_numbered(10))
    result = subprocess.run(
        [sys.executable, "-c", READ_STDIN], input=path.read_bytes(), capture_output=True, check=True
    )
    assert result.stdout.decode().strip() == str([*range(10)])


@POSIX_ONLY
def test_standard_input_from_a_file_can_be_sought_in(clip):
    with clip.open("rb") as stdin:  # an MP4 with its index at the end
        result = subprocess.run(
            [sys.executable, "-c", READ_STDIN], stdin=stdin, capture_output=True, check=True
        )
    assert result.stdout.decode().strip() == str([*range(10)])


@POSIX_ONLY
@pytest.mark.parametrize("given", [b"", b"no video"], ids=["nothing", "text"])
def test_no_video_on_standard_input_is_refused(given):
    result = subprocess.run([sys.executable, "-c", READ_STDIN], input=given, capture_output=True)
    last_line = result.stderr.decode().strip().splitlines()[-1]
    assert last_line.startswith("ongebd.errors.SourceError: standard input: ")


@POSIX_ONLY
def test_a_named_pipe(tmp_path, make_video, make_numbered, read):
    data = make_video(tmp_path / "clip.ts", make_numbered(10)).read_bytes()
    pipe = tmp_path / "pipe.ts"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[data], daemon=True)
    writer.start()
    assert len(read(pipe)[1]) == 10
    writer.join(60)
    assert not writer.is_alive()


def test_a_binary_file_object(clip, read):
    with clip.open("rb") as opened:
        video, frames = read(opened)
        assert (video.name, len(frames)) == (str(clip), 10)
        assert not opened.closed, "it belongs to the caller"
    video, frames = read(io.BytesIO(clip.read_bytes()))
    assert (video.name, len(frames)) == ("a file object", 10)


def test_a_file_object_that_cannot_seek(tmp_path, make_video, make_numbered, read):
    class Socket(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self._data = io.BytesIO(data)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer) -> int:
            return self._data.readinto(buffer)

    path = make_video(tmp_path / "clip.ts", make_numbered(10))
    assert len(read(Socket(path.read_bytes()))[1]) == 10


def test_a_file_object_that_holds_no_video_is_refused():
    with pytest.raises(SourceError, match="a file object: "):
        VideoReader(io.BytesIO(b"no video"))


@pytest.mark.parametrize(
    "bad", [b"s.mp4", ["s.mp4"], ("s.mp4",), None, 3, 1.5, np.zeros(3), (x for x in "ab"), {}, object(), ""]
)
def test_other_types_are_refused_with_what_a_source_may_be(bad):
    for use in (VideoReader, ongebd.detect):
        with pytest.raises(
            SourceError, match=r"a source is a path or URL .*or an open binary file"
        ) as refused:
            use(bad)
        assert "\n" not in str(refused.value)


def test_a_file_open_as_text_is_refused(clip):
    with clip.open() as file, pytest.raises(SourceError, match="open it with mode 'rb'"):
        VideoReader(file)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        *(({"stream": bad}, "stream must be a whole number") for bad in ("0", 0.5, True, [1])),
        *(({"fps": bad}, "fps must be a number") for bad in ("24", [24], True)),
        *(({"source_fps": bad}, "source_fps must be a number") for bad in ("24", [24], True)),
        *(({"fps": bad}, "fps must be a number above 0") for bad in (0, -1.0, float("nan"), float("inf"))),
        ({"source_fps": 0}, "source_fps must be a number above 0"),
    ],
)
def test_settings_of_another_type_or_range_are_refused(clip, settings, told):
    with pytest.raises(ongebd.ConfigError, match=told):
        VideoReader(clip, **settings)
