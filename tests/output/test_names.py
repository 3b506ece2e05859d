"""How sources are named in what is written."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.common.text import public_name
from ongebd.output import clock, output_stems


@pytest.mark.parametrize(
    ("source", "public"),
    [
        ("rtsp://u:p@host:554/a", "rtsp://***@host:554/a"),
        ("rtsp://u@host/a", "rtsp://***@host/a"),
        ("rtsp://u:p@ss@host/a", "rtsp://***@host/a"),
        ("rtsp://u:p/w?x#y@host/a", "rtsp://***@host/a"),
        ("rtsp://u:12#34@host/a", "rtsp://***@host/a"),
        ("https://host/@user/video.mp4", "https://host/@user/video.mp4"),
        ("https://host:8080/x@y.mp4", "https://host:8080/x@y.mp4"),
        ("http://[::1]:80/x@y", "http://[::1]:80/x@y"),
        ("https://h/v.mp4?X-Amz-Signature=abc&t=3", "https://h/v.mp4?X-Amz-Signature=***&t=3"),
        ("http://cam/v?user=admin&PASSWORD=x", "http://cam/v?user=***&PASSWORD=***"),
        ("srt://h:9000?passphrase=long&latency=2", "srt://h:9000?passphrase=***&latency=2"),
        ("concat:http://a:b@h/1.ts|http://c:d@h/2.ts", "concat:http://***@h/1.ts|http://***@h/2.ts"),
        ("-", "-"),
        ("me@home token=x.mp4", "me@home token=x.mp4"),
    ],
)
def test_credentials_are_hidden_and_nothing_else(source: str, public: str):
    assert public_name(source) == public


passwords = st.text(
    st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters="|"), min_size=6
)


@given(passwords)
def test_no_password_is_seen(password: str):
    secret = f"s3{password}3t"
    assert secret not in public_name(f"rtsp://admin:{secret}@cam.example/live/1")


def test_stems_are_unlike_and_safe():
    sources = [
        "x/a.mp4",
        "y/a.mkv",
        "y/A.MP4",
        "-",
        "rtsp://u:pw@cam/live/?k=1",
        "http://h/",
        "-v.mp4",
        "a-2.mp4",
    ]
    assert output_stems(sources) == ["a", "a-2", "A-3", "stdin", "live", "h", "-v", "a-2-2"]


def test_a_stem_leaves_room_for_an_ending():
    stem = output_stems(["日" * 80 + ".mp4"])[0]
    assert len(os.fsencode(stem)) <= 200


@given(st.text(), st.booleans())
def test_any_source_gives_a_file_name(source: str, remote: bool):
    (stem,) = output_stems([f"rtsp://{source}" if remote else source])
    assert stem
    assert "/" not in stem


@given(st.floats(0, 1e7))
def test_clock_never_says_sixty_seconds(seconds: float):
    assert ":60" not in clock(seconds)
