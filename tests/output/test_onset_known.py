"""When an onset was known: what the records of a run say is what a stream saw, or they say nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ongebd
from ongebd.baselines.pictures import Pictures
from ongebd.output import Reading, RunEnd, RunHeader, detect_source, read_jsonl
from ongebd.output.jsonl import JsonlWriter
from ongebd.types import Boundary
from ongebd.video import VideoReader


@pytest.fixture(scope="module")
def film(
    tmp_path_factory: pytest.TempPathFactory, make_video: Callable[..., Path], make_scene: Callable[..., Any]
) -> Path:
    """Four still scenes with a little noise, the last one so short that a look-ahead meets the end."""
    random = np.random.default_rng(3)
    pictures = []
    for scene, frames in ((1, 60), (2, 40), (3, 50), (4, 4)):
        still = make_scene(scene, 128, 96).astype(np.int16)
        pictures += [
            np.clip(still + random.integers(-2, 3, still.shape), 0, 255).astype(np.uint8)
            for _ in range(frames)
        ]
    return make_video(tmp_path_factory.mktemp("film") / "film.mp4", pictures, rate=24)


def seen_by_a_stream(film: Path, model: Any, **settings: Any) -> dict[float, float]:
    """Of each onset the time of the newest frame at the moment at which a stream told of it."""
    detector = model.stream(model.configured(**settings))
    told: dict[float, float] = {}
    newest = 0.0
    with VideoReader(film, detector.config.fps, view=model.backbone.view) as video:
        for frame in video:
            newest = float(frame.time)
            decision = detector.update(frame.rgb, frame.time)
            if decision.onset:
                told[round(decision.time, 6)] = round(newest, 6)
    for decision in detector.drain():
        if decision.onset:
            told[round(decision.time, 6)] = round(newest, 6)
    return told


@pytest.mark.parametrize(
    ("name", "settings", "must_tell"),
    [
        ("window-mean", {}, True),  # online, with runs
        ("window-mean", {"max_run": 0.0}, True),
        ("predictability", {}, True),  # looks ahead, with runs
        ("predictability", {"max_run": 0.0}, True),  # looks ahead; an onset decides
    ],
)
def test_a_record_says_when_an_onset_was_known_exactly_or_not_at_all(
    film: Path, tmp_path: Path, name: str, settings: dict[str, Any], must_tell: bool
) -> None:
    model = replace(ongebd.load(name), backbone=Pictures(16, 12))
    path = tmp_path / "found.jsonl"
    reading = Reading(version="1", settings=model.configured(**settings))
    writers = lambda header: [JsonlWriter(path, header)]  # noqa: E731
    assert detect_source(str(film), model, reading, writers, lambda *_: None, lambda _: None) is None
    truth = seen_by_a_stream(film, model, **settings)
    found = read_jsonl(path).boundaries
    assert len(found) >= 3
    assert [boundary.onset for boundary in found] == list(truth)
    for boundary in found:
        assert boundary.onset_known == truth[boundary.onset] or (
            boundary.onset_known is None and not must_tell
        )


@pytest.mark.parametrize("known", [None, 3.5])
def test_the_moment_is_written_where_it_is_known_and_read_back(
    tmp_path: Path, header: RunHeader, known: float | None
) -> None:
    path = tmp_path / "a.jsonl"
    sink = JsonlWriter(path, header)
    sink.boundary(Boundary(3.25, 3.125, 3.75, 6.0, known))
    sink.close(RunEnd(True, 10.0, 240, 1))
    assert ("onset_known" in path.read_text("utf-8")) == (known is not None)
    assert [boundary.onset_known for boundary in read_jsonl(path).boundaries] == [known]
