"""Small videos, two of them corrupt or apart, and the plain results to hold those of a cluster against."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from ongebd.cluster.connection import Cluster, connected


@pytest.fixture(scope="module")
def clips(
    tmp_path_factory: pytest.TempPathFactory,
    make_video: Callable[..., Path],
    make_scene: Callable[..., np.ndarray],
) -> list[str]:
    """Six videos of different lengths, each with a cut; the third holds no video."""
    folder = tmp_path_factory.mktemp("clips")
    paths = []
    for number in range(6):
        path = folder / f"clip{number}.mp4"
        if number == 2:
            path.write_bytes(b"no video" * 100)
        else:
            first, second = make_scene(2 * number, 160, 120), make_scene(2 * number + 1, 160, 120)
            make_video(path, [first] * (12 + 4 * number) + [second] * 12, rate=24)
        paths.append(str(path))
    return paths


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One Ray of two workers on this machine, for all tests of a module."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    with connected("local", 2, verbose=True) as there:
        yield there
