"""Real connections over loopback: what cameras do, and what a user sees of it."""

from __future__ import annotations

import functools
import http.server
import os
import signal
import socket
import subprocess
import textwrap
import threading
import time
from dataclasses import replace

import pytest

from ongebd.baselines.pictures import Pictures
from ongebd.watch import Found, Onset, Point, StateChanged, Watcher
from waiting import NEVER, at_once, until

from .conftest import QUICK, everything, feeding

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes are frozen by a signal")
IMPATIENT = replace(QUICK, read_timeout=1.0, stall_after=0.4)


def changes(records):
    return [(r.state, r.epoch) for r in records if isinstance(r, StateChanged)]


def test_a_feed_that_is_killed_and_comes_back_at_another_size_is_watched_on(light_model, free_port):
    with Watcher([f"cam=tcp://127.0.0.1:{free_port}"], model=light_model, patience=QUICK) as watcher:
        told = watcher.hub.subscribe(StateChanged, Onset, Found, Point, limit=10_000)
        stream = watcher.streams["cam"]
        with feeding(free_port, width=96, height=64):
            until(lambda: stream.status().boundaries >= 2)
        until(lambda: stream.status().state == "reconnecting")
        before = stream.status().boundaries
        with feeding(free_port, width=160, height=128):
            until(lambda: stream.status().boundaries >= before + 1)
        watcher.stop()
    records = everything(told)
    states = changes(records)
    assert states[0] in (("reconnecting", 0), ("live", 0))  # the feed may need its time to begin
    assert ("live", 0) in states
    assert states.index(("live", 1)) > states.index(("live", 0))
    assert states[-1] == ("ended", 1)
    numbers = [r.number for r in records if isinstance(r, Onset)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers == [r.number for r in records if isinstance(r, Found)]
    points = [r for r in records if isinstance(r, Point)]
    assert {r.epoch for r in points} == {0, 1}
    assert [r.wall for r in points] == sorted(r.wall for r in points)
    assert next(r.time for r in points if r.epoch == 1) == 0.0
    assert watcher.streams["cam"].status().dropped == 0


def test_a_frozen_feed_is_stalled_and_then_given_up_for_a_new_connection(light_model, free_port):
    with (
        feeding(free_port) as feed,
        Watcher([f"cam={feed.url}"], model=light_model, patience=IMPATIENT) as watcher,
    ):
        told = watcher.hub.subscribe(StateChanged)
        stream = watcher.streams["cam"]
        until(lambda: stream.status().frames > 20)
        feed.process.send_signal(signal.SIGSTOP)
        until(lambda: stream.status().state == "reconnecting")
        feed.process.send_signal(signal.SIGCONT)
        until(lambda: stream.status().reconnects >= 1)
        watcher.stop()
    records = [r for r in everything(told) if r.epoch == 0]
    reasons = [(r.state, r.reason) for r in records if r.reason]
    assert ("stalled", "no frame for 0.4 s") in reasons
    assert any(state == "reconnecting" and "no data for 1 s" in why for state, why in reasons)


class SlowPictures(Pictures):
    def embed(self, frames):
        time.sleep(0.02)
        return super().embed(frames)


@pytest.mark.parametrize("url", ["tcp://{}", "http://{}/live.ts", "rtsp://{}/1", "rtmp://{}/app/key"])
def test_a_stop_ends_a_source_that_never_answers_at_once(light_model, url):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        watcher = Watcher([url.format(address)], model=light_model, patience=QUICK)
        watcher.start()
        with silent.accept()[0], at_once():
            watcher.stop()


def test_a_stop_ends_the_wait_between_two_attempts(light_model, free_port):
    patience = replace(QUICK, first_delay=NEVER, longest_delay=NEVER)
    watcher = Watcher([f"tcp://127.0.0.1:{free_port}"], model=light_model, patience=patience)
    watcher.start()
    until(lambda: next(iter(watcher.streams.values())).status().state == "reconnecting")
    with at_once():
        watcher.stop()


def test_several_feeds_are_watched_at_once_and_one_that_dies_harms_no_other(light_model, free_port):
    with socket.create_server(("127.0.0.1", 0)) as server:
        other = int(server.getsockname()[1])
    with feeding(free_port) as first, feeding(other) as second:
        sources = [f"a={first.url}", f"b={second.url}", "c=tcp://127.0.0.1:9"]
        with Watcher(sources, model=light_model, patience=QUICK) as watcher:
            a, b, c = watcher.streams.values()
            until(lambda: a.status().frames > 20 and b.status().frames > 20)
            first.kill()
            until(lambda: a.status().state == "reconnecting")
            seen = b.status().frames
            until(lambda: b.status().frames > seen + 12)
            assert (b.status().state, b.status().epoch) == ("live", 0)
            until(lambda: c.status().state == "reconnecting")


@pytest.fixture
def hls(make_video, make_scene, tmp_path):
    """A server of a folder with four seconds of HLS, as a film and as a broadcast that stops growing."""
    film = tmp_path / "film.m3u8"
    pictures = [make_scene(n // 25, 96, 64) for n in range(100)]
    make_video(film, pictures, options={"g": "25"}, container_options={"hls_time": "1", "hls_list_size": "0"})
    broadcast = film.read_text().replace("#EXT-X-ENDLIST", "")
    (tmp_path / "broadcast.m3u8").write_text(broadcast)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_): ...

    handler = functools.partial(Handler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_film_over_hls_is_watched_as_fast_as_it_goes_to_its_end_and_nothing_is_dropped(hls, light_model):
    slow = replace(light_model, backbone=SlowPictures(8, 6))
    with Watcher([f"film={hls}/film.m3u8"], model=slow, patience=QUICK, max_pending=4) as watcher:
        assert watcher.join(60)
    status = watcher.streams["film"].status()
    assert (status.state, status.reason) == ("ended", "the source has ended")
    assert (status.frames, status.dropped) == (96, 0)


@pytest.mark.slow
def test_a_broadcast_over_hls_is_played_at_its_pace_and_nothing_of_a_piece_is_dropped(hls, light_model):
    patience = replace(QUICK, stall_after=5)
    with Watcher(
        [f"cam={hls}/broadcast.m3u8"], model=light_model, patience=patience, max_pending=4
    ) as watcher:
        told = watcher.hub.subscribe(Point, StateChanged, limit=1000)
        stream = watcher.streams["cam"]
        until(lambda: stream.status().state == "stalled")
    records = everything(told)
    points = [r for r in records if isinstance(r, Point)]
    assert stream.status().dropped == 0
    assert len(points) >= 70  # it begins three pieces from the end
    assert points[-1].wall - points[0].wall > 0.5 * (points[-1].time - points[0].time)
    assert changes(records)[:2] == [("live", 0), ("stalled", 0)]


@pytest.mark.slow
def test_udp_is_watched_and_its_silence_is_told(light_model, free_port, make_video, make_scene, tmp_path):
    path = make_video(
        tmp_path / "clip.ts", [make_scene(n // 20, 96, 64) for n in range(100)], options={"g": "5"}
    )
    data = path.read_bytes()
    over = threading.Event()

    def send():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while not over.is_set():
                for start in range(0, len(data), 1316):
                    sender.sendto(data[start : start + 1316], ("127.0.0.1", free_port))
                    if over.wait(4 * 1316 / len(data)):
                        return

    sending = threading.Thread(target=send)
    with Watcher([f"cam=udp://127.0.0.1:{free_port}"], model=light_model, patience=IMPATIENT) as watcher:
        told = watcher.hub.subscribe(StateChanged)
        stream = watcher.streams["cam"]
        sending.start()
        until(lambda: stream.status().boundaries > 0)
        over.set()
        sending.join()
        until(lambda: stream.status().state == "reconnecting")
    assert any("no data for 1 s" in r.reason for r in everything(told))


_RTSP = textwrap.dedent(
    """
    import sys, gi
    gi.require_version("Gst", "1.0"); gi.require_version("GstRtspServer", "1.0")
    from gi.repository import GLib, Gst, GstRtspServer
    Gst.init(None)
    server = GstRtspServer.RTSPServer(service=sys.argv[1], address="127.0.0.1")
    factory = GstRtspServer.RTSPMediaFactory()
    size = "video/x-raw,width=%s,height=%s,framerate=25/1" % tuple(sys.argv[2:4])
    factory.set_launch("( videotestsrc is-live=true pattern=ball ! " + size + " ! videoconvert"
                       " ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=10"
                       " ! rtph264pay name=pay0 pt=96 )")
    auth = GstRtspServer.RTSPAuth()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "user")
    basic = GstRtspServer.RTSPAuth.make_basic("me", "hunter2")
    auth.add_basic(basic, token)
    server.set_auth(auth)
    roles = GstRtspServer.RTSPPermissions()
    roles.add_permission_for_role("user", "media.factory.access", True)
    roles.add_permission_for_role("user", "media.factory.construct", True)
    factory.set_permissions(roles)
    factory.set_shared(True)
    server.get_mount_points().add_factory("/cam", factory)
    server.attach(None)
    print("ready", flush=True)
    GLib.MainLoop().run()
    """
)
_SYSTEM_PYTHON = "/usr/bin/python3"


def _rtsp_server(port, width, height):
    return subprocess.Popen(
        [_SYSTEM_PYTHON, "-c", _RTSP, str(port), str(width), str(height)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _has_rtsp_server() -> bool:
    check = (
        "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import GstRtspServer, Gst;"
    )
    check += "Gst.init(None); assert Gst.ElementFactory.find('x264enc')"
    try:
        return subprocess.run([_SYSTEM_PYTHON, "-c", check], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.slow
def test_an_rtsp_camera_is_watched_with_its_password_through_death_freeze_and_another_size(
    light_model, free_port
):
    if not _has_rtsp_server():
        pytest.skip("no RTSP server: apt-get install gir1.2-gst-rtsp-server-1.0 and GStreamer's plugins")
    url = f"rtsp://me:hunter2@127.0.0.1:{free_port}/cam"
    server = _rtsp_server(free_port, 160, 120)
    patience = replace(IMPATIENT, read_timeout=2.0)
    try:
        assert server.stdout.readline() == b"ready\n"
        with Watcher([f"cam={url}"], model=light_model, patience=patience) as watcher:
            told = watcher.hub.subscribe(limit=100_000)
            stream = watcher.streams["cam"]
            until(lambda: stream.status().frames > 40)
            server.send_signal(signal.SIGSTOP)
            until(lambda: stream.status().state == "reconnecting")
            server.send_signal(signal.SIGCONT)
            until(lambda: stream.status().reconnects == 1)
            server.kill()
            server.wait()
            until(lambda: stream.status().state == "reconnecting")
            server = _rtsp_server(free_port, 320, 240)
            until(lambda: stream.status().reconnects == 2)
            frames = stream.status().frames
            until(lambda: stream.status().frames > frames + 24)
            watcher.stop()
        records = everything(told)
        assert "hunter2" not in repr(records)
        assert [r.epoch for r in records if isinstance(r, StateChanged) and r.state == "live"][-1] == 2
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
