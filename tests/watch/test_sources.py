from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.errors import ConfigError
from ongebd.watch import Patience
from ongebd.watch.sources import is_live, sources_of


def test_keys_are_short_unique_and_fit_for_urls(tmp_path):
    named = sources_of(
        [
            "Front Door=rtsp://me:secret@10.0.0.7/1",
            "rtsp://me:secret@10.0.0.8/1",
            str(tmp_path / "My Film.mp4"),
            str(tmp_path / "b" / "my film.mkv"),
            "-",
            "camera:0",
        ]
    )
    keys = [one.key for one in named]
    assert keys == ["front-door", "cam2", "my-film", "my-film-2", "stdin", "cam6"]
    assert [one.name for one in named[:2]] == ["Front Door", "rtsp://***@10.0.0.8/1"]
    assert named[0].source == "rtsp://me:secret@10.0.0.7/1"
    assert "secret" not in repr(named)


def test_an_equals_sign_that_names_nothing_is_part_of_the_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b.mp4").touch()
    assert sources_of(["a=b.mp4"])[0].source == "a=b.mp4"
    assert sources_of(["http://host/x?cam=1"])[0].source == "http://host/x?cam=1"
    assert sources_of(["cam=http://host/x?cam=1"])[0].source == "http://host/x?cam=1"


def test_two_sources_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="two sources are named A"):
        sources_of(["a=rtsp://x", "A=rtsp://y"])


def test_sources_whose_public_names_are_the_same_are_told_apart():
    named = sources_of(
        ["rtmp://host/live/key1", "rtmp://host/live/key2", "http://h/v?id=a", "http://h/v?id=b"]
    )
    assert [one.name for one in named] == [
        "rtmp://host/live/***",
        "rtmp://host/live/*** (cam2)",
        "http://h/v?id=***",
        "http://h/v?id=*** (cam4)",
    ]


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=8))
def test_any_names_give_unique_keys(names):
    try:
        named = sources_of([f"{name}=rtsp://host/{number}" for number, name in enumerate(names)])
    except ConfigError:
        return
    keys = [one.key for one in named]
    assert len(set(keys)) == len(names)
    assert all(
        key and key.isascii() and set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for key in keys
    )


@pytest.mark.parametrize(
    ("source", "duration", "live"),
    [
        ("rtsp://host/1", 12.0, True),
        ("udp://:5000", None, True),
        ("https://host/live.m3u8", None, True),
        ("https://host/film.m3u8", 61.5, False),
        ("camera:0", None, True),
        ("film.mp4", None, False),
        ("-", None, False),
    ],
)
def test_what_is_live_is_told_by_its_protocol_and_its_length(source, duration, live):
    assert is_live(source, duration) is live


@given(st.integers(1, 10_000))
def test_delays_double_up_to_the_longest_and_are_spread(attempt):
    patience = Patience(first_delay=1, longest_delay=60)
    longest = min(60, 2.0 ** min(attempt - 1, 32))
    assert longest / 2 <= patience.delay(attempt) <= longest


@pytest.mark.parametrize(
    ("address", "said"),
    [("foo://camera/1", "unknown protocol"), ("rtsp://camera:port/1", "not a whole address")],
)
def test_an_address_that_can_never_work_is_refused_before_anything_starts(address, said):
    with pytest.raises(ConfigError, match=f"^door: {said}"):
        sources_of([f"door={address}"])
