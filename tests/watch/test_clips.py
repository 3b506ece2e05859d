"""Clips of boundaries: what is in them, when they are there, and that they hold up nobody."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import av
import pytest

from ongebd.errors import ConfigError
from ongebd.watch import Clip, ClipLength, Onset, Watcher
from ongebd.watch.sinks import ClipSink

from .conftest import QUICK, everything, feeding, waits

WALL = 1_795_852_800.25
NAME = re.compile(r"\d{8}T\d{6}\.\d{3}Z-[a-z0-9-]+-\d+\.mp4")


@pytest.fixture(scope="module")
def film(make_video, make_scene, tmp_path_factory):
    """Four scenes of two seconds, a keyframe every half second."""
    pictures = [make_scene(n // 50, 96, 64) for n in range(200)]
    return make_video(tmp_path_factory.mktemp("films") / "film.mp4", pictures, options={"g": "12"})


def watching(model, source, folder, *, before=1.0, after=1.0, patience=QUICK, **options):
    length = ClipLength(before=before, after=after)
    watcher = Watcher([source], model=model, patience=patience, clips=length, **options)
    complaints: list[str] = []
    watcher.attach(ClipSink(folder, watcher, complaints.append))
    return watcher, complaints


def seen_in(path: Path):
    """Codec, length, and the mean colour of the first and the last picture."""
    with av.open(str(path)) as container:
        pictures = list(container.decode(video=0))
        codec = container.streams.video[0].codec_context.codec.canonical_name
    first, last = (pictures[n].to_ndarray(format="rgb24").mean((0, 1)) for n in (0, -1))
    return codec, pictures[-1].time - pictures[0].time, first, last


def test_each_boundary_has_a_clip_from_before_its_onset_until_after_it(film, light_model, tmp_path):
    watcher, complaints = watching(light_model, f"door={film}", tmp_path)
    with watcher.hub.subscribe(Onset, Clip) as told, watcher:
        assert watcher.join(20)
        watcher.stop()
        records = everything(told)
    onsets = {r.number: r for r in records if isinstance(r, Onset)}
    clips = {r.number: r for r in records if isinstance(r, Clip)}
    assert complaints == []
    assert [onset.time for onset in onsets.values()] == pytest.approx([2, 4, 6], abs=0.1)
    assert clips.keys() == onsets.keys()
    for number, clip in clips.items():
        assert (clip.time, clip.wall, clip.epoch) == (onsets[number].time, onsets[number].wall, 0)
        assert watcher.streams["door"].history.clip(number) == clip.path
        assert NAME.fullmatch(clip.path.name)
        codec, seconds, first, last = seen_in(clip.path)
        assert codec == "h264"
        assert 1.9 <= seconds <= 2.6  # it begins at a keyframe
        assert clip.seconds == pytest.approx(seconds + 1 / 25, abs=0.01)
        assert abs(first - last).max() > 5  # another scene
    assert sorted(tmp_path.iterdir()) == sorted(clip.path for clip in clips.values())


@pytest.mark.parametrize("codec", ["libx264", "mpeg2video"])
def test_a_feed_that_is_killed_within_a_clip_leaves_a_whole_short_one(
    light_model, free_port, tmp_path, codec
):
    source = f"cam=tcp://127.0.0.1:{free_port}"
    watcher, complaints = watching(light_model, source, tmp_path, after=30)
    with watcher:
        stream = watcher.streams["cam"]
        with feeding(free_port, codec=codec):
            waits(watcher, lambda: stream.status().boundaries >= 2, 20)
            assert list(tmp_path.iterdir()) == []  # they still grow
        waits(watcher, lambda: stream.history.clip(2) is not None)
    assert complaints == []
    for number in (1, 2):
        found, seconds, *_ = seen_in(stream.history.clip(number))
        assert (found, 0.3 < seconds < 15) == ("h264", True)


def test_the_end_of_a_watch_is_the_end_of_its_clips_and_the_records_know_them(
    light_model, free_port, tmp_path
):
    watcher, complaints = watching(light_model, f"cam=tcp://127.0.0.1:{free_port}", tmp_path, after=30)
    with feeding(free_port), watcher.hub.subscribe(Clip) as told, watcher:
        waits(watcher, lambda: watcher.streams["cam"].status().boundaries >= 1, 20)
        watcher.stop()
        clips = everything(told)
    assert complaints == []
    assert [clip.number for clip in clips] == list(range(1, len(clips) + 1))
    assert all(seen_in(clip.path)[0] == "h264" for clip in clips)


def test_a_break_within_a_connection_ends_a_clip_and_the_next_is_of_the_new_picture(
    light_model, make_video, make_scene, tmp_path
):
    parts = []
    for name, size in (("small", (96, 64)), ("large", (192, 128))):
        pictures = [make_scene(n // 50, *size) for n in range(100)]
        parts.append(make_video(tmp_path / f"{name}.ts", pictures, options={"g": "10"}).read_bytes())
    both = tmp_path / "both.ts"
    both.write_bytes(b"".join(parts))
    watcher, complaints = watching(light_model, str(both), tmp_path / "clips", before=1.5, after=9)
    with watcher.hub.subscribe(Clip) as told, watcher:
        assert watcher.join(20)
        watcher.stop()
        clips = everything(told)
    assert complaints == []
    assert [clip.epoch for clip in clips] == [0, 1]
    for clip, size in zip(clips, ((96, 64), (192, 128)), strict=True):
        with av.open(str(clip.path)) as container:
            pictures = list(container.decode(video=0))
        assert {(picture.width, picture.height) for picture in pictures} == {size}
        assert len(pictures) > 60


def test_clips_of_several_epochs_are_cut_from_their_own_connection(light_model, free_port, tmp_path):
    patience = replace(QUICK, read_timeout=1.0)
    source = f"cam=tcp://127.0.0.1:{free_port}"
    watcher, complaints = watching(light_model, source, tmp_path, before=5, after=0.2, patience=patience)
    with watcher.hub.subscribe(Clip) as told, watcher:
        stream = watcher.streams["cam"]
        for size in ((96, 64), (160, 128)):
            clips = stream.status().boundaries
            with feeding(free_port, width=size[0], height=size[1]):
                waits(watcher, lambda clips=clips: stream.status().boundaries >= clips + 1, 20)
            waits(watcher, lambda: stream.status().state == "reconnecting")
        watcher.stop()
        records = everything(told)
    assert complaints == []
    assert {record.epoch for record in records} == {0, 1}
    for record in records:
        with av.open(str(record.path)) as container:
            stream = container.streams.video[0]
            assert (stream.width, stream.height) == ((96, 64), (160, 128))[record.epoch]


@pytest.mark.parametrize("wrong", [{"before": -1}, {"after": 61}, {"before": 0.2, "after": 0.2}])
def test_a_length_out_of_range_is_refused(wrong):
    with pytest.raises(ConfigError, match="clip"):
        ClipLength(**wrong)
