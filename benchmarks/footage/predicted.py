"""What the two benchmarks of footage share on their command lines: predictions in files, folders unnamed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from footage.listening import Found
from ongebd.data import LabelSet
from ongebd.data.id_matching import match_ids
from ongebd.data.predictions import read_predictions
from ongebd.errors import LabelError


def pairs(texts: Sequence[str]) -> list[tuple[str, str]]:
    """NAME=FOLDER.

    Raises:
        LabelError: One is no such pair.
    """
    for text in texts:
        if "=" not in text:
            raise LabelError(f"--predictions {text}: give NAME=FOLDER")
    return [(name, folder) for name, _, folder in (text.partition("=") for text in texts)]


def predicted(name: str, folder: Path, labels: LabelSet) -> dict[str, Found]:
    """Predictions in a file or a folder, by the labels' ids.

    Raises:
        LabelError: A labelled video has none.
    """
    read = read_predictions(folder)
    read = read.renamed(match_ids(read.videos, labels.videos, None).label_of)
    missing = [video for video in labels.videos if video not in read.videos]
    if missing:
        raise LabelError(f"{name}: {len(missing)} labelled videos have no prediction, {missing[0]} for one")
    result = {}
    for each in labels.videos:
        video = read.videos[each]
        onsets = video.times if video.onsets is None else video.onsets
        decided = np.full(len(onsets), np.nan) if video.decided is None else video.decided
        # A boundary that is its onset was told when it was decided; of others the file does not say.
        told = decided if np.array_equal(onsets, video.times) else None
        result[each] = Found(video.times, onsets, decided, told)
    return result


def without_folders(words: Sequence[str], places: Sequence[Path]) -> list[str]:
    """A command line without the machine's folders."""
    known = {str(path) for path in places}
    result = []
    for word in words:
        name, equals, folder = word.partition("=/")
        bare = Path(word).name if word.startswith("/") else word
        result.append("DIR" if word in known else f"{name}={Path(folder).name}" if equals else bare)
    return result
