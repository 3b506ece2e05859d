"""`cameras.toml`: what it says, its mistakes, and that it is read again; masks hide what they cover."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ongebd.baselines.pictures import Pictures
from ongebd.cli import main
from ongebd.video.picture import Fit, RgbMaker, Squash
from ongebd.watch import Alerts, Camera, Point, Watcher
from ongebd.watch.cameras import Masks, read_cameras

from .conftest import everything

SQUARE = ((0.25, 0.25), (0.75, 0.25), (0.75, 0.75), (0.25, 0.75))


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "cameras.toml").write_text(text)
        return read_cameras(Path("cameras.toml"), Alerts(cooldown=7))

    return write


def test_what_stands_above_is_for_all_cameras_that_do_not_say_otherwise(written, tmp_path, monkeypatch):
    monkeypatch.setenv("DOOR", "hunter2")
    (tmp_path / "yard").write_text("hunter3\n")
    cameras, mistakes = written(
        """
        alerts_per_hour = 5
        notify = "ntfy://a"
        [[camera]]
        name = "Front door"
        source = "rtsp://me:${DOOR}@host/1"
        masks = [[[0, 0], [0.5, 0], [0.5, 0.5]]]
        active = "22:00-06:00"
        [[camera]]
        name = "Yard"
        source = "rtsp://me:${file:yard}@host/2"
        notify = []
        exec = ["a {time}", "b"]
        alerts_per_hour = 1
        sensitivity = 0.3
        quieten = false
        """
    )
    assert mistakes == []
    door, yard = cameras
    common = {"cooldown": 7.0, "alerts_per_day": 100}
    assert door == Camera(
        name="Front door",
        source="rtsp://me:hunter2@host/1",
        masks=(((0.0, 0.0), (0.5, 0.0), (0.5, 0.5)),),
        active="22:00-06:00",
        alerts_per_hour=5,
        notify=("ntfy://a",),
        **common,
    )
    assert (yard.source, yard.notify, yard.exec) == ("rtsp://me:hunter3@host/2", (), ("a {time}", "b"))
    assert (yard.alerts_per_hour, yard.sensitivity, yard.quieten, yard.active) == (1, 0.3, False, None)
    assert "hunter" not in repr(cameras)


CAMERA = '[[camera]]\nname = "Door"\nsource = "tcp://127.0.0.1:9"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no camera; begin each with a line [[camera]]"),
        ("camera = 3", "no camera; begin each with a line [[camera]]"),
        ("[[camera", "(at end of document)"),
        (CAMERA + "sensitivity = 2", "Door: sensitivity must be at least 0.1 and at most 0.9, not 2"),
        (CAMERA + 'sensitivity = "high"', "Door: sensitivity must be a number, not 'high'"),
        (CAMERA + "notfiy = 3", "Door: unknown setting 'notfiy': did you mean notify?"),
        (CAMERA + "notify = 3", "Door: notify must be a string or a list of strings, not 3"),
        (CAMERA + 'active = "25:00"', "Door: active must be hours of the day such as 22:00-06:00, not 25:00"),
        (CAMERA + "masks = 3", "Door: masks must be a list of polygons, not 3; draw it on the page"),
        (CAMERA + "masks = [[[0, 0], [1, 1]]]", "Door: masks: polygon 1 needs at least three corners; draw"),
        (CAMERA + "masks = [[[0, 0], [1, 1], [2, 0]]]", "Door: masks: polygon 1 has the corner [2, 0]; draw"),
        (CAMERA + "masks = [[[0, 0], [1, 1], [nan, 0]]]", "Door: masks: polygon 1 has the corner [nan, 0]"),
        (CAMERA + "masks = [[[0, 0], [1, 1], 1]]", "Door: masks: polygon 1 has the corner 1; draw"),
        (
            CAMERA + 'webhook = "http://${NOT_THERE}"',
            "Door: webhook: the environment variable NOT_THERE isn't set; set it",
        ),
        (CAMERA + 'webhook = "${file:gone}"', "Door: webhook: can't read gone: No such file or directory"),
        ('[[camera]]\nname = "Door"', 'Door: source is missing; add source = "…"'),
        ('[[camera]]\nsource = "-"', 'camera 1: name is missing; add name = "…"'),
    ],
)
def test_each_mistake_is_one_line_that_says_where(written, text, said):
    _, (line,) = written(text)
    assert "cameras.toml" in line
    assert said in line
    assert "\n" not in line


def test_all_mistakes_of_file_and_outputs_are_told_at_once(written, capsys):
    cameras, mistakes = written("x = 1\n" + CAMERA + "masks = 3\ncooldown = -1\n" + 'exec = "no-such {tme}"')
    assert (cameras, len(mistakes)) == ([], 3)
    for arguments in (["--check"], []):
        assert main(["watch", *arguments, "cameras.toml"]) == 2
        assert capsys.readouterr().err.splitlines() == [f"ongebd: {line}" for line in mistakes]
    written(CAMERA + 'exec = ["no-such", "no {tme}"]\n' + CAMERA.replace("Door", "Yard"))
    assert main(["watch", "--check", "cameras.toml"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "ongebd: door: exec: can't find the program no-such; check its name and path"
    assert lines[1].startswith("ongebd: door: exec: unknown field {tme}")
    written(CAMERA + CAMERA)
    assert main(["watch", "--check", "cameras.toml"]) == 2
    assert "two sources are named Door" in capsys.readouterr().err
    written(CAMERA)
    assert main(["watch", "--check", "cameras.toml"]) == 0
    assert "no mistakes; cameras: 1" in capsys.readouterr().err
    assert main(["watch", "--check", "cameras.toml", "udp://:2"]) == 2


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_hangup_reads_the_file_again_and_a_wrong_one_changes_nothing(written, tmp_path):
    def write(sensitivity, more=""):
        written(CAMERA + f"sensitivity = {sensitivity}\n" + more)

    write(0.3)
    command = [sys.executable, "-m", "ongebd", "watch", "cameras.toml", "-m", "window-mean"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    lines = iter(process.stdout.readline, "")

    def read_to(said):
        seen = []
        for line in lines:
            seen.append(line)
            if said in line:
                return seen
        raise AssertionError(seen)

    try:
        read_to("door  reconnecting")
        write(0.4)
        process.send_signal(signal.SIGHUP)
        assert any(
            "sensitivity 0.4" in line for line in [*read_to("the new settings are active"), next(lines)]
        )
        write(7)
        process.send_signal(signal.SIGHUP)
        assert "sensitivity must be at least 0.1" in read_to("the cameras keep their settings")[-2]
        write(0.4, CAMERA.replace("Door", "Yard").replace(":9", ":7"))
        process.send_signal(signal.SIGHUP)
        read_to("cameras or outputs changed: the watch starts again")
        read_to("yard  reconnecting")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.stdout.close()


def test_new_settings_leave_what_was_changed_on_the_page_until_they_differ(light_model):
    watcher = Watcher([Camera(name="Door", source="udp://:1", sensitivity=0.3)], model=light_model)
    stream, camera = watcher.streams["door"], watcher.streams["door"].camera
    assert stream.status().sensitivity == 0.3
    stream.set_sensitivity(0.7)
    stream.incidents.alerts = replace(stream.incidents.alerts, quieten=False)
    stream.adopt(replace(camera))
    assert (stream.status().sensitivity, stream.incidents.alerts.quieten) == (0.7, False)
    stream.adopt(replace(camera, masks=(SQUARE,)))
    assert (stream.status().sensitivity, stream.masks.polygons) == (0.7, (SQUARE,))
    stream.adopt(replace(camera, sensitivity=None))
    assert (stream.status().sensitivity, stream.masks.polygons) == (0.5, ())
    watcher.stop()


# Masks.

FORMATS = ["yuv420p", "nv12", "yuv422p", "yuv444p", "yuyv422", "yuv420p10le", "rgb24", "gray", "gray16le"]
places = st.floats(0, 1)
polygons = st.lists(st.lists(st.tuples(places, places), min_size=3, max_size=6), min_size=1, max_size=3)


def picture_of(shape, form, hidden, chance):
    """A picture of noise; what is hidden is other noise each time."""
    height, width = shape
    frame = av.VideoFrame(width, height, form)
    for number, plane in enumerate(frame.planes):
        size = plane.height, plane.line_size
        rows = np.arange(plane.height) * height // plane.height
        columns = np.arange(plane.line_size) * width // plane.line_size
        noise = np.random.default_rng(number).integers(0, 255, size, np.uint8)
        other = chance.integers(0, 255, size, np.uint8)
        plane.update(np.where(hidden[np.ix_(rows, columns)], other, noise).tobytes())
    return frame


@settings(max_examples=30, deadline=None)
@given(polygons, st.sampled_from(FORMATS), st.sampled_from([(48, 64), (90, 160), (288, 352)]), st.booleans())
def test_nothing_under_a_mask_reaches_a_picture_that_is_judged(polygons, form, shape, squashed):
    height, width = shape
    view = Squash(32, 32) if squashed else Fit(64)
    masks = Masks(tuple(map(tuple, polygons)))
    hidden = Masks(masks.polygons)(width, height, 0.0)
    chance = np.random.default_rng(1)
    one, other = (RgbMaker(view, masks)(picture_of(shape, form, hidden, chance)) for _ in range(2))
    assert np.array_equal(one, other)


def test_a_mask_hides_its_inside_also_where_it_crosses_itself_and_little_more():
    star = ((0.5, 0.1), (0.75, 0.9), (0.1, 0.4), (0.9, 0.4), (0.25, 0.9))
    hidden = Masks((star, ((0, 0), (0.1, 0), (0.1, 0.1))))(100, 100, 0.0)
    assert hidden[50, 50]
    assert hidden[3, 5]
    assert not hidden[50, 5]
    assert not hidden[90, 50]
    assert 0.15 < hidden.mean() < 0.35
    assert Masks()(100, 100, 8) is None
    assert Masks((SQUARE,))(100, 50, 2.0).mean() == pytest.approx(54 / 100 * 29 / 50, abs=0.02)


def test_decisions_do_not_depend_on_what_is_masked(make_video, light_model, tmp_path):
    model = replace(light_model, backbone=Pictures(64, 48))
    chance, points = np.random.default_rng(0), []
    still = chance.integers(0, 255, (96, 128, 3), np.uint8)
    for moves in (False, True):
        pictures = np.repeat(still[None], 60, 0)
        pictures[30:, 8:, :16] = 255  # is seen
        if moves:
            pictures[:, 24:72, 32:96] = chance.integers(0, 255, (60, 48, 64, 3), np.uint8)
        path = make_video(tmp_path / f"{moves}.mkv", list(pictures), codec="ffv1", pix_fmt="yuv444p")
        camera = Camera(name="Door", source=str(path), masks=(SQUARE,))
        watcher = Watcher([camera], model=model)
        with watcher.hub.subscribe(Point) as told, watcher:
            assert watcher.join(60)
        points.append([replace(one, wall=0) for one in everything(told)])
    assert len(points[0]) > 40
    assert points[0] == points[1]
    assert any(one.positive for one in points[0])
