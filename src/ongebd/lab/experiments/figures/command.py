"""The figure of one video in one call: what `ongebd experiment figure` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ongebd.common.text import printable, public_name
from ongebd.data import LabelSet, VideoLabels, match_ids, read_labels
from ongebd.data.labels import Dataset
from ongebd.detector import load
from ongebd.errors import ConfigError, LabelError, SourceError
from ongebd.lab.experiments.figures.judging import tolerance_of
from ongebd.lab.experiments.figures.qualitative import (
    Curve,
    Moment,
    Scene,
    check_choices,
    no_z,
    part_of,
    qualitative,
)
from ongebd.lab.experiments.figures.style import Width, kind_of_file
from ongebd.lab.experiments.figures.watching import has_z, watch
from ongebd.output import protect_sources
from ongebd.video.source import kind_of


def draw_video(
    video: Path | str,
    labels: Path | str,
    method: str,
    baseline: str | None,
    out: Path | Sequence[Path],
    *,
    video_id: str | None = None,
    id_pattern: str | None = None,
    dataset: Dataset = "auto",
    curve: Curve = "score",
    width: Width = "page",
    tolerance: float | None = None,
    moment: Moment = "centre",
    start: float | None = None,
    end: float | None = None,
    title: str = "",
) -> list[Path]:
    """Draw the qualitative figure of a video: a method, and under it a baseline.

    All that can be refused is refused before a frame is decoded; an output that is written is whole.

    Args:
        video: A file; it is read three times.
        labels: What `ongebd.data.read_labels` takes.
        method: Name or folder of a model, as in `ongebd detect --model`.
        baseline: Another; None for none.
        out: Where to: `.pdf`, `.svg` or `.png`; several files are of one figure.
        video_id: The video's id in the labels; None: by the file's name, as `ongebd evaluate` matches them.
        id_pattern: A regular expression that takes the id out of the file's name.
        dataset: As of `read_labels`.
        curve: "score", or "z": the score in standard deviations of the recent ones.
        width: "column" or "page".
        tolerance: Seconds within which a boundary is right; None: 0.05 of the labelled length.
        moment: Which moment of a boundary is shown and judged.
        start: Seconds, of the part that is shown; None: the beginning.
        end: Likewise; None: the end of what is labelled.
        title: Above the figure; papers have it in the caption.

    Returns:
        The files.

    Raises:
        ConfigError: An argument is none of its values.
        LabelError: The labels cannot be read, or the video is not among them.
        SourceError: The video cannot be read.
        MissingExtraError: A method needs an extra that is not installed.
        OngebdError: A file cannot be written.
    """
    files = [Path(out)] if isinstance(out, str | Path) else [Path(file) for file in out]
    if not files:
        raise ConfigError("a figure needs a file to be written to")
    for file in files:
        kind_of_file(file)
        _check_place(file)
    check_choices(curve, width, moment)
    if str(video) == "-" or kind_of(str(video)) != "file":
        raise SourceError(
            f"{printable(public_name(str(video)))}: a figure reads its video several times; give a file"
        )
    protect_sources(files, [str(video)])
    marked = labels_of(video, read_labels(labels, dataset), video_id, id_pattern)
    tolerance = tolerance_of(marked, tolerance)
    part_of(video, marked.duration, start, end)
    models = [load(name) for name in (method, baseline) if name is not None]
    for model in models:
        if curve == "z" and not has_z(model.configured()):
            raise no_z(model.name)
    watched = [watch(video, model) for model in models]
    scene = Scene.of(video, marked, watched, width=width, start=start, end=end, title=title)
    picture = qualitative([scene], curve=curve, width=width, tolerance=tolerance, moment=moment)
    return [picture.save(file) for file in files]


def labels_of(
    video: Path | str, labels: LabelSet, video_id: str | None = None, id_pattern: str | None = None
) -> VideoLabels:
    """The labels of one video.

    Args:
        video: The file.
        labels: All of them.
        video_id: The video's id in them; None: by the file's name without its ending.
        id_pattern: A regular expression with a group that takes the id out of that.

    Raises:
        LabelError: It is not among them.
    """
    source = labels.source or "the labels"
    if video_id is not None:
        if video_id not in labels.videos:
            raise LabelError(f"{source}: no video {video_id!r} in it; check --id")
        return labels.videos[video_id]
    stem = Path(video).stem
    found = match_ids([stem], labels.videos, id_pattern).label_of
    if stem not in found:
        raise LabelError(f"{source}: none of its {len(labels)} videos is {stem!r}; give its id with --id")
    return labels.videos[found[stem]]


def _check_place(file: Path) -> None:
    """Refuse what cannot be written to, before there is any work."""
    if file.is_dir():
        raise ConfigError(f"--out {file}: is a folder; name a file in it")
    if not file.parent.is_dir():
        raise ConfigError(f"--out {file}: there is no folder {file.parent}; make it first")
