"""What an address looks like in public, and what reaches a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ongebd.common.text import is_unique, printable, public_name
from ongebd.errors import ConfigError, LabelError, MissingExtraError, OngebdError, SourceError

QUERY_NAMES = (
    *("pw", "pwd", "pass", "password", "p%77", "%70ass", "jwt", "sid", "session", "hdnts", "hdnea", "token"),
    *("key", "sig", "signature", "auth", "secret", "policy", "X-Amz-Signature", "Key-Pair-Id", "passphrase"),
    *("streamid", "user", "u", "k", "code", "a[]", "PASSWORD"),
)
IN_VALUES = (
    *(f"http://cam/v.mjpg?{{mark}}{name}={{}}{{end}}" for name in QUERY_NAMES),
    "http://cam:80/x?a=1&a={}&a={}",
    "http://cam/x?channel=1;pw={};subtype=0",
    "http://cam/x?{}",
    "http://cam/x#{}",
    "http://cam/x?channel=1#token={}",
    "http://cam/x&pwd={}",
    "http://cam/x;jsessionid={}/1",
    "rtsp://10.0.0.7:554/user=admin_password={}_channel=1_stream=0.sdp?real_stream",
    "rtsp://10.0.0.7:554/user={}&password={}&channel=1&stream=0.sdp?",
    "rtsp://cam/user/{}/password/{}/ch1",
    "rtsp://cam/token/{}",
    "rtsp://cam:554/0/admin:{}/main",
    "http://tv:8080/live/john/{}/1234.ts",
    "http://tv:8080/{}/pass/1234",
    "https://tv/timeshift/john/{}/60/2026-01-01:10-00/1234.ts",
    "rtmp://host/app/{}",
    "rtmp://host/{}",
    "rtmps://host:443/app/{}?user={}",
    "rtmp://host/app/ playpath={}",
    "srt://host:9000?mode=caller&passphrase={}",
    "https://cdn/{}4fd9e51a0bb14c7d/index.m3u8",
    "http://proxy/?url=rtsp://admin:{}@cam/1",
    "rtsp://{}@cam/1",
    "rtsp://{}:x@cam/1",
)
IN_USER = (
    "rtsp://admin:{}@cam/1",
    "rtsp://:{}@cam/1",
    "rtsp://admin:{}@",
    "rtsp://admin:{}@:554/1",
    "rtsp://admin:554/{}@cam/1",
    "rtsp://123:554/{}?@cam/1",
    "RTSP://admin:{}@[fe80::1]:554/1?channel=2",
    "insecure+https://admin:{}@cam/1",
    "rtsp:/admin:{}@cam/1",
    "door=rtsp://admin:{}@cam/1",
    "http://proxy/rtsp://admin:{}@cam/1",
)
WITHOUT_A_SCHEME = ("admin:{}@cam/1", "admin:{}@10.0.0.7:554", "door=admin:{}@cam", "to 'admin:{}@[::1]/1'")
PLAIN = st.text("abcXYZ019!$*+.~^()-'", min_size=1, max_size=9)
ODD = st.text("abcXYZ019!$*+.~^()-'@/?#:;=&", max_size=12)


def hidden_everywhere(address: str, secret: str) -> None:
    public = public_name(address)
    assert secret not in public
    assert public_name(public) == public
    assert public_name(f"{public}: can't open: no answer; check") == f"{public}: can't open: no answer; check"
    assert public_name(f"'{public}' and would be lost").endswith(" and would be lost")
    for error in (SourceError, ConfigError, LabelError, OngebdError, MissingExtraError):
        problem = error(f"{address}: can't open it")
        assert secret not in f"{problem} {problem!r} {problem.args}"


@given(
    st.sampled_from(IN_VALUES), PLAIN, st.sampled_from(["", "fps=5&", "&;"]), st.sampled_from(["", "&t=3"])
)
def test_a_secret_in_a_query_path_or_fragment_is_never_shown(form, secret, mark, end):
    secret = f"zQ{secret}w7"
    filled = form.replace("{mark}", mark).replace("{end}", end).replace("{}", secret)
    hidden_everywhere(filled, secret)


@given(st.sampled_from(IN_USER), ODD)
@example(IN_USER[0], "12/34")
@example(IN_USER[0], "xx://yy")
@example(IN_USER[0], "my, pass")
def test_user_and_password_are_never_shown_whatever_is_in_them(form, secret):
    secret = f"zQ{secret}w7"
    hidden_everywhere(form.replace("{}", secret), secret)


@given(st.sampled_from(WITHOUT_A_SCHEME), ODD)
def test_user_and_password_are_hidden_without_a_scheme_too(form, secret):
    secret = f"zQ{secret}w7"
    hidden_everywhere(form.replace("{}", secret), secret)


@pytest.mark.parametrize("password", ["hunter2", "hunter2/live", "hun%74er2"])
def test_a_password_without_a_host_is_hidden(password):
    assert public_name(f"rtsp://admin:{password}").startswith("rtsp://***")
    assert "hun" not in public_name(f"rtsp://admin:{password}")


@pytest.mark.parametrize(
    "address",
    [
        "rtsp://192.168.1.2:554/cam/realmonitor?channel=1&subtype=0",
        "rtsp://192.168.1.2:554/Streaming/Channels/101?transportmode=unicast&profile=Profile_1",
        "http://192.168.1.2/mjpg/video.cgi?channel=1&resolution=640x480&fps=15",
        "rtsp://cam/axis-media/media.amp?videocodec=h264",
        "udp://@239.0.0.1:5000?pkt_size=1316&timeout=5000000",
        "https://host/films/clip_01.mp4",
        "https://host/v/3fa85f6457174562b3fc2c963f66afa6.mp4",
        "http://[::1]:8765/",
        "may not open 10.0.0.1:80; a web source reaches only its own server",
        "file:///data/a=b@c/clip.mp4",
        "/data/a=b@c/user/x/clip.mp4",
        "holiday at 5@home.mp4",
        "talk: 10:30@home.mp4",
        "C:\\Users\\me@home.mp4",
        "file:me@home.mp4",
    ],
)
def test_what_tells_cameras_apart_stays(address):
    assert public_name(address) == address
    assert is_unique(address)


def test_names_with_a_hidden_part_other_than_the_user_are_not_unique():
    assert is_unique(public_name("rtsp://admin:hunter2@cam/1"))
    assert not is_unique(public_name("rtmp://host/app/key"))
    assert not is_unique(public_name("http://host/v?v=abc"))


@given(st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Ll", "Lo"]), max_size=20))
@example("\x1b]0;x\x07\x9b2J\r\n\u202eab\u2066\u200b\ufeff\u2028\x85")
def test_nothing_that_acts_on_a_terminal_is_printable(text):
    shown = printable(text)
    left = {c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    assert left <= {"\u200c", "\u200d"}
    assert printable(shown) == shown
