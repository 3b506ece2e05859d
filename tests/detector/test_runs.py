"""Joining positive frames into boundaries: onset, centre, and when each is known."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ongebd.detector.judge import BoundaryRuns, Judge, ThresholdHead
from ongebd.types import AGO, Boundary, Signs

LEVEL = 0.5
"""Below every z here."""

streams = st.lists(st.tuples(st.floats(0, 0.5), st.booleans(), st.floats(2.5, 90)), max_size=80)
settings = st.tuples(st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.05, 0.5, 2.0]))


def play(runs, stream):
    """Feed (gap, positive, z) triples; gives the times, the onsets and the boundaries."""
    time, times, onsets, boundaries = 0.0, [], [], []
    for gap, positive, z in stream:
        time += gap
        times.append(time)
        step = runs.update(time, z, positive)
        if step.onset:
            onsets.append(time)
        boundaries += step.boundaries
    return times, onsets, boundaries


def marks(text, z=4.0):
    """Frames 0.1 s apart; x is a positive one."""
    return [(0.1, mark == "x", z) for mark in text]


@given(streams, settings)
def test_onset_then_centre_then_decided_and_no_two_overlap(stream, chosen):
    runs = BoundaryRuns([LEVEL], *chosen)
    times, onsets, boundaries = play(runs, stream)
    last = runs.flush()
    if last is not None:
        boundaries.append(last)
    for boundary in boundaries:
        assert boundary.onset <= boundary.time <= boundary.decided
        assert boundary.onset in times
        assert boundary.decided in times
    for before, after in pairwise(boundaries):
        assert before.decided <= after.onset
    assert [boundary.onset for boundary in boundaries] == onsets, "each onset becomes one boundary"


@given(streams, settings, st.integers(0, 80))
def test_a_stream_cut_anywhere_has_the_first_boundaries_of_the_whole(stream, chosen, cut):
    _, onsets, boundaries = play(BoundaryRuns([LEVEL], *chosen), stream)
    runs = BoundaryRuns([LEVEL], *chosen)
    _, early_onsets, early = play(runs, stream[:cut])
    assert early == boundaries[: len(early)]
    assert early_onsets == onsets[: len(early_onsets)]
    flushed = runs.flush()
    assert flushed is None or flushed.onset == early_onsets[-1]


@given(streams)
def test_without_a_gap_every_run_is_a_boundary(stream):
    _, onsets, _ = play(BoundaryRuns([LEVEL], max_run=1e9), stream)
    flags = [False, *(positive for _, positive, _ in stream)]
    assert len(onsets) == sum(now and not before for before, now in pairwise(flags))


def test_a_single_positive_frame_is_its_own_centre():
    _, _, (boundary,) = play(BoundaryRuns([LEVEL]), marks("..x."))
    assert (boundary.onset, boundary.time, boundary.decided) == pytest.approx((0.3, 0.3, 0.4))


def test_the_centre_lies_between_first_and_last_and_the_score_is_the_highest():
    runs = BoundaryRuns([LEVEL], max_run=9)
    for time, positive, z in [(1, True, 3.0), (2, True, 9.0), (3, True, 4.0), (4, False, 0.0)]:
        step = runs.update(time, z, positive)
    assert step.boundaries == [Boundary(time=2.0, onset=1.0, decided=4.0, score=9.0)]


def test_flush_decides_an_open_run_with_the_last_frame_and_only_once():
    runs = BoundaryRuns([LEVEL])
    play(runs, marks(".xx"))
    boundary = runs.flush()
    assert (boundary.onset, boundary.time, boundary.decided) == pytest.approx((0.2, 0.25, 0.3))
    assert runs.flush() is None


def test_a_run_that_lasts_too_long_is_closed_and_its_rest_skipped():
    runs = BoundaryRuns([LEVEL], max_run=0.45)
    _, onsets, boundaries = play(runs, marks(".xxxxxxxxxxxxxxxx..x"))
    assert onsets == pytest.approx([0.2, 2.0])
    assert (boundaries[0].time, boundaries[0].decided) == pytest.approx((0.45, 0.7))
    assert len(boundaries) == 1


def test_a_run_soon_after_another_is_skipped():
    assert len(play(BoundaryRuns([LEVEL], 0.0), marks(".x.x.x...."))[1]) == 3
    assert len(play(BoundaryRuns([LEVEL], 0.5), marks(".x.x.x...."))[1]) == 1
    assert len(play(BoundaryRuns([LEVEL], 0.5), marks(".x......x."))[1]) == 2


def test_a_run_soon_after_a_much_smaller_one_is_not_lost():
    small_then = lambda z: [*marks(".x."), (0.1, True, z), (0.1, False, 0.0)]  # noqa: E731
    assert len(play(BoundaryRuns([LEVEL], 0.5), small_then(7.9))[1]) == 1
    assert len(play(BoundaryRuns([LEVEL], 0.5), small_then(8.1))[1]) == 2


def test_reset_forgets_run_and_gap():
    runs = BoundaryRuns([LEVEL], 0.5)
    play(runs, marks(".x"))
    runs.reset()
    assert runs.flush() is None
    assert runs.update(0.0, 4.0).onset


def test_a_boundary_may_be_decided_at_its_onset():
    runs = BoundaryRuns([LEVEL], 0.5, 0.0)
    steps = [
        runs.update(t / 10, 9.0 if t == 5 else 1.0, mark == "x") for t, mark in enumerate("..xx.xx..xx..")
    ]
    assert [(n, step.onset) for n, step in enumerate(steps) if step.boundaries] == [(2, True), (9, True)]
    assert steps[2].boundaries == [Boundary(0.2, 0.2, 0.2, 1.0)]
    assert runs.flush() is None


def test_a_run_that_outlasts_the_gap_begins_after_it():
    runs = BoundaryRuns([LEVEL], 0.5, 0.0)
    marked = "x..xxxxxx."
    found = [step for t, mark in enumerate(marked) if (step := runs.update(t / 10, 1.0, mark == "x")).onset]
    assert [step.boundaries[0].onset for step in found] == [0.0, 0.5]


@given(st.lists(st.booleans(), max_size=80), st.sampled_from([0.0, 0.3, 0.6]))
def test_boundaries_decided_at_their_onset_keep_the_gap_and_begin_at_a_positive_frame(positive, gap):
    runs = BoundaryRuns([LEVEL], gap, 0.0)
    steps = [runs.update(n / 10, 1.0, mark) for n, mark in enumerate(positive)]
    onsets = [n for n, step in enumerate(steps) if step.onset]
    assert all(positive[n] for n in onsets)
    assert all((b - a) / 10 >= gap - 1e-9 for a, b in pairwise(onsets))
    assert all(any(not mark for mark in positive[a:b]) for a, b in pairwise(onsets)), (
        "each has a run of its own"
    )
    assert [step.boundaries[0].decided for step in steps if step.boundaries] == [n / 10 for n in onsets]
    assert runs.flush() is None


nested_streams = st.lists(
    st.tuples(st.floats(0.01, 0.5), st.floats(0, 4), st.integers(0, 19).map(lambda n: n == 0)), max_size=80
)
kinds = st.tuples(st.sampled_from([0.0, 0.6]), st.sampled_from([0.0, 0.5]), st.sampled_from([None, 0.75]))


def told(threshold, stream, chosen, levels=(2.0, 1.0)):
    """The boundaries told above a threshold, and the times at which they are told."""
    runs = BoundaryRuns(levels, *chosen)
    runs.use(threshold, levels)
    time, found, onsets = 0.0, [], []
    for gap, z, cut in stream:
        time += gap
        step = runs.update(time, z, signs=Signs(cut))
        found += step.boundaries
        onsets += [time] * step.onset
    last = runs.flush()
    return [*found, last] if last else found, onsets


@given(nested_streams, kinds, st.lists(st.floats(1.0, 4.5), min_size=2, max_size=4))
def test_a_lower_threshold_tells_whatever_a_higher_one_tells(stream, chosen, thresholds):
    several = [told(threshold, stream, chosen)[0] for threshold in sorted(thresholds, reverse=True)]
    for fewer, more in pairwise(several):
        assert {(b.time, b.onset) for b in fewer} <= {(b.time, b.onset) for b in more}


@given(nested_streams, kinds, st.floats(1.0, 4.5))
def test_each_boundary_is_told_once_and_never_before_its_onset(stream, chosen, threshold):
    found, onsets = told(threshold, stream, chosen)
    assert sorted(boundary.onset_known for boundary in found) == onsets
    assert all(b.onset <= b.time <= b.decided and b.onset <= b.onset_known <= b.decided for b in found)
    early, early_onsets = told(threshold, stream[:40], chosen)
    assert early_onsets == onsets[: len(early_onsets)]
    assert early[:-1] == found[: len(early[:-1])], "only the last one may still be open"


@given(nested_streams, kinds, st.floats(1.0, 9.0))
def test_a_cut_is_told_at_its_frame_inside_runs_and_gaps_at_every_threshold(stream, chosen, threshold):
    found, _ = told(threshold, stream, chosen)
    time, last = 0.0, -1.0
    for gap, _z, cut in stream:
        time += gap
        if cut and time - last >= 0.06:  # closer ones are a blend of two shots
            last = time
            assert any(time - 0.06 < b.onset == b.time and b.decided <= time for b in found)


def test_scores_that_rise_some_frames_after_a_cut_make_no_second_boundary():
    scores = [0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 0]
    found, _ = told(2.0, [(0.1, z, n == 1) for n, z in enumerate(scores)], (0.6, 0.0, 0.75))
    assert [boundary.onset for boundary in found] == pytest.approx([0.2])


def test_a_run_of_a_lower_level_waits_for_the_gap_and_gives_way_to_a_higher_one():
    low_then = lambda *rest: [(0.1, z, False) for z in (0, 1.5, 1.5, *rest)]  # noqa: E731
    (boundary,), _ = told(1.0, low_then(*[0] * 9), (0.55, 0.0, 0.75))
    assert (boundary.onset, boundary.decided) == pytest.approx((0.2, 0.8))
    (boundary,), _ = told(1.0, low_then(3, *[0] * 9), (0.6, 0.0, 0.75))
    assert (boundary.onset, boundary.decided) == pytest.approx((0.4, 0.4))


def signs(cut=False, change=None, contrast=0.0):
    """A frame that is as far from all earlier ones."""
    return Signs(cut, () if change is None else (change,) * len(AGO), contrast)


def closed(stream, levels=(2.0, 1.0), threshold=2.0):
    """The boundaries with their peaks and kinds; a stream of (score, cut, change) at ten frames a second."""
    runs = BoundaryRuns(levels, 0.6, 0.0, 0.75)
    runs.use(threshold, levels)
    told = [
        b
        for n, (z, *more) in enumerate(stream)
        for b in runs.update(n / 10, z, True, None, signs(*more)).boundaries
    ]
    runs.flush()
    assert [b.onset for b in runs.closed] == [b.onset for b in told], "each is closed once, in order"
    return [(b.onset, b.peak, b.kind) for b in runs.closed]


def test_a_peak_is_the_highest_score_of_the_second_after_an_onset():
    scores = [0, 2.5, 3, 4, 3, *[0] * 6, 9, *[0] * 9]
    assert closed([(z, False, 0.1) for z in scores]) == [(0.1, 4, "event"), (1.1, 9, "event")]


def test_a_peak_is_higher_where_the_picture_before_is_unlike_the_one_after():
    contrasts = [0.0, 0.2, 0.3, 0.4, 0.4, 0.6, 0.8, 0.9]  # the fifth one lies half a second after the onset
    stream = [(2.5 if n == 0 else 0, False, 0.1, contrast) for n, contrast in enumerate(contrasts)]
    early = [(2.5, False, 0.1, 0.1), (0, False, 0.1, 0.2), (0, True, 0.4, 0.3)]
    assert closed([*stream, *[(0, False, 0.1, 0.0)] * 6]) == [(0.0, 2.9, "event")]
    assert [peak for _, peak, _ in closed([*early, *stream[1:]])[:2]] == [2.8, 0.6], "a cut comes soon"


def test_a_kind_says_how_the_picture_changed():
    far = [(0, False, 0.1)] * 3
    assert closed([*far, (3, False, 0.1), *[(0, False, 0.4)] * 12]) == [(0.3, 3, "gradual")]
    assert closed([*far, (1, True, 0.4), *[(3, False, 0.4)] * 12]) == [(0.3, 3, "cut")]
    after = [(0, False, 0.4)] * 6
    assert closed([*far, (0, True, 0.4), *after, (3, False, 0.4), *far * 4])[1:] == [(1.0, 3, "event")], (
        "what a cut changed says nothing of a later boundary"
    )
    assert closed([(0, False, None), (3, False, None)]) == [(0.1, 3, None)], "a method may not know"


@given(nested_streams, kinds)
def test_every_told_boundary_is_closed_once_in_order(stream, chosen):
    runs, time, found = BoundaryRuns([1.0], *chosen), 0.0, []
    for gap, z, cut in stream:
        time += gap
        found += runs.update(time, z, signs=signs(cut, 0.1)).boundaries
    last = runs.flush()
    found += [last] if last else []
    assert [b.onset for b in runs.closed] == [b.onset for b in found]
    assert all(b.peak is not None and b.peak >= b.score for b in runs.closed)
    assert all(b.kind for b in runs.closed[:-1]), "the end of the stream may come too soon"


def test_a_cut_whose_frame_stays_does_not_hide_the_next_change():
    runs = BoundaryRuns([0.3], min_gap=0.6, max_run=0, rearm=0.75)
    steps = [
        runs.update(time, z, signs=Signs(cut))
        for time, z, cut in [(1, 0.4, True), (1, 0.0, False), (5, 0.35, False)]
    ]
    assert [boundary.time for step in steps for boundary in step.boundaries] == [1, 5]


def test_a_cut_after_which_the_old_picture_comes_back_at_once_was_a_flash():
    far = [(0, False, 0.02)] * 3
    flash = [(0, True, 0.4), (0, False, 0.4), (0, False, 0.03)]
    assert closed([*far, *flash, *far * 4]) == [(0.3, 0, "event")]
    near = [(0, True, 0.4), (0, False, 0.4), (0, False, 0.3)]
    assert closed([*far, *near, *far * 4]) == [(0.3, 0, "event")], "something that passed the camera"
    late = [(0, True, 0.4), *[(0, False, 0.4)] * 8]
    assert closed([*far, *late, *far * 4]) == [(0.3, 0, "cut")]
    assert [kind for *_, kind in closed([*far, *late, *flash, *far * 4])] == ["cut", "event"], "soon after"


def test_a_boundary_is_closed_after_it_was_handed_out():
    class Scores:
        latency = 4

        def flush(self):
            return [0.0] * 4

        def reset(self): ...

    runs = BoundaryRuns([0.5], 0.0, 0.0, 0.75)
    judge = Judge(Scores(), ThresholdHead(0.5), runs)
    told, closed = [], []

    def hand_out(decision):
        told.extend([decision.boundary.onset] if decision.boundary else [])
        closed.extend(b.onset for b in judge.closed())
        assert closed == told[: len(closed)]

    for n in range(12):
        hand_out(judge.take(n / 10, 0.0, Signs(n > 7)))
    judge.break_off()
    for n in range(6):
        hand_out(judge.take(n / 10, 0.0))
    while (last := judge.flush()) is not None:
        told.append(last.onset)
    assert [*closed, *(b.onset for b in judge.closed())] == told == pytest.approx([0.8, 0.9, 1.0, 1.1])
