"""Times of frames."""

from __future__ import annotations

import struct
from fractions import Fraction

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.video.timing import Clock, Unwrapped

B_FRAMES = {"preset": "medium", "bf": "3"}
STEADY = [Fraction(n, 25) for n in range(30)]


def test_variable_frame_rate_is_read_from_the_stamps_as_exact_fractions(
    tmp_path, make_video, make_numbered, read
):
    ticks = [0, 3, 4, 5, 21, 22, 50, 51, 52, 90]
    path = make_video(tmp_path / "vfr.mp4", make_numbered(10), rate=30, pts=ticks, time_base=Fraction(1, 90))
    _, frames = read(path)
    assert [frame.time for frame in frames] == [Fraction(tick, 90) for tick in ticks]


@pytest.mark.parametrize("ending", ["mkv", "ts"])
def test_time_starts_at_zero_and_the_raw_stamp_is_kept_beside_it(
    tmp_path, make_video, make_numbered, read, ending
):
    path = make_video(tmp_path / f"late.{ending}", make_numbered(10), pts=range(250, 260))
    video, frames = read(path)
    assert [frame.time for frame in frames] == STEADY[:10]
    assert [frame.pts * frame.time_base for frame in frames] == [10 + time for time in STEADY[:10]]
    assert video.epochs == []


def test_picture_and_time_stay_together_with_b_frames(tmp_path, make_video, make_numbered, read, read_number):
    path = make_video(tmp_path / "b.mp4", make_numbered(30), options=B_FRAMES)
    with av.open(str(path)) as container:
        stamps = [packet.pts for packet in container.demux(video=0) if packet.pts is not None]
    assert stamps != sorted(stamps), "the encoder made no B-frames, so this would show nothing"
    _, frames = read(path)
    assert [(read_number(frame.rgb), frame.time) for frame in frames] == list(enumerate(STEADY))


@pytest.mark.parametrize(
    ("ending", "codec", "pix_fmt", "container"),
    [
        ("h264", "libx264", "yuv420p", "h264"),
        ("mjpeg", "mjpeg", "yuvj420p", "mjpeg"),
        ("m2v", "mpeg2video", "yuv420p", "mpeg2video"),
    ],
)
@pytest.mark.parametrize("rate", [None, 10])
def test_without_timestamps_the_rate_that_is_set_or_a_default_is_used_with_one_warning(
    tmp_path, make_video, make_numbered, read, read_number, ending, codec, pix_fmt, container, rate
):
    path = make_video(
        tmp_path / f"raw.{ending}",
        make_numbered(30),
        codec=codec,
        pix_fmt=pix_fmt,
        rate=50,
        container=container,
        options=B_FRAMES if ending == "h264" else None,
    )
    video, frames = read(path, source_fps=rate)
    used = rate or 25
    assert [(read_number(frame.rgb), frame.time * used) for frame in frames] == [(n, n) for n in range(30)]
    (warning,) = video.warnings
    assert f"frames without a timestamp: 30; using {used} frames/s" in warning
    assert ("--source-fps" in warning) == (rate is None)
    assert {frame.pts for frame in frames} == {None}


def test_a_given_rate_is_ignored_where_there_are_timestamps(clip, read):
    video, frames = read(clip, source_fps=5)
    assert [frame.time for frame in frames] == STEADY[:10]
    assert video.warnings == []


@pytest.mark.parametrize("options", [{}, B_FRAMES], ids=["plain", "b-frames"])
def test_a_step_back_begins_an_epoch_and_time_goes_on(
    tmp_path, make_video, make_numbered, read, read_number, options
):
    part = make_video(tmp_path / "part.ts", make_numbered(30), options=options)
    joined = tmp_path / "joined.ts"
    joined.write_bytes(part.read_bytes() * 3)
    video, frames = read(joined)
    assert [read_number(frame.rgb) for frame in frames] == [*range(30)] * 3
    assert [frame.time for frame in frames] == [Fraction(n, 25) for n in range(90)]
    assert [frame.epoch for frame in frames] == [0] * 30 + [1] * 30 + [2] * 30
    assert [(epoch.number, round(epoch.time, 6)) for epoch in video.epochs] == [(1, 1.2), (2, 2.4)]
    assert "stepped back by 1.16 s" in video.epochs[0].reason
    assert video.duration == Fraction(90, 25)


@pytest.mark.parametrize("seconds", [30, 59, 62, 90, 7200, 40_000])
def test_a_step_back_of_any_length_is_one(tmp_path, make_video, make_numbered, read, seconds):
    # FFmpeg takes one of more than a minute for a wrap of the counter, and adds 26.5 hours.
    late = make_video(tmp_path / "late.ts", make_numbered(30), pts=range(25 * seconds, 25 * seconds + 30))
    early = make_video(tmp_path / "early.ts", make_numbered(30))
    joined = tmp_path / "joined.ts"
    joined.write_bytes(late.read_bytes() + early.read_bytes())
    video, frames = read(joined)
    assert [frame.time for frame in frames] == [Fraction(n, 25) for n in range(60)]
    assert [round(epoch.time, 6) for epoch in video.epochs] == [1.2]
    assert "stepped back" in video.epochs[0].reason
    assert not any("claims" in warning for warning in video.warnings)


@pytest.mark.parametrize("options", [{}, B_FRAMES], ids=["plain", "b-frames"])
def test_a_counter_that_begins_again_goes_on(tmp_path, make_video, make_numbered, read, options):
    begin = 2**33 - 126_000 - 40 * 3600  # the muxer adds 1.4 s
    path = make_video(
        tmp_path / "wrap.ts",
        make_numbered(60),
        pts=range(begin, begin + 60 * 3600, 3600),
        time_base=Fraction(1, 90_000),
        options=options,
    )
    video, frames = read(path)
    assert [frame.time for frame in frames] == [Fraction(n, 25) for n in range(60)]
    assert video.epochs == []


@given(st.lists(st.integers(-(2**31), 2**31), max_size=40), st.integers(0, 2**33 - 1))
def test_a_counter_of_33_bits_is_unwrapped_whatever_comes(steps, first):
    true, unwrapped = first, Unwrapped()
    assert unwrapped(first) == first
    for step in steps:
        true += step
        assert unwrapped(true % 2**33) == true


@pytest.mark.parametrize("ending", ["mkv", "webm", "mp4"])
def test_a_video_that_begins_late_is_not_called_cut_off(tmp_path, make_video, make_numbered, read, ending):
    codec = "libvpx" if ending == "webm" else "libx264"
    path = make_video(tmp_path / f"late.{ending}", make_numbered(30), codec=codec, pts=range(250, 280))
    video, frames = read(path)
    assert [frame.time for frame in frames] == STEADY
    assert video.warnings == []
    assert video.expected_duration == pytest.approx(30 / 25, abs=0.05)


def test_the_end_is_the_last_frames_where_frames_are_reordered_around_a_gap(
    tmp_path, make_video, make_numbered, read
):
    ticks = [40 * n + (5000 if n > 12 else 0) for n in range(30)]
    path = make_video(
        tmp_path / "gap.mp4", make_numbered(30), pts=ticks, time_base=Fraction(1, 1000), options=B_FRAMES
    )
    video, frames = read(path)
    assert [frame.time for frame in frames] == [Fraction(tick, 1000) for tick in ticks]
    assert float(video.duration) == pytest.approx(6.2, abs=0.05)


def test_duplicate_stamps_give_equal_times_and_no_epoch(tmp_path, make_video, make_numbered, read):
    # No muxer writes equal stamps on purpose; rounding to a coarse clock does.
    path = tmp_path / "coarse.mkv"
    make_video(path, make_numbered(12), rate=3000, pts=range(12), time_base=Fraction(1, 3000))
    video, frames = read(path)
    times = [frame.time for frame in frames]
    assert len(set(times)) < len(times) == 12
    assert times == sorted(times)
    assert video.epochs == []


def test_an_edit_list_that_cuts_the_start_is_followed(tmp_path, make_video, make_numbered, read, read_number):
    path = make_video(tmp_path / "cut.mp4", make_numbered(60), options={**B_FRAMES, "g": "12"})
    _write_edit(path, skipped=17, kept=30)
    video, frames = read(path)
    assert [read_number(frame.rgb) for frame in frames] == [*range(17, 47)]
    assert [frame.time for frame in frames] == STEADY
    assert video.warnings == []


def test_avi_with_b_frames_is_timed_by_its_order(tmp_path, make_video, make_numbered, read, read_number):
    # AVI numbers its frames in the order of decoding; read as presentation times, they would jump about.
    path = make_video(tmp_path / "b.avi", make_numbered(30), options=B_FRAMES)
    video, frames = read(path)
    assert [(read_number(frame.rgb), frame.time) for frame in frames] == list(enumerate(STEADY))
    assert video.epochs == []
    assert video.warnings == []


def test_presentation_stamps_in_the_order_of_decoding_are_not_believed(
    tmp_path, make_video, make_numbered, read, read_number
):
    right = make_video(tmp_path / "right.mp4", make_numbered(30), options=B_FRAMES)
    wrong = tmp_path / "wrong.mp4"
    _remux_with_decoding_stamps(right, wrong)
    video, frames = read(wrong)
    times = [frame.time for frame in frames]
    assert [read_number(frame.rgb) for frame in frames] == [*range(30)]
    assert times == sorted(times)
    assert max(abs(float(time - n * Fraction(1, 25))) for n, time in enumerate(times)) <= 2 / 25
    assert video.epochs == []
    assert video.warnings == ["presentation times are out of order; using decoding times"]


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(53, 40), 960, 90000])
@pytest.mark.parametrize("ending", ["mp4", "mkv"])
def test_the_declared_rate_is_never_used(tmp_path, make_video, make_numbered, read, rate, ending):
    path = make_video(
        tmp_path / f"lies.{ending}",
        make_numbered(10),
        rate=rate,
        pts=[40 * n for n in range(10)],
        time_base=Fraction(1, 1000),
        # Else the muxer writes an edit that cuts the last frame: 1/90000 s rounds to nothing.
        container_options={"use_editlist": "0"} if ending == "mp4" else None,
    )
    _, frames = read(path)
    assert [frame.time for frame in frames] == STEADY[:10]


def test_a_declared_rate_of_zero_does_not_matter(tmp_path, make_video, make_numbered, read):
    path = make_video(tmp_path / "zero.avi", make_numbered(10), codec="mpeg4")
    data = bytearray(path.read_bytes())
    main_header = data.index(b"avih") + 8
    struct.pack_into("<I", data, main_header, 0)  # microseconds a frame
    path.write_bytes(data)
    _, frames = read(path)
    assert [frame.time for frame in frames] == STEADY[:10]


def _write_edit(path, skipped: int, kept: int) -> None:
    """Change the edit list of a 25 frames/s MP4 to leave `skipped` frames out and play `kept`."""
    data = bytearray(path.read_bytes())
    entry = data.index(b"elst") + 12  # after version, flags and count
    _, media_time = struct.unpack_from(">Ii", data, entry)
    struct.pack_into(">Ii", data, entry, kept * 40, media_time + skipped * 512)
    path.write_bytes(data)


def _remux_with_decoding_stamps(source, target) -> None:
    with av.open(str(source)) as given, av.open(str(target), "w", options={"use_editlist": "0"}) as out:
        stream = out.add_stream_from_template(given.streams.video[0])
        for packet in given.demux(video=0):
            if packet.dts is not None:
                packet.pts = packet.dts
                packet.stream = stream
                out.mux(packet)


MS = Fraction(1, 1000)
stamps = st.one_of(st.none(), st.integers(-5000, 5000))


@given(st.lists(st.tuples(stamps, stamps, st.integers(0, 100)), max_size=60), st.booleans())
def test_time_starts_at_zero_and_never_decreases_whatever_the_stamps(frames, trust_pts):
    clock = Clock(trust_pts=trust_pts)
    times = [clock.tick(pts, dts, duration, MS).time for pts, dts, duration in frames]
    assert times == sorted(times)
    assert not times or times[0] == 0


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.integers(-(10**9), 10**9))
def test_rising_stamps_are_kept_exactly_from_any_start(gaps, start):
    pts = [start + sum(gaps[:n]) for n in range(len(gaps))]
    clock = Clock()
    ticks = [clock.tick(stamp, None, 0, MS) for stamp in pts]
    assert [tick.time for tick in ticks] == [(stamp - pts[0]) * MS for stamp in pts]
    assert not any(tick.broke for tick in ticks)


def test_single_frames_without_a_stamp_follow_at_the_last_distance():
    clock = Clock()
    times = [clock.tick(pts, None, 0, MS).time for pts in (0, 40, 80, None, 160)]
    assert times == [n * 40 * MS for n in range(5)]
    assert clock.untimed == 0


def test_frames_are_untimed_only_where_nothing_tells_their_time():
    clock = Clock(Fraction(10))
    assert [clock.tick(None, None, 0, MS).time for _ in range(3)] == [0, Fraction(1, 10), Fraction(1, 5)]
    assert clock.untimed == 3


def test_a_new_epoch_keeps_its_own_distances():
    clock = Clock()
    ticks = [clock.tick(pts, pts, 0, MS) for pts in (1000, 1040, 1080, 0, 20, 40)]
    assert [tick.time / MS for tick in ticks] == [0, 40, 80, 120, 140, 160]
    assert [tick.broke for tick in ticks] == [
        None,
        None,
        None,
        "the clock stepped back by 1.08 s",
        None,
        None,
    ]


@pytest.mark.parametrize("jump", [3600_000, 10**12])
def test_a_jump_ahead_is_believed(jump):
    clock = Clock()
    assert [clock.tick(pts, None, 0, MS).time / MS for pts in (0, 40, 40 + jump)] == [0, 40, 40 + jump]
