"""Runs of frames as samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.data.labelled import LabelledVideo
from ongebd.data.windows import build_tape, check_learnable
from ongebd.errors import LabelError


def video(name: str, epochs: list[int], boundaries: tuple[int, ...] = ()) -> LabelledVideo:
    count = len(epochs)
    targets = np.zeros(count, np.bool_)
    targets[list(boundaries)] = True
    return LabelledVideo(
        name, np.ones((count, 2), np.float16), np.arange(count) / 10, np.array(epochs, np.int32), targets
    )


stretch_lengths = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=3), min_size=1, max_size=5)


@given(
    lengths=stretch_lengths, window=st.integers(1, 8), region=st.integers(0, 9), run=st.integers(1, 40),
    epoch=st.integers(0, 3),
)  # fmt: skip
def test_an_epoch_visits_every_target_once_with_its_own_window_and_region(
    lengths: list[list[int]], window: int, region: int, run: int, epoch: int
) -> None:
    videos = [
        video(str(i), [number for number, length in enumerate(row) for _ in range(length)])
        for i, row in enumerate(lengths)
    ]
    tape = build_tape(videos, window=window, region=region, run=run)
    start_of = [0] * sum(map(sum, lengths))  # the row at which each row's stretch begins
    row = 0
    for length in (length for each in lengths for length in each):
        start_of[row : row + length] = [row] * length
        row += length

    seen: list[int] = []
    for base in tape.epoch(0, epoch):
        rows = tape.rows[base : base + tape.frames_in_run]
        lead = tape.lead[base : base + tape.frames_in_run]
        assert len(rows) == tape.frames_in_run
        for place in range(window + region, tape.frames_in_run):
            if lead[place] < 0:
                continue
            target = int(rows[place])
            first = start_of[target]
            assert lead[place] == target - first - 1
            wanted = [max(first, i) for i in range(target - window, target)]
            assert rows[place - window : place].tolist() == wanted
            back = min(region, int(lead[place]))
            assert rows[place - back : place + 1].tolist() == list(range(target - back, target + 1))
            seen.append(target)
    predicted = [row for row, first in enumerate(start_of) if row > first]
    assert sorted(seen) == predicted
    assert tape.target_count == len(predicted)


def test_epochs_differ_in_order_and_in_where_runs_are_cut() -> None:
    tape = build_tape([video("a", [0] * 500)], window=4, region=3, run=16)
    orders = [tape.epoch(0, epoch) for epoch in range(4)]
    assert len({order[0] % 16 for order in orders}) > 1
    assert all(not np.array_equal(orders[0], other) for other in orders[1:])
    np.testing.assert_array_equal(orders[2], tape.epoch(0, 2))


def test_videos_of_one_frame_hold_nothing_to_learn() -> None:
    videos = [video("a", [0], (0,)), video("b", [0, 1, 2])]
    with pytest.raises(LabelError, match="one frame each"):
        check_learnable(build_tape(videos, window=8, region=9, run=16), len(videos))


def test_a_set_without_boundaries_is_refused() -> None:
    with pytest.raises(LabelError, match="no boundary in 19 frames"):
        check_learnable(build_tape([video("a", [0] * 20)], window=8, region=9, run=16), 1)


def test_a_boundary_on_the_first_frame_is_not_a_target() -> None:
    assert build_tape([video("a", [0] * 20, (0,))], window=8, region=9, run=16).boundary_count == 0
