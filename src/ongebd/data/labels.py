"""Labels of event boundaries: Kinetics-GEBD, TAPOS, INRIA-style sets, and our own CSV and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from ongebd.data.files import parse_json, read_bytes, sha256, table_columns, table_rows
from ongebd.data.kinetics_raw import Generation, convert_raw_annotation, is_raw_annotation
from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.data.numbers import kind
from ongebd.data.official_schema import from_official_schema
from ongebd.data.restricted_pickle import read_pickle
from ongebd.data.simple_labels import from_simple_csv, from_simple_json, from_steps_csv
from ongebd.errors import LabelError

__all__ = [
    "Dataset",
    "LabelSet",
    "VideoLabels",
    "as_label_set",
    "min_consistency_of",
    "read_ids",
    "read_labels",
]

Dataset = Literal["auto", "kinetics-gebd", "tapos", "inria", "custom"]

_PICKLES = (".pkl", ".pickle")
_OFFICIAL_KEYS = {"video_duration", "substages_timestamps", "substages_myframeidx"}


def read_labels(path: Path | str, dataset: Dataset = "auto", *, generation: Generation = "2022") -> LabelSet:
    """The labels in a file.

    The ending says how the file is written: `.pkl` or `.pickle` (restricted unpickling), `.json`, `.csv`.
    What is in it says which schema it follows: the official one, the raw Kinetics-GEBD annotation (which is
    converted), INRIA-style steps, or our own.

    Args:
        path: The file.
        dataset: Which set's rules hold. "auto" takes a file in the official schema for TAPOS where its ids
            are those of TAPOS instances and each has one annotator, and else for Kinetics-GEBD; a table of
            steps for an INRIA-style set, and all else for a set of your own.
        generation: For the raw Kinetics-GEBD annotation: see `ongebd.data.kinetics_raw`.

    Raises:
        LabelError: Where the file cannot be read or trusted; the message says what is wrong and where.
    """
    path = Path(path)
    data = read_bytes(path)
    fingerprint = sha256(data)
    if path.suffix.lower() in _PICKLES:
        labels = _from_entries(read_pickle(data, path), path, dataset, generation, fingerprint)
    elif path.suffix.lower() == ".json":
        labels = _from_entries(parse_json(data, path), path, dataset, generation, fingerprint)
    elif path.suffix.lower() == ".csv":
        steps = {"start", "end"} <= set(table_columns(data, path))
        read = from_steps_csv if steps else from_simple_csv
        labels = read(data, path, sha256=fingerprint)
    else:
        raise LabelError(
            f"{path}: labels end in .pkl, .pickle, .json or .csv; rename the file to say what it is"
        )
    return labels if dataset == "auto" else replace(labels, dataset=dataset)


def as_label_set(labels: LabelSet | Mapping[str, Mapping[str, object]]) -> LabelSet:
    """A label set from a label set, or from a plain dict in the official schema."""
    return labels if isinstance(labels, LabelSet) else from_official_schema(dict(labels.items()))


def min_consistency_of(dataset: str) -> float | None:
    """The least `f1_consis_avg` of a set's own rule: 0.3 for Kinetics-GEBD, none for the others."""
    return 0.3 if dataset == "kinetics-gebd" else None


def read_ids(path: Path | str) -> list[str]:
    """The ids in the first column of a CSV file with a header line, such as the list of an official subset.

    Raises:
        LabelError: Where the file cannot be read or has no ids.
    """
    path = Path(path)
    ids = [next(iter(row.values())) for _, row in table_rows(read_bytes(path), path, set())]
    if not ids:
        raise LabelError(f"{path}: no ids below its header line")
    return ids


def _from_entries(
    value: object, path: Path, dataset: Dataset, generation: Generation, fingerprint: str
) -> LabelSet:
    """A label set from the dict in a pickle or a JSON file."""
    if not isinstance(value, Mapping):
        raise LabelError(f"{path}: labels are a dict of videos by id, not {kind(value)}")
    if not value:
        raise LabelError(f"{path}: no labelled video in it; is it the right file?")
    entries: Mapping[object, object] = value
    first = next(iter(entries.values()))
    official = isinstance(first, Mapping) and not _OFFICIAL_KEYS.isdisjoint(first)
    if not official and path.suffix.lower() == ".json":
        return from_simple_json(entries, source=str(path), sha256=fingerprint)
    notes: list[str] = []
    if is_raw_annotation(entries):
        dataset = "kinetics-gebd" if dataset == "auto" else dataset
        entries, notes = convert_raw_annotation(entries, generation=generation, source=str(path))
    return from_official_schema(
        entries,
        dataset=dataset,
        source=str(path),
        sha256=fingerprint,
        notes=notes,
    )
