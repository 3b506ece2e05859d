"""Matches predictions with labelled videos by four rules, without guessing.

1. The prediction's id is a label's id.
2. With a pattern (`--id-pattern`): the part of the prediction's id that it captures is a label's id.
3. Without a pattern: a label's id of at least five characters occurs inside the prediction's id, between
   separators (`_`, `-`, `.`, space) or at its ends: `arm_wrestling__C4lCVBZ3ux0_000028_000038` holds
   `C4lCVBZ3ux0`. If several do, the longest is taken if it holds all others; otherwise the id is refused as
   ambiguous.
4. Without a pattern, in rules 1 and 3: a video's ending (`abc.mp4`) or a `v_` in front (`v_abc`) may be
   missing, in the label or in the prediction, if that leaves no two labels alike.

TAPOS labels *instances*, stretches of a shot. What was made of a shot, `VIDEO_s00002`, is cut by the times in
the instances' ids. They count from the shot's start, which the labels don't say: whole videos can't be cut.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence, Set
from dataclasses import dataclass

from ongebd.data.label_dicts import TAPOS_INSTANCE
from ongebd.data.label_set import LabelSet
from ongebd.errors import LabelError

_SEPARATORS = "_-. "
_MIN_LENGTH = 5


@dataclass(frozen=True, slots=True)
class Instance:
    """A stretch of a shot, from and to in seconds."""

    shot: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class IdMatch:
    """The outcome of matching ids.

    Attributes:
        label_of: The label id of each prediction id that has one.
        exact: How many matched by rule 1.
        by_pattern: How many matched by rule 2.
        inside: How many matched by rules 3 and 4.
        unknown: Prediction ids without a labelled video, in order.
    """

    label_of: dict[str, str]
    exact: int
    by_pattern: int
    inside: int
    unknown: tuple[str, ...]


def match_ids(predictions: Iterable[str], labels: Iterable[str], pattern: str | None = None) -> IdMatch:
    """Match prediction ids with label ids.

    Args:
        predictions: Ids of predictions.
        labels: Ids of labelled videos.
        pattern: A regular expression with one group (the first, or the one named `id`), searched in a
            prediction's id.

    Raises:
        LabelError: The pattern is invalid, an id is ambiguous, or two predictions match one video.

    >>> match_ids(["arm_wrestling__C4lCVBZ3ux0_000028_000038"], ["C4lCVBZ3ux0"]).label_of
    {'arm_wrestling__C4lCVBZ3ux0_000028_000038': 'C4lCVBZ3ux0'}
    """
    known = set(labels)
    expression = None if pattern is None else compile_pattern(pattern)
    bare = Counter(map(_bare, known))
    meant = {_bare(label): label for label in known if bare[_bare(label)] == 1} | {
        name: name for name in known
    }
    prediction_of: dict[str, str] = {}
    unknown = []
    exact = 0
    for name in predictions:
        label: str | None = name
        if name not in known:
            if expression is not None:
                label = captured_id(expression, name)
            elif (label := meant.get(_bare(name))) is None:
                label = meant.get(_inside(name, meant.keys()) or "")
        if label is None or label not in known:
            unknown.append(name)
            continue
        if label in prediction_of:
            raise LabelError(
                f"predictions {prediction_of[label]!r} and {name!r} both match video {label!r}; remove one "
                "of them"
            )
        prediction_of[label] = name
        exact += label == name
    others = len(prediction_of) - exact
    label_of = {name: label for label, name in prediction_of.items()}
    return IdMatch(label_of, exact, others if pattern else 0, 0 if pattern else others, tuple(unknown))


def instances_in(
    shots: Sequence[str], labels: LabelSet, there: Container[str], pattern: str | None = None
) -> tuple[dict[str, Instance], tuple[str, ...]]:
    """The TAPOS instances that are cut out of shots, by their ids; and the names that aren't such shots.

    Args:
        shots: Ids that aren't those of labelled instances.
        labels: Instances of another data set don't exist.
        there: Instances that needn't be cut out.
        pattern: As in `match_ids`.
    """
    spans = defaultdict(list)
    for name in labels.videos if labels.dataset == "tapos" else ():
        if name not in there and (found := TAPOS_INSTANCE.fullmatch(name)):
            spans[found["shot"]].append((name, _seconds(found["from"]), _seconds(found["to"])))
    whole = [name for name in shots if not TAPOS_INSTANCE.search(name)]  # not instances without labels
    label_of = match_ids(whole, spans, pattern).label_of
    cut = {
        name: Instance(shot, start, end)
        for shot, label in label_of.items()
        for name, start, end in spans[label]
    }
    return cut, tuple(name for name in shots if name not in label_of)


def hint(labels: LabelSet) -> str:
    """What to try where no id matches."""
    if labels.dataset != "tapos":
        return ""
    return "; TAPOS ids name instances or shots (VIDEO_s00002): cut these out of the whole videos first"


def _seconds(text: str) -> float:
    """79_481 → 79.481; the second part counts milliseconds."""
    whole, milli = text.split("_")
    return int(whole) + int(milli) / 1000


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The expression of `--id-pattern`, which must have a group."""
    try:
        expression = re.compile(pattern)
    except re.error as problem:
        raise LabelError(f"--id-pattern {pattern!r}: not a regular expression ({problem})") from None
    if expression.groups == 0:
        raise LabelError(f"--id-pattern {pattern!r}: has no group; put the part that is the id in brackets")
    return expression


def captured_id(expression: re.Pattern[str], name: str) -> str | None:
    """What the expression's group (the one named `id`, or the first) finds in a name."""
    found = expression.search(name)
    if found is None:
        return None
    return found["id"] if "id" in expression.groupindex else found[1]


def _bare(name: str) -> str:
    """An id without `v_` in front, as ActivityNet has it, and without a video's ending."""
    return re.sub(r"(?i)\.(mp4|mkv|webm|avi|mov|m4v|ts)$", "", name).removeprefix("v_") or name


def _inside(name: str, known: Set[str]) -> str | None:
    """The label id between separators in `name`."""
    cuts = [place for place, letter in enumerate(name) if letter in _SEPARATORS]
    found = [
        (start, end)
        for start in (0, *(cut + 1 for cut in cuts))
        for end in (*cuts, len(name))
        if end - start >= _MIN_LENGTH and name[start:end] in known
    ]
    if not found:
        return None
    start, end = max(found, key=lambda span: span[1] - span[0])
    if any(span[0] < start or span[1] > end for span in found):
        names = ", ".join(sorted(repr(name[a:b]) for a, b in found))
        raise LabelError(f"prediction {name!r} holds several label ids ({names}); choose with --id-pattern")
    return name[start:end]
