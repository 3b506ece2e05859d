"""Videos as methods see them: frames and features, and where they are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ongebd.backbones import Backbone
from ongebd.data.numbers import FloatArray
from ongebd.features import frame_features
from ongebd.types import Feature, Frame
from ongebd.video import VideoReader

IntArray = npt.NDArray[np.int32]
_RECENT = 8  # pictures whose feature is at hand, where one comes again to the bit


@dataclass(frozen=True, eq=False)
class Film:
    """A video to be looked at.

    Attributes:
        id: Its name among the labels.
        path: The file.
        until: Seconds after which nothing is looked at; None for all of it.
    """

    id: str
    path: Path
    until: float | None = None


@dataclass(frozen=True, eq=False)
class Seen:
    """What there is of a video for one view: rows (T, D), times (T,), and how often its clock had broken."""

    rows: npt.NDArray[np.float32]
    times: FloatArray
    epochs: IntArray


def films_of(paths: Mapping[str, Path], until: Mapping[str, float] | None = None) -> list[Film]:
    """Videos by id, each up to a time where one is given."""
    return [Film(name, path, (until or {}).get(name)) for name, path in paths.items()]


def embed(film: Film, backbone: Backbone, fps: float, workers: int) -> Seen:
    """The features of a video."""
    rows, times, epochs = [], [], []
    for frame, feature in frames_of(film, _Remembering(backbone), fps, workers):
        rows.append(feature)
        times.append(float(frame.time))
        epochs.append(frame.epoch)
    return Seen(np.stack(rows), np.array(times), np.array(epochs, np.int32))


def frames_of(film: Film, backbone: Backbone, fps: float, workers: int) -> Iterator[tuple[Frame, Feature]]:
    """Frames and features, up to the film's end or its `until`."""
    with (
        VideoReader(film.path, fps, view=backbone.view) as reader,
        closing(frame_features(_until(reader, film.until), backbone, workers)) as features,
    ):
        yield from features


def _until(frames: Iterable[Frame], last: float | None) -> Iterator[Frame]:
    for frame in frames:
        if last is not None and frame.time > last:
            return
        yield frame


class _Remembering:
    """A backbone that does not work again on a picture that it had a moment ago."""

    def __init__(self, backbone: Backbone) -> None:
        self._backbone = backbone
        self.name, self.dim, self.identity = backbone.name, backbone.dim, backbone.identity
        self.input_size, self.resize_size = backbone.input_size, backbone.resize_size
        self.view = backbone.view
        self._known: dict[bytes, npt.NDArray[np.float32]] = {}

    def crop(self, rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        return self._backbone.crop(rgb)

    def embed(self, frames: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        key = hashlib.blake2b(frames.tobytes(), digest_size=16).digest()
        known = self._known.pop(key, None)
        self._known[key] = self._backbone.embed(frames) if known is None else known
        while len(self._known) > _RECENT:
            self._known.pop(next(iter(self._known)))
        return self._known[key]


def key_of(film: Film) -> str:
    """By what a video is found again: its contents, and how far it is looked at."""
    return file_hash(film.path)[:20] + ("" if film.until is None else f"-{film.until:.3f}")


@lru_cache(maxsize=4096)
def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_seen(path: Path, seen: Seen) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".part")
    with aside.open("wb") as file:
        np.savez(file, rows=seen.rows, times=seen.times, epochs=seen.epochs)
    aside.replace(path)


def read_seen(path: Path) -> Seen:
    """What was written."""
    with np.load(path) as kept:
        return Seen(kept["rows"], kept["times"], kept["epochs"])
