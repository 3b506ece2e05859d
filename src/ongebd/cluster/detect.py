"""Boundaries of many videos, found on a cluster and written by the driver alone."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ongebd.cluster.connection import Cluster
from ongebd.cluster.manifest import Entry, Manifest
from ongebd.cluster.run import answers
from ongebd.cluster.tasks import DetectTask, Found, Video
from ongebd.cluster.worker import Answer
from ongebd.common.text import public_name
from ongebd.errors import OngebdError
from ongebd.features import Failure
from ongebd.output import RunEnd
from ongebd.output.writer import writing
from ongebd.video.source import local_path


@dataclass(frozen=True, slots=True)
class Detected:
    """A video is finished.

    Attributes:
        source: Its source, without credentials.
        failed: Why it could not be read, or not to its end, in one line; None if its results are complete.
        end: How its run ended; None if nothing was written.
    """

    source: str
    failed: str | None
    end: RunEnd | None


def jobs_of(sources: Sequence[str], stems: Sequence[str], out: Path, task: DetectTask) -> list[Job]:
    """The jobs of a command, each marked whether its results are in the folder already.

    They are where the manifest has the video's key (source, size and time of its file, model with its
    weights, settings, formats, version), and its files still hold what was written.

    Args:
        sources: As the user named them.
        stems: Names of their result files, no two the same.
        out: The folder of results.
        task: What is done with each.
    """
    known = Manifest(out).read()
    same = _digest(_identity(task))
    jobs = []
    for source, stem in zip(sources, stems, strict=True):
        key = _digest({"task": same, "source": source, "file": _file(source)})
        entry = known.get(stem)
        done = entry is not None and entry.status != "failed" and entry.key == key and _whole(entry, out)
        jobs.append(Job(source, stem, key, entry if done else None))
    return jobs


@dataclass(frozen=True, slots=True)
class Job:
    """One video of a command.

    Attributes:
        source: As the user named it.
        stem: Name of its result files.
        key: Stands for all that its results depend on.
        done: What the manifest has of it, where that still holds.
    """

    source: str
    stem: str
    key: str
    done: Entry | None


def detect_on(
    jobs: Sequence[Job], out: Path, task: DetectTask, cluster: Cluster | None
) -> Generator[Detected, None, None]:
    """Find the boundaries of those videos that are not done, and write them, in the order of the videos.

    The files are those of `ongebd detect`, to the byte; each appears whole or not at all.

    Args:
        jobs: Of `jobs_of`.
        out: Folder for the results; made if it is not there.
        task: What is done with each video.
        cluster: Where; None will do where all jobs are done.

    Yields:
        One event per video.

    Raises:
        OngebdError: The folder cannot be written to.
        ClusterError: A machine cannot do the work, or the cluster was lost.
    """
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    todo = [job for job in jobs if job.done is None]
    manifest = Manifest(out)
    manifest.begin((_skipped(job.done) for job in jobs if job.done is not None), [job.stem for job in todo])
    videos = [Video(number, job.stem, job.source) for number, job in enumerate(todo)]
    for video, answer in answers(cluster, task, videos, 1, gpu=task.device not in (None, "cpu")):
        yield _kept(todo[video.number], answer, out, manifest)


def _kept(job: Job, answer: Answer, out: Path, manifest: Manifest) -> Detected:
    """Write a video's files, then its line."""
    source = public_name(job.source)
    result = answer.result
    files: dict[str, bytes] = {}
    end: RunEnd | None = None
    reason: str | None = None
    if isinstance(result, Failure):
        reason = result.reason
    elif isinstance(result, Found):
        files, end = result.files, result.end
        reason = None if result.failed is None else public_name(result.failed)
    for what, data in files.items():
        _put(out / f"{job.stem}.{what}", data)
    entry = Entry(
        id=job.stem,
        source=source,
        status="done" if reason is None else "failed",
        reason=reason,
        attempts=answer.attempts,
        key=job.key,
        files={what: hashlib.sha256(data).hexdigest() for what, data in files.items()},
        trace=answer.trace,
    )
    manifest.add(entry)
    return Detected(source, reason, end)


def _put(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    part = path.with_name(f".ongebd-{os.getpid()}.part")
    with writing(path):
        try:
            part.write_bytes(data)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _skipped(entry: Entry) -> Entry:
    return Entry(id=entry.id, source=entry.source, status="skipped", key=entry.key, files=entry.files)


def _whole(entry: Entry, out: Path) -> bool:
    """Whether a video's files are what was written."""
    try:
        found = {
            what: hashlib.sha256((out / f"{entry.id}.{what}").read_bytes()).hexdigest()
            for what in entry.files
        }
    except OSError:
        return False
    return bool(found) and found == entry.files


def _identity(task: DetectTask) -> dict[str, Any]:
    """All that two runs of one video must have in common."""
    folder = Path(task.model.partition(":")[2] or task.model)
    weights = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (sorted(folder.iterdir()) if folder.is_dir() else [])
        if path.is_file()
    }
    return {"weights": weights, **asdict(task)}


def _file(source: str) -> tuple[int, int] | None:
    """What changes when a file is written anew; None for what is no file of this machine."""
    try:
        status = Path(local_path(source)).stat()
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def _digest(value: object) -> str:
    try:
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
    except (TypeError, ValueError) as problem:
        raise OngebdError(f"a setting cannot be written down: {problem}") from None
