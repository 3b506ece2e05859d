from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import composites
import hard_cuts
import numpy as np
import pytest
import real_clips
from footage.methods import Film, found_in, methods_of, predicted
from footage.scores import ceiling_row, clock_row, comparison_of, random_row, row
from footage.training import Trained, clips_in, cross_validated, fold_of

import ongebd
from ongebd.data import LabelSet, VideoLabels, VideoPrediction
from ongebd.detector.recipes import RECIPES
from ongebd.errors import ConfigError, LabelError
from ongebd.lab.composites import CompositeBoundary, CompositeDistractor, Composites, CompositeVideo


def moments(*times: float) -> VideoPrediction:
    times_ = np.array(times, dtype=np.float64)
    return VideoPrediction(times_, times_ + 0.1, times_, onsets_known=times_)


@pytest.fixture
def film(make_video: Callable[..., Path], make_scene: Callable[..., np.ndarray], tmp_path: Path) -> Film:
    pictures = [scene for scene in map(make_scene, (1, 2, 3)) for _ in range(30)]
    return Film("made", make_video(tmp_path / "made.mp4", pictures, rate=24))


@pytest.mark.parametrize("name", ["window-mean", "clock:1", "scenedetect-adaptive", "scenedetect-content"])
def test_what_is_found_is_what_detect_finds_also_from_kept_features(
    name: str, film: Film, tmp_path: Path
) -> None:
    if RECIPES[name.partition(":")[0]].extra:
        pytest.importorskip("scenedetect")
    expected = [(each.time, each.onset, each.decided) for each in ongebd.detect(film.path, name).boundaries]
    assert expected
    for _ in range(2):
        found = found_in(methods_of([name]), [film], tmp_path / "work")[name]["made"]
        assert found.onsets is not None
        assert found.decided is not None
        assert list(zip(found.times, found.onsets, found.decided, strict=True)) == expected
    if name == "scenedetect-adaptive":  # which waits for two frames
        assert found.onsets_known is not None
        assert (found.onsets_known - found.onsets).tolist() == pytest.approx([2 / 24] * len(expected))


def test_peers_that_see_one_film_together_find_what_each_finds_alone(film: Film) -> None:
    pytest.importorskip("scenedetect")
    names = ("scenedetect-adaptive", "scenedetect-hash")
    videos = {"made": CompositeVideo("made", film.path, "all", 3.75, 24.0, 90, (), (), ())}
    found = hard_cuts.found_by(methods_of(names), videos, film.path.parent)
    for name in names:
        alone = ongebd.detect(film.path, name).boundaries
        assert alone
        assert found[name]["made"] == [(b.time, b.onset_known or b.decided, b.kind) for b in alone]


def test_cuts_that_a_source_clip_has_itself_are_neither_right_nor_wrong() -> None:
    cut, clips = CompositeBoundary(3.0, "cut", 3.0, 3.0), (hard_cuts.TRAILER,)
    video = CompositeVideo("a", Path("a.mp4"), "all", 9.0, 24.0, 216, (cut,), (), clips)
    found = {"a": [(time, time, "cut") for time in (1.0, 3.0, 5.0)]}
    wrong_everywhere = hard_cuts.figures([video], found, {})
    assert (wrong_everywhere["told"], wrong_everywhere["recall"]) == (3, 1.0)
    assert hard_cuts.figures([video], found, {"a": (0.0, 3.1)})["told"] == 2
    assert hard_cuts.figures([replace(video, clips=())], found, {"a": (0.0, 3.1)})["told"] == 3


def test_settings_and_labels_of_a_method() -> None:
    often, plain = methods_of(["often=window-mean@tau=2,delta=16", "window-mean@tau=5"])
    assert (often.label, often.config.tau, often.config.delta) == ("often", 2.0, 16)
    assert (plain.label, plain.view) == ("window-mean@tau=5", often.view)
    assert methods_of(["window-mean@fps=12"])[0].view != plain.view
    with pytest.raises(ConfigError, match="not setting=value"):
        methods_of(["window-mean@tau"])
    with pytest.raises(ConfigError, match="called 'window-mean'"):
        methods_of(["window-mean", "window-mean"])


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
    ceiling = ceiling_row(LABELS)
    assert ceiling is not None
    scored = real_clips.Scored(
        LABELS,
        {"good": GOOD, "poor": POOR},
        [clock_row(LABELS)[0], random_row(LABELS), ceiling],
        [row("poor", LABELS, POOR)],
        [row("good", LABELS, GOOD)],
    )
    made = real_clips.tables(scored, "command")
    real_clips.by_kind(made, scored, {"dance": ["clip-a", "clip-b"]})
    made.write(tmp_path / "real")
    written = (tmp_path / "real.md").read_text(encoding="utf-8")
    assert "model ratings, not people" in written
    assert "| dance (2) | good | 1.000 (" in written
    data = json.loads((tmp_path / "real.json").read_text(encoding="utf-8"))
    assert data["f1"]["good"]["f1"]["0.5"]["value"] == 1.0
    assert data["differences"]["good"]["0.5"]["value"] > 0


def test_the_report_on_composites_is_whole(tmp_path: Path) -> None:
    boundaries = (CompositeBoundary(2.0, "cut", 2.0, 2.0), CompositeBoundary(6.0, "dissolve", 5.0, 7.0))
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
    alarms = {"method": {composites.CONTROL: (some((), ()), silent), "flash": (some((), flash), silent)}}
    clock, _ = clock_row(labels)
    scored = composites.Scored(
        labels,
        test,
        found,
        {"still": alarms},
        clock,
        (2.0, {name: moments(2.0, 4.0, 6.0, 8.0) for name in labels.videos}),
        {"miniroad": Trained(tmp_path, ("epochs=1",), 60.0)},
    )
    composites.tables(scored, "command").write(tmp_path / "composites")
    data = json.loads((tmp_path / "composites.json").read_text(encoding="utf-8"))
    assert data["recall"]["0.25"]["method"]["dissolve"]["value"] == 0.5
    assert data["recall"]["span"]["method"]["dissolve"]["value"] == 1.0
    assert data["false alarms"]["still"]["method"]["flash"]["count"] == 1
    assert data["false alarms"]["still"]["method"][composites.CONTROL]["count"] == 0
    assert data["false alarms"]["still"]["method"][composites.CONTROL]["all"]["value"] == pytest.approx(180)
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


def test_predictions_from_a_file_say_what_the_file_knows(tmp_path: Path) -> None:
    times = {name: [2.0, 6.0] for name in LABELS.videos}
    path = tmp_path / "plain.json"
    path.write_text(json.dumps(times), encoding="utf-8")
    plain = predicted([f"plain={path}"], LABELS)["plain"]
    assert row("", LABELS, plain).at(0.25)[1] == 1.0
    assert comparison_of(LABELS, plain).decided is None
    full = {name: {"times": [2.0, 6.0], "decided": [2.5, 6.5], "onsets": [1.9, 5.9]} for name in times}
    path.write_text(json.dumps(full), encoding="utf-8")
    known = predicted([f"known={path}"], LABELS)["known"]
    assert comparison_of(LABELS, known).decided is not None
    assert comparison_of(LABELS, known, "onset").decided is None
    del full["clip-a"]
    path.write_text(json.dumps(full), encoding="utf-8")
    with pytest.raises(LabelError, match="1 labelled videos have no prediction, clip-a"):
        predicted([f"short={path}"], LABELS)
