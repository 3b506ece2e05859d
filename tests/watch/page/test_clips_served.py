"""Clips on the page: the one file that was written for a boundary, and nothing else of the disk."""

from __future__ import annotations

import httpx
import pytest

from ongebd.watch import Clip

from .test_server_data import followed, heard, messages


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "clips").mkdir()
    return tmp_path / "clips"


def write(stream, folder, onset, data=b"0123456789" * 50):
    path = folder / f"20261128T080000.000Z-{stream.key}-{onset.number}.mp4"
    path.write_bytes(data)
    stream.history.settle_clip(onset.number, path)
    stream.hub.publish(Clip(stream.key, onset.number, 0, onset.time, onset.wall, path, 9.5))
    return path


def filmed(watcher, served, folder, **options):
    """A server, the path of an incident's clip, and its address."""
    stream = watcher.add("cam")
    server = served(watcher, **options)
    onset = stream.onset()
    stream.happen(onset)
    path = write(stream, folder, onset)
    token = {"Authorization": f"Bearer {options.get('token')}"}
    run = httpx.get(f"{server.url}api/streams", headers=token).json()["run"]
    return server, path, f"{server.url}api/incidents/{run}-cam-1/clip"


def test_a_clip_is_announced_when_it_is_written_and_to_those_who_load_later(watcher, served, folder):
    stream = watcher.add("cam")
    server = served(watcher)
    onset = stream.onset()
    with httpx.Client(base_url=server.url) as client, followed(client) as feed:
        told = messages(feed.iter_lines())
        stream.happen(onset)
        write(stream, folder, onset)
        one = heard(told, lambda data: [one for one in data.get("incidents", []) if one["clip"]])[0]
        assert (one["stream"], one["clip"], one["picture"]) == ("cam", True, True)
        stream.happen(onset, "ended")  # the clip is not forgotten
        one = heard(told, lambda data: [one for one in data.get("incidents", []) if one["ended"]])[0]
        assert one["clip"] is True
        assert client.get("api/incidents").json()["incidents"][0]["clip"] is True


def test_a_clip_is_sent_whole_or_in_ranges(watcher, served, folder):
    _, _, url = filmed(watcher, served, folder)
    whole = httpx.get(url)
    assert (whole.status_code, whole.headers["content-type"], len(whole.content)) == (200, "video/mp4", 500)
    part = httpx.get(url, headers={"Range": "bytes=10-14"})
    assert (part.status_code, part.content) == (206, b"01234")
    assert part.headers["content-range"] == "bytes 10-14/500"
    assert httpx.get(url, headers={"Range": "bytes=900-"}).status_code == 416
    assert httpx.head(url).headers["content-length"] == "500"
    assert "media-src 'self'" in whole.headers["content-security-policy"]


NOWHERE = [
    "{run}-cam-2/clip",
    "{run}-cam-0/clip",
    "{run}-cam--1/clip",
    "{run}-cam-..%2f..%2fsecret.txt/clip",
    "../../secret.txt/clip",
    "20261128T080000.000Z-cam-1.mp4/clip",
    "{run}-other-1/clip",
    "..%2f..%2f/clip",
    "{run}-cam-1%00/clip",
    "{run}-cam-99999999999999999999999/clip",
]


def test_nothing_else_is_read(watcher, served, folder):
    server, _, url = filmed(watcher, served, folder)
    run = url.split("/")[-2].partition("-")[0]
    with httpx.Client(base_url=server.url) as client:
        answers = [client.get(f"api/incidents/{path.format(run=run)}") for path in NOWHERE]
    assert [answer.status_code for answer in answers] == [404] * len(NOWHERE)
    assert not any("secret" in answer.text for answer in answers)


def test_a_clip_that_was_deleted_or_replaced_by_a_link_is_not_found(watcher, served, folder):
    _, path, url = filmed(watcher, served, folder)
    assert httpx.get(url).status_code == 200
    path.unlink()
    assert httpx.get(url).status_code == 404
    path.symlink_to(folder.parent / "secret.txt")
    assert httpx.get(url).status_code == 404
    path.unlink()
    path.mkdir()
    assert httpx.get(url).status_code == 404


def test_a_clip_needs_the_token(watcher, served, folder):
    _, _, url = filmed(watcher, served, folder, token="correct-horse-battery")
    assert httpx.get(url).status_code == 401
    headers = {"Authorization": "Bearer correct-horse-battery"}
    assert httpx.get(url, headers=headers).status_code == 200
