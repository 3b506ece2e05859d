"""Clients that mean harm: the service goes on."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest

from ongebd.watch.server import limits
from waiting import HANG, until

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
FEED = b"GET /api/feed HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextmanager
def connected(server, *, receive_buffer=None, address="127.0.0.1"):
    url = httpx.URL(server.url)
    with socket.socket() as client:
        client.bind((address, 0))
        if receive_buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(HANG)
        client.connect((url.host, url.port or 80))
        yield client


def ended(client):
    """Read to the end of the connection; False if it stays open for longer than the socket's time-out."""
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def lives(server):
    return httpx.get(server.url + "healthz").text == "ok\n"


@pytest.mark.parametrize(
    "path",
    [
        "../../../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        "/etc/passwd",
        "page/../server.py",
        "server.py",
        "page.js/../../server.py",
        "api/streams/..%2f..%2fetc/curve",
        "api/incidents/..%2f..%2fetc/best",
        "api/incidents/x/..%2fbest",
        "api/incidents/x/held",
        "api/incidents/%00/onset",
        "api/incidents/x%27%20OR%201=1/clip",
        "api/streams/other/picture",
        "page.js%00.css",
        "api/streams/%00/curve",
        "\\..\\..\\windows\\win.ini",
    ],
)
def test_no_path_leads_out_of_the_fixed_table(standing, path):
    _, server = standing
    with connected(server) as client:
        client.sendall(f"GET /{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.split(b" ")[1] in (b"400", b"404")
    assert b"root:" not in answer
    assert b"import" not in answer


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"not json", 422),
        (b"\xff\xfe\x00", 422),
        (b"[0.5]", 422),
        (b"null", 422),
        (b"{}", 422),
        (b'{"sensitivity": "0.5"}', 422),
        (b'{"sensitivity": true}', 422),
        (b'{"sensitivity": null}', 422),
        (b'{"sensitivity": NaN}', 422),
        (b'{"sensitivity": 1e999}', 422),
        (b'{"sensitivity": 0.05}', 422),
        (b'{"sensitivity": 0.95}', 422),
        (b'{"sensitivity": ' + b"9" * 900 + b"}", 422),
        (b"[" * 1000, 422),
        (b'{"sensitivity": 0.7}' + b" " * 1024, 413),
        (b"x" * 100_000, 413),
    ],
)
def test_a_malformed_or_oversized_body_is_refused_and_changes_nothing(standing, body, status):
    watcher, server = standing
    stream = watcher.streams["cam"]
    url, kind = server.url + "api/streams/cam/sensitivity", {"Content-Type": "application/json"}
    assert httpx.post(url, content=body, headers=kind).status_code == status
    if body:
        chunked = (body[i : i + 300] for i in range(0, len(body), 300))
        try:
            assert httpx.post(url, content=chunked, headers=kind).status_code == status
        except httpx.WriteError:
            assert status == 413, "refused while the client was still sending"
    assert stream.now.sensitivity == 0.5
    assert lives(server)


def test_a_form_of_another_site_cannot_pose_as_json(watcher, served):
    stream = watcher.add("cam")
    server = served(watcher)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = httpx.post(
            server.url + "api/streams/cam/sensitivity",
            content=b'{"sensitivity":0.9}',
            headers={"Content-Type": kind},
        )
        assert answer.status_code == 415
    assert stream.now.sensitivity == 0.5


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "SPY"])
def test_other_methods_are_refused(standing, method):
    _, server = standing
    assert httpx.request(method, server.url + "api/streams").status_code == 405


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00" * 4000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x01" * 500,  # somebody speaks TLS
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + b"y" * 40_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 6000 + b"\r\n",
        b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_garbage_and_endless_headers_are_cut_off(standing, garbage, caplog):
    _, server = standing
    with connected(server) as client:
        try:
            client.sendall(garbage)
            answer = client.recv(65536)
        except ConnectionError:
            answer = b""  # it was cut off while it was still talking
        assert answer == b"" or answer.split(b" ")[1] in (b"400", b"403", b"431")
    assert lives(server)
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]


def test_who_asks_slowly_is_cut_off(watcher, served, monkeypatch):
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.4)
    server = served(watcher)
    slow_body = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
    chunked = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    for head in (b"GET / HT", b"", slow_body, chunked, GET, GET + b"GET / HT", GET + slow_body):
        with connected(server) as client:
            client.sendall(head)
            client.settimeout(0.1)

            def cut_off(client=client, head=head):
                try:
                    client.sendall(
                        b"1\r\na\r\n" if head == chunked else b"a" if head not in (b"", GET) else b""
                    )
                    return client.recv(65536) == b""
                except TimeoutError:
                    return False
                except ConnectionError:
                    return True

            until(cut_off)
    assert lives(server)


def test_five_hundred_idle_connections_keep_nobody_out(watcher, served):
    watcher.add("cam")
    server = served(watcher)
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(server)) for _ in range(500)]
        for client in clients[::2]:
            try:
                client.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
            except ConnectionError:
                continue  # the longest waiting one had to give way
        assert lives(server)
        assert httpx.get(server.url + "api/streams").json()["streams"][0]["key"] == "cam"
        assert len(server.server_state.connections) <= limits.CONNECTIONS


TOKEN = "a-token-of-mine"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8 as its own")
@pytest.mark.parametrize("addresses", [1, 60])
@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /login HT",
        b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\na",
        b"GET /login HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500,  # and no answer is read
    ],
    ids=["silent", "half a head", "half a body", "unread"],
)
def test_whoever_has_the_token_gets_in_past_hundreds_of_strangers(watcher, served, said, addresses):
    watcher.add("cam")
    server = served(watcher, token=TOKEN)

    def crowd(stack):
        for number in range(300):
            address = f"127.0.0.{1 + number % addresses}"
            client = stack.enter_context(connected(server, receive_buffer=2048, address=address))
            client.setblocking(False)
            with suppress(OSError):
                client.send(said)

    with ExitStack() as stack, httpx.Client(base_url=server.url) as person:
        crowd(stack)
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert httpx.get(server.url + "api/streams", headers=bearer).status_code == 200
        assert person.get("/login").status_code == 200
        assert person.post("/login", data={"token": TOKEN}).status_code == 303
        with person.stream("GET", "/api/feed") as feed:
            crowd(stack)
            assert person.get("/api/streams").status_code == 200
            assert any("status" in line for line in feed.iter_lines()), "it is still being served"
        assert len(server.server_state.connections) <= limits.CONNECTIONS


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8 as its own")
def test_a_crowd_at_one_address_replaces_its_own_only(watcher, served):
    server = served(watcher, token=TOKEN)
    with ExitStack() as stack, connected(server, address="127.0.0.2") as other:
        clients = [stack.enter_context(connected(server)) for _ in range(300)]
        assert lives(server)
        assert len(server.server_state.connections) <= limits.STRANGERS + 2
        other.sendall(GET)
        assert other.recv(15) == b"HTTP/1.1 200 OK"
        assert ended(clients[0])


def test_strangers_queue_no_requests_and_are_cut_off_if_they_read_nothing(watcher, served, monkeypatch):
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.4)
    server = served(watcher, token=TOKEN)
    with connected(server) as client:
        client.sendall(GET * 3)
        answer = b""
        with suppress(ConnectionError):
            while data := client.recv(65536):
                answer += data
        assert answer.count(b"HTTP/1.1 200") == 1
        assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("path", [b"/\x1b[31mred", b"/%1b%5d0;title%07", b"/\xe2\x80\xae", b"/a\x9b2J"])
def test_what_is_asked_for_never_reaches_the_terminal(watcher, served, path, capfd):
    server = served(watcher)
    for method in (b"GET ", b"GET /api/streams", b"\x1b[2J "):
        with connected(server) as client:
            client.sendall(method + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            ended(client)
    assert lives(server)
    assert capfd.readouterr() == ("", "")


def test_five_hundred_viewers_are_no_more_than_the_limit(watcher, served):
    watcher.add("cam")
    server = served(watcher)
    with ExitStack() as stack:
        clients = []
        for _ in range(500):
            clients.append(stack.enter_context(connected(server)))
            clients[-1].sendall(FEED)
        answers: list[bytes] = []
        for client in clients:
            try:
                answers.append(client.recv(12)[-3:])
            except ConnectionError:
                answers.append(b"")
        assert answers.count(b"200") == limits.VIEWERS
        assert answers.count(b"503") > 100
        assert lives(server)
        heard = b""
        while b'"status"' not in heard:  # those who look go on looking
            heard += clients[answers.index(b"200")].recv(65536)

    def finds_a_place():
        with httpx.stream("GET", server.url + "api/feed") as after:
            return after.status_code == 200

    until(finds_a_place)


def test_a_reader_that_stops_reading_is_cut_off_and_disturbs_nobody(watcher, served, monkeypatch):
    monkeypatch.setattr(limits, "WRITE_SECONDS", 0.5)
    stream = watcher.add("cam")
    server = served(watcher)
    onset, stop = stream.onset(), threading.Event()

    def flood():
        while not stop.wait(0.02):
            for _ in range(100):
                stream.happen(onset)

    flooding = threading.Thread(target=flood)
    flooding.start()
    try:
        with connected(server, receive_buffer=4096) as stuck, httpx.Client(base_url=server.url) as other:
            stuck.sendall(FEED)
            until(lambda: server.server_state.tasks)
            until(lambda: other.get("/healthz").text == "ok\n" and not server.server_state.tasks)
    finally:
        stop.set()
        flooding.join()
    assert lives(server)


def test_a_slow_reader_is_told_of_the_gap(watcher, served):
    watcher.add("cam")
    server = served(watcher)
    with httpx.Client(base_url=server.url) as client:
        run = client.get("/api/streams").json()["run"]
        for place in ("", "other-5", f"{run}-x", f"{run}-", f"{run}-0" + "9" * 30):
            with client.stream("GET", "/api/feed", params={"after": place}) as feed:
                told = next(line for line in feed.iter_lines() if line.startswith(("event", "data")))
                assert told == "event: gap", place


def test_a_broken_stream_answers_in_one_line(watcher, served):
    watcher.add("cam").change("failed", "no video in it")
    server = served(watcher)
    answer = httpx.post(server.url + "api/streams/cam/sensitivity", json={"sensitivity": 0.7})
    assert answer.status_code == 409
    assert answer.text == "cam has failed; its sensitivity does not matter any more"


def test_stop_ends_every_thread_and_connection(watcher, served):
    watcher.add("cam").onset()
    before = set(threading.enumerate())
    server = served(watcher)
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(server)) for _ in range(4)]
        clients[0].sendall(FEED)
        clients[1].sendall(b"GET / HT")
        clients[2].sendall(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n")
        assert httpx.get(server.url + "metrics").status_code == 200
        assert httpx.get(server.url + "api/streams/cam/curve").status_code == 200
        server.stop()
        assert set(threading.enumerate()) <= before
        assert all(ended(client) for client in clients)
    server.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.url)
