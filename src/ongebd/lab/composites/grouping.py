"""Which clips show one setting, and which part of a split each setting falls to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from ongebd.data.files import parse_json, read_bytes, table_rows
from ongebd.data.numbers import FloatArray
from ongebd.errors import ConfigError, LabelError
from ongebd.lab.composites.clips import Clip, ClipLibrary
from ongebd.lab.composites.config import Part
from ongebd.lab.composites.pictures import unit_picture

_ALIKE = 0.95  # likeness of two clips that are taken for one setting, whatever their names
_ALIKE_BY_NAME = 0.65  # and of two whose names say so
_LAST_PART = re.compile(r"(__|[_\-. ])[^_\-. ]*$")


def read_groups(path: Path) -> dict[str, str]:
    """Groups by the names of clips: a CSV with the columns `file` and `group`, or a JSON `{file: group}`.

    Raises:
        LabelError: It cannot be read, a group is no text or empty, or a clip has two.
    """
    data = read_bytes(path)
    if path.suffix.lower() == ".csv":
        groups: dict[str, str] = {}
        for line, row in table_rows(data, path, {"file", "group"}):
            for column in ("file", "group"):
                if not row[column]:
                    raise LabelError(
                        f"{path}, line {line}: the {column} is empty; fill it, or remove the line"
                    )
            if groups.setdefault(row["file"], row["group"]) != row["group"]:
                raise LabelError(f"{path}, line {line}: {row['file']!r} has two groups; keep one line")
        return groups
    value = parse_json(data, path)
    if not isinstance(value, Mapping) or not all(isinstance(group, str) for group in value.values()):
        raise LabelError(f"{path}: groups are a JSON object of file: group, or a CSV with file,group")
    for name, group in value.items():
        if not group.strip():
            raise LabelError(f"{path}: the group of {str(name)!r} is empty; name it, or remove the clip")
    return {str(name): group for name, group in value.items()}


def grouped(clips: Sequence[Clip], given: Mapping[str, str] | None, warnings: list[str]) -> list[Clip]:
    """The clips with their groups.

    Two clips belong together where the given groups say so. Of the others, two do whose usual pictures
    are nearly the same, or which lie in one folder, have names that differ in the last part alone
    (`asl__again`, `asl__book`; `kitchen_1`, `kitchen_2`) and pictures that are alike. A group has the name of
    its first clip.

    Args:
        clips: In the order of their names.
        given: Group by name or by name without ending; None for none.
        warnings: To which is added what is wrong with the given ones.
    """
    named = given or {}
    by_name = {clip.name: named.get(clip.name, named.get(Path(clip.name).stem)) for clip in clips}
    used = {name for clip in clips for name in (clip.name, Path(clip.name).stem)}
    unknown = [name for name in named if name not in used]
    if unknown:
        warnings.append(f"groups: {len(unknown)} names are no clips, such as {unknown[0]!r}")
    head = {clip.name: clip.name for clip in clips if by_name[clip.name] is None}
    free = [clip for clip in clips if clip.name in head]
    usual = np.stack([unit_picture(_usual_picture(clip)) for clip in free]) if free else np.zeros((0, 1))
    stems = [_stem(clip.name) for clip in free]
    for place, clip in enumerate(free):
        alike = usual[:place] @ usual[place]
        for other in np.flatnonzero(alike >= _ALIKE_BY_NAME):
            if alike[other] >= _ALIKE or stems[place] == stems[other]:
                _join(head, clip.name, free[other].name)
    own = {name: group for name, group in by_name.items() if group is not None}
    return [
        replace(clip, group=own[clip.name] if clip.name in own else _find(head, clip.name)) for clip in clips
    ]


def parted(library: ClipLibrary, shares: Mapping[Part, float], seed: int) -> dict[Part, list[Clip]]:
    """The clips of each part; a group is never divided.

    Groups are put into an order by a hash of their name and the seed, and the order is cut by the shares,
    with at least one group for each part. So the order of the files does not matter; adding clips
    may move groups that lie at a border.

    Raises:
        ConfigError: There are fewer groups than parts.
    """
    groups = library.groups()
    if len(groups) < len(shares):
        raise ConfigError(
            f"{len(shares)} parts need as many groups of clips, and there {_are(len(groups))}: add clips"
            " (or groups, with --groups), or say --split all"
        )
    # (The name of a file may be no UTF-8.)
    order = sorted(
        groups, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode("utf-8", "surrogatepass")).digest()
    )
    counts = _apportioned(len(order), list(shares.values()))
    result: dict[Part, list[Clip]] = {}
    for part, count in zip(shares, counts, strict=True):
        mine = [clip for name in order[:count] for clip in groups[name]]
        result[part] = sorted(mine, key=lambda clip: clip.name)
        order = order[count:]
    return result


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"


def _apportioned(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers near to the shares of a total, at least 1 each where the total allows it.

    >>> _apportioned(9, [0.7, 0.15, 0.15]), _apportioned(3, [0.98, 0.01, 0.01]), _apportioned(2, [1.0])
    ([6, 2, 1], [1, 1, 1], [2])
    """
    least = 1 if total >= len(shares) else 0
    counts = [max(least, int(total * share)) for share in shares]
    while sum(counts) < total:
        lacking = [total * share - count for share, count in zip(shares, counts, strict=True)]
        counts[int(np.argmax(lacking))] += 1
    while sum(counts) > total:
        counts[int(np.argmax(counts))] -= 1
    return counts


def _stem(name: str) -> tuple[str, str]:
    """Folder, and the name without ending and without its last part."""
    path = PurePosixPath(name)
    stem = path.stem
    double = stem.rpartition("__")[0]
    return str(path.parent), double or _LAST_PART.sub("", stem) or stem


def _usual_picture(clip: Clip) -> FloatArray:
    picture: FloatArray = np.median(clip.luma[:: max(1, len(clip.luma) // 50)], axis=0)
    return picture


def _find(head: dict[str, str], name: str) -> str:
    while head[name] != name:
        name = head[name]
    return name


def _join(head: dict[str, str], one: str, other: str) -> None:
    first, second = sorted((_find(head, one), _find(head, other)))
    head[second] = first
