"""`ongebd watch --serve` as a user starts it, with a real source, seen through a real browser."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from ongebd.output.jsonl import read_jsonl

from ..conftest import feeding

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")
TOKEN = "correct-horse-battery"
# When each incident came into the list, Unix seconds by its number; returns since when that is noted.
WHEN_SHOWN = """() => {
  window.shown = {};
  new MutationObserver((changes) => {
    for (const change of changes) for (const item of change.addedNodes)
      if (item.dataset?.id) window.shown[item.dataset.id.split("-").at(-1)] ??= Date.now() / 1000;
  }).observe(document.querySelector(".incidents"), { childList: true });
  return Date.now() / 1000;
}"""


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
        return httpx.get(f"{self.url}{path}", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=20)

    def incidents(self):
        lines = (json.loads(line) for line in (self.folder / "seen.jsonl").read_text().splitlines())
        return [one for one in lines if one["type"] == "incident"]


@pytest.fixture(scope="module")
def watch(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    command = [sys.executable, "-m", "ongebd", "watch", f"cam=tcp://127.0.0.1:{port}", "-m", "window-mean"]
    command += ["--jsonl", str(folder / "seen.jsonl"), "--clips", str(folder / "clips"), "-q"]
    command += ["--clip-before", "1", "--clip-after", "1", "--read-timeout", "3", "--serve", "0"]
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


def test_an_incident_is_shown_within_a_second_of_being_told(watch, page):
    began = page.evaluate(WHEN_SHOWN)
    page.wait_for_function("() => Object.keys(window.shown).length >= 1")
    shown = page.evaluate("window.shown")
    told = {str(one["number"]): one for one in watch.incidents() if one["state"] == "started"}
    number, when = max(shown.items(), key=lambda item: int(item[0]))
    assert when > began
    # It's told two seconds after its start, with its best picture.
    assert when - told[number]["wall"] < 3.5


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
    deadline = time.monotonic() + 20
    while 'ongebd_sensitivity{stream="cam"} 0.8' not in (text := watch.get("metrics").text):
        assert time.monotonic() < deadline, text
        time.sleep(0.1)
    page.wait_for_function("() => document.querySelector('output').textContent === '0.80'")
    lines = [json.loads(line) for line in (watch.folder / "seen.jsonl").read_text().splitlines()]
    assert [one["sensitivity"] for one in lines if one["type"] == "retuned"][-1] == pytest.approx(0.8)


def test_a_source_that_dies_is_told_and_is_live_again_when_it_is_back(watch, page):
    watch.feed.close()
    page.wait_for_selector(".card[data-state=reconnecting]")
    reason = page.locator(".reason").inner_text()
    assert "next attempt in" in reason
    assert str(TOKEN) not in reason
    watch.restart()
    page.wait_for_selector(".card[data-state=live]")
    page.wait_for_function("() => document.querySelector('[data-of=reconnects] dd').textContent === '1'")
    number = max(one["number"] for one in watch.incidents())
    page.wait_for_selector(f'.incidents li[data-id$="-cam-{number + 1}"] img')


def test_a_plain_kill_ends_it_with_130_and_all_on_disk(watch):
    watch.process.send_signal(signal.SIGTERM)
    _, trouble = watch.process.communicate(timeout=30)
    assert (watch.process.returncode, trouble) == (130, "")
    with pytest.raises(ProcessLookupError):
        os.killpg(watch.process.pid, 0)  # nothing that it started is left
    recording = read_jsonl(watch.folder / "seen.jsonl")
    assert recording.end is not None
    assert [epoch.number for epoch in recording.epochs] == [1]
    clips = [Path(one["path"]) for one in recording.others if one["type"] == "clip"]
    assert len(clips) == len(recording.boundaries)
    assert sorted(clips) == sorted((watch.folder / "clips").iterdir())
