"""Folders as sources: of videos; of pictures, which are one video, as is a pattern such as `img_%04d.png`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from pathlib import Path

from ongebd.common.text import printable
from ongebd.errors import SourceError, os_errors

_ENDING = re.compile(
    r"\.(png|jpe?g|jpe|bmp|tiff?|webp|jp2|j2k|exr|dpx|tga|p[bgpnaf]m|hdr|qoi|jxl|dds|sgi|avif|heic)",
    re.IGNORECASE,
)
ENDINGS = {
    *(".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".gif", ".ts", ".mts", ".m2ts", ".mpg", ".mpeg"),
    *(".flv", ".wmv", ".ogv", ".3gp", ".y4m"),
}
"""Of the videos that are taken from a folder. A file that is named on its own is always tried."""

_NUMBER = re.compile(r"%0?\d*d")


def stills_of(text: str) -> list[str]:
    """The pictures that a folder or a pattern names, in the order of their numbers; none if it names none.

    Raises:
        SourceError: A folder has pictures of several kinds, or no file fits a pattern.
    """
    path = Path(text)
    try:
        if path.is_dir():
            found = _of_one_kind(path)
        elif not is_pattern(text) or path.exists() or not path.parent.is_dir():
            return []
        else:
            numbers = _NUMBER.sub(lambda _: r"\d+", re.escape(path.name))
            fits = re.compile(translate(path.name) if "*" in path.name else numbers)
            found = [one for one in path.parent.iterdir() if fits.fullmatch(one.name)]
            if not found:
                raise SourceError(f"{printable(text)}: no picture matches; check the pattern")
    except (OSError, ValueError):
        return []  # opening it tells why
    return [str(one) for one in sorted(found, key=_by_numbers)]


def is_pattern(text: str) -> bool:
    """Whether a name stands for many pictures."""
    path = Path(text)
    return bool(_ENDING.fullmatch(path.suffix) and (_NUMBER.search(path.name) or "*" in path.name))


def gathered(sources: Sequence[str]) -> list[str]:
    """The sources, each folder replaced by its videos, and its pictures, named one by one, by one source.

    Raises:
        SourceError: They are only some of the folder's pictures; or as for `videos_in`.
    """
    sources = [one for source in sources for one in videos_in(source)]
    groups: dict[Path, list[str]] = {}
    for source in dict.fromkeys(sources):
        path = Path(source)
        if _ENDING.fullmatch(path.suffix) and path.is_file():
            groups.setdefault(path.parent / f"*{path.suffix}", []).append(source)
    together = {names[0]: str(pattern) for pattern, names in groups.items() if len(names) > 1}
    for first, pattern in together.items():
        names = groups[Path(pattern)]
        if len(names) < sum(1 for _ in Path(pattern).parent.glob(Path(pattern).name)):
            raise SourceError(
                f"{printable(first)} and {len(names) - 1} more are pictures; to read them as one video, name"
                f" their folder or a pattern in quotes, such as '{printable(pattern)}'"
            )
    others = {name for names in groups.values() for name in names[1:]}
    return [together.get(source, source) for source in sources if source not in others]


def videos_in(source: str) -> list[str]:
    """The videos in a folder and in all folders below it, by name; any other source stands for itself.

    Hidden files and folders don't count, and links to folders aren't followed. A folder of pictures is one
    source.

    Raises:
        SourceError: There is neither a video nor a folder's worth of pictures, or there are both.
    """
    if source == "-" or not os.path.isdir(source):  # noqa: PTH112 - Path's raises for a name too long
        return [source]
    name = printable(source)
    with os_errors(source, "check its permissions", SourceError):
        pictures, videos = bool(_of_one_kind(Path(source))), list(_videos_below(source))
    if pictures and any(Path(video).parent == Path(source) for video in videos):
        raise SourceError(f"{name}: has pictures and videos; name the videos, or the pictures by a pattern")
    if not pictures and not videos and (Path(source) / "store.json").exists():
        raise SourceError(f"{name}: has features, not videos; run: ongebd detect --store {name} --out FOLDER")
    if not pictures and not videos:
        raise SourceError(f"{name}: no video in this folder or below it ({', '.join(sorted(ENDINGS))})")
    return [source] if pictures else videos


def _videos_below(folder: str) -> Iterator[str]:
    def refuse(problem: OSError) -> None:
        raise problem

    for path, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if os.path.splitext(name)[1].lower() in ENDINGS and not name.startswith("."):  # noqa: PTH122
                yield os.path.join(path, name)  # noqa: PTH118 - thousands of them


def _of_one_kind(folder: Path) -> list[Path]:
    """The pictures of a folder; none if it holds none, or more of other files, which may be videos."""
    files = [one for one in folder.iterdir() if not one.name.startswith(".")]
    found = [one for one in files if _ENDING.fullmatch(one.suffix)]
    kinds = sorted({one.suffix.lower() for one in found})
    if len(found) * 2 <= len(files):
        return []
    if len(kinds) > 1:
        name, pattern = printable(str(folder)), printable(str(folder / f"*{kinds[0]}"))
        raise SourceError(
            f"{name}: has pictures of several kinds ({', '.join(kinds)}); name one kind, such as '{pattern}'"
        )
    return found


def _by_numbers(path: Path) -> list[tuple[int, str]]:
    """A key that sorts img_9 before img_10."""
    return [(len(part.lstrip("0")) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", path.name)]
