"""Which prediction belongs to which video: written rules, no guesses."""

from __future__ import annotations

import pytest

from ongebd.data import match_ids
from ongebd.errors import LabelError


def test_an_exact_id_wins_over_one_inside_a_longer_name() -> None:
    match = match_ids(["abcde", "x_fghij_000"], ["abcde", "fghij"])
    assert match.label_of == {"abcde": "abcde", "x_fghij_000": "fghij"}
    assert (match.exact, match.by_pattern, match.inside, match.unknown) == (1, 0, 1, ())


@pytest.mark.parametrize("label", ["C4lCVBZ3ux0", "-4lCVBZ3ux0", "_4lCVBZ3ux_", "a-b_c"])
def test_an_id_is_found_between_separators_whatever_it_begins_with(label: str) -> None:
    assert match_ids([f"kinetics__{label}_000028_000038"], [label, "other"]).inside == 1


@pytest.mark.parametrize("name", ["xC4lCVBZ3ux0_1", "C4lCVBZ3ux0x", "C4lCVBZ3ux"])
def test_a_part_of_a_word_does_not_match(name: str) -> None:
    assert match_ids([name], ["C4lCVBZ3ux0"]).unknown == (name,)


def test_short_ids_match_exactly_only() -> None:
    assert match_ids(["clip_1"], ["1"]).unknown == ("clip_1",)


def test_the_longest_id_is_taken_where_it_holds_the_others() -> None:
    assert match_ids(["x_abcde_s0001_y"], ["abcde", "abcde_s0001"]).label_of == {
        "x_abcde_s0001_y": "abcde_s0001"
    }


def test_two_ids_side_by_side_are_ambiguous() -> None:
    with pytest.raises(
        LabelError, match=r"holds several label ids \('abcde', 'fghij'\); choose with --id-pattern"
    ):
        match_ids(["abcde_fghij"], ["abcde", "fghij"])


def test_a_pattern_takes_the_id_out_and_no_other_rule_is_tried() -> None:
    match = match_ids(["clip-7", "x_abcde"], ["7", "abcde"], pattern=r"clip-(?P<id>\d+)")
    assert match.label_of == {"clip-7": "7"}
    assert (match.by_pattern, match.unknown) == (1, ("x_abcde",))


@pytest.mark.parametrize(
    ("pattern", "complaint"), [("(", "not a regular expression"), ("abc", "has no group")]
)
def test_a_bad_pattern_is_refused(pattern: str, complaint: str) -> None:
    with pytest.raises(LabelError, match=complaint):
        match_ids(["a"], ["b"], pattern)


def test_two_predictions_for_one_video_are_refused() -> None:
    with pytest.raises(LabelError, match="both match video 'abcde'"):
        match_ids(["abcde", "x_abcde"], ["abcde"])


@pytest.mark.parametrize("label", ["abc.mp4", "v_abc", "v_abc.MKV", "abc"])
@pytest.mark.parametrize("name", ["abc", "v_abc", "abc.webm"])
def test_an_ending_or_a_v_in_front_may_be_missing_on_either_side(label: str, name: str) -> None:
    assert match_ids([name], [label, "other"]).label_of == {name: label}


def test_an_id_with_an_ending_is_found_inside_a_longer_name() -> None:
    name = "kinetics__C4lCVBZ3ux0_000028"
    assert match_ids([name], ["C4lCVBZ3ux0.mp4"]).label_of == {name: "C4lCVBZ3ux0.mp4"}


def test_labels_that_are_alike_without_their_endings_match_exactly_only() -> None:
    assert match_ids(["abc", "abc.mp4"], ["abc.mp4", "abc.avi"]).label_of == {"abc.mp4": "abc.mp4"}
    assert match_ids(["abc", "v_abc"], ["abc", "v_abc"]).exact == 2
