"""From a folder of video files to clips: decoded once, measured, cut into shots, grouped by setting."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ongebd.data.files import FloatArray
from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.data.labels import read_labels
from ongebd.errors import ConfigError, SourceError
from ongebd.lab.composites.clips import Clip, ClipLibrary, Shot
from ongebd.lab.composites.grouping import grouped, read_groups
from ongebd.lab.composites.pictures import (
    SIDE,
    LumaU8,
    cuts_of,
    motion_of,
    small_luma,
    soft_changes_of,
    steps_of,
    turnover_of,
)
from ongebd.video.reader import VideoReader
from ongebd.video.stills import ENDINGS

_LONGEST_READ = 600.0  # seconds of a clip that are used, from its start
_SLOWEST = 7.5  # frames a second; below, every frame is a visible jump
_GAP = 0.35  # seconds between two frames that a piece may not cross
_SHORTEST_SHOT = 0.5
_BLANK = 4.0  # standard deviation of a small picture that shows nothing
_CALM = 6.0  # turnover, of 255
_AROUND_SOFT = 0.5  # seconds kept clear on both sides of a gradual change
_AROUND_LABEL = 0.4  # and of a labelled boundary that isn't kept
_JOIN_LABELS = 0.5  # seconds within which annotators mean the same boundary


def read_clips(
    paths: Sequence[Path | str],
    *,
    labels: Path | str | LabelSet | None = None,
    keep_labelled: bool = True,
    groups: Path | str | None = None,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> ClipLibrary:
    """Read every clip once.

    Args:
        paths: Files, and folders, which are searched with their sub-folders.
        labels: Labels of the clips, or the file; ids are file names without ending. A labelled clip is used
            only for as long as its labels say that it lasts.
        keep_labelled: Keep boundaries that at least half of the annotators saw, as boundaries of kind
            `natural`. The others, or all of them if False, are kept out of every piece.
        groups: CSV or JSON that says which clips show one setting; see `read_groups`.
        progress: Called before each clip with (number from 0, how many, name).

    Raises:
        ConfigError: There are no clips, or two have one name.
        LabelError: The labels or groups can't be read.
        SourceError: None of the clips can be used.
    """
    found = find_clips(paths)
    label_set = read_labels(labels) if isinstance(labels, str | Path) else labels
    given = None if groups is None else read_groups(Path(groups))
    clips: list[Clip] = []
    warnings: list[str] = []
    for number, (name, path) in enumerate(found.items()):
        progress(number, len(found), name)
        marked = None if label_set is None else label_set.videos.get(Path(name).stem)
        try:
            clips.append(_read(name, path, marked, keep=keep_labelled))
        except SourceError as problem:
            warnings.append(str(problem))
        except OSError as problem:
            warnings.append(f"{path}: {problem.strerror or problem}")
    if not clips:
        more = f" and {len(warnings) - 1} more" if len(warnings) > 1 else ""
        raise SourceError(f"none of the clips can be used: {warnings[0]}{more}")
    if label_set is not None and not any(Path(clip.name).stem in label_set.videos for clip in clips):
        warnings.append(f"{label_set.source or 'the labels'}: no clip is labelled in it; ids are file names")
    named = {clip.name: clip for clip in grouped(clips, given, warnings)}
    return ClipLibrary(named, tuple(warnings), label_set is not None)


def find_clips(paths: Sequence[Path | str]) -> dict[str, Path]:
    """The files, by name, in the order of the names.

    Raises:
        ConfigError: A path doesn't exist, it has no video files, or two have one name.
    """
    found: dict[str, Path] = {}
    for path in map(Path, paths):
        if path.is_dir():
            inside = {file.relative_to(path): file for file in path.rglob("*") if file.is_file()}
            named = {
                name.as_posix(): file
                for name, file in inside.items()
                if name.suffix.lower() in ENDINGS and not any(part.startswith(".") for part in name.parts)
            }
            if not named:
                raise ConfigError(f"{path}: has no video file in it ({', '.join(sorted(ENDINGS))})")
        elif path.exists():
            named = {path.name: path}
        else:
            raise ConfigError(f"{path}: no such file or folder; check the path")
        for name, file in named.items():
            if found.setdefault(name, file) != file:
                raise ConfigError(f"{found[name]} and {file} have the same name {name!r}: rename one")
    if not found:
        raise ConfigError("no clips given: name a folder of video files")
    return dict(sorted(found.items()))


def _read(name: str, path: Path, labels: VideoLabels | None, *, keep: bool) -> Clip:
    times, pts, luma, (width, height) = _frames(path)
    steps = steps_of(luma)
    cuts = cuts_of(steps, times)
    turnover = turnover_of(luma, times, cuts)
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 1.0
    if usual > 1 / _SLOWEST:
        rate = 1 / usual if len(times) > 1 else 0
        raise SourceError(f"{path}: gives {rate:.2g} frames/s; {_SLOWEST:g} or more are needed")
    natural, avoided = ([], []) if labels is None else _labelled(labels, keep=keep)
    limit = min(times[-1] + usual, np.inf if labels is None else labels.duration)
    walls = [(time - _AROUND_LABEL, time + _AROUND_LABEL) for time in avoided]
    soft = times[soft_changes_of(turnover, times)]
    walls += [(time - _AROUND_SOFT, time + _AROUND_SOFT) for time in soft.tolist()]
    allowed = luma.reshape(len(luma), -1).std(axis=1) > _BLANK
    for low, high in walls:
        allowed[(times > low) & (times < high)] = False
    shots = _shots(times, allowed, cuts, usual, limit)
    if not shots:
        raise SourceError(f"{path}: has no stretch of {_SHORTEST_SHOT:g} s without a cut")
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Clip(
        name=name,
        path=path,
        width=width,
        height=height,
        times=times,
        pts=pts,
        luma=luma,
        motion=motion_of(luma, times),
        steps=steps,
        shots=shots,
        calm=_shots(times, allowed & (turnover < _CALM), cuts, usual, limit),
        natural=np.array([time for time in natural if any(s.start < time < s.end for s in shots)]),
        group=name,
        sha256=sha256,
    )


def _frames(path: Path) -> tuple[FloatArray, npt.NDArray[np.int64] | None, LumaU8, tuple[int, int]]:
    """Times, timestamps, small pictures and upright (width, height) of the frames up to `_LONGEST_READ`."""
    times: list[float] = []
    stamps: list[int] = []
    small: list[LumaU8] = []
    size: tuple[int, int] | None = None
    with VideoReader(path, short_side=SIDE) as reader:
        for frame in reader:
            if size not in (None, frame.size) or frame.time > _LONGEST_READ:
                break  # also where the picture's size changes
            size = frame.size
            times.append(float(frame.time))
            small.append(small_luma(frame.rgb))
            if frame.pts is not None:
                stamps.append(frame.pts)
    if size is None:
        raise SourceError(f"{path}: can't decode any of its frames; download or record it again")
    in_order = len(stamps) == len(times) and all(a < b for a, b in pairwise(stamps))
    return np.array(times), np.array(stamps, np.int64) if in_order else None, np.stack(small), size


def _labelled(labels: VideoLabels, *, keep: bool) -> tuple[list[float], list[float]]:
    """Labelled boundaries to keep, and those to avoid, seconds.

    Times of different annotators within half a second of each other are one boundary, at their mean.
    """
    marks = sorted((float(time), who) for who, times in enumerate(labels.boundaries) for time in times)
    clusters: list[list[tuple[float, int]]] = []
    for mark in marks:
        if clusters and mark[0] - clusters[-1][0][0] <= _JOIN_LABELS:
            clusters[-1].append(mark)
        else:
            clusters.append([mark])
    kept: list[float] = []
    avoided: list[float] = []
    for cluster in clusters:
        seen_by_half = 2 * len({who for _, who in cluster}) >= len(labels.boundaries)
        (kept if keep and seen_by_half else avoided).append(sum(time for time, _ in cluster) / len(cluster))
    return kept, avoided


def _shots(
    times: FloatArray, allowed: npt.NDArray[np.bool_], cuts: Sequence[int], usual: float, limit: float
) -> tuple[Shot, ...]:
    """Runs of allowed frames without a cut or gap; the frame before a cut is left out too."""
    usable = allowed & (times < limit)
    usable[[cut - 1 for cut in cuts]] = False
    edges = {*cuts, *(np.flatnonzero(np.diff(times) > _GAP) + 1), *(np.flatnonzero(np.diff(usable)) + 1)}
    shots = []
    for run in np.split(np.arange(len(times)), sorted(edges)):
        shot = Shot(float(times[run[0]]), min(float(times[run[-1]]) + usual, limit))
        if usable[run[0]] and shot.seconds >= _SHORTEST_SHOT:
            shots.append(shot)
    return tuple(shots)
