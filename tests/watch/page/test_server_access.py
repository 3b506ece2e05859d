"""Who gets in: the token, the session, patience with wrong tokens, host and origin."""

from __future__ import annotations

import socket

import httpx
import pytest
from starlette.datastructures import Headers

from ongebd.errors import ConfigError, OngebdError
from ongebd.watch.server import access as room
from ongebd.watch.server import serve
from ongebd.watch.server.access import Access

TOKEN = "correct-horse-battery"
GUARDED = [
    *("/api/streams", "/api/feed", "/api/incidents", "/api/incidents/x/best", "/api/incidents/x/clip"),
    *("/api/streams/cam/picture", "/api/streams/cam/curve", "/metrics"),
]


@pytest.fixture
def closed(watcher, served):
    watcher.add("cam").onset()
    return served(watcher, token=TOKEN)


def test_another_address_needs_a_token_and_says_so_in_one_line(watcher):
    with pytest.raises(
        ConfigError, match=r"^0\.0\.0\.0 is reachable from your network; set ONGEBD_TOKEN"
    ) as told:
        serve(watcher, "0.0.0.0", 0)
    assert "\n" not in str(told.value)


def test_another_address_is_served_with_a_token(watcher, served):
    server = served(watcher, host="0.0.0.0", token=TOKEN)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    for name in ("192.0.2.7", socket.gethostname()):
        assert httpx.get(server.url + "healthz", headers={"Host": name}).status_code == 200
    assert httpx.get(server.url + "healthz", headers={"Host": ""}).status_code == 403
    assert httpx.get(server.url + "api/streams").status_code == 401
    assert httpx.get(server.url + "api/streams", headers=bearer).status_code == 200


@pytest.mark.parametrize("token", ["", "short", "with a blank", "schlüssel-wort", "line\nbreak"])
def test_a_token_that_is_weak_or_fits_no_header_is_refused(token):
    with pytest.raises(ConfigError, match="the token needs at least 8"):
        Access(token)


def test_a_taken_port_is_told_in_one_line(watcher, served):
    port = httpx.URL(served(watcher).url).port
    with pytest.raises(OngebdError, match=rf"^127\.0\.0\.1:{port}: Address already in use; choose another"):
        serve(watcher, port=port or 0)


@pytest.mark.parametrize(
    ("host", "told"),
    [("203.0.113.9", "assign requested address"), ("no.such.host.invalid", "not an address")],
)
def test_an_address_that_is_not_ours_is_told_in_one_line(watcher, host, told):
    with pytest.raises(OngebdError, match=told):
        serve(watcher, host, 0, TOKEN)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_out_of_range_is_refused(watcher, port):
    with pytest.raises(ConfigError, match="the port must be from 0 to 65535"):
        serve(watcher, port=port)


@pytest.mark.parametrize("path", GUARDED)
def test_nothing_is_told_without_the_token(closed, path):
    for headers in (
        {},
        {"Authorization": "Bearer wrong-wrong"},
        {"Authorization": "Basic Y29ycmVjdA=="},
        {"Cookie": f"{_cookie(closed)}=guess; other={{odd}}"},
    ):
        response = httpx.get(closed.url.rstrip("/") + path, headers=headers)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
        assert "cam" not in response.text


def test_a_post_without_the_token_changes_nothing(closed, watcher):
    response = httpx.post(closed.url + "api/streams/cam/sensitivity", json={"sensitivity": 0.9})
    assert response.status_code == 401
    assert watcher.streams["cam"].now.sensitivity == 0.5


def test_what_the_form_needs_and_the_health_check_are_open(closed):
    for path in ("login", "page.css", "icon.svg", "healthz"):
        assert httpx.get(closed.url + path).status_code == 200, path


def test_the_form_gives_a_session_in_a_strict_cookie(closed):
    with httpx.Client(base_url=closed.url) as browser:
        asked = browser.get("/")
        assert (asked.status_code, asked.headers["location"]) == (303, "login")
        answer = browser.post("/login", data={"token": TOKEN})
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert TOKEN not in cookie
        assert browser.get("/").status_code == 200
        assert browser.get("/api/streams").json()["streams"][0]["key"] == "cam"
        secret = browser.cookies[_cookie(closed)]
        assert browser.post("/logout").status_code == 204
        kept = {"Cookie": f"{_cookie(closed)}={secret}"}
        assert httpx.get(closed.url + "api/streams", headers=kept).status_code == 401


def test_a_bearer_token_is_as_good_as_a_session(closed):
    metrics = httpx.get(closed.url + "metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert metrics.status_code == 200
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "ongebd_frames_total" in metrics.text


def test_guessing_is_slowed_down_for_the_guesser_only(closed):
    with httpx.Client(base_url=closed.url) as signed_in, httpx.Client(base_url=closed.url) as guesser:
        signed_in.post("/login", data={"token": TOKEN})
        answers = [guesser.post("/login", data={"token": f"guess-{i}"}).status_code for i in range(8)]
        assert answers == [401] * 5 + [429] * 3
        # Not even the right one is looked at now, or waiting would mean nothing.
        assert guesser.post("/login", data={"token": TOKEN}).status_code == 429
        bearer = guesser.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert (bearer.status_code, bearer.headers["retry-after"]) == (429, "10")
        assert signed_in.get("/api/streams").status_code == 200


def test_patience_returns_with_time_and_is_kept_for_each_network(monkeypatch):
    now = 100.0
    monkeypatch.setattr(room, "monotonic", lambda: now)
    access = Access(TOKEN)
    assert [access.check("wrong", "10.0.0.1") for _ in range(6)] == ["wrong"] * 5 + ["wait"]
    assert access.check(TOKEN, "10.0.0.2") == "right"
    now += 10.0
    assert access.check("wrong", "10.0.0.1") == "wrong"
    assert access.check(TOKEN, "10.0.0.1") == "wait"
    now += 10.0
    assert access.check(TOKEN, "10.0.0.1") == "right"
    for host in range(5):
        access.check("wrong", f"2001:db8::{host}")
    assert access.check(TOKEN, "2001:db8::ffff") == "wait", "an IPv6 network counts as one"
    assert access.check(TOKEN, "2001:db8:0:1::1") == "right"
    assert access.check("wrong", "::ffff:10.9.9.9") == "wrong"
    assert access.check(TOKEN, "::ffff:10.9.9.8") == "right"


def test_guesses_from_ever_new_addresses_fill_no_memory():
    access = Access(TOKEN)
    for number in range(3000):
        access.check("wrong", f"10.{number // 256}.{number % 256}.1")
        access.open_session()
    assert len(access._tries) == 1024
    assert len(access._sessions) == 1024


def test_a_session_ends(monkeypatch):
    now = 0.0
    monkeypatch.setattr(room, "monotonic", lambda: now)
    access = Access(TOKEN)
    secret = access.open_session()
    cookie = Headers({"Cookie": f"ongebd={secret}"})
    assert access.has_session(cookie)
    assert not access.has_session(Headers())
    now = 30 * 24 * 3600.0
    assert not access.has_session(cookie)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "10.1.2.3", "[::", "@"]
)
def test_a_foreign_name_for_this_machine_is_refused(standing, host):
    _, server = standing
    for path in ("", "healthz", "api/streams", "login"):
        response = httpx.get(server.url + path, headers={"Host": host})
        assert response.status_code in (400, 403), path


@pytest.mark.parametrize(
    "host", ["localhost:99", "LOCALHOST", "127.0.0.1", "127.3.2.1:80", "[::1]:8765", "cams.example:443"]
)
def test_names_of_loopback_and_given_ones_are_known(watcher, served, host):
    server = served(watcher, names=["Cams.example"])
    assert httpx.get(server.url + "api/streams", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_another_sites_page_can_neither_read_nor_change(standing, headers):
    watcher, server = standing
    stream = watcher.streams["cam"]
    for path in ("api/streams", "api/feed", "api/incidents"):
        assert httpx.get(server.url + path, headers=headers).status_code == 403, path
    changed = httpx.post(
        server.url + "api/streams/cam/sensitivity", json={"sensitivity": 0.9}, headers=headers
    )
    assert changed.status_code == 403
    assert stream.now.sensitivity == 0.5


def test_a_link_from_elsewhere_opens_the_page_but_posts_nothing(watcher, served):
    server = served(watcher)
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert httpx.get(server.url, headers=followed).status_code == 200
    assert httpx.post(server.url + "login", data={"token": "x"}, headers=followed).status_code == 403


def test_every_answer_carries_the_strict_headers(closed):
    for path in ("", "login", "healthz", "nothing", "api/streams", "page.js"):
        headers = httpx.get(closed.url + path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == ("same-origin" if path == "login" else "no-referrer")
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers
        assert headers["cache-control"] == ("no-cache" if path == "page.js" else "no-store")


def _cookie(server):
    return f"ongebd_{httpx.URL(server.url).port}"
