"""The page in a real browser, headless: what a person sees and does."""

from __future__ import annotations

import re
import time

import pytest

from ongebd.watch.server import serve

TOKEN = "correct-horse-battery"
PAINTED = """() => {
  const canvas = document.querySelector("canvas");
  const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let sum = 7;
  for (let i = 0; i < all.length; i += 4)
    sum = (sum * 31 + all[i] + 3 * all[i + 1] + 7 * all[i + 2]) % 1000003;
  return sum;
}"""
# How many pixels of the curve's colour there are in the right quarter of the chart.
CURVE_AT_THE_END = """() => {
  const canvas = document.querySelector("canvas"), from = Math.floor(canvas.width * 0.75);
  const all = canvas.getContext("2d").getImageData(from, 0, canvas.width - from, canvas.height).data;
  let count = 0;
  for (let i = 0; i < all.length; i += 4)
    count += all[i] < 60 && all[i + 1] > 80 && all[i + 1] < 150 && all[i + 2] > 140;
  return count;
}"""

# When both charts have been drawn eight times: how many drawings there were, in how many seconds.
DRAWINGS_OF_TWO_CHARTS = """() => new Promise((done) => {
  const drawings = CanvasRenderingContext2D.prototype, drawing = drawings.clearRect;
  const began = performance.now(), times = new Map();
  drawings.clearRect = function (...box) {
    times.set(this.canvas, (times.get(this.canvas) ?? 0) + 1);
    const counts = [...times.values()];
    if (counts.filter((count) => count >= 8).length === 2) {
      drawings.clearRect = drawing;
      done([counts.reduce((sum, count) => sum + count), (performance.now() - began) / 1000]);
    }
    return drawing.apply(this, box);
  };
})"""


@pytest.fixture
def playing(watcher, served):
    watcher.add("cam", "Front door")
    watcher.add("yard", "Yard")
    watcher.remember(90)
    server = served(watcher)
    watcher.play()
    return server


def test_the_curve_moves_and_the_past_is_there_on_load(playing, look):
    page = look(playing.url)
    page.wait_for_selector(".strip li")
    assert page.locator(".card h2").all_text_contents() == ["Front door", "Yard"]
    assert page.title() == "2 live – ongebd"
    page.wait_for_function(f"() => ({CURVE_AT_THE_END})() > 30")
    before = page.evaluate(PAINTED)
    page.wait_for_function(f"(before) => ({PAINTED})() !== before", arg=before)
    drawings, seconds = page.evaluate(DRAWINGS_OF_TWO_CHARTS)
    assert drawings <= 2 * (24 * seconds + 2), "two charts, at 24 drawings a second at most"


def test_a_boundary_appears_and_its_picture_opens(watcher, served, look):
    stream = watcher.add("cam", "Front door")
    page = look(served(watcher).url)
    page.wait_for_selector(".none:visible")
    page.wait_for_selector(".link[data-state=good]")
    onset = stream.onset()
    page.wait_for_selector(f'.strip li[data-n="{onset.number}"] img')
    page.locator(".strip button").click()
    dialog = page.locator("dialog")
    assert "Front door" in dialog.locator("h2").inner_text()
    page.wait_for_function("() => document.querySelector('dialog img').naturalWidth === 320")
    assert "not known yet" in dialog.inner_text()
    stream.find(onset)
    page.wait_for_function("() => document.querySelector('dialog').innerText.includes('after the onset')")
    assert re.search(r"peak\s+0\.900\s+kind\s+cut", page.locator("dialog dl").inner_text())
    assert page.locator(".strip button span").inner_text().endswith(" cut")
    second = stream.onset()
    page.wait_for_selector(f'.strip li[data-n="{second.number}"]', state="attached")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('dialog').innerText.includes('no. 2')")
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    # The focus goes back to where it came from.
    page.wait_for_function("() => document.activeElement.closest('li')?.dataset.n === '1'")
    announced = page.locator("#announcer").inner_text()
    assert announced.startswith("Front door: boundary at ")


def test_a_click_on_a_flag_in_the_chart_opens_its_picture(watcher, served, look):
    stream = watcher.add("cam", "Front door")
    onset = stream.onset(time.time() - 30)
    page = look(served(watcher).url)
    page.wait_for_selector(".strip li")
    page.wait_for_timeout(200)
    box = page.locator(".u-over").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.2, box["y"] + 40)
    assert page.locator("dialog[open]").count() == 0, "there is no flag"
    # Half a minute ago is the middle of the minute shown; what the test took until now is left of it.
    late = (time.time() - 30 - onset.wall) / 60 * box["width"]
    page.mouse.click(box["x"] + box["width"] / 2 - late, box["y"] + 40)
    page.wait_for_selector("dialog[open]")
    page.wait_for_function("() => document.querySelector('dialog').innerText.includes('no. 1')")


def test_a_hidden_tab_lets_go_of_the_server_and_comes_back(watcher, served, look):
    stream = watcher.add("cam", "Front door")
    server = served(watcher)
    page = look(server.url)
    page.wait_for_selector(".link[data-state=good]")
    turn = """(hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(turn, True)
    deadline = time.monotonic() + 20
    while server.server_state.tasks and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert not server.server_state.tasks
    stream.onset()
    page.evaluate(turn, False)
    page.wait_for_selector(".strip li")


def test_the_slider_acts_on_its_stream_by_keyboard_and_follows_others(playing, watcher, look):
    page = look(playing.url)
    slider = page.get_by_label("Sensitivity").first
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    deadline = time.monotonic() + 20
    while watcher.streams["cam"].now.sensitivity != pytest.approx(0.65) and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert watcher.streams["cam"].now.sensitivity == pytest.approx(0.65)
    assert watcher.streams["yard"].now.sensitivity == 0.5
    assert page.locator("output").all_text_contents() == ["0.65", "0.50"]
    watcher.streams["yard"].set_sensitivity(0.2)
    page.wait_for_function("() => document.querySelectorAll('output')[1].textContent === '0.20'")


def test_states_are_told_in_words_with_their_reason(playing, watcher, look):
    page = look(playing.url)
    page.wait_for_selector(".card[data-state=live]")
    watcher.streams["yard"].change("reconnecting", "no answer within 10 s; trying again in 8 s")
    page.wait_for_selector(".card[data-state=reconnecting]")
    card = page.locator(".card").nth(1)
    assert "Reconnecting" in card.inner_text()
    assert "no answer within 10 s" in card.inner_text()
    page.wait_for_function("() => document.title === '! 1 of 2 live – ongebd'")
    watcher.streams["yard"].change("live")
    page.wait_for_function("() => document.title === '2 live – ongebd'")


@pytest.mark.parametrize("seconds", [600, 3600])
def test_wider_views_show_the_past(watcher, served, look, seconds):
    watcher.add("cam", "Front door", rate=4.0)
    watcher.remember(1200)
    page = look(served(watcher).url)
    page.wait_for_selector("canvas")
    page.locator(f'input[name=window][value="{seconds}"]').check(force=True)
    page.wait_for_function(f"() => ({CURVE_AT_THE_END})() > 100")
    assert page.locator(".legend .wide").is_visible()


def test_the_token_is_asked_for_and_one_can_sign_out(watcher, served, look):
    watcher.add("cam", "Front door")
    page = look(served(watcher, token=TOKEN).url)
    assert page.locator(".card").count() == 0
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_selector(".card[data-state=live]")
    assert page.evaluate("document.cookie") == "", "no script can read the session"
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_selector("#token")
    page.goto(page.url.replace("/login", "/"))
    assert page.url.endswith("/login")


def test_a_restarted_server_is_found_again(watcher, served, browser):
    watcher.add("cam", "Front door")
    server = served(watcher)
    port = int(server.url.rsplit(":", 1)[1].strip("/"))
    context = browser.new_context()  # not `look`: a browser writes lost connections to the console
    page = context.new_page()
    page.goto(server.url)
    page.wait_for_selector(".link[data-state=good]")
    server.stop()
    page.wait_for_selector(".link[data-state=lost]")
    with serve(watcher, port=port):
        watcher.streams["cam"].onset()
        page.wait_for_selector(".strip li", timeout=15_000)
        page.wait_for_selector(".link[data-state=good]")
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_it_without_scrolling_sideways(playing, watcher, look, scheme):
    watcher.streams["cam"].name = "rtsp://***@camera-with-a-very-long-name.example:554/stream/of/the/yard"
    page = look(
        playing.url,
        viewport={"width": 360, "height": 740},
        device_scale_factor=2,
        is_mobile=True,
        has_touch=True,
        color_scheme=scheme,
    )
    page.wait_for_selector(".strip img")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate("document.querySelector('.chart canvas').getBoundingClientRect().right") <= 360
    page.locator(".strip button").first.tap()
    page.wait_for_selector("dialog[open]")
    box = page.locator("dialog").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(int(part) for part in ground[4:-1].split(",")) < 60) == (scheme == "dark")


def test_a_screen_reader_and_a_keyboard_find_everything(playing, look):
    page = look(playing.url)
    page.wait_for_selector(".strip img")
    assert page.get_by_role("article", name="Front door").count() == 1
    assert page.get_by_role("img", name="Curve of Front door: Live").count() == 1
    assert page.get_by_role("radio", name="10 min").count() == 1
    assert page.get_by_role("slider", name="Sensitivity").count() == 2
    assert page.get_by_role("button", name="Boundary 1 of").count() >= 1
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, img")].filter((part) => part.checkVisibility())
          .filter((part) => part.tagName === "IMG" ? !part.hasAttribute("alt")
            : !(part.textContent.trim() || part.ariaLabel || part.labels?.length)).length"""
    )
    assert unnamed == 0
    page.locator("input[name=window]").first.focus()
    page.keyboard.press("Tab")
    page.wait_for_function("() => document.activeElement.closest('.strip') !== null")
