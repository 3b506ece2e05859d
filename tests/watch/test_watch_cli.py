"""`ongebd watch` as a user runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest

import ongebd
from ongebd.cli import main
from ongebd.output.jsonl import read_jsonl
from waiting import HANG, until

from .conftest import feeding

ONGEBD = [sys.executable, "-m", "ongebd", "watch"]


@pytest.fixture(scope="module")
def clip(make_video, make_scene, tmp_path_factory):
    """Four scenes of 1.2 s."""
    pictures = [make_scene(n // 30, 96, 64) for n in range(120)]
    return make_video(tmp_path_factory.mktemp("clips") / "clip.mp4", pictures)


def test_a_file_is_told_line_by_line_and_in_a_file_of_records(clip, tmp_path, capfd):
    out = tmp_path / "seen.jsonl"
    status = main(
        [
            "watch",
            f"door={clip}",
            "-m",
            "window-mean",
            "--jsonl",
            str(out),
            "--thumbnails",
            str(tmp_path / "t"),
        ]
    )
    said, trouble = capfd.readouterr()
    lines = said.splitlines()
    assert (status, trouble) == (0, "")
    assert re.fullmatch(r"# \d{4}-\d\d-\d\d .*  door  live, epoch 0", lines[0])
    assert lines[-1].endswith("door  ended, epoch 0: the source has ended")
    incidents = [line for line in lines if "  incident " in line]
    recording = read_jsonl(out)
    assert recording.complete
    assert len(recording.boundaries) == len(list((tmp_path / "t").glob("*.jpg"))) > 0
    assert 0 < len(incidents) == sum(one.get("state") == "started" for one in recording.others)
    assert recording.header.model == "window-mean"
    assert recording.end.frames == 115


def test_each_decided_frame_has_a_line_where_that_is_asked_for(clip, tmp_path):
    out = tmp_path / "seen.jsonl"
    assert main(["watch", str(clip), "-m", "window-mean", "-q", "--jsonl", str(out), "--jsonl-frames"]) == 0
    decisions = ongebd.detect(str(clip), model="window-mean").decisions
    points = [one for one in read_jsonl(out).others if one["type"] == "point"]
    names = ("time", "error", "mean", "std", "threshold", "z")
    assert [[one[name] for name in names] for one in points] == [
        [round(getattr(one, name), 6) for name in names] for one in decisions
    ]
    assert [one["positive"] for one in points] == [one.is_boundary for one in decisions]


def test_a_source_that_is_refused_is_told_in_a_line_and_the_others_go_on(clip, tmp_path, capfd):
    status = main(["watch", str(tmp_path / "gone.mp4"), f"door={clip}", "-m", "window-mean", "-q"])
    said, trouble = capfd.readouterr()
    assert status == 2
    assert said.count("door  incident") == said.count("\n") > 0
    assert trouble.count("\n") == 1
    assert "gone.mp4: no such file; check the path" in trouble


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_130_and_everything_on_disk(free_port, tmp_path, how):
    out = tmp_path / "seen.jsonl"
    with feeding(free_port) as feed:
        command = [*ONGEBD, f"cam={feed.url}", "-m", "window-mean", "--jsonl", str(out)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                while "  incident 1 " not in process.stdout.readline():
                    assert process.poll() is None
                process.send_signal(how)
                _, trouble = process.communicate(timeout=HANG)
            finally:
                process.kill()
        assert (process.returncode, trouble) == (130, "")
    recording = read_jsonl(out)
    assert recording.end is not None
    assert not recording.complete
    assert len(recording.boundaries) >= 2
    last = json.loads(out.read_text().splitlines()[-2])
    assert (last["type"], last["state"], last["reason"]) == ("state", "ended", "stopped")


@pytest.mark.skipif(os.name == "nt", reason="a pipe that breaks")
def test_a_reader_that_goes_away_ends_it(free_port):
    with feeding(free_port) as feed:
        command = [*ONGEBD, f"cam={feed.url}", "-m", "window-mean"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                process.stdout.readline()
                process.stdout.close()
                assert process.wait(HANG) == 141
                assert process.stderr.read() == b""
            finally:
                process.kill()


@pytest.mark.skipif(os.name == "nt", reason="a pipe")
def test_standard_input_is_watched_to_its_end_and_its_silence_is_told(clip, make_video, make_scene, tmp_path):
    data = make_video(tmp_path / "c.ts", [make_scene(n // 30, 96, 64) for n in range(120)]).read_bytes()
    command = [*ONGEBD, "-", "-m", "window-mean", "--stall-after", "0.3"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False) as process:
        try:
            process.stdin.write(data[: len(data) // 2])
            process.stdin.flush()
            while b"stalled" not in process.stdout.readline():
                assert process.poll() is None
            process.stdin.write(data[len(data) // 2 :])
            process.stdin.close()
            rest = process.stdout.read().decode()
            assert process.wait(HANG) == 0
        finally:
            process.kill()
    assert "live, epoch 0" in rest
    assert "ended, epoch 0: the source has ended" in rest


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_the_page_is_served_while_it_watches_and_ends_with_it(free_port, tmp_path):
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("uvicorn")
    pytest.importorskip("prometheus_client")
    with feeding(free_port) as feed:
        command = [*ONGEBD, f"cam={feed.url}", "-m", "window-mean", "-q", "--serve", "0"]
        environment = {**os.environ, "ONGEBD_TOKEN": "a-token-of-mine"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            try:
                url = process.stderr.readline().split()[-1]
                assert httpx.get(f"{url}metrics").status_code == 401
                headers = {"Authorization": "Bearer a-token-of-mine"}
                found = r'ongebd_boundaries_total\{stream="cam"\} [1-9]'
                until(lambda: re.search(found, httpx.get(f"{url}metrics", headers=headers).text))
                picture = httpx.get(f"{url}api/streams/cam/picture", headers=headers)
                assert (picture.status_code, picture.headers["content-type"]) == (200, "image/jpeg")
                process.send_signal(signal.SIGINT)
                said, trouble = process.communicate(timeout=HANG)
            finally:
                process.kill()
    assert (process.returncode, trouble) == (130, "")
    assert said.count("\n") == said.count("  cam  incident ") > 0


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("httpx", ["--webhook", "http://127.0.0.1:9/"]),
        ("apprise", ["--notify", "ntfy://127.0.0.1/topic"]),
        ("paho", ["--mqtt", "mqtt://127.0.0.1"]),
        ("uvicorn", ["--serve", "0"]),
        ("prometheus_client", ["--serve", "0"]),
    ],
)
def test_what_needs_the_extra_says_so_in_a_line(module, arguments, capfd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in [one for one in sys.modules if one.startswith(("ongebd.watch.server", f"{module}."))]:
        monkeypatch.delitem(sys.modules, name)  # an earlier test may have imported them
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["watch", "camera:0", "-m", "window-mean", *arguments]) == 2
    trouble = capfd.readouterr().err
    assert trouble.count("\n") == 1
    assert re.search(r'is not installed: .* install .*"starlette', trouble)


def test_lines_and_records_need_no_extra(clip, tmp_path, monkeypatch):
    for module in ("httpx", "uvicorn", "starlette", "prometheus_client"):
        monkeypatch.setitem(sys.modules, module, None)
    assert main(["watch", str(clip), "-m", "window-mean", "--jsonl", str(tmp_path / "seen.jsonl")]) == 0
