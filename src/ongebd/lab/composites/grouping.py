"""Which clips show one setting, and which part of a split each setting belongs to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from ongebd.data.files import read_bytes, table_rows
from ongebd.errors import ConfigError, LabelError
from ongebd.lab.composites.clips import Clip, ClipLibrary
from ongebd.lab.composites.config import Part
from ongebd.lab.composites.pictures import unit_picture

_ALIKE = 0.95  # correlation of two clips that show one setting, whatever their names
_ALIKE_BY_NAME = 0.65  # and of two whose names suggest it
_LAST_PART = re.compile(r"(__|[_\-. ])[^_\-. ]*$")


def read_groups(path: Path) -> dict[str, str]:
    """Groups by the names of clips, from a CSV with the columns `file` and `group`."""
    groups: dict[str, str] = {}
    for where, row in table_rows(read_bytes(path), path, {"file", "group"}):
        if not row["file"] or not row["group"]:
            raise LabelError(f"{where}: the file or the group is empty; fill it or remove the line")
        if groups.setdefault(row["file"], row["group"]) != row["group"]:
            raise LabelError(f"{where}: {row['file']!r} has two groups; keep one line")
    return groups


def grouped(clips: Sequence[Clip], given: Mapping[str, str] | None, warnings: list[str]) -> list[Clip]:
    """The clips with their groups.

    Given groups come first. Two other clips belong together if their usual pictures are nearly the same, or
    if they are in one folder, their names differ in the last part only (`asl__again`, `asl__book`;
    `kitchen_1`, `kitchen_2`) and their pictures are alike. A group has the name of its first clip.

    Args:
        clips: In the order of their names.
        given: Group by name or by name without ending; None for none.
        warnings: Gets a line about given names that are not clips.
    """
    named = given or {}
    own = {clip.name: named.get(clip.name, named.get(Path(clip.name).stem)) for clip in clips}
    used = {name for clip in clips for name in (clip.name, Path(clip.name).stem)}
    unknown = [name for name in named if name not in used]
    if unknown:
        warnings.append(f"groups: {len(unknown)} names match no clip, such as {unknown[0]!r}")
    free = [clip for clip in clips if own[clip.name] is None]
    group = {clip.name: clip.name for clip in free}
    usual = [unit_picture(np.median(clip.luma[:: max(1, len(clip.luma) // 50)], axis=0)) for clip in free]
    for place, clip in enumerate(free):
        for other, picture in zip(free[:place], usual, strict=False):
            alike = float(picture @ usual[place])
            if alike >= _ALIKE or (alike >= _ALIKE_BY_NAME and _stem(clip.name) == _stem(other.name)):
                first, second = sorted((group[clip.name], group[other.name]))
                group = {name: first if head == second else head for name, head in group.items()}
    return [replace(clip, group=own[clip.name] or group[clip.name]) for clip in clips]


def parted(library: ClipLibrary, shares: Mapping[Part, float], seed: int) -> dict[Part, list[Clip]]:
    """The clips of each part; a group is never divided.

    Groups are ordered by a hash of their name and the seed, and cut by the shares, with at least one group
    for each part. So the order of the files doesn't matter; adding clips may move groups near a border.

    Raises:
        ConfigError: There are fewer groups than parts.
    """
    groups = library.groups()
    if len(groups) < len(shares):
        raise ConfigError(
            f"{len(shares)} parts need at least {len(shares)} groups of clips, not {len(groups)}: add clips"
            " (or groups, with --groups), or use --split all"
        )
    # (The name of a file may not be UTF-8.)
    order = sorted(
        groups, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode("utf-8", "surrogatepass")).digest()
    )
    result: dict[Part, list[Clip]] = {}
    for part, count in zip(shares, _apportioned(len(order), list(shares.values())), strict=True):
        mine = [clip for name in order[:count] for clip in groups[name]]
        result[part] = sorted(mine, key=lambda clip: clip.name)
        order = order[count:]
    return result


def _apportioned(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers near to the shares of a total, each at least 1.

    >>> _apportioned(9, [0.7, 0.15, 0.15]), _apportioned(3, [0.98, 0.01, 0.01]), _apportioned(2, [1.0])
    ([6, 2, 1], [1, 1, 1], [2])
    """
    counts = [max(1, int(total * share)) for share in shares]
    while sum(counts) < total:
        lacking = [total * share - count for share, count in zip(shares, counts, strict=True)]
        counts[int(np.argmax(lacking))] += 1
    while sum(counts) > total:
        counts[int(np.argmax(counts))] -= 1
    return counts


def _stem(name: str) -> tuple[str, str]:
    """Folder, and the name without ending and without its last part."""
    path = PurePosixPath(name)
    double = path.stem.rpartition("__")[0]
    return str(path.parent), double or _LAST_PART.sub("", path.stem) or path.stem
