"""Boundaries of many videos, found on a cluster and written by the driver alone."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ongebd.cluster.connection import Cluster
from ongebd.cluster.manifest import Entry, Manifest
from ongebd.cluster.worker import Answer, Video, Work, answers
from ongebd.common.text import is_unique, public_name
from ongebd.common.writing import write_whole
from ongebd.data.files import sha256
from ongebd.detector import Model, load
from ongebd.errors import ClusterError, OngebdError
from ongebd.features.records import Failure
from ongebd.output import Reading, RunEnd, detect_source, open_writers, output_paths, protect_others, writing
from ongebd.video.source import local_path

_STEM = "result"


@dataclass(frozen=True, slots=True)
class Found:
    """The outcome of one video.

    Attributes:
        source: Without credentials.
        files: Content of the result files, by format; none if the source was refused before its first frame.
        end: How the run ended; None without files.
        failed: Why it did not reach the end of its source, in one line; None if it did.
    """

    source: str
    files: dict[str, bytes]
    end: RunEnd | None
    failed: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DetectTask:
    """The boundaries of each video, written in some formats; see `ongebd detect`.

    Attributes:
        model: Name of a model, or a trained model's folder that every worker can read.
        formats: Keys of `ongebd.output.FORMATS`.
        identity: The identity of the model's backbone, weights included, that every worker must have.
        reading: How sources are read and judged.
    """

    model: str
    formats: tuple[str, ...]
    identity: str
    reading: Reading

    def ready(self) -> Work:
        """Load the model."""
        model = load(self.model, device=self.reading.device)
        if model.backbone.identity != self.identity:
            raise ClusterError(f"it has {model.backbone.identity}, not {self.identity}; install the same")
        return partial(self._found, model)

    def _found(self, model: Model, video: Video) -> Found:
        ends: list[RunEnd] = []
        with TemporaryDirectory(prefix="ongebd-") as name:
            folder = Path(name)
            try:
                failed = detect_source(
                    video.source,
                    model,
                    replace(self.reading, workers=1),  # a worker has one processor
                    partial(open_writers, self.formats, folder, _STEM),
                    lambda *_: None,
                    ends.append,
                )
            except OngebdError as problem:
                failed = " ".join(str(problem).split())
            written = zip(self.formats, output_paths(self.formats, folder, _STEM), strict=True)
            files = {format_: path.read_bytes() for format_, path in written if path.exists()}
        end = ends[0] if ends else None
        return Found(public_name(video.source), files, end, failed and public_name(failed))


@dataclass(frozen=True, slots=True)
class Job:
    """One video of a command.

    Attributes:
        source: As the user named it.
        stem: Name of its result files.
        key: Digest of everything that its results depend on.
        done: Its entry in the manifest if its results are in the folder already.
    """

    source: str = field(repr=False)
    stem: str
    key: str
    done: Entry | None


def jobs_of(
    sources: Sequence[str], stems: Sequence[str], out: Path, task: DetectTask, *, force: bool = False
) -> list[Job]:
    """The jobs of a command.

    A job is done already if the manifest has its key (source, size and time of its file, model with its
    weights, settings, formats, version) and its files still hold what was written.

    Args:
        sources: As the user named them.
        stems: Unique names of their result files.
        out: The folder of results.
        task: The work on each video.
        force: Overwrite what isn't a result of these sources too.

    Raises:
        ConfigError: A file would be overwritten that isn't a result of its source.
    """
    known = Manifest(out).read()
    folder = Path(task.model.partition(":")[2] or task.model)
    files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    same = _digest({"weights": {path.name: sha256(path.read_bytes()) for path in files}, **asdict(task)})
    jobs = []
    for source, stem in zip(sources, stems, strict=True):
        key = _digest({"task": same, "source": source, "file": _file(source)})
        entry = known.get(stem)
        name = public_name(source)
        ours = entry is not None and (entry.key == key or (entry.source == name and is_unique(name)))
        if not (force or ours):
            for path in output_paths(task.formats, out, stem):
                protect_others(path, source)
        done = entry is not None and entry.status != "failed" and entry.key == key and _whole(entry, out)
        jobs.append(Job(source, stem, key, entry if done else None))
    return jobs


def detect_on(
    jobs: Sequence[Job], out: Path, task: DetectTask, cluster: Cluster | None
) -> Generator[Found, None, None]:
    """Find the boundaries of the jobs that are not done, and write them, in the order of the jobs.

    The files equal those of `ongebd detect` to the byte; each appears whole or not at all.

    Args:
        jobs: From `jobs_of`.
        out: Folder for the results; made if it does not exist.
        task: The work on each video.
        cluster: None is enough if all jobs are done.

    Raises:
        OngebdError: The folder can't be written.
        ClusterError: A machine can't do the work, or the cluster was lost.
    """
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    todo = [job for job in jobs if job.done is None]
    manifest = Manifest(out)
    skipped = (replace(job.done, status="skipped", attempts=1) for job in jobs if job.done is not None)
    manifest.begin(skipped, [job.stem for job in todo])
    videos = [Video(number, job.stem, job.source) for number, job in enumerate(todo)]
    for video, answer in answers(cluster, task, videos, 1, gpu=task.reading.device.startswith("cuda")):
        yield _kept(todo[video.number], answer, out, manifest)


def _kept(job: Job, answer: Answer, out: Path, manifest: Manifest) -> Found:
    """Write a video's files, then its entry."""
    found: Found | Failure = answer.result
    if isinstance(found, Failure):
        found = Found(found.source, {}, None, found.reason)
    for format_, data in found.files.items():
        path = out / f"{job.stem}.{format_}"
        with writing(path), write_whole(path) as part:
            part.write_bytes(data)
    hashes = {format_: sha256(data) for format_, data in found.files.items()}
    entry = Entry.of(job.stem, found.source, found.failed, answer.attempts, answer.trace)
    manifest.add(replace(entry, key=job.key, files=hashes))
    return found


def _whole(entry: Entry, out: Path) -> bool:
    """Whether a video's files hold what was written."""
    try:
        return bool(entry.files) and all(
            sha256((out / f"{entry.id}.{format_}").read_bytes()) == known
            for format_, known in entry.files.items()
        )
    except OSError:
        return False


def _file(source: str) -> tuple[int, int] | None:
    """Size and time of a file, which change when it is rewritten; None for a URL."""
    try:
        status = Path(local_path(source)).stat()
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def _digest(value: dict[str, Any]) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode())
