"""Ctrl-C and kill, at any moment and twice: the command ends soon, and what it wrote is whole."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import av
import pytest

from ongebd.errors import SourceError
from ongebd.output.jsonl import read_jsonl
from ongebd.video import VideoReader
from ongebd.video.connecting import Connecting
from waiting import HANG, NEVER, at_once

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")
ONGEBD = [sys.executable, "-m", "ongebd"]


@pytest.fixture(scope="module")
def film(make_video, make_scene, tmp_path_factory):
    """Scenes of 1.2 s, for 20 s."""
    pictures = [make_scene(n // 30, 96, 64) for n in range(500)]
    return make_video(tmp_path_factory.mktemp("films") / "film.mp4", pictures, options={"g": "25"})


@pytest.mark.parametrize(
    ("gap", "signals"),
    [(0.05, (signal.SIGINT, signal.SIGINT)), (0.3, (signal.SIGTERM, signal.SIGINT, signal.SIGINT))],
)
def test_a_second_signal_leaves_every_file_whole(film, tmp_path, gap, signals):
    command = [*ONGEBD, "watch", f"a={film}", f"b={film}", "--realtime", "-m", "window-mean"]
    outputs = ["--jsonl", "seen.jsonl", "--clips", "clips", "--exec", "sleep 150"]
    with subprocess.Popen(
        [*command, *outputs], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while "  b  incident 1 " not in process.stdout.readline():
                assert process.poll() is None
            for number in signals:
                process.send_signal(number)
                time.sleep(gap)
            _, trouble = process.communicate(timeout=HANG)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in trouble
    recording = read_jsonl(tmp_path / "seen.jsonl")
    assert (recording.end.complete, recording.cut) == (False, False)
    assert recording.end.boundaries == len(recording.boundaries) >= 2
    told = [line for line in recording.others if line["type"] == "clip"]
    assert len(told) == len(list((tmp_path / "clips").iterdir())) >= 1
    for path in (tmp_path / "clips").iterdir():
        with av.open(str(path)) as clip:
            assert sum(1 for _ in clip.decode(video=0)) > 0


@pytest.mark.parametrize("command", ["detect", "watch"])
@pytest.mark.parametrize("source", ["tcp://{}", "http://{}/x.ts", "https://{}/x.ts", "rtsp://{}/1", "pipe"])
def test_a_source_that_says_nothing_yields_to_the_first_signal(tmp_path, command, source):
    os.mkfifo(tmp_path / "pipe")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(HANG)
        where = source.format(f"127.0.0.1:{silent.getsockname()[1]}")
        words = [*ONGEBD, command, where, "-m", "window-mean", "-q"]
        with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            try:
                kept = (tmp_path / "pipe").open("wb") if source == "pipe" else silent.accept()[0]
                process.send_signal(signal.SIGINT)
                _, trouble = process.communicate(timeout=HANG)
            finally:
                process.kill()
        kept.close()
    assert (process.returncode, trouble) == (130, "")


@pytest.mark.parametrize("wait", [0.0, 0.1, 0.4])
def test_two_signals_at_any_moment_of_detect_leave_whole_results(film, tmp_path, wait):
    words = [*ONGEBD, "detect", str(film), "--out", str(tmp_path / "out"), "-f", "jsonl,csv,vtt"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not (tmp_path / "out" / "film.jsonl").exists() and process.poll() is None:
                time.sleep(0.01)
            time.sleep(wait)
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                time.sleep(0.02)
            _, trouble = process.communicate(timeout=HANG)
        finally:
            process.kill()
    assert process.returncode in (0, 130)
    assert trouble.startswith("film: ") or trouble.split("/")[-1].startswith("film.mp4: ")
    assert trouble.count("\n") == 1
    recording = read_jsonl(tmp_path / "out" / "film.jsonl")
    assert recording.end.boundaries == len(recording.boundaries)
    assert len((tmp_path / "out" / "film.csv").read_text().splitlines()) == 1 + len(recording.boundaries)


@pytest.mark.parametrize("url", ["http://camera/1", "rtsp://camera/1", "udp://camera:1"])
def test_a_name_server_that_says_nothing_is_waited_for_no_longer_than_for_the_source(monkeypatch, url):
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(NEVER))
    with at_once(), pytest.raises(SourceError, match=r"no answer within 0\.1 s"):
        VideoReader(url, connecting=Connecting(open_timeout=0.1))
    over.set()
