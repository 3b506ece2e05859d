"""Our detector inside PySceneDetect."""

from __future__ import annotations

import pytest

import ongebd
from ongebd.errors import ConfigError

scenedetect = pytest.importorskip("scenedetect", reason="the extra `peers` is not installed")

from ongebd.detector.scene_detector import EventDetector  # noqa: E402


@pytest.fixture(scope="module")
def film(tmp_path_factory, make_video, make_scene):
    pictures = [make_scene(seed, 240, 160) for seed in (1, 2, 3) for _ in range(30)]
    return make_video(tmp_path_factory.mktemp("film") / "film.mp4", pictures, rate=25)


def starts(scenes):
    return [round(start.seconds, 3) for start, _ in scenes]


def test_it_cuts_where_our_own_stream_does(film):
    own = ongebd.detect(film, "window-mean").boundaries
    assert [round(boundary.onset, 3) for boundary in own] == [1.2, 2.4]
    assert starts(scenedetect.detect(str(film), EventDetector("window-mean"))) == [0.0, 1.2, 2.4]


def test_a_look_ahead_cuts_at_the_right_frame_too(film):
    found = starts(scenedetect.detect(str(film), EventDetector("predictability")))
    own = ongebd.detect(film, "predictability").boundaries
    assert found == pytest.approx([0.0, *(boundary.onset for boundary in own)], abs=0.021)


def test_one_detector_serves_one_film_after_the_other(film):
    detector = EventDetector("window-mean", tau=4)
    assert len({tuple(starts(scenedetect.detect(str(film), detector))) for _ in range(2)}) == 1


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match="did you mean tau"):
        EventDetector(tua=3)
