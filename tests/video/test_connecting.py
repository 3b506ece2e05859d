"""Time-outs, options, and being told to stop."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from contextlib import suppress

import pytest

from ongebd.errors import ConfigError, SourceError
from ongebd.video import VideoReader, source
from ongebd.video.connecting import Connecting, PipeEnd, interruptible
from waiting import HANG, NEVER, at_once


def in_a_moment(event: threading.Event, seconds: float = 0.3) -> threading.Timer:
    timer = threading.Timer(seconds, event.set)
    timer.start()
    return timer


@pytest.mark.parametrize("scheme", ["tcp", "http", "rtsp"])
def test_opening_ends_at_once_when_told_to_stop(scheme):
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}/x"
        timer = in_a_moment(stop)
        with at_once(), pytest.raises(SourceError):
            VideoReader(url, connecting=Connecting(open_timeout=NEVER, stop=stop))
        timer.join()


def test_reading_ends_at_once_when_told_to_stop_and_keeps_what_came(make_video, make_scene, tmp_path):
    data = make_video(tmp_path / "c.ts", [make_scene(n, 96, 64) for n in range(40)]).read_bytes()
    stop, over, count = threading.Event(), threading.Event(), 0
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send():
            connection, _ = server.accept()
            with connection:
                connection.sendall(data)
                over.wait(NEVER)

        thread = threading.Thread(target=send)
        thread.start()
        connecting = Connecting(read_timeout=NEVER, live=True, stop=stop)
        url = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with at_once(), VideoReader(url, connecting=connecting) as video:
            for count, _ in enumerate(video, 1):
                if count == 30:
                    in_a_moment(stop)
        over.set()
        thread.join()
    assert count >= 30
    assert video.broken.endswith("it was stopped")


def test_the_time_outs_of_one_source_are_its_own_and_told():
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x.mp4"
        with pytest.raises(SourceError, match=r"no answer within 0\.3 s"):
            VideoReader(url, connecting=Connecting(open_timeout=0.3))


def test_a_stop_in_one_thread_leaves_the_others_alone():
    from av.container import core

    stop = threading.Event()
    stop.set()
    seen = {}

    def look(name, event):
        with interruptible(event):
            seen[name] = core.time.monotonic() - time.monotonic()

    for name, event in (("stopped", stop), ("other", threading.Event()), ("none", None)):
        thread = threading.Thread(target=look, args=(name, event))
        thread.start()
        thread.join()
    assert seen["stopped"] > 1e6
    assert abs(seen["other"]) < HANG
    assert abs(seen["none"]) < HANG


@pytest.mark.skipif(os.name == "nt", reason="a pipe with a name")
@pytest.mark.parametrize(
    ("at", "end"),
    [("opening", "Ctrl-C"), ("opening", "time-out"), ("reading", "stop"), ("reading", "time-out")],
)
def test_a_camera_whose_driver_hangs_is_left(make_video, make_scene, tmp_path, monkeypatch, end, at):
    os.mkfifo(driver := tmp_path / "driver")  # FFmpeg waits for whoever writes
    monkeypatch.setattr(source, "_camera_device", lambda _: (str(driver), "mpegts"))
    data = make_video(tmp_path / "c.ts", [make_scene(n, 96, 64) for n in range(60)]).read_bytes()
    stop, over = threading.Event(), threading.Event()

    def send():
        with driver.open("wb", 0) as pipe:
            pipe.write(data)
            over.wait(NEVER)

    def end_it():
        stop.set() if end == "stop" else signal.raise_signal(signal.SIGINT) if end == "Ctrl-C" else None

    sender, ender = threading.Thread(target=send), threading.Timer(0.5, end_it)
    if at == "reading":
        sender.start()
    seconds = 0.5 if end == "time-out" else NEVER
    ender.start()
    with at_once(), suppress(SourceError, KeyboardInterrupt):
        connecting = Connecting(open_timeout=seconds, read_timeout=seconds, stop=stop, live=True)
        with VideoReader("camera:0", connecting=connecting) as video:
            frames = list(video)
            assert (len(frames) >= 50, video.broken is not None) == (True, True)
    over.set()
    if at == "opening":
        sender.start()  # lets FFmpeg go
    sender.join()
    ender.join()


@pytest.mark.skipif(os.name == "nt", reason="a pipe that select takes")
def test_a_pipe_is_waited_for_until_the_time_out():
    read, write = os.pipe()
    try:
        end = PipeEnd(read, Connecting(read_timeout=0.3, live=True))
        os.write(write, b"abc")
        assert end.read(10) == b"abc"
        began = time.monotonic()
        with pytest.raises(TimeoutError, match=r"no data for 0\.3 s"):
            end.read(10)
        assert time.monotonic() - began > 0.2
        stop = threading.Event()
        timer = in_a_moment(stop, 0.1)
        with at_once(), pytest.raises(OSError, match="it was stopped"):
            PipeEnd(read, Connecting(read_timeout=NEVER, stop=stop)).read(10)
        timer.join()
        os.close(write)
        assert end.read(10) == b""
    finally:
        os.close(read)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), "soon"])
def test_an_impossible_time_out_is_refused(wrong):
    with pytest.raises(ConfigError, match="read_timeout"):
        Connecting(read_timeout=wrong)


def test_each_protocol_gets_what_it_needs():
    live = Connecting(live=True)
    assert live.options_for("rtsps://host/1") == {"rtsp_transport": "tcp", "analyzeduration": "1000000"}
    assert live.options_for("udp://:5000")["overrun_nonfatal"] == "1"
    assert Connecting().options_for("http://host/x.mp4") == {}
    assert Connecting().options_for("RTSP://host/1") == {"rtsp_transport": "tcp"}


def test_a_preview_is_upright_and_never_larger_than_the_picture(make_video, make_scene, tmp_path):
    path = make_video(tmp_path / "clip.mp4", [make_scene(1, 320, 180)] * 3)
    with VideoReader(path, preview=90) as video:
        assert {frame.preview.shape for frame in video} == {(90, 160, 3)}
    with VideoReader(path, preview=270) as video:
        assert {frame.preview.shape for frame in video} == {(180, 320, 3)}
    with VideoReader(path) as video:
        assert {frame.preview for frame in video} == {None}
