"""The newest packets of a source, and the pieces that are cut out of them."""

from __future__ import annotations

import io
import threading
from dataclasses import replace
from fractions import Fraction

import av
import numpy as np
import pytest
from av.packet import Packet
from hypothesis import given
from hypothesis import strategies as st

from ongebd.errors import OngebdError
from ongebd.video import VideoReader
from ongebd.video.packets import RecentPackets
from ongebd.video.pieces import mp4_of


class Keeper:
    """What a reader tells, as `ongebd watch` takes it; at a frame it asks for a piece."""

    def __init__(self, seconds=3.0, most_bytes=1 << 24):
        self.turn = (False, False, False)
        self.of = [seconds, most_bytes]
        self.recent: list[RecentPackets] = []
        self.pieces = []

    def begin(self, stream):
        self.recent.append(RecentPackets(stream, *self.of))

    def add(self, packet, time):
        self.recent[-1].turn = self.turn
        self.recent[-1].add(packet, time)

    def broke(self, pts, *, same_picture):
        self.recent.append(self.recent[-1].branch(pts, same_picture=same_picture))

    def end(self):
        self.recent[-1].end()

    def cut(self, begin, end):
        self.recent[-1].cut(begin, end, self.pieces.append)


def read(path, *cuts, fps=None, **options):
    """Read all of it, asking at some times for pieces: (at, begin, end)."""
    keeper = Keeper(**options)
    left = sorted(cuts)
    with VideoReader(path, fps, keep=keeper) as reader:
        for frame in reader:
            while left and float(frame.time) >= left[0][0]:
                keeper.cut(*left.pop(0)[1:])
    return keeper


def frames_of(data):
    with av.open(io.BytesIO(data)) as film:
        codec = film.streams.video[0].codec_context.codec.canonical_name
        return codec, [(frame.time, frame.to_ndarray(format="rgb24")) for frame in film.decode(video=0)]


@pytest.fixture(scope="module")
def numbered(make_video, make_numbered, tmp_path_factory):
    """Six seconds of numbered pictures, a keyframe each second."""
    path = tmp_path_factory.mktemp("packets") / "numbered.mp4"
    return make_video(path, make_numbered(150), options={"g": "25", "bf": "0", "sc_threshold": "0"})


def test_a_piece_is_copied_from_the_keyframe_before_its_beginning(numbered, read_number):
    (piece,) = read(numbered, (4.0, 2.5, 5.0)).pieces
    data, seconds = mp4_of(piece)
    codec, frames = frames_of(data)
    assert codec == "h264"
    assert [read_number(picture) for _, picture in frames] == list(range(50, 125))
    assert [time for time, _ in frames] == pytest.approx([n / 25 for n in range(75)])
    assert seconds == pytest.approx(3.0)
    with av.open(str(numbered)) as source, av.open(io.BytesIO(data)) as film:
        before = [bytes(packet) for packet in source.demux(video=0)][50:125]
        assert [bytes(packet) for packet in film.demux(video=0)][:75] == before  # nothing is encoded again


def test_an_index_stands_in_front_so_that_a_browser_can_begin_at_once(numbered):
    data, _ = mp4_of(read(numbered, (4.0, 2.5, 5.0)).pieces[0])
    assert data.index(b"moov") < data.index(b"mdat")


def test_a_piece_that_reaches_over_the_end_is_handed_over_when_the_source_is_closed(numbered, read_number):
    keeper = read(numbered, (5.5, 4.6, 9.0))
    _, frames = frames_of(mp4_of(keeper.pieces[0])[0])
    assert [read_number(picture) for _, picture in frames] == list(range(100, 150))
    keeper.cut(5.0, 6.0)  # asked for when it is over
    assert len(frames_of(mp4_of(keeper.pieces[1])[0])[1]) == 25


@pytest.mark.parametrize(
    ("codec", "pixels", "ending", "becomes"),
    [
        ("libx264", "yuv420p", "ts", "h264"),
        ("libx264", "yuv420p", "h264", "h264"),
        ("libx264", "yuv444p", "mkv", "h264"),
        ("libx265", "yuv420p", "ts", "hevc"),
        ("libvpx-vp9", "yuv420p", "webm", "vp9"),
        ("mpeg2video", "yuv420p", "ts", "h264"),
        ("mpeg4", "yuv420p", "avi", "h264"),
        ("mjpeg", "yuvj420p", "avi", "h264"),
        ("mjpeg", "yuvj420p", "mjpeg", "h264"),
        ("rawvideo", "yuyv422", "nut", "h264"),
    ],
)
def test_whatever_the_source_sends_its_piece_is_a_film_with_the_right_pictures(
    make_video, make_numbered, read_number, tmp_path, codec, pixels, ending, becomes
):
    options = {"g": "12"} | ({"x265-params": "log-level=0"} if codec == "libx265" else {})
    options |= {"deadline": "realtime", "cpu-used": "8"} if codec == "libvpx-vp9" else {}
    path = tmp_path / f"film.{ending}"
    make_video(path, make_numbered(100), codec=codec, pix_fmt=pixels, options=options)
    (piece,) = read(path, (2.4, 1.4, 3.0)).pieces
    found, frames = frames_of(mp4_of(piece)[0])
    numbers = [read_number(picture) for _, picture in frames]
    assert found == becomes
    whole = numbers[:-4]  # at the end of a piece, what comes out of order may lack one
    assert whole == list(range(numbers[0], numbers[0] + len(whole)))
    assert 35 - 13 <= numbers[0] <= 37
    assert 72 <= numbers[-1] <= 80  # a decoder holds back a few frames
    assert np.diff([time for time, _ in frames[:-4]]) == pytest.approx(1 / 25, abs=0.002)


def test_seconds_of_raw_video_are_kept_small(make_video, make_scene, tmp_path):
    pictures = [make_scene(3, 640, 480)] * 40
    path = make_video(tmp_path / "raw.nut", pictures, codec="rawvideo", pix_fmt="yuyv422")
    keeper = read(path, (1.0, 0.0, 2.0))
    assert path.stat().st_size > 40 * 600_000
    assert sum(len(packet.data) for packet in keeper.pieces[0].packets) < 40 * 90_000
    _, frames = frames_of(mp4_of(keeper.pieces[0])[0])
    assert len(frames) == 40
    assert np.abs(frames[20][1].mean((0, 1)) - pictures[0].mean((0, 1))).max() < 3


@pytest.mark.parametrize(
    ("codec", "pixels", "ending"),
    [
        ("rawvideo", "yuyv422", "nut"),
        ("rawvideo", "rgb24", "nut"),
        ("mjpeg", "yuvj422p", "avi"),
        ("mpeg2video", "yuv420p", "ts"),
        ("libx264", "yuvj420p", "mp4"),
    ],
)
def test_colours_are_as_they_were(make_video, tmp_path, codec, pixels, ending):
    colours = [(200, 200, 200), (16, 16, 16), (250, 30, 30), (20, 20, 240)]
    picture = np.repeat(np.repeat(np.array([colours], np.uint8), 32, axis=1), 64, axis=0)
    path = make_video(tmp_path / f"film.{ending}", [picture] * 25, codec=codec, pix_fmt=pixels)
    _, frames = frames_of(mp4_of(read(path, (0.5, 0.0, 1.0)).pieces[0])[0])
    seen = frames[5][1][32, 16::32]
    assert np.abs(seen.astype(int) - colours).max() <= 6, seen


def test_a_piece_of_an_odd_size_is_coded(make_video, make_numbered, tmp_path):
    path = make_video(tmp_path / "odd.avi", make_numbered(60, 97, 65), codec="mjpeg", pix_fmt="yuvj444p")
    _, frames = frames_of(mp4_of(read(path, (1.0, 0.0, 2.0)).pieces[0])[0])
    assert frames[0][1].shape == (64, 96, 3)


def test_a_piece_of_a_phones_video_is_upright(numbered, tmp_path, set_display_matrix):
    path = tmp_path / "phone.mp4"
    path.write_bytes(numbered.read_bytes())
    set_display_matrix(path, 0, 1, -1, 0)
    with VideoReader(path) as reader:
        wanted = next(iter(reader)).rgb
    _, frames = frames_of(mp4_of(read(path, (2.0, 0.0, 3.0)).pieces[0])[0])
    assert frames[0][1].shape == wanted.shape == (96, 64, 3)
    assert np.abs(frames[0][1].astype(int) - wanted).mean() < 12


def test_times_that_step_back_are_fixed_by_encoding_again(numbered):
    (piece,) = read(numbered, (4.0, 2.5, 5.0)).pieces
    late = [
        replace(packet, pts=packet.pts - 40_000, dts=packet.dts - 40_000) for packet in piece.packets[40:]
    ]
    codec, frames = frames_of(mp4_of(replace(piece, packets=(*piece.packets[:40], *late)))[0])
    assert codec == "h264"
    assert len(frames) > 50
    assert all(np.diff([time for time, _ in frames]) > 0)


def test_what_cannot_be_decoded_is_refused_in_a_line(numbered):
    (piece,) = read(numbered, (4.0, 2.5, 5.0)).pieces
    broken = replace(
        piece,
        as_opened=False,
        packets=tuple(replace(packet, data=bytes(len(packet.data))) for packet in piece.packets),
    )
    with pytest.raises(OngebdError, match="can't decode any picture of a clip"):
        mp4_of(broken)


def test_coding_ends_when_it_is_told_to(numbered):
    (piece,) = read(numbered, (4.0, 2.5, 5.0)).pieces
    stop = threading.Event()
    stop.set()
    with pytest.raises(OngebdError, match="wasn't coded in time"):
        mp4_of(replace(piece, as_opened=False), stop)


def test_another_picture_size_begins_packets_of_its_own(make_video, make_numbered, read_number, tmp_path):
    small = make_video(tmp_path / "s.ts", make_numbered(50), options={"g": "10"}).read_bytes()
    large = make_video(tmp_path / "l.ts", make_numbered(50, 192, 128), options={"g": "10"}).read_bytes()
    path = tmp_path / "both.ts"
    path.write_bytes(small + large)
    keeper = read(path, (1.8, 1.0, 3.5), (2.6, 1.5, 3.2))
    assert len(keeper.recent) >= 2
    before, after = (frames_of(mp4_of(piece)[0])[1] for piece in keeper.pieces)
    assert {picture.shape for _, picture in before} == {(64, 96, 3)}
    assert {picture.shape for _, picture in after} == {(128, 192, 3)}
    assert read_number(after[0][1]) == 0  # the keyframe behind the break is not lost


@pytest.fixture(scope="module")
def stream(numbered):
    with av.open(str(numbered)) as container:
        yield container.streams.video[0]


def packet_of(n, key, size):
    packet = Packet(n.to_bytes(4, "big") * size)
    packet.pts = packet.dts = n
    packet.is_keyframe, packet.time_base = key, Fraction(1, 25)
    return packet


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 40)), min_size=1, max_size=120),
    st.floats(0.1, 2.0),
    st.integers(100, 4000),
    st.integers(0, 120),
    st.floats(0.0, 2.0),
    st.floats(0.1, 2.0),
)
def test_memory_is_bounded_and_a_piece_is_unbroken_from_a_keyframe(
    stream, packets, seconds, most, when, before, after
):
    recent = RecentPackets(stream, seconds, most)
    got, held = [], []
    for n, (key, size) in enumerate(packets):
        recent.add(packet_of(n, key, size), n / 25)
        assert recent.size <= most
        if n == when:
            held = list(recent._groups)
            recent.cut(n / 25 - before, n / 25 + after, got.append)
    recent.end()
    if when >= len(packets):
        assert got == []
        return
    (piece,) = got
    if piece is None:
        assert not any(key for key, _ in packets[max(0, when - 1) : int(when + 25 * after)]) or not held
        return
    numbers = [int.from_bytes(packet.data[:4], "big") for packet in piece.packets]
    assert piece.packets[0].is_keyframe
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[-1] / 25 < when / 25 + after
    assert sum(len(packet.data) for packet in piece.packets) < 1.5 * most + 4 * 41
    keys = [n for n, (key, _) in enumerate(packets[: when + 1]) if key and n / 25 <= when / 25 - before]
    if keys and held and held[0][0].pts <= keys[-1]:  # it was still kept
        assert numbers[0] == keys[-1]


def test_a_source_without_a_second_keyframe_is_kept_up_to_the_limit_only(stream):
    recent = RecentPackets(stream, 1.0, 1000)
    for n in range(390):
        recent.add(packet_of(n, n == 0, 5), n / 25)
    got = []
    recent.cut(15.0, 15.1, got.append)
    assert got == [None]
    for n in range(390, 430):
        recent.add(packet_of(n, n == 400, 5), n / 25)
    recent.cut(16.5, 17.0, got.append)
    assert [packet.pts for packet in got[1].packets] == list(range(400, 425))
