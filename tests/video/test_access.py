"""What a source may reach: other files, addresses, certificates, and how large its pictures may be."""

from __future__ import annotations

import base64
import http.server
import io
import re
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ongebd.errors import SourceError
from ongebd.video import VideoReader
from ongebd.video.connecting import Connecting
from ongebd.video.web import is_public

PLAYLIST = "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{}\n#EXT-X-ENDLIST\n"


class Server(http.server.ThreadingHTTPServer):
    """Serves files of a folder; `/to/URL` redirects. `seen` has paths and credentials."""

    def __init__(self, folder: Path) -> None:
        seen: list[str] = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args: Any) -> None:
                super().__init__(*args, directory=str(folder))

            def do_GET(self) -> None:
                seen.append(self.path)
                if "Authorization" in self.headers:
                    seen.append(base64.b64decode(self.headers["Authorization"].split()[1]).decode())
                if self.path.startswith("/to/"):
                    self.send_response(302)
                    self.send_header("Location", self.path.removeprefix("/to/"))
                    self.end_headers()
                else:
                    super().do_GET()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = seen
        self.scheme = "http"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path: str, user: str = "") -> str:
        return f"{self.scheme}://{user}127.0.0.1:{self.server_port}/{path}"


@pytest.fixture
def folder(tmp_path: Path, make_video: Callable[..., Path], make_numbered: Callable[..., Any]) -> Path:
    """Holds video.ts, and inner/ for playlists."""
    make_video(tmp_path / "video.ts", make_numbered(10))
    (tmp_path / "inner").mkdir()
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    yield server
    server.shutdown()


@pytest.fixture
def other(folder: Path) -> Iterator[Server]:
    """Another server on this machine, which nobody named."""
    server = Server(folder)
    yield server
    server.shutdown()


def frames(source: Any, **settings: Any) -> int:
    with VideoReader(source, **settings) as video:
        return sum(1 for _ in video)


LISTS = {
    "ffconcat": "ffconcat version 1.0\nfile '{}'\n",
    "HLS": PLAYLIST,
    "SDP": "v=0\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n",
    "text": "hello\n" * 50,
}


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("name", ["upload.mp4", "upload.ts", "upload.txt", "upload.ffconcat", "upload.sdp"])
def test_text_that_names_other_files_is_no_video(folder: Path, kind: str, name: str) -> None:
    (folder / name).write_text(LISTS[kind].format("video.ts"))
    with pytest.raises(SourceError, match=r"isn't a video|can't read it as a video"):
        frames(folder / name)


@pytest.mark.parametrize("kind", LISTS)
def test_a_file_object_opens_nothing_else_whatever_its_name(folder: Path, server: Server, kind: str) -> None:
    for target in (str(folder / "video.ts"), (folder / "video.ts").as_uri(), server.url("video.ts")):
        upload = io.BytesIO(LISTS[kind].format(target).encode())
        upload.name = "upload.m3u8"  # type: ignore[attr-defined]
        with pytest.raises(SourceError):
            frames(upload)
    assert server.seen == []


def test_a_playlist_plays_the_pieces_in_its_folder(folder: Path) -> None:
    shutil.copy(folder / "video.ts", folder / "inner" / "piece.jpg")  # some servers disguise them
    shutil.copy(folder / "video.ts", folder / "piece.ts")
    for piece in ("piece.ts", "inner/piece.jpg", (folder / "piece.ts").as_uri()):
        (folder / "list.m3u8").write_text(PLAYLIST.format(piece))
        assert frames(folder / "list.m3u8") == 10


def test_a_playlist_reaches_no_other_folder_and_no_network(folder: Path, server: Server) -> None:
    (folder / "inner" / "link.ts").symlink_to(folder / "video.ts")
    for piece in ("../video.ts", str(folder / "video.ts"), (folder / "video.ts").as_uri(), "link.ts"):
        (folder / "inner" / "list.m3u8").write_text(PLAYLIST.format(piece))
        with pytest.raises(SourceError, match=r"may not open .*only files in its own folder"):
            frames(folder / "inner" / "list.m3u8")
    (folder / "list.m3u8").write_text(PLAYLIST.format(server.url("video.ts")))
    with pytest.raises(SourceError, match=r"may not open http://127.*give the playlist's URL"):
        frames(folder / "list.m3u8")
    assert server.seen == []


@pytest.mark.parametrize("piece", ["gone.ts", "/etc/hostname.ts", "httpproxy://127.0.0.1/x.ts"])
def test_a_playlist_of_very_many_missing_pieces_is_left_soon(
    folder: Path, server: Server, capfd: pytest.CaptureFixture[str], piece: str
) -> None:
    (folder / "list.m3u8").write_text(PLAYLIST.format(f"{piece}\n#EXTINF:9,\n" * 50_000))
    for source in (folder / "list.m3u8", server.url("list.m3u8")):
        with pytest.raises(SourceError, match=r"(missing: |may not open ).*(99 more)?"):
            frames(source)
    assert len(server.seen) < 110
    assert capfd.readouterr().err == ""


def test_a_web_playlist_reaches_its_own_server_only(folder: Path, server: Server, other: Server) -> None:
    (folder / "own.m3u8").write_text(PLAYLIST.format("video.ts"))
    assert frames(server.url("own.m3u8")) == 10
    for piece in (other.url("video.ts"), server.url("to/" + other.url("video.ts"))):
        (folder / "foreign.m3u8").write_text(PLAYLIST.format(piece))
        with pytest.raises(SourceError, match=rf"may not open 127.0.0.1:{other.server_port}"):
            frames(server.url("foreign.m3u8"))
    (folder / "local.m3u8").write_text(PLAYLIST.format((folder / "video.ts").as_uri()))
    with pytest.raises(SourceError):
        frames(server.url("local.m3u8"))
    with pytest.raises(SourceError, match=rf"may not open 127.0.0.1:{other.server_port}"):
        frames(server.url("to/" + other.url("video.ts")))
    assert other.seen == []


def test_a_private_network_can_be_allowed(folder: Path, server: Server, other: Server) -> None:
    allowed = Connecting(private_network=True)
    assert frames(server.url("to/" + other.url("video.ts")), connecting=allowed) == 10


@pytest.mark.parametrize(
    ("piece", "says"),
    [
        ("gone.ts", "pieces of the playlist are missing: http://127.*404: "),
        ("file:///etc/hostname.ts", "may not open file:///etc/hostname.ts"),
        ("httpproxy://127.0.0.1/x.ts", "may not open httpproxy://127.0.0.1/x.ts"),
        ("gopher://127.0.0.1/x.ts", "the playlist lists 18.0 s of video, but"),
    ],
)
def test_pieces_of_a_web_playlist_that_do_not_come_are_told(
    folder: Path, server: Server, piece: str, says: str
) -> None:
    second = f"#EXTINF:9,\n{piece}\n#EXT-X-ENDLIST"
    (folder / "list.m3u8").write_text(PLAYLIST.format("video.ts").replace("#EXT-X-ENDLIST", second))
    with VideoReader(server.url("list.m3u8")) as video:
        assert sum(1 for _ in video) == 10
        assert re.search(says, " ".join(video.warnings))


def test_pieces_of_a_web_playlist_need_no_name_of_a_video(folder: Path, server: Server) -> None:
    shutil.copy(folder / "video.ts", folder / "piece.php")
    (folder / "list.m3u8").write_text(PLAYLIST.format("piece.php?number=1"))
    assert frames(server.url("list.m3u8")) == 10


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "224.0.0.1"),
        *("::1", "fe80::1%eth0", "fd00::1", "fec0::1", "::ffff:10.0.0.1", "::10.0.0.1"),
        *("64:ff9b::10.0.0.1", "2002:a00:1::", "::ffff:0:10.0.0.1", "2001:0:a00:1::"),
    ],
)
def test_private_addresses_are_refused_whatever_name_they_hide_behind(address: str) -> None:
    assert not is_public(address)
    assert all(map(is_public, ("93.184.215.14", "64:ff9b::93.184.215.14", "2606:4700::1111")))


def test_a_certificate_is_checked_before_the_password_is_sent(folder: Path) -> None:
    make = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -subj /CN=other.example"
    if shutil.which("openssl") is None:
        pytest.skip("openssl isn't installed")
    subprocess.run(make.split(), cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    server = Server(folder)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.scheme = "https"
    with pytest.raises(SourceError, match=r"can't trust its certificate .*insecure\+ in front of the URL"):
        frames(server.url("video.ts", "me:hunter2@"))
    assert server.seen == []
    assert frames("insecure+" + server.url("video.ts", "me:hunter2@")) == 10


@pytest.mark.parametrize(
    "url", ["concat://a|b", "subfile://x", "lavfi://testsrc", "data://x", "gopher://h/1"]
)
def test_only_protocols_of_the_network_are_urls(url: str) -> None:
    with pytest.raises(SourceError, match="unknown protocol"):
        frames(url)


def test_pictures_have_a_largest_size(
    tmp_path: Path, make_video: Callable[..., Path], make_numbered: Callable[..., Any]
) -> None:
    clip = make_video(tmp_path / "clip.mp4", make_numbered(3))  # 96 × 64
    assert frames(clip, connecting=Connecting(max_pixels=96 * 64)) == 3
    with pytest.raises(SourceError, match=r"too large \(96x64\); raise the limit with --max-pixels"):
        frames(clip, connecting=Connecting(max_pixels=96 * 64 - 1))


def test_an_unknown_host_is_told_in_words() -> None:
    with pytest.raises(SourceError, match=r"can't open: (?!Unknown error)[A-Z][a-z]+ .*; check the address"):
        frames("http://nosuch.invalid/x.ts")
