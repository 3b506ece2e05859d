"""The way to web servers: connections, redirects, parts of files, keys, cookies, passwords, certificates."""

from __future__ import annotations

import base64
import hashlib
import http.server
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from ongebd.errors import SourceError
from ongebd.video import VideoReader, web
from ongebd.video.access import Pieces
from ongebd.video.connecting import Connecting
from waiting import HANG, NEVER, at_once

HEAD = "#EXTM3U\n#EXT-X-VERSION:4\n#EXT-X-TARGETDURATION:1\n"
END = "#EXT-X-ENDLIST\n"


class Site(http.server.ThreadingHTTPServer):
    """Serves files, parts of them too, with kept connections; `/to/URL` redirects.

    Attributes:
        asked: The paths and ranges that were asked for; `connections` and `logins` count.
        wants: A way of authorization, or a cookie (which list.m3u8 sets), without which nothing else comes.
    """

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("", 0), Answers)
        self.folder, self.asked, self.connections, self.wants, self.scheme = folder, [], 0, "", "http"
        self.logins = 0
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def url(self, path: str, user: str = "") -> str:
        return f"{self.scheme}://{user}127.0.0.1:{self.server_port}/{path}"

    def process_request(self, *about: Any) -> None:
        self.connections += 1
        super().process_request(*about)


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        self.server.asked.append((self.path, part and part[0]))
        path = self.server.folder / unquote(self.path[1:].partition("?")[0])
        if self.path.startswith("/to/"):
            return self.say(302, b"moved", {"Location": self.path.removeprefix("/to/")})
        if not self.allowed():
            ask = {"basic": 'Basic realm="x"', "digest": 'Digest realm="x", nonce="n", qop="auth"'}
            return self.say(401, b"no", {"WWW-Authenticate": ask.get(self.server.wants, "Other")})
        if not path.is_file():
            return self.say(404, b"gone" * 100)
        data, extra = path.read_bytes(), {"Set-Cookie": "pass=1"} if path.suffix == ".m3u8" else {}
        if part is None:
            return self.say(200, data, extra)
        begin, end = int(part[1]), min(len(data), int(part[2] or len(data)) + 1)
        return self.say(
            206, data[begin:end], {"Content-Range": f"bytes {begin}-{end - 1}/{len(data)}", **extra}
        )

    def allowed(self) -> bool:
        given = self.headers.get("Authorization", "")
        self.server.logins += given != ""
        match self.server.wants:
            case "basic":
                return given == "Basic " + base64.b64encode(b"me:hunter 2").decode()
            case "digest":
                had = dict(re.findall(r'(\w+)="?([^",]+)', given))
                first = hashlib.md5(b"me:x:hunter 2").hexdigest()
                second = hashlib.md5(f"GET:{self.path}".encode()).hexdigest()
                whole = f"{first}:n:{had.get('nc')}:{had.get('cnonce')}:auth:{second}"
                return hashlib.md5(whole.encode()).hexdigest() == had.get("response")
            case "cookie":
                return self.path.endswith(".m3u8") or self.headers.get("Cookie") == "pass=1"
        return True

    def say(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def site(
    tmp_path: Path, make_video: Callable[..., Path], make_numbered: Callable[..., Any]
) -> Iterator[Site]:
    """Four pieces of ten pictures, as files 0.ts to 3.ts and as list.m3u8; and whole.mp4."""
    for n in range(4):
        make_video(
            tmp_path / f"{n}.ts", make_numbered(40)[10 * n : 10 * n + 10], pts=range(10 * n, 10 * n + 10)
        )
    pieces = "".join(f"#EXTINF:0.4,\n{n}.ts\n" for n in range(4))
    (tmp_path / "list.m3u8").write_text(HEAD + pieces + END)
    make_video(tmp_path / "whole.mp4", make_numbered(40), options={"g": "10"})
    site = Site(tmp_path)
    yield site
    site.shutdown()


def numbers(source: str, read_number: Callable[..., int], **how: Any) -> list[int]:
    with VideoReader(source, **how) as video:
        found = [read_number(frame.rgb) for frame in video]
        assert not re.search(r"missing: |may not|the playlist", " ".join(video.warnings))
    return found


def test_a_playlist_comes_over_one_connection(site: Site, read_number: Any) -> None:
    assert numbers(site.url("list.m3u8"), read_number) == [*range(40)]
    assert site.connections == 1


def test_connections_that_the_server_ends_are_made_again(
    site: Site, read_number: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    say = Answers.say
    monkeypatch.setattr(
        Answers, "say", lambda self, *what: (say(self, *what), setattr(self, "close_connection", True))
    )
    assert numbers(site.url("list.m3u8"), read_number) == [*range(40)]
    assert site.connections > 3


def test_a_redirected_playlist_has_its_pieces_beside_it(site: Site, read_number: Any) -> None:
    (site.folder / "inner").mkdir()
    for name in ("0.ts", "1.ts"):
        shutil.move(site.folder / name, site.folder / "inner" / f"{name} ü")
    (site.folder / "inner/list.m3u8").write_text(HEAD + "#EXTINF:0.4,\n0.ts ü\n#EXTINF:0.4,\n1.ts ü\n" + END)
    link = site.url("to/" + site.url("inner/list.m3u8"))
    assert numbers(link, read_number) == [*range(20)]
    (site.folder / "main.m3u8").write_text(f"{HEAD}#EXT-X-STREAM-INF:BANDWIDTH=1\n{link}\n")
    assert numbers(site.url("main.m3u8"), read_number) == [*range(20)]


def test_a_playlist_needs_no_name_of_one(site: Site, read_number: Any) -> None:
    shutil.copy(site.folder / "list.m3u8", site.folder / "live")
    assert numbers(site.url("live?channel=1"), read_number) == [*range(40)]


def test_pieces_may_be_parts_of_a_file(site: Site, read_number: Any) -> None:
    files = [(site.folder / f"{n}.ts").read_bytes() for n in range(4)]
    (site.folder / "all.ts").write_bytes(b"".join(files))
    lines, begin = "", 0
    for data in files:
        lines += f"#EXTINF:0.4,\n#EXT-X-BYTERANGE:{len(data)}@{begin}\nall.ts\n"
        begin += len(data)
    (site.folder / "parts.m3u8").write_text(HEAD + lines + END)
    assert numbers(site.url("parts.m3u8"), read_number) == [*range(40)]


def test_encrypted_pieces_are_decrypted(site: Site, read_number: Any) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl isn't installed")
    key, lines = bytes(range(16)), ""
    (site.folder / "key").write_bytes(key)
    for n, where in enumerate(("key", "data:a/b;base64," + base64.b64encode(key).decode())):
        command = f"openssl enc -aes-128-cbc -K {key.hex()} -iv {n:032x} -in {n}.ts -out {n}.bin"
        subprocess.run(command.split(), cwd=site.folder, check=True)
        lines += f'#EXT-X-KEY:METHOD=AES-128,URI="{where}",IV=0x{n:032x}\n#EXTINF:0.4,\n{n}.bin\n'
    (site.folder / "list.m3u8").write_text(HEAD + lines + END)
    assert numbers(site.url("list.m3u8"), read_number) == [*range(20)]
    (site.folder / "list.m3u8").write_text(HEAD + f"#EXTINF:0.4,\ncrypto+{site.url('0.ts')}\n" + END)
    with pytest.raises(SourceError, match=r"pieces of the playlist are missing: .*can't decrypt it"):
        VideoReader(site.url("list.m3u8"))


def test_a_cookie_of_a_playlist_opens_its_pieces(site: Site, read_number: Any) -> None:
    site.wants = "cookie"
    assert numbers(site.url("list.m3u8"), read_number) == [*range(40)]


@pytest.mark.parametrize("way", ["basic", "digest"])
@pytest.mark.parametrize("name", ["list.m3u8", "whole.mp4"])
def test_a_password_goes_to_the_server_that_wants_it(
    site: Site, read_number: Any, way: str, name: str
) -> None:
    site.wants = way
    assert numbers(site.url(name, "me:hunter%202@"), read_number) == [*range(40)]
    assert site.connections < 4
    with pytest.raises(SourceError, match=r"401: .*; check the user and password") as refused:
        VideoReader(site.url(name, "me:wrong@"))
    assert "wrong" not in str(refused.value)


def test_what_a_server_makes_us_remember_has_a_limit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_MOST", 4)
    pieces = "".join(
        f"#EXTINF:0.4,\n{site.url('0.ts').replace('127.0.0.1', f'127.0.0.{n}')}\n" for n in range(1, 20)
    )
    (site.folder / "list.m3u8").write_text(HEAD + pieces + END)
    open_ways = []
    monkeypatch.setattr(
        web._Body,
        "_ask",
        lambda *about, ask=web._Body._ask: (open_ways.append(len(about[0]._web.ways._ways)), ask(*about))[1],
    )
    with VideoReader(site.url("list.m3u8"), connecting=Connecting(private_network=True)) as video:
        assert sum(1 for _ in video) == 190
    assert max(open_ways) <= 6


def test_a_password_goes_to_no_other_server(site: Site, read_number: Any) -> None:
    other, allowed = Site(site.folder), Connecting(private_network=True)
    site.wants = other.wants = "basic"
    with pytest.raises(SourceError, match="401"):
        VideoReader(site.url("to/" + other.url("0.ts"), "me:hunter%202@"), connecting=allowed)
    (site.folder / "list.m3u8").write_text(
        f"{HEAD}#EXTINF:0.4,\n0.ts\n#EXTINF:0.4,\n{other.url('1.ts')}\n{END}"
    )
    with VideoReader(site.url("list.m3u8", "me:hunter%202@"), connecting=allowed) as video:
        assert sum(1 for _ in video) == 10
    assert not other.logins
    other.shutdown()


def test_a_file_is_sought_in(site: Site, read_number: Any, make_video: Any, make_scene: Any) -> None:
    found = numbers(site.url("whole.mp4"), read_number, start=Fraction(6, 5))
    assert found == [*range(30, 40)]
    big = make_video(
        site.folder / "big.mp4", [make_scene(n, 320, 240) for n in range(40)], options={"g": "5"}
    )
    with VideoReader(site.url("big.mp4"), start=Fraction(7, 5)) as video:
        assert sum(1 for _ in video) == 5
    ranges = [int(part[6:].partition("-")[0]) for path, part in site.asked if path == "/big.mp4"]
    assert max(ranges) > big.stat().st_size // 2
    assert len(ranges) < 6


def test_a_live_playlist_grows_and_is_followed(site: Site, read_number: Any) -> None:
    pieces = [f"#EXTINF:0.4,\n{n}.ts\n" for n in range(4)]
    (site.folder / "list.m3u8").write_text(HEAD + pieces[0])

    def grow() -> None:
        for n in (2, 3, 4):
            time.sleep(0.4)
            (site.folder / "new").write_text(HEAD + "".join(pieces[:n]) + END * (n == 4))
            (site.folder / "new").replace(site.folder / "list.m3u8")

    threading.Thread(target=grow).start()
    assert numbers(site.url("list.m3u8"), read_number, connecting=Connecting(live=True)) == [*range(40)]
    assert site.connections == 1


def certified(site: Site, subject: str) -> Path:
    make = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -subj /CN=x -addext"
    if shutil.which("openssl") is None:
        pytest.skip("openssl isn't installed")
    subprocess.run(
        [*make.split(), f"subjectAltName={subject}"], cwd=site.folder, check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(site.folder / "cert", site.folder / "key")
    site.socket, site.scheme = context.wrap_socket(site.socket, server_side=True), "https"
    return site.folder / "cert"


def test_ones_own_authority_is_trusted(site: Site, read_number: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = certified(site, "IP:127.0.0.1")
    with pytest.raises(SourceError, match=r"can't trust its certificate .*insecure\+ in front of the URL"):
        VideoReader(site.url("list.m3u8"))
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    before = site.connections
    assert numbers(site.url("list.m3u8"), read_number) == [*range(40)]
    assert site.connections == before + 1


def test_the_proxy_of_the_environment_is_used(
    site: Site, read_number: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def serve() -> None:
            client, _ = proxy.accept()
            heads.append(client.recv(4096).partition(b"\r\n")[0].decode())
            client.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + (site.folder / "0.ts").read_bytes())
            client.close()

        heads: list[str] = []
        threading.Thread(target=serve).start()
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        assert numbers("http://camera.invalid/a.ts?n=1", read_number) == [*range(10)]
    assert heads == ["GET http://camera.invalid/a.ts?n=1 HTTP/1.1"]


@pytest.mark.parametrize("where", ["head", "body", "piece"])
def test_a_server_that_falls_silent_is_left_when_told_to_stop(
    site: Site, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, stop = threading.Event(), threading.Event()
    say = Answers.say

    def slow(self: Answers, status: int, data: bytes, headers: Any = None) -> None:
        if not self.path.endswith(".m3u8"):
            data = data + bytes(len(data)) if where != "head" else data
            self.wfile.write(b"" if where == "head" else b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n")
            self.wfile.write(b"" if where == "head" else data)
            over.wait(NEVER)
            self.close_connection = True
        else:
            say(self, status, data, headers)

    monkeypatch.setattr(Answers, "say", slow)
    threading.Timer(0.5, stop.set).start()
    connecting = Connecting(open_timeout=NEVER, read_timeout=NEVER, stop=stop)
    url = site.url("list.m3u8" if where == "piece" else "0.ts")
    with at_once(), suppress(SourceError), VideoReader(url, connecting=connecting) as video:
        list(video)
    assert stop.is_set()
    over.set()


REDIRECTS = [
    b"RTSP/1.0 302 Moved\r\nCSeq: 1\r\nLocation: rtsp://127.0.0.1:%d/x\r\n\r\n",
    b"RTSP/1.0 302\nCSeq: 1\nLocation:rtsp://127.0.0.1:%d/x\n\n",
    b"R\rTSP/x\t +0302 Mo\rved\r\nCSeq: 1\r\nlocation:   rtsp://127.0.0.1:%d/x\r\n\r\n",
    b"$\0\0\4abcdRTSP/1.0 \x0b301 x\r\nCSeq: 1\r\nLocation: rtsp://127.0.0.1:%d/x\r\n\r\n",
    b"hello\r\nRTSP/1.0 305 Use\r\nCSeq: 1\r\nLocation: rtsp://127.0.0.1:%d/x\r\n\r\n",
]


@pytest.mark.parametrize(("answer", "public"), [*((one, True) for one in REDIRECTS), (REDIRECTS[0], False)])
def test_an_rtsp_server_on_the_internet_sends_ffmpeg_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, answer: bytes, public: bool
) -> None:
    """Without the relay (for a server on a private network), FFmpeg follows."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:

        def serve() -> None:
            with server.accept()[0] as client, suppress(OSError):
                client.recv(4096)
                for byte in answer % other.getsockname()[1]:
                    client.sendall(bytes([byte]))
                client.recv(4096)

        def follow() -> None:
            with suppress(OSError):
                other.accept()[0].close()
                followed.set()

        followed = threading.Event()
        monkeypatch.setattr(web, "is_public", lambda address: public)
        for play in (serve, follow):
            threading.Thread(target=play, daemon=True).start()
        url = f"rtsp://127.0.0.1:{server.getsockname()[1]}/a"
        with pytest.raises(SourceError, match=r"may not open another server" if public else "can't"):
            VideoReader(url, connecting=Connecting(open_timeout=HANG))
        assert followed.wait(0.1 if public else HANG) != public
        other.shutdown(socket.SHUT_RDWR)  # else its thread waits on


def test_the_relay_carries_a_safe_connection_both_ways(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = certified(site, "IP:127.0.0.1")
    url = site.url("").replace("https", "rtsps")
    with pytest.raises(ssl.SSLCertVerificationError):
        web.relay_for(url, Connecting(), Pieces())
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    relay = web.relay_for(url.replace("//", "//me:pw@"), Connecting(), Pieces())
    port = int(re.fullmatch(r"rtsp://me:pw@127\.0\.0\.1:(\d+)/", relay)[1])  # type: ignore[index]
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /whole.mp4 HTTP/1.1\r\n\r\n")
        size, came = (site.folder / "whole.mp4").stat().st_size, b""
        while size > len(came.partition(b"\r\n\r\n")[2]):
            came += client.recv(65536)
    assert came.endswith((site.folder / "whole.mp4").read_bytes())
