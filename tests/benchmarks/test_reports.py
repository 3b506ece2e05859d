from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from footage import composites_report, real_report
from footage.films import Film
from footage.folds import cross_validated, fold_of, part
from footage.listening import Found
from footage.making import CONTROL, Trained, clips_in
from footage.scores import ceiling_row, clock_row, delay_figures, random_row, row

from ongebd.data import LabelSet, VideoLabels
from ongebd.errors import ConfigError, LabelError
from ongebd.lab.composites import Composites
from ongebd.lab.composites.records import CompositeBoundary, CompositeDistractor, CompositeVideo


def moments(*times: float) -> Found:
    times_ = np.array(times, dtype=np.float64)
    return Found(times_, times_, times_ + 0.1, times_)


def rated(name: str, *raters: tuple[float, ...]) -> VideoLabels:
    return VideoLabels(name, 10.0, tuple(np.array(times, dtype=np.float64) for times in raters))


LABELS = LabelSet(
    {
        name: rated(name, (2.0, 6.0), (2.1,), (2.0, 6.2))
        for name in ("clip-a", "clip-b", "clip-c", "clip-d", "clip-e")
    }
    | {"clip-f": rated("clip-f", (), (), ())}
)
GOOD = {name: moments(2.0, 6.0) for name in LABELS.videos} | {"clip-f": moments()}
POOR = {name: moments(2.4, 9.0) for name in LABELS.videos}


def test_every_fold_takes_the_setting_that_is_best_on_the_others() -> None:
    folds = fold_of(LABELS)
    assert sorted(set(folds.values())) == [0, 1, 2, 3]
    # Good everywhere but in fold 0, where the others cannot know of it.
    mixed = {name: POOR[name] if folds[name] == 0 else GOOD[name] for name in LABELS.videos}
    taken, best = cross_validated(LABELS, {1.0: POOR, 2.0: mixed}, folds)
    assert best == [2.0] * 4
    assert all(taken[name] is mixed[name] for name in LABELS.videos)
    assert list(taken) == list(LABELS.videos)


def test_the_fold_of_a_clip_hangs_on_the_names_alone() -> None:
    turned = LabelSet(dict(reversed(LABELS.videos.items())))
    assert fold_of(turned) == fold_of(LABELS)


def test_the_report_on_real_clips_is_whole(tmp_path: Path) -> None:
    people = LabelSet({"clip-a": part(LABELS, ["clip-a"]).videos["clip-a"]})
    ceiling = ceiling_row(LABELS)
    assert ceiling is not None
    scored = real_report.Scored(
        LABELS,
        {"good": GOOD, "poor": POOR},
        [clock_row(LABELS)[0], random_row(LABELS)],
        [ceiling],
        [row("poor", LABELS, POOR)],
        [row("good", LABELS, GOOD)],
        people,
        ("good", "poor"),
    )
    real_report.write(scored, "command").write(tmp_path / "real")
    real_report.clip_table(scored, "command").write(tmp_path / "real_each")
    text = (tmp_path / "real.md").read_text(encoding="utf-8")
    assert "model ratings, not people" in text
    assert "Against people, n = 1" in text
    data = json.loads((tmp_path / "real.json").read_text(encoding="utf-8"))
    assert data["f1"]["good"]["f1"]["0.5"]["value"] == 1.0
    assert data["differences"]["good"]["0.5"]["value"] > 0
    assert data["people"]["rows"]["good"][0] == "1.000"
    clips = json.loads((tmp_path / "real_each.json").read_text(encoding="utf-8"))["clips"]
    assert clips["clip-f"][2:4] == ["– (0)", ".00 (2)"]


def test_the_report_on_composites_is_whole(tmp_path: Path) -> None:
    boundaries = (
        CompositeBoundary(2.0, "cut", 2.0, 2.0),
        CompositeBoundary(6.0, "dissolve", 5.0, 7.0),
    )
    flash = (CompositeDistractor(4.0, 4.1, "flash"),)

    def some(marks: tuple[CompositeBoundary, ...], others: tuple[CompositeDistractor, ...]) -> Composites:
        videos = {
            name: CompositeVideo(name, Path(f"{name}.mp4"), "all", 10.0, 24.0, 240, marks, others, ("clip",))
            for name in ("a", "b")
        }
        return Composites(tmp_path, videos, {}, {})

    test = some(boundaries, ())
    labels = test.labels()
    found = {"method": {"a": moments(2.0, 5.1), "b": moments(6.1)}}
    silent = {"a": moments(), "b": moments(4.05)}
    alarms = {"method": {CONTROL: (some((), ()), silent), "flash": (some((), flash), silent)}}
    clock, _ = clock_row(labels)
    scored = composites_report.Scored(
        labels,
        test,
        found,
        {"still": alarms},
        clock,
        (2.0, {name: moments(2.0, 4.0, 6.0, 8.0) for name in labels.videos}),
        [],
        {"miniroad": Trained(tmp_path, ("epochs=1",), 60.0)},
    )
    composites_report.write(scored, "command").write(tmp_path / "composites")
    data = json.loads((tmp_path / "composites.json").read_text(encoding="utf-8"))
    assert data["recall"]["0.25"]["method"]["dissolve"]["value"] == 0.5
    assert data["recall"]["span"]["method"]["dissolve"]["value"] == 1.0
    assert data["false alarms"]["still"]["method"]["flash"]["count"] == 1
    assert data["false alarms"]["still"]["method"][CONTROL]["count"] == 0
    assert data["false alarms"]["still"]["method"][CONTROL]["all"]["value"] == pytest.approx(180)
    assert "1.0 min on one core" in (tmp_path / "composites.md").read_text(encoding="utf-8")


def test_clips_can_be_left_out(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.mkv", "c.avi", "clips.csv"):
        (tmp_path / name).touch()
    names = tmp_path / "names.txt"
    names.write_text("a\nb.mkv\n", encoding="utf-8")
    assert clips_in([tmp_path], None) == [tmp_path]
    assert clips_in([tmp_path], names) == [tmp_path / "c.avi"]
    names.write_text("z\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="z; no such clips"):
        clips_in([tmp_path], names)


def test_a_film_that_is_seen_to_another_time_is_kept_apart(tmp_path: Path) -> None:
    from footage.films import key_of

    path = tmp_path / "a.mp4"
    path.write_bytes(b"a")
    copy = tmp_path / "b.mp4"
    copy.write_bytes(b"a")
    assert key_of(Film("a", path)) == key_of(Film("b", copy))
    assert key_of(Film("a", path, 3.0)) != key_of(Film("a", path))


def test_predictions_from_a_file_say_what_the_file_knows(tmp_path: Path) -> None:
    from footage.predicted import predicted

    times = {name: [2.0, 6.0] for name in LABELS.videos}
    path = tmp_path / "plain.json"
    path.write_text(json.dumps(times), encoding="utf-8")
    plain = predicted("plain", path, LABELS)
    assert row("", LABELS, plain).at(0.25)[1] == 1.0
    assert delay_figures(LABELS, plain, "centre") == {}
    full = {name: {"times": [2.0, 6.0], "decided": [2.5, 6.5], "onsets": [1.9, 5.9]} for name in times}
    path.write_text(json.dumps(full), encoding="utf-8")
    known = predicted("known", path, LABELS)
    assert delay_figures(LABELS, known, "centre")["median"].value == pytest.approx(0.5, abs=0.11)
    assert delay_figures(LABELS, known, "onset") == {}
    del full["clip-a"]
    path.write_text(json.dumps(full), encoding="utf-8")
    with pytest.raises(LabelError, match="1 labelled videos have no prediction, clip-a"):
        predicted("short", path, LABELS)
