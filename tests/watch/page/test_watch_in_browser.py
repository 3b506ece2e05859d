"""`ongebd watch --serve` as a user starts it, with a real source, seen through a real browser."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from ongebd.output.jsonl import read_jsonl
from waiting import HANG, until

from ..conftest import feeding

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")
TOKEN = "correct-horse-battery"


@dataclass
class Watch:
    """The command that runs, its source, and what it writes."""

    process: subprocess.Popen[str]
    url: str
    port: int
    folder: Path
    feed: ExitStack

    def restart(self):
        self.feed.enter_context(feeding(self.port, codec="libx264"))

    def get(self, path):
        return httpx.get(f"{self.url}{path}", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=HANG)

    def told(self, kind):
        whole = (self.folder / "seen.jsonl").read_text().rpartition("\n")[0]
        return [one for one in map(json.loads, whole.splitlines()) if one["type"] == kind]


@pytest.fixture(scope="module")
def watch(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    command = [sys.executable, "-m", "ongebd", "watch", f"cam=tcp://127.0.0.1:{port}", "-m", "window-mean"]
    command += ["--jsonl", str(folder / "seen.jsonl"), "--clips", str(folder / "clips"), "-q"]
    command += ["--clip-before", "1", "--clip-after", "1", "--read-timeout", "60", "--serve", "0"]
    environment = {**os.environ, "ONGEBD_TOKEN": TOKEN}
    with ExitStack() as feed:
        feed.enter_context(feeding(port, codec="libx264"))
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )
        try:
            url = process.stderr.readline().split()[-1] if process.stderr else ""
            yield Watch(process, url, port, folder, feed)
        finally:
            process.kill()
            process.communicate()


@pytest.fixture
def page(watch, look):
    """The page, behind the token, with the stream live."""
    shown = look(watch.url)
    assert shown.locator(".card").count() == 0
    shown.get_by_label("Token").fill(TOKEN)
    shown.keyboard.press("Enter")
    shown.wait_for_selector(".card[data-state=live]")
    return shown


def test_an_incident_opens_and_its_clip_plays(watch, page):
    page.wait_for_selector(".incidents img")
    page.locator(".incidents li:last-child button").click()
    dialog = page.locator("dialog[open]")
    assert "cam" in dialog.locator("h2").inner_text()
    page.wait_for_function("() => document.querySelector('dialog video').readyState >= 2")  # it is written
    film = page.evaluate(
        """async () => {
          const film = document.querySelector("dialog video");
          await film.play();
          await new Promise((done) =>
            film.addEventListener("timeupdate", () => film.currentTime > 0 && done()));
          return { width: film.videoWidth, height: film.videoHeight, seconds: film.duration };
        }"""
    )
    assert (film["width"], film["height"]) == (96, 64)
    assert 0.9 < film["seconds"] < 3.5
    page.wait_for_function("() => document.querySelector('.incidents img').naturalWidth > 0")
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.querySelector('dialog video').hasAttribute('src')")


def test_the_live_picture_is_the_cameras(watch, page):
    page.wait_for_function("() => document.querySelector('.now img')?.naturalWidth === 96")


def test_the_slider_retunes_the_stream(watch, page):
    page.locator("summary").click()
    slider = page.get_by_label("Sensitivity")
    slider.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    until(lambda: 'ongebd_sensitivity{stream="cam"} 0.8' in watch.get("metrics").text)
    page.wait_for_function("() => document.querySelector('output').textContent === '0.80'")
    until(lambda: [one["sensitivity"] for one in watch.told("retuned")][-1:] == [pytest.approx(0.8)])


def test_a_source_that_dies_is_told_and_is_live_again_when_it_is_back(watch, page):
    watch.feed.close()
    page.locator(".card[data-state=reconnecting] .reason", has_text="next attempt in").wait_for()
    assert TOKEN not in page.locator("body").inner_text()
    number = max((one["number"] for one in watch.told("incident")), default=0)
    watch.restart()
    page.wait_for_selector(".card[data-state=live]")
    page.wait_for_function("() => document.querySelector('[data-of=reconnects] dd').textContent === '1'")
    page.wait_for_selector(f'.incidents li[data-id$="-cam-{number + 1}"] img')


def test_a_plain_kill_ends_it_with_130_and_all_on_disk(watch):
    watch.process.send_signal(signal.SIGTERM)
    _, trouble = watch.process.communicate(timeout=HANG)
    assert (watch.process.returncode, trouble) == (130, "")
    with pytest.raises(ProcessLookupError):
        os.killpg(watch.process.pid, 0)  # nothing that it started is left
    recording = read_jsonl(watch.folder / "seen.jsonl")
    assert recording.end is not None
    assert [epoch.number for epoch in recording.epochs] == [1]
    clips = [Path(one["path"]) for one in recording.others if one["type"] == "clip"]
    assert len(clips) == len(recording.boundaries)
    assert sorted(clips) == sorted((watch.folder / "clips").iterdir())
