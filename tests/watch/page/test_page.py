"""The page in a real browser, headless: what a person sees and does."""

from __future__ import annotations

import time
import tomllib

import pytest

from ongebd.watch.history import Best
from ongebd.watch.server import serve
from ongebd.watch.sinks.kept import KeptIncidents
from waiting import until

from .conftest import PATIENCE

TOKEN = "correct-horse-battery"
HOSTILE = '<img src=x onerror="alert(1)">&amp;"\'{{1}}'


@pytest.fixture
def playing(watcher, served):
    """Two cameras in which something happens every few seconds, for a minute and from now on."""
    watcher.add("cam", "Front door")
    watcher.add("yard", "Yard")
    server = served(watcher)
    watcher.remember(60)
    watcher.play()
    return server


def happened(stream, state="started", **changes):
    return stream.happen(stream.onset(**changes), state)


def unfold(page):
    for number in range(2):
        page.locator("summary").nth(number).click()  # waits until the card is there


SHOWN = "document.querySelector('dialog img')"


def shown(page):
    """The file of the picture that the open incident shows."""
    page.wait_for_function(f"() => {SHOWN}.complete && {SHOWN}.naturalWidth === 320")
    return bytes(page.evaluate(f"async () => [...(await (await fetch({SHOWN}.src)).bytes())]"))


def test_incidents_of_all_cameras_come_first_the_newest_before_the_others(playing, watcher, look):
    page = look(playing.url)
    page.wait_for_selector(".incidents img")
    assert page.title() == "2 live – ongebd"
    names = page.locator(".incidents b").all_text_contents()
    assert set(names) == {"Front door", "Yard"}
    newest = happened(watcher.streams["cam"])
    page.wait_for_selector(f'.incidents li:first-child[data-id$="-cam-{newest.number}"] img')
    top = {name: page.locator(name).bounding_box()["y"] for name in ("#happened", "#cameras")}
    assert top["#happened"] < top["#cameras"]
    times = [text.split(" · ")[0] for text in page.locator(".words span:nth-of-type(1)").all_text_contents()]
    assert times == sorted(times, reverse=True) or "00:" in times[0]
    page.wait_for_function(
        "() => document.querySelector('#announcer').innerText.includes(': something happened at ')"
    )


def test_an_incident_opens_with_its_pictures_and_its_facts_in_plain_words(watcher, served, look):
    stream = watcher.add("cam", "Front door")
    page = look(served(watcher).url)
    page.wait_for_selector("#none:visible")
    page.wait_for_selector(".link[data-state=good]")
    first = happened(stream)
    page.locator(".incidents button").click()
    dialog = page.locator("dialog")
    assert "Front door" in dialog.locator("h2").inner_text()
    page.wait_for_function("() => document.querySelector('dialog img').naturalWidth === 320")
    assert "going on" in dialog.inner_text()
    assert "no output is set up" in dialog.inner_text()
    stream.happen(stream.onset(first.wall), "ended", number=1, first=1, held="repeats")
    page.wait_for_function("() => document.querySelector('dialog').innerText.includes('2 s')")
    assert "none: the same thing happens often" in dialog.inner_text()
    assert "quiet: the same thing happens often" in page.locator(".incidents .held").inner_text()
    best = shown(page)
    dialog.get_by_label("How it began").check()
    assert (shown(page), best) == (stream.history.picture(1), stream.history.picture(Best(1)))
    assert not dialog.get_by_label("Clip", exact=True).is_visible()
    second = happened(stream)
    page.wait_for_selector(f'.incidents li[data-id$="-cam-{second.number}"]')
    dialog.get_by_role("button", name="Later").click()
    assert dialog.get_by_role("button", name="Later").is_disabled()
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("() => document.querySelector('dialog').innerText.includes('none:')")
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    for jargon in ("error", "mean", "threshold", "boundary", "boundaries", "onset", "centre"):
        assert jargon not in page.locator("body").inner_text().lower().split()


def test_incidents_are_filtered_by_camera_time_and_strength_and_earlier_ones_are_shown(watcher, served, look):
    for key in ("cam", "yard"):
        watcher.add(key, key.title())
    server = served(watcher)
    now = time.time()
    for number in range(40):
        stream = watcher.streams["cam" if number % 2 else "yard"]
        wall, score = now - 7200 + 60 * number, number / 40
        stream.happen(stream.onset(wall, score=score), "ended", number=number)
    page = look(server.url)
    items = page.locator(".incidents li")
    until(lambda: items.count() == 24)
    page.get_by_role("button", name="Show earlier incidents").click()
    until(lambda: items.count() == 40)
    assert not page.locator("#more").is_visible()
    page.get_by_role("combobox", name="Camera").select_option("Yard")
    until(lambda: items.count() == 20)
    page.get_by_label("Strength").select_option("strong")
    until(lambda: items.count() == 2)
    page.get_by_label("Time").select_option("last hour")
    until(lambda: page.locator("#none").is_visible())
    happened(watcher.streams["cam"], "ended", score=5.0)
    happened(watcher.streams["yard"], "ended", score=5.0)
    until(lambda: items.count() == 1)
    yard = watcher.streams["yard"]
    yard.happen(yard.onset(score=5.0), "ended", number=99, held="rate")
    page.get_by_label("show quiet incidents").check()
    until(lambda: items.count() == 2)


def test_the_live_picture_moves_only_while_it_is_looked_at(watcher, served, look):
    watcher.add("cam", "Front door")
    server = served(watcher)
    page = look(server.url, viewport={"width": 800, "height": 700})
    page.wait_for_function("() => document.querySelector('.now img')?.naturalWidth === 320")
    count = """() => performance.getEntriesByType("resource")
      .filter(({ name }) => name.includes("/picture")).length"""
    began, before = time.monotonic(), page.evaluate(count)
    until(lambda: page.evaluate(count) >= before + 3)
    assert page.evaluate(count) - before <= 4 * (time.monotonic() - began) + 1
    turn = """(hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(turn, True)
    until(lambda: not server.server_state.tasks)
    page.wait_for_function("() => document.querySelector('.now img').complete")
    before = page.evaluate(count)
    page.evaluate("new Promise((done) => setTimeout(done, 1000))")  # its own timers come first
    assert page.evaluate(count) == before, "a hidden page asks for nothing"
    happened(watcher.streams["cam"])
    page.evaluate(turn, False)
    page.wait_for_selector(".incidents img")
    until(lambda: page.evaluate(count) > before)


def test_the_curve_is_under_details(playing, look):
    page = look(playing.url)
    assert not page.locator(".curve").first.is_visible()
    page.locator("summary").first.click()
    path = "document.querySelector('.change').getAttribute('d')"
    page.wait_for_function(f"() => {path}?.length > 100")
    assert page.locator(".marks").first.get_attribute("d").startswith("M")
    before = page.evaluate(path)
    page.locator(".curve").first.scroll_into_view_if_needed()  # incidents may have pushed it down
    page.wait_for_function(f"(before) => {path} !== before", arg=before)
    assert page.get_by_role("img", name="How much the picture of Front door changed").count() == 1


@pytest.mark.parametrize("phone", [False, True])
def test_a_mask_is_drawn_by_mouse_or_finger_onto_those_of_the_camera_and_given_as_text(
    watcher, served, look, phone
):
    known = [[0.0, 0.0], [0.05, 0.0], [0.05, 0.1]]
    watcher.add("cam", "Front door").masks.polygons = (tuple(map(tuple, known)),)
    size = {"width": 390, "height": 800}
    options = {"viewport": size, "is_mobile": True, "has_touch": True} if phone else {}
    page = look(served(watcher).url, **options)
    page.locator("summary").click()
    page.get_by_role("button", name="Draw a mask").click()
    page.wait_for_function("() => document.querySelector('.now img')?.naturalWidth === 320")
    picture = page.locator(".now img")
    picture.scroll_into_view_if_needed()

    def corner(x, y):
        box = picture.bounding_box()
        touch = page.touchscreen.tap if phone else page.mouse.click
        touch(box["x"] + x * box["width"], box["y"] + y * box["height"])

    for x, y in ((0.1, 0.2), (0.5, 0.2), (0.5, 0.75), (0.9, 0.9)):
        corner(x, y)
    page.get_by_role("button", name="Undo").click()
    text = page.get_by_label("Mask for cameras.toml")
    first, shape = tomllib.loads(text.input_value())["masks"]
    assert first == known
    assert shape == [pytest.approx(at, abs=0.01) for at in ((0.1, 0.2), (0.5, 0.2), (0.5, 0.75))]
    page.get_by_role("button", name="Next shape").click()
    picture.scroll_into_view_if_needed()
    for x, y in ((0.6, 0.1), (0.9, 0.1), (0.9, 0.4)):
        corner(x, y)
    assert len(tomllib.loads(text.input_value())["masks"]) == 3


def test_the_slider_acts_on_its_stream_by_keyboard_and_follows_others(playing, watcher, look):
    page = look(playing.url)
    unfold(page)
    slider = page.get_by_label("Sensitivity").first
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    until(lambda: watcher.streams["cam"].now.sensitivity == pytest.approx(0.65))
    assert watcher.streams["yard"].now.sensitivity == 0.5
    assert page.locator("output").all_text_contents() == ["0.65", "0.50"]
    watcher.streams["yard"].set_sensitivity(0.2)
    page.wait_for_function("() => document.querySelectorAll('output')[1].textContent === '0.20'")
    watcher.streams["yard"].now.repeats = 7
    page.get_by_label("No alerts for repeated incidents (quiet in the last hour: 7)").click()
    until(lambda: not watcher.streams["yard"].incidents.alerts.quieten)
    assert watcher.streams["cam"].incidents.alerts.quieten


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


def test_hostile_names_are_text(watcher, served, look):
    stream = watcher.add("cam", HOSTILE)
    page = look(served(watcher).url)
    page.on("dialog", lambda _: pytest.fail("a name became code"))
    page.wait_for_selector(".card[data-state=live]")
    happened(stream)
    page.locator(".incidents button").click()
    stream.change("failed", HOSTILE)
    page.wait_for_selector(".card[data-state=failed]")
    places = (".card h3", ".incidents b", ".reason", "#filter option:nth-child(2)")
    for place in places:
        assert page.locator(place).first.text_content() == HOSTILE
    assert HOSTILE in page.locator("dialog h2").inner_text()


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


def test_a_restarted_server_is_found_again_and_knows_what_was_kept(watcher, browser, tmp_path):
    stream = watcher.add("cam", "Front door")
    kept = KeptIncidents(watcher, print, tmp_path)
    kept.start()
    with serve(watcher, port=0, kept=kept) as server:
        port = int(server.url.rsplit(":", 1)[1].strip("/"))
        context = browser.new_context()  # not `look`: a browser writes lost connections to the console
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(server.url)
        page.wait_for_selector(".link[data-state=good]")
        happened(stream, "ended")
    kept.end()
    kept.finish(lambda: 5.0)
    page.wait_for_selector(".link[data-state=lost]")
    with serve(watcher, port=port, kept=KeptIncidents(watcher, print, tmp_path)):
        happened(stream)
        until(lambda: page.locator(".incidents img").count() == 2)
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
    page.wait_for_selector(".incidents img")
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.locator(".incidents button").first.tap()
    page.wait_for_selector("dialog[open]")
    box = page.locator("dialog").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(int(part) for part in ground[4:-1].split(",")) < 60) == (scheme == "dark")


def test_a_screen_reader_and_a_keyboard_find_everything(playing, look):
    page = look(playing.url)
    page.wait_for_selector(".incidents img")
    unfold(page)
    assert page.get_by_role("article", name="Front door").count() == 1
    assert page.get_by_role("slider", name="Sensitivity").count() == 2
    assert page.get_by_role("combobox", name="Camera").count() == 1
    assert page.get_by_role("button", name="show its picture").count() >= 1
    assert page.get_by_role("region").count() == 2
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, textarea, img")]
          .filter((part) => part.checkVisibility())
          .filter((part) => part.tagName === "IMG" ? !part.hasAttribute("alt")
            : !(part.textContent.trim() || part.ariaLabel || part.labels?.length)).length"""
    )
    assert unnamed == 0
    page.get_by_label("Strength").focus()
    for _ in range(2):
        page.keyboard.press("Tab")
    page.wait_for_function("() => document.activeElement.closest('.incidents') !== null")
