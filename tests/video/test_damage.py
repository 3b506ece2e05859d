"""Damage: decodable parts are read, losses counted and reported, unreadable files refused in one line."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from av.video.frame import VideoFrame

from ongebd.errors import SourceError
from ongebd.video import VideoReader, reader
from ongebd.video.picture import UPRIGHT, Damage, RgbMaker, changed

COUNT = 60


@pytest.fixture
def pictures(make_scene):
    """Moving scenes: enough bytes a frame that damage hits some and not all."""
    scenes = [make_scene(seed, 256, 192) for seed in range(COUNT // 10)]
    return [np.roll(scenes[n // 10], 2 * n, axis=1) for n in range(COUNT)]


def scramble(path, start: float, end: float) -> None:
    """Overwrite a part of a file, told as shares of its size, with noise."""
    data = bytearray(path.read_bytes())
    first, last = int(start * len(data)), int(end * len(data))
    data[first:last] = np.random.default_rng(0).bytes(last - first)
    path.write_bytes(data)


def cut(path, end: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(end * len(data))])


@pytest.mark.parametrize(
    ("ending", "codec", "told"),
    [
        ("mp4", "libx264", "damaged packets or frames: "),
        ("avi", "mpeg4", "damaged packets or frames: "),
        ("ts", "libx264", "missing data"),
        ("mkv", "libx264", None),  # Matroska holds no frame count, and its demuxer doesn't say what it skips
    ],
)
@pytest.mark.parametrize("large", [0, reader.LARGE])
def test_frames_after_a_corrupt_middle_are_read_and_the_loss_is_reported(
    tmp_path, make_video, read, pictures, ending, codec, told, large, monkeypatch
):
    monkeypatch.setattr(reader, "LARGE", large)  # 0: several threads decode
    path = make_video(tmp_path / f"middle.{ending}", pictures, codec=codec, options={"g": "12"})
    scramble(path, 0.4, 0.5)
    video, frames = read(path)
    times = [frame.time for frame in frames]
    assert 20 < len(frames) <= COUNT
    assert times == sorted(times)
    assert times[-1] > 2, "nothing was read after the damage"
    assert told is None or any(told in warning for warning in video.warnings), video.warnings


@pytest.mark.parametrize(
    ("ending", "codec", "muxing", "told"),
    [
        ("mp4", "libx264", {"movflags": "faststart"}, "cut off or damaged: read 1."),
        ("mkv", "libx264", None, "cut off or damaged: read 1."),
        ("avi", "mpeg4", None, "missing data"),
    ],
)
def test_a_truncated_tail_is_read_up_to_the_cut_and_reported(
    tmp_path, make_video, read, pictures, ending, codec, muxing, told
):
    path = make_video(
        tmp_path / f"tail.{ending}", pictures, codec=codec, options={"g": "12"}, container_options=muxing
    )
    cut(path, 0.6)
    video, frames = read(path)
    assert 5 < len(frames) < COUNT
    assert any(told in warning for warning in video.warnings), video.warnings


def test_a_sound_file_says_nothing(tmp_path, make_video, read, pictures):
    for ending in ("mp4", "mkv", "ts", "avi"):
        video, frames = read(make_video(tmp_path / f"sound.{ending}", pictures[:20]))
        assert (video.warnings, video.damaged, video.gaps, len(frames)) == ([], 0, 0, 20)


def test_missing_time_is_not_reported_when_the_reader_stops_early(tmp_path, make_video, pictures):
    path = make_video(tmp_path / "whole.mp4", pictures)
    with VideoReader(path) as video:
        next(iter(video))
        assert video.warnings == []


def test_a_video_of_which_nothing_decodes_is_refused(tmp_path, make_video, pictures):
    path = make_video(tmp_path / "noise.mp4", pictures[:10])
    data = bytearray(path.read_bytes())
    first, last = data.index(b"mdat") + 4, data.index(b"moov") - 4
    data[first:last] = np.random.default_rng(0).bytes(last - first)
    path.write_bytes(data)
    with VideoReader(path) as video, pytest.raises(SourceError) as refused:
        list(video)
    assert_names_cause_and_mend(refused, path, "can't decode its video (packets: 10, codec: h264)")


def test_a_codec_without_a_decoder_is_refused(tmp_path, make_video, pictures):
    path = make_video(tmp_path / "strange.mp4", pictures[:3])
    path.write_bytes(path.read_bytes().replace(b"avc1", b"zzzz"))
    with pytest.raises(SourceError) as refused:
        VideoReader(path)
    assert_names_cause_and_mend(refused, path, "can't decode its video codec")


def _no_index(path, make_video, pictures):
    make_video(path, pictures)
    cut(path, 0.6)  # an MP4's index is its end


def _empty(path, *_):
    path.write_bytes(b"")


def _text(path, *_):
    path.write_text("This is not a video.\n" * 100)


def _zeros(path, *_):
    path.write_bytes(bytes(50_000))


def _directory(path, *_):
    path.mkdir()


def _missing(path, *_):
    pass


def _header_only(path, make_video, pictures):
    make_video(path, pictures[:1], container="matroska")
    data = path.read_bytes()
    path.write_bytes(data[: data.index(bytes.fromhex("1f43b675"))])  # up to the first cluster


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (_no_index, "can't read it as a video"),
        (_empty, "is empty"),
        (_text, "can't read it as a video"),
        (_zeros, "can't read it as a video"),
        (_directory, "is a directory"),
        (_missing, "no such file"),
        (_header_only, "ends before its first frame"),
    ],
)
def test_what_cannot_be_opened_is_refused_with_name_cause_and_advice(
    tmp_path, make_video, pictures, make, cause
):
    path = tmp_path / "bad.mp4"
    make(path, make_video, pictures)
    with pytest.raises(SourceError) as refused:
        VideoReader(path)
    assert_names_cause_and_mend(refused, path, cause)


def test_a_text_file_is_not_drawn_as_a_video(tmp_path):
    path = tmp_path / "notes.txt"  # FFmpeg has a decoder that would
    _text(path)
    with pytest.raises(SourceError, match="isn't a video, but text"):
        VideoReader(path)


def test_raw_pictures_without_a_header_are_told_how_to_get_one(tmp_path):
    path = tmp_path / "raw.yuv"
    path.write_bytes(np.random.default_rng(0).bytes(345_600))
    with pytest.raises(SourceError, match=r"raw pictures need a header: ffmpeg -f rawvideo"):
        VideoReader(path)


def test_a_file_that_may_not_be_read_is_refused(clip):
    clip.chmod(0)
    if os.access(clip, os.R_OK):
        pytest.skip("this user may read every file")
    with pytest.raises(SourceError, match=r"clip\.mp4: can't open: Permission denied"):
        VideoReader(clip)


def test_a_refused_file_is_not_left_open(tmp_path):
    open_files = Path("/proc/self/fd")
    if not open_files.is_dir():
        pytest.skip("this system does not list open files")
    path = tmp_path / "bad.mp4"
    _text(path)
    before = len(list(open_files.iterdir()))
    for _ in range(20):
        with pytest.raises(SourceError):
            VideoReader(path)
    assert len(list(open_files.iterdir())) == before


def assert_names_cause_and_mend(refused, path, cause: str) -> None:
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert cause in message
    assert "\n" not in message
    assert len(message) > len(f"{path}: {cause}"), "no word on how to mend it"
    assert refused.value.__cause__ is None


def lose(path: Path, every: int) -> None:
    """Take packets out of a transport stream, evenly, but not its beginning."""
    data = path.read_bytes()
    packets = [data[at : at + 188] for at in range(0, len(data), 188)]
    path.write_bytes(b"".join(p for n, p in enumerate(packets) if n < 100 or n % every))


@pytest.fixture
def two_scenes(tmp_path, make_video, make_scene):
    """A still scene with noise, cut to another at 3 s, as a camera sends it."""
    noise = np.random.default_rng(0).integers(0, 6, (100, 192, 256, 3)).astype(np.int16)
    scene = make_scene(1, 256, 192).astype(np.int16)
    scenes = [scene, 250 - scene]
    pictures = [np.clip(scenes[n >= 75] + noise[n], 0, 255).astype(np.uint8) for n in range(100)]
    options = {"g": "25", "x264-params": "slices=4"}
    return make_video(tmp_path / "camera.ts", pictures, options=options)


@pytest.mark.parametrize("every", [83, 101, 181])
def test_damaged_pictures_are_not_handed_out_but_a_cut_among_them_is(two_scenes, read, every):
    _, sound = read(two_scenes)
    lose(two_scenes, every)
    video, frames = read(two_scenes)
    assert video.hidden
    assert f"damaged frames that were not judged: {video.hidden}" in video.warnings
    assert [frame.time for frame in frames] == sorted({frame.time for frame in frames})
    known = {float(frame.time): frame.rgb.astype(int) for frame in sound}
    far = {float(frame.time): abs(frame.rgb - known[0.0]).mean() > 10 for frame in frames}
    assert not any(is_far for time, is_far in far.items() if time < 3), "garbage was handed out"
    assert min(time for time, is_far in far.items() if is_far) <= 3.5, "the cut was lost"


def test_a_sound_source_hides_nothing(two_scenes, read):
    video, _ = read(two_scenes)
    assert (video.hidden, video.warnings) == (0, [])


def test_joined_pieces_are_not_damage(two_scenes, read):
    two_scenes.write_bytes(two_scenes.read_bytes() * 2)
    video, frames = read(two_scenes)
    assert (video.hidden, video.gaps, len(frames)) == (0, 1, 200)


def test_a_source_that_is_damaged_from_its_first_frame_is_read_all_the_same(two_scenes, read):
    data = two_scenes.read_bytes()
    two_scenes.write_bytes(data[: 188 * 10] + data[188 * 14 :])
    _, frames = read(two_scenes)
    assert len(frames) > 90


@pytest.mark.parametrize("noticed", [True, False])
def test_a_damaged_key_frame_heals_nothing_whether_or_not_the_decoder_notices(noticed):
    damage, damaged = Damage(), []
    for pts, (broken, key) in enumerate([(True, False), (True, True), (False, False), (False, True)]):
        damage.in_packet(SimpleNamespace(pts=pts, is_keyframe=key), broken=broken)
        picture = SimpleNamespace(pts=pts, is_corrupt=noticed and pts == 1, key_frame=key)
        damaged.append(damage.in_picture(picture, Fraction(pts), begins=False))
    assert damaged == [True, True, True, False]


def test_a_damaged_key_frame_without_a_time_heals_nothing():
    damage = Damage()
    for pts, broken, key in ((None, True, True), (2, False, False), (3, False, True)):
        damage.in_packet(SimpleNamespace(pts=pts, is_keyframe=key), broken=broken)
        picture = SimpleNamespace(pts=pts, is_corrupt=False, key_frame=key)
        assert damage.in_picture(picture, Fraction(pts or 0), begins=False) == (pts != 3)


def test_a_damaged_picture_is_neither_turned_nor_plain(bars):
    made, picture = RgbMaker(), VideoFrame.from_ndarray(bars[0])
    seen = made(picture)
    turned = SimpleNamespace(width=picture.width, height=picture.height, rotation=180, side_data=[])
    made.turn = (False, True, True)
    assert made.upright_size(turned, damaged=True) == made.upright_size(picture)
    assert made.turn == (False, True, True)
    made.upright_size(turned)
    assert made.turn == UPRIGHT
    assert not changed(seen, np.full_like(seen, 128))


@pytest.fixture
def bars(make_scene):
    """Two scenes between black bars, as wide films have them."""
    scenes = [make_scene(seed, 256, 128) // 2 + light for seed, light in ((1, 0), (2, 120))]
    return [np.pad(scene, ((32, 32), (0, 0), (0, 0))) for scene in scenes]


@pytest.mark.parametrize("lost", [48, 64, 96])
def test_a_damaged_picture_shows_something_else_if_it_does_so_where_it_begins(bars, lost):
    """A lost packet spoils all that follows it in a picture."""
    here, there = bars
    noise = np.random.default_rng(lost).integers(0, 255, here.shape).astype(np.uint8)
    row = np.arange(len(here))[:, None, None]
    assert not changed(here, np.where(row < lost, here, noise))
    assert changed(here, np.where(row < lost, there, noise))


@pytest.mark.parametrize("codec", ["h264", "hevc"])
def test_another_scene_in_damaged_pictures_is_told_from_garbage(bars, codec):
    """After a loss, some decoders fill pictures with garbage, which differs from key frame to key frame."""

    def told(pictures):
        damage = Damage()
        for number, rgb in enumerate(pictures):
            picture = SimpleNamespace(pts=number, is_corrupt=True, key_frame=number % 2 == 0)
            assert damage.in_picture(picture, Fraction(number), begins=False)
            yield damage.shows_more(bars[0], rgb, codec)

    noise = np.random.default_rng(0).integers(0, 255, (3, *bars[0].shape)).astype(np.uint8)
    assert list(told([bars[1]] * 3)) == ([True] * 3 if codec == "h264" else [False, False, True])
    assert codec == "h264" or not any(told(np.repeat(noise, 2, axis=0)))
    assert not any(told([bars[0]] * 3))


def test_a_still_picture_stays_itself_while_packets_are_lost(tmp_path, make_video, make_scene, read):
    rng = np.random.default_rng(0)
    scene = make_scene(0, 640, 360).astype(np.int16)
    noisy = (np.clip(scene + rng.integers(0, 12, scene.shape), 0, 255) for _ in range(60))
    pictures = [picture.astype(np.uint8) for picture in noisy]
    path = make_video(
        tmp_path / "still.ts", pictures, options={"g": "12", "crf": "20", "preset": "ultrafast"}
    )
    data = path.read_bytes()
    packets = [data[at : at + 188] for at in range(0, len(data), 188)]
    path.write_bytes(b"".join(p for n, p in enumerate(packets) if n < 200 or rng.random() > 0.02))
    video, frames = read(path)
    assert video.hidden > 30
    first = frames[0].rgb.astype(int)
    assert max(abs(frame.rgb - first).mean() for frame in frames) < 10
