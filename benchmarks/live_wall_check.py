"""Holds what a running `ongebd watch` said of an epoch against a fresh detector that reads the same bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ongebd.detector import Model
from ongebd.types import Boundary, Decision
from ongebd.video import VideoReader
from ongebd.video.connecting import Connecting

NUMBERS = ("time", "error", "mean", "std", "threshold", "z", "positive", "ready")
"""What is told of each decided frame."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a stream's newest epoch is as it must be, and in words what was compared."""

    stream: str
    good: bool
    text: str


class Remembering:
    """A backbone that works out each picture once: films are played in a loop, most pictures come again."""

    def __init__(self, backbone: Any) -> None:
        self._backbone = backbone
        self._known: dict[bytes, npt.NDArray[np.float32]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backbone, name)

    def embed(self, frames: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """The features of some pictures."""
        keys = [frame.tobytes() for frame in frames]
        for key, frame in zip(keys, frames, strict=True):
            if key not in self._known:
                self._known[key] = self._backbone.embed(frame[np.newaxis])[0]
        return np.stack([self._known[key] for key in keys])


def held_against_a_fresh_detector(stream: str, model: Model, sent: Path, records: Path) -> Verdict:
    """Compare the newest epoch of a stream: each decided frame, all its numbers, and each boundary.

    Args:
        stream: Its key.
        model: The same that was watched with.
        sent: What its feed sent in that epoch, and perhaps a little more.
        records: The file that `--jsonl` wrote, with `--jsonl-frames`.
    """
    said = [json.loads(line) for line in records.read_text().splitlines()]
    mine = [one for one in said if one.get("stream") == stream and "epoch" in one]
    epoch = max(one["epoch"] for one in mine)
    told = [one for one in mine if one["epoch"] == epoch and one["type"] == "point"]
    found = [one for one in mine if one["epoch"] == epoch and one["type"] == "boundary"]
    times = {one["time"] for one in told}
    model = replace(model, backbone=Remembering(model.backbone))
    detector = model.stream()
    decisions, boundaries, skipped = [], [], 0
    with _reader(sent, model) as reader:
        for frame in reader:
            if round(float(frame.time), 6) not in times:
                skipped += len(decisions) < len(told)
                continue
            decision = detector.update(frame.rgb, frame.time)
            decisions.append(decision)
            boundaries.append(decision.boundary)
    while (last := detector.flush()) is not None:
        boundaries.append(last)
    same = [_told(one) for one in decisions] == [{name: one[name] for name in NUMBERS} for one in told]
    wanted = [_rounded(one) for one in boundaries if one is not None]
    alike = [{name: one[name] for name in ("time", "onset", "decided", "score")} for one in found] == wanted
    text = (
        f"all {len(told):,} decisions of its newest epoch (no. {epoch}, {told[-1]['time'] / 60:.1f} min,"
        f" {skipped} frames of it dropped) and its {len(found)} boundaries are a fresh detector's"
    )
    return Verdict(stream, same and alike and len(told) > 100, text)


def _reader(film: Path, model: Model) -> VideoReader:
    connecting = Connecting(live=True)
    return VideoReader(str(film), model.defaults.rate(), view=model.backbone.view, connecting=connecting)


def _told(one: Decision) -> dict[str, float | bool]:
    values = (one.time, one.error, one.mean, one.std, one.threshold, one.z)
    rounded = dict(zip(NUMBERS, (round(float(value), 6) for value in values), strict=False))
    return {**rounded, "positive": one.is_boundary, "ready": one.ready}


def _rounded(one: Boundary) -> dict[str, float]:
    return {name: round(getattr(one, name), 6) for name in ("time", "onset", "decided", "score")}
