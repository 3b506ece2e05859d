"""`ongebd experiment figure`: from videos and their labels to the figure's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ongebd.common.text import printable, public_name
from ongebd.data import LabelSet, VideoLabels, match_ids, read_labels
from ongebd.data.labels import Dataset
from ongebd.detector import load
from ongebd.errors import ConfigError, LabelError, SourceError
from ongebd.lab.evaluation.figure_style import Width, check_ending, save
from ongebd.lab.experiments.figures.judging import tolerance_of
from ongebd.lab.experiments.figures.qualitative import Scene, part_of, qualitative
from ongebd.lab.experiments.figures.tracing import trace
from ongebd.output import protect_sources
from ongebd.video.source import kind_of


def draw_video(
    videos: Sequence[Path | str],
    labels: Path | str,
    method: str,
    baseline: str | None,
    out: Sequence[Path],
    *,
    video_id: str | None = None,
    dataset: Dataset = "auto",
    width: Width = "page",
    tolerance: float | None = None,
    start: float | None = None,
    end: float | None = None,
) -> list[Path]:
    """Draw the figure of one or more videos, with a method and below it a baseline, into the files `out`.

    The options are those of `ongebd experiment figure`. All mistakes are found before a frame is decoded.

    Raises:
        OngebdError: An argument, the labels or the video can't be used, or a file can't be written.
    """
    files = [Path(file) for file in out]
    for file in files:
        check_ending(file)
        if file.is_dir():
            raise ConfigError(f"--out {file}: is a folder; name a file in it")
        if not file.parent.is_dir():
            raise ConfigError(f"--out {file}: folder {file.parent} doesn't exist; make it first")
    for video in videos:
        if str(video) == "-" or kind_of(str(video)) != "file":
            raise SourceError(
                f"{printable(public_name(str(video)))}: a figure reads its video several times; use a file"
            )
    if video_id is not None and len(videos) > 1:
        raise ConfigError("--id names the labels of one video; drop it for several")
    protect_sources(files, [str(video) for video in videos])
    known = read_labels(labels, dataset)
    marked = [labels_of(video, known, video_id) for video in videos]
    for video, each in zip(videos, marked, strict=True):
        tolerance_of(each, tolerance)
        part_of(video, each.duration, start, end)
    models = [load(name) for name in (method, baseline) if name is not None]
    scenes = [
        Scene(video, each, [trace(video, model) for model in models])
        for video, each in zip(videos, marked, strict=True)
    ]
    figure = qualitative(scenes, width=width, tolerance=tolerance, start=start, end=end)
    for file in files:
        save(figure, file)
    return files


def labels_of(video: Path | str, labels: LabelSet, video_id: str | None = None) -> VideoLabels:
    """The labels of one video, found as `ongebd evaluate` finds them.

    Raises:
        LabelError: It isn't among them.
    """
    source = labels.source or "the labels"
    if video_id is not None:
        if video_id not in labels.videos:
            raise LabelError(f"{source}: no video {video_id!r}; check --id")
        return labels.videos[video_id]
    stem = Path(video).stem
    found = match_ids([stem], labels.videos, None).label_of
    if stem not in found:
        raise LabelError(f"{source}: none of its {len(labels)} videos is {stem!r}; name it with --id")
    return labels.videos[found[stem]]
