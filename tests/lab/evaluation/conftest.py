"""What the evaluation tests share."""

from __future__ import annotations

from collections.abc import Callable

import pytest


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
