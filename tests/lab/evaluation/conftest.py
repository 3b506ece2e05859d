"""What the evaluation tests share."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def plain_counts() -> Callable[..., tuple[int, int, int]]:
    """The official rule as it reads."""
    spec = importlib.util.spec_from_file_location("plain_rule", Path(__file__).with_name("plain_rule.py"))
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.plain_counts  # type: ignore[no-any-return]


@pytest.fixture
def official() -> Callable[..., dict[str, dict[str, object]]]:
    """Labels in the official schema from `{id: (duration, rows of boundaries)}`."""

    def make(**videos: tuple[float, list[list[float]]]) -> dict[str, dict[str, object]]:
        return {
            name: {
                "video_duration": duration,
                "fps": 25.0,
                "num_frames": round(25 * duration),
                "f1_consis_avg": 0.9,
                "f1_consis": [0.9 - 0.1 * place for place in range(len(rows))],
                "substages_timestamps": rows,
            }
            for name, (duration, rows) in videos.items()
        }

    return make
