"""Clips on the page: the one file that was written for a boundary, and nothing else of the disk."""

from __future__ import annotations

import httpx
import pytest

from .test_server_data import followed, messages, until


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "clips").mkdir()
    return tmp_path / "clips"


def write(stream, folder, onset, data=b"0123456789" * 50):
    path = folder / f"20261128T080000.000Z-{stream.key}-{onset.number}.mp4"
    path.write_bytes(data)
    stream.history.settle_clip(onset.number, path)
    return path


def test_a_clip_is_announced_when_it_is_written_and_to_those_who_load_later(watcher, served, folder):
    stream = watcher.add("cam")
    onset = stream.onset()
    server = served(watcher)
    with httpx.Client(base_url=server.url) as client, followed(client) as feed:
        told = messages(feed.iter_lines())
        write(stream, folder, onset)
        event = until(told, lambda data: [one for one in data.get("events", []) if one.get("clip")])[0]
        assert (event["s"], event["n"], event["img"]) == ("cam", 1, True)
        stream.find(onset)  # its centre is known: the clip is not forgotten
        event = until(told, lambda data: [one for one in data.get("events", []) if "c" in one])[0]
        assert event["clip"] is True
        assert client.get("api/streams/cam/past").json()["events"][0]["clip"] is True


def test_a_clip_is_sent_whole_or_in_ranges(watcher, served, folder):
    stream = watcher.add("cam")
    write(stream, folder, stream.onset())
    url = f"{served(watcher).url}api/streams/cam/clips/1"
    whole = httpx.get(url)
    assert (whole.status_code, whole.headers["content-type"], len(whole.content)) == (200, "video/mp4", 500)
    part = httpx.get(url, headers={"Range": "bytes=10-14"})
    assert (part.status_code, part.content) == (206, b"01234")
    assert part.headers["content-range"] == "bytes 10-14/500"
    assert httpx.get(url, headers={"Range": "bytes=900-"}).status_code == 416
    assert httpx.head(url).headers["content-length"] == "500"
    assert "media-src 'self'" in whole.headers["content-security-policy"]


NOWHERE = [
    "cam/clips/2",
    "cam/clips/0",
    "cam/clips/-1",
    "cam/clips/..%2f..%2fsecret.txt",
    "cam/clips/../../secret.txt",
    "cam/clips/20261128T080000.000Z-cam-1.mp4",
    "other/clips/1",
    "..%2f..%2f/clips/1",
    "cam/clips/1%00",
    "cam/clips/99999999999999999999999",
]


def test_nothing_else_is_read(watcher, served, folder):
    stream = watcher.add("cam")
    write(stream, folder, stream.onset())
    with httpx.Client(base_url=served(watcher).url) as client:
        answers = [client.get(f"api/streams/{path}") for path in NOWHERE]
    assert [answer.status_code for answer in answers] == [404] * len(NOWHERE)
    assert not any("secret" in answer.text for answer in answers)


def test_a_clip_that_was_deleted_or_replaced_by_a_link_is_not_found(watcher, served, folder):
    stream = watcher.add("cam")
    path = write(stream, folder, stream.onset())
    url = f"{served(watcher).url}api/streams/cam/clips/1"
    assert httpx.get(url).status_code == 200
    path.unlink()
    assert httpx.get(url).status_code == 404
    path.symlink_to(folder.parent / "secret.txt")
    assert httpx.get(url).status_code == 404
    path.unlink()
    path.mkdir()
    assert httpx.get(url).status_code == 404


def test_a_clip_needs_the_token(watcher, served, folder):
    stream = watcher.add("cam")
    write(stream, folder, stream.onset())
    url = f"{served(watcher, token='correct-horse-battery').url}api/streams/cam/clips/1"
    assert httpx.get(url).status_code == 401
    headers = {"Authorization": "Bearer correct-horse-battery"}
    assert httpx.get(url, headers=headers).status_code == 200
