"""Every codec, container, size and pixel format that people have, from the wheel's own codecs."""

from __future__ import annotations

import av
import numpy as np
import pytest

from ongebd.video import VideoReader
from ongebd.video.picture import Fit, RgbMaker, Squash

FORMATS = {  # name: file ending, encoder, pixel format, whether colour survives
    "h264 mp4": ("mp4", "libx264", "yuv420p", True),
    "h264 10 bits": ("mp4", "libx264", "yuv420p10le", True),
    "h264 gray": ("mp4", "libx264", "gray", False),
    "h264 4:4:4 mkv": ("mkv", "libx264", "yuv444p", True),
    "h264 ts": ("ts", "libx264", "yuv420p", True),
    "hevc 10 bits": ("mp4", "libx265", "yuv420p10le", True),
    "av1": ("mkv", "libsvtav1", "yuv420p", True),
    "av1 10 bits": ("mp4", "libsvtav1", "yuv420p10le", True),
    "vp8 webm": ("webm", "libvpx", "yuv420p", True),
    "vp9 webm": ("webm", "libvpx-vp9", "yuv420p", True),
    "vp9 alpha": ("webm", "libvpx-vp9", "yuva420p", True),
    "mpeg4 avi": ("avi", "mpeg4", "yuv420p", True),
    "mjpeg avi": ("avi", "mjpeg", "yuvj420p", True),
    "mpeg2 ts": ("ts", "mpeg2video", "yuv420p", True),
    "mpeg1 mpg": ("mpg", "mpeg1video", "yuv420p", True),
    "wmv": ("wmv", "wmv2", "yuv420p", True),
    "flv": ("flv", "flv", "yuv420p", True),
    "gif": ("gif", "gif", "rgb8", True),
    "prores alpha": ("mov", "prores_ks", "yuva444p10le", True),
    "png alpha mov": ("mov", "png", "rgba", True),
    "qtrle alpha mov": ("mov", "qtrle", "argb", True),
    "ffv1 gray 10 bits": ("mkv", "ffv1", "gray10le", False),
    "ffv1 gray 16 bits": ("mkv", "ffv1", "gray16le", False),
    "ffv1 alpha": ("mkv", "ffv1", "yuva420p", True),
    "raw y4m": ("y4m", "rawvideo", "yuv420p", True),
}
QUIET = {"libx265": {"x265-params": "log-level=none"}, "libsvtav1": {"preset": "12"}}


@pytest.fixture
def blocks() -> np.ndarray:
    """64 × 96: soft blocks of colour that every codec keeps."""
    rgb = np.empty((64, 96, 3), np.uint8)
    rgb[:32, :48], rgb[:32, 48:] = (190, 60, 50), (60, 180, 70)
    rgb[32:, :48], rgb[32:, 48:] = (50, 70, 200), (128, 128, 128)
    return rgb


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("short_side", [None, 32], ids=["full size", "resized"])
def test_frames_come_in_true_colour_and_steady_time(
    tmp_path, make_video, read, blocks, name, short_side, capfd
):
    ending, codec, pix_fmt, in_colour = FORMATS[name]
    _need_encoder(codec)
    container = {"y4m": "yuv4mpegpipe"}.get(ending)
    path = make_video(
        tmp_path / f"clip.{ending}",
        [blocks] * 6,
        codec=codec,
        pix_fmt=pix_fmt,
        container=container,
        options=QUIET.get(codec),
    )
    video, frames = read(path, short_side=short_side)
    assert len(frames) == 6
    assert video.epochs == video.warnings == []
    assert [round(float(frame.time), 2) for frame in frames] == [0, 0.04, 0.08, 0.12, 0.16, 0.2]
    wanted = blocks if in_colour else np.repeat(blocks @ [[0.299], [0.587], [0.114]], 3, axis=2)
    scale = 1 if short_side is None else 2
    for top, left in ((16, 24), (16, 72), (48, 24), (48, 72)):
        around = np.s_[top // scale - 4 : top // scale + 4, left // scale - 4 : left // scale + 4]
        got = frames[-1].rgb[around].mean(axis=(0, 1))  # GIF dithers
        assert np.abs(got - wanted[top, left]).max() < 20, (top, left)


@pytest.mark.parametrize(
    ("width", "height"), [(1, 1), (2, 2), (17, 33), (16, 16), (9, 100), (1001, 9), (8000, 2)]
)
@pytest.mark.parametrize("pix_fmt", ["yuv420p", "bgra"])
def test_odd_and_tiny_sizes(tmp_path, make_video, read, make_scene, width, height, pix_fmt):
    picture = make_scene(1, max(width, 2), max(height, 2))[:height, :width]
    path = make_video(
        tmp_path / "odd.mkv", [np.ascontiguousarray(picture)] * 2, codec="ffv1", pix_fmt=pix_fmt
    )
    _, full = read(path)
    assert [frame.rgb.shape for frame in full] == [(height, width, 3)] * 2
    _, resized = read(path, short_side=16)
    short, long = sorted(resized[0].rgb.shape[:2])
    assert short == 16
    assert long <= 4096


def test_eight_k(tmp_path, make_video, read):
    picture = np.full((4320, 7680, 3), 90, np.uint8)
    picture[:, 3840:] = 200
    path = make_video(tmp_path / "8k.mp4", [picture] * 2)
    video, frames = read(path, short_side=256)
    assert (video.width, video.height) == (7680, 4320)
    assert [frame.rgb.shape for frame in frames] == [(256, 455, 3)] * 2
    assert abs(int(frames[1].rgb[128, 100, 0]) - 90) < 6
    assert abs(int(frames[1].rgb[128, 400, 0]) - 200) < 6


def test_hdr_is_read(tmp_path, make_video, read, make_scene):
    path = make_video(
        tmp_path / "hdr.mp4",
        [make_scene(1, 96, 64)] * 3,
        pix_fmt="yuv420p10le",
        options={"x264-params": "colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc"},
    )
    with av.open(str(path)) as container:
        assert next(container.decode(video=0)).color_trc == 16, "the encoder did not mark it as HDR"
    _, frames = read(path, short_side=32)
    assert len(frames) == 3
    assert frames[0].rgb.std() > 10


@pytest.mark.parametrize(
    ("ending", "size", "pix_fmt", "becomes"),
    [
        ("ts", (192, 144), "yuv420p", "192x144 yuv420p"),
        ("h264", (192, 144), "yuv420p", "192x144 yuv420p"),
        ("h264", (96, 64), "yuv444p", "96x64 yuv444p"),
    ],
)
def test_another_picture_in_the_middle_begins_an_epoch(
    tmp_path, make_video, make_numbered, read, read_number, ending, size, pix_fmt, becomes
):
    first = make_video(tmp_path / f"a.{ending}", make_numbered(10))
    second = make_video(
        tmp_path / f"b.{ending}", make_numbered(10, *size), pts=range(10, 20), pix_fmt=pix_fmt
    )
    joined = tmp_path / f"joined.{ending}"
    joined.write_bytes(first.read_bytes() + second.read_bytes())
    video, frames = read(joined, fps=25)
    assert [read_number(frame.rgb) for frame in frames] == [*range(10)] * 2
    assert [frame.rgb.shape for frame in frames] == [(64, 96, 3)] * 10 + [(*size[::-1], 3)] * 10
    assert [frame.epoch for frame in frames] == [0] * 10 + [1] * 10
    assert [frame.time * 25 for frame in frames] == [*range(20)]
    assert [epoch.reason for epoch in video.epochs] == [
        f"the picture changed from 96x64 yuv420p to {becomes}"
    ]


def _need_encoder(name: str) -> None:
    try:
        av.codec.Codec(name, "w")
    except av.codec.codec.UnknownCodecError:
        pytest.skip(f"this PyAV has no encoder {name}")


def test_only_pictures_that_are_squashed_may_go_without_deblocking(tmp_path, make_video, make_scene):
    pictures = [np.roll(make_scene(3, 320, 192), 3 * n, axis=1) for n in range(24)]
    path = make_video(tmp_path / "coarse.mp4", pictures, options={"preset": "medium", "crf": "40"})
    for view in (Fit(96), Squash(224, 224)):
        with av.open(str(path)) as whole:
            wanted = np.array([RgbMaker(view)(picture) for picture in whole.decode(video=0)], int)
        with VideoReader(path, view=view) as video:
            apart = np.abs(np.array([frame.rgb for frame in video]) - wanted)
        assert apart.any() == isinstance(view, Squash)
        assert apart.mean() < 1.0
