"""What all tests share: made videos, made scenes, and the sample clips where they are at hand."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings

from ongebd.backbones import Features, FramesU8
from ongebd.backbones.base import cropped
from ongebd.video.picture import Fit

Picture = npt.NDArray[np.uint8]

REPOSITORY = Path(__file__).resolve().parents[1]

settings.register_profile("untimed", deadline=None)  # a busy machine or disk makes no failure
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Let Ctrl-C reach the programs that tests start; in a background job of a shell it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real clips and labels: $ONGEBD_SHARED, or `shared` beside this repository."""
    folder = Path(os.environ.get("ONGEBD_SHARED", REPOSITORY.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"the sample clips are not at {folder}; set ONGEBD_SHARED to where they are")
    return folder


@pytest.fixture(scope="session")
def demo_clip() -> Path:
    """The clip of `make demo`; `make test` fetches it."""
    clip = REPOSITORY / ".cache" / "demo" / "bikes.mp4"
    if not clip.exists():
        pytest.skip(f"the demo's clip is not at {clip}; make demo fetches it")
    return clip


@pytest.fixture(scope="session")
def ffprobe() -> Callable[..., Any]:
    """What FFmpeg's own ffprobe says of a file, as JSON."""
    if shutil.which("ffprobe") is None:
        pytest.skip("no ffprobe is installed (Debian: ffmpeg)")

    def probe(path: Path, *what: str) -> Any:
        command = ["ffprobe", "-v", "error", "-of", "json", *what, str(path)]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)

    return probe


@pytest.fixture(scope="session")
def make_video() -> Callable[..., Path]:
    return _make_video


@pytest.fixture(scope="session")
def make_scene() -> Callable[..., Picture]:
    return _make_scene


@pytest.fixture(scope="session")
def make_numbered() -> Callable[..., list[Picture]]:
    return _make_numbered


@pytest.fixture(scope="session")
def read_number() -> Callable[[Picture], int]:
    return _read_number


@pytest.fixture(scope="session")
def set_display_matrix() -> Callable[..., None]:
    return _set_display_matrix


def _make_video(
    path: Path,
    pictures: Iterable[np.ndarray],
    *,
    rate: float | Fraction = 25,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    pts: Sequence[int] | None = None,
    time_base: Fraction | None = None,
    options: dict[str, str] | None = None,
    container: str | None = None,
    container_options: dict[str, str] | None = None,
    audio: str | None = None,
    array_format: str = "rgb24",
) -> Path:
    """Encode pictures of one size.

    Args:
        path: Where to.
        pictures: Arrays in `array_format`.
        rate: The declared frame rate.
        codec: The encoder.
        pix_fmt: The pixel format to encode.
        pts: Timestamps in `time_base` units, one a picture; steady at `rate` if None.
        time_base: Unit of `pts`; 1/`rate` if None.
        options: For the encoder.
        container: The muxer, where the name's ending does not say.
        container_options: For the muxer.
        audio: "first" or "last": puts a second of silence before or after the video stream.
        array_format: What the arrays hold.
    """
    rate = Fraction(rate)
    base = time_base or 1 / rate
    quick = {"preset": "ultrafast"} if codec == "libx264" else {}
    with av.open(os.fspath(path), "w", format=container, options=container_options or {}) as out:
        sound = out.add_stream("aac", rate=8000) if audio == "first" else None
        stream: Any = None
        for i, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture, array_format)
            if stream is None:
                stream = out.add_stream(codec, rate=rate, options={**quick, **(options or {})})
                stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, pix_fmt
                stream.codec_context.time_base = base
                if audio == "last":
                    sound = out.add_stream("aac", rate=8000)
            frame.pts, frame.time_base = (i if pts is None else pts[i]), base
            out.mux(stream.encode(frame))
        if stream is None:
            raise ValueError("a video needs a picture")
        out.mux(stream.encode(None))
        if sound is not None:
            _mux_silence(out, sound)
    return path


def _mux_silence(out: Any, stream: Any, seconds: int = 1) -> None:
    silence = av.AudioFrame.from_ndarray(np.zeros((1, 8000 * seconds), np.float32), "fltp", "mono")
    silence.sample_rate, silence.pts = 8000, 0
    out.mux([*stream.encode(silence), *stream.encode(None)])


def _make_scene(seed: int, width: int = 320, height: int = 240) -> Picture:
    """A picture with the statistics of a photograph: soft colours of all scales, and some objects on them."""
    random = np.random.default_rng(seed)
    fy, fx = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :]
    falloff = 1 / np.maximum(np.hypot(fx, fy), 1 / max(width, height)) ** 1.3
    mixed = []
    for _ in range(3):
        noise = np.fft.irfft2(
            np.fft.rfft2(random.standard_normal((height, width))) * falloff, (height, width)
        )
        mixed.append(noise / noise.std())
    picture = np.stack(mixed, -1) @ (random.uniform(-1, 1, (3, 3)) + np.eye(3)) * 30
    picture += random.uniform(70, 180, 3)
    y, x = np.mgrid[0:height, 0:width]
    for _ in range(6):
        cx, cy = random.uniform(0, width), random.uniform(0, height)
        rx, ry = random.uniform(0.05, 0.25, 2) * min(width, height)
        inside = np.hypot((x - cx) / rx, (y - cy) / ry) < 1
        if random.random() < 0.5:
            inside = (abs(x - cx) < rx) & (abs(y - cy) < ry)
        shade = 0.7 + 0.3 * np.sin(x / random.uniform(2, 20) + y / random.uniform(2, 20))
        picture[inside] = (random.uniform(0, 255, 3) * shade[..., None])[inside]
    return np.clip(picture, 0, 255).astype(np.uint8)


_BITS = 12


def _make_numbered(count: int, width: int = 96, height: int = 64) -> list[Picture]:
    """Pictures that carry their number as white and black bars, to be read back after decoding."""
    bars = np.arange(width) * _BITS // width
    rows = [np.where(number >> bars & 1, 235, 16).astype(np.uint8) for number in range(count)]
    return [np.ascontiguousarray(np.broadcast_to(row[None, :, None], (height, width, 3))) for row in rows]


def _read_number(picture: Picture) -> int:
    """The number in a picture of `make_numbered`, whatever its size is now."""
    row = picture[picture.shape[0] // 2, :, 1].astype(int)
    middles = ((np.arange(_BITS) + 0.5) * len(row) / _BITS).astype(int)
    return int(((row[middles] > 128) << np.arange(_BITS)).sum())


def _set_display_matrix(path: Path, a: float, b: float, c: float, d: float) -> None:
    """Write a display matrix, (x, y) → (a·x + c·y, b·x + d·y), into the track header of an MP4 or MOV."""
    data = bytearray(path.read_bytes())
    start = data.index(b"tkhd") + 4
    matrix = start + (52 if data[start] == 1 else 40)  # version 1 has 64-bit times
    values = [round(v * 65536) for v in (a, b, 0, c, d, 0, 0, 0)]
    struct.pack_into(">9i", data, matrix, *values, 1 << 30)
    path.write_bytes(data)


class MeanColours:
    """Mean colour of each of sixteen squares: 48 numbers a frame."""

    name = "mean-colours"
    identity = "mean-colours@1"
    dim = 48
    input_size = 32
    resize_size = 36
    view = Fit(36)

    def __init__(self) -> None:
        self.calls: list[int] = []

    def crop(self, rgb: np.ndarray) -> np.ndarray:
        return cropped(rgb, self.view, self.input_size)

    def embed(self, frames: FramesU8) -> Features:
        self.calls.append(len(frames))
        squares = frames.reshape(len(frames), 4, 8, 4, 8, 3).astype(np.float32)
        return squares.mean(axis=(2, 4)).reshape(len(frames), self.dim) + 1.0


@pytest.fixture
def backbone() -> MeanColours:
    return MeanColours()
