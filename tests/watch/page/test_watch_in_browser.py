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
from .test_page import PAINTED

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")
TOKEN = "correct-horse-battery"
# When each boundary came into the page, Unix seconds by its number; returns since when that is noted.
WHEN_SHOWN = """() => {
  window.shown = {};
  new MutationObserver((changes) => {
    for (const change of changes) for (const item of change.addedNodes)
      if (item.dataset?.n) window.shown[item.dataset.n] ??= Date.now() / 1000;
  }).observe(document.querySelector(".strip"), { childList: true });
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

    def events(self):
        return {event["n"]: event for event in self.get("api/streams/cam/past").json()["events"]}


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


def test_the_curve_moves_and_a_boundary_is_shown_within_a_second_of_its_frame(watch, page):
    began = page.evaluate(WHEN_SHOWN)
    before = page.evaluate(PAINTED)
    page.wait_for_function("() => Object.keys(window.shown).length >= 6")
    assert page.evaluate(PAINTED) != before
    shown, events = page.evaluate("window.shown"), watch.events()
    walls = {number: events[int(number)]["w"] for number in shown}
    # Older boundaries are of the past, which the page may still be loading.
    delays = sorted(when - walls[number] for number, when in shown.items() if walls[number] > began)
    assert len(delays) >= 2
    assert delays[0] >= 0
    assert delays[len(delays) // 2] < 1, delays


def test_a_thumbnail_opens_and_its_clip_plays_in_its_place(watch, page):
    page.locator(".strip button").first.click()
    dialog = page.locator("dialog[open]")
    assert "cam" in dialog.locator("h2").inner_text()
    number = int(dialog.locator("dl dd").first.inner_text().removeprefix("no. "))
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
    assert watch.get(f"api/streams/cam/clips/{number}").status_code == 200
    page.wait_for_function("() => document.querySelector('.strip img').naturalWidth > 0")
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.querySelector('dialog video').hasAttribute('src')")


def test_the_slider_retunes_the_stream(watch, page):
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
    page.wait_for_function("() => document.querySelector('[data-of=reconnects] dd').innerText === '1'")
    number = max(watch.events())
    page.wait_for_selector(f'.strip li[data-n="{number + 1}"] img')


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
