"""How long `ongebd detect --store` takes for the features of many videos of 10 s at 24 frames a second.

Only 64 videos of the made store have their own features; the others have an id and share these: 18,800 videos
take 63 MB instead of 18.5 GB, whose reading comes on top. On a busy machine, half the processor time is what
two free cores need. The anticipator has random weights, on which speed doesn't depend.

Usage: python benchmarks/store_scoring.py window-mean|cea [VIDEOS] [D]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from ongebd.detector.recipes import RECIPES
from ongebd.detector.trained import write_about
from ongebd.estimator.anticipator import AnticipatorConfig, ConsistentEventAnticipator
from ongebd.features.store import FeatureStore

FRAMES, FPS, UNIQUE = 240, 24.0, 64


def make_store(path: Path, videos: int, dim: int) -> None:
    """A store of so many videos; features are noise about five directions."""
    random = np.random.default_rng(0)
    with FeatureStore.create(path, backbone="made@0", dim=dim, fps=FPS) as store:
        for number in range(min(UNIQUE, videos)):
            scenes = np.repeat(random.random((5, dim)), FRAMES // 5, axis=0)
            features, times = scenes + 0.1 * random.random((FRAMES, dim)), np.arange(FRAMES) / FPS
            store.add(f"v{number}", features, times, 0 * times, FRAMES / FPS, f"v{number}.mp4")
        for number in range(UNIQUE, videos):
            like = store._index.records[f"v{number % UNIQUE}"]
            store._index.append(replace(like, id=f"v{number}", source=f"v{number}.mp4"))


def make_anticipator(path: Path, dim: int) -> None:
    """A model's folder with random weights of the default shape."""
    ConsistentEventAnticipator(AnticipatorConfig.for_dim(dim)).save_pretrained(path)
    write_about(path, backbone="made@0", settings=RECIPES["window-mean"].defaults, summary="random")


if __name__ == "__main__":
    method, videos, dim = (*sys.argv[1:], *("18800", "2048")[len(sys.argv) - 2 :])
    with tempfile.TemporaryDirectory() as folder:
        store, model, out = (Path(folder) / name for name in ("store", "model", "out"))
        make_store(store, int(videos), int(dim))
        if method == "cea":
            make_anticipator(model, int(dim))
        name, began = model if method == "cea" else method, time.monotonic()
        command = [sys.executable, "-m", "ongebd", "detect", "--store", store, "-m", name, "-o", out]
        subprocess.run(command, check=True)
        wall, used = time.monotonic() - began, sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        print(f"{method}, D = {dim}, {videos} videos: {wall:.0f} s, processor {used:.0f} s")
