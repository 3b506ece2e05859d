"""Rows whose method watches the videos themselves: shot detectors, and what needs no training."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import ongebd
from ongebd.data.prediction_set import PredictionSet, VideoPrediction
from ongebd.lab.experiments.material import LackingError, Part
from ongebd.lab.experiments.shelf import Shelf
from ongebd.lab.experiments.table import Row

VERSION = 1


def watched(row: Row, part: Part, shelf: Shelf) -> PredictionSet:
    """What a method finds in the videos, by its own settings.

    Raises:
        LackingError: The videos are not at hand.
        OngebdError: The method cannot be loaded, or a video not be read.
    """
    absent = [name for name in part.labels.videos if name not in part.files]
    if absent:
        raise LackingError(
            f"{row.method} needs the videos, and {len(absent)} are not there, such as {absent[0]!r}"
        )
    files = {name: part.files[name] for name in part.labels.videos}
    content = sha256("".join(f"{name} {path.stat().st_size}" for name, path in files.items()).encode())
    key = {"version": VERSION, "method": row.method, "ongebd": ongebd.__version__}
    key |= {"videos": content.hexdigest(), "labels": part.key[1]}

    def make(folder: Path) -> dict[str, Any]:
        model = ongebd.load(row.method)
        found = {}
        for name, path in files.items():
            boundaries = ongebd.detect(path, model).boundaries
            found[name] = [(b.time, b.decided, b.onset) for b in boundaries]
        (folder / "boundaries.json").write_text(json.dumps(found), encoding="utf-8")
        return {"settings": str(model.defaults)}

    kept = shelf.kept("watched", key, make) / "boundaries.json"
    videos = {}
    for name, rows in json.loads(kept.read_text(encoding="utf-8")).items():
        times, decided, onset = np.array(rows, dtype=np.float64).reshape(-1, 3).T
        videos[name] = VideoPrediction(times, decided, onset)
    return PredictionSet(videos, source=row.method, kind="values")
