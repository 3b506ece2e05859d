"""`ongebd extract`: the features of many videos, into a store that training reads."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ongebd import backbones
from ongebd.cli.options import (
    AccessOption,
    ClusterOption,
    Listed,
    Sources,
    WhichStream,
    Whole,
    checked_sources,
)
from ongebd.cli.terminal import Progress, Videos, counted, span
from ongebd.common.text import public_name
from ongebd.data.id_matching import captured_id, compile_pattern
from ongebd.data.labels import read_ids
from ongebd.errors import ConfigError
from ongebd.features.extract import ExtractConfig, Extracted, Working, sampling_identity
from ongebd.features.extract import extract as run_extract
from ongebd.features.records import Failure
from ongebd.features.store import FeatureStore
from ongebd.output.files import source_stem
from ongebd.video.timing import exact_rate

if TYPE_CHECKING:
    from ongebd.cluster.connection import Cluster

_GPU_BATCH = 64
_MOST_JOBS = 16


def extract(
    sources: Sources | None = None,
    /,
    *,
    listed: Listed = None,
    out: Annotated[Path, Parameter(alias="-o")],
    backbone: Annotated[str, Parameter(alias="-b")] = backbones.DEFAULT,
    fps: float = 24.0,
    weights: Path | None = None,
    device: str = "cpu",
    precision: Literal["float32", "bfloat16", "float16"] = "float32",
    ids: Path | None = None,
    id_pattern: str | None = None,
    jobs: int | None = None,
    batch: int | None = None,
    stream: WhichStream = None,
    source_fps: float | None = None,
    access: Annotated[AccessOption | None, Whole] = None,
    where: Annotated[ClusterOption | None, Whole] = None,
    quiet: Annotated[bool, Parameter(alias="-q", negative=())] = False,
) -> int:
    """Store the features of videos, for training.

    A video's id is its file name without ending. Videos that are in the store are skipped, so the same
    command continues where it stopped. A video that can't be read is recorded in failures.jsonl with the
    reason, and tried again next time; the others go on.

    Parameters
    ----------
    sources
        Video files, folders (with subfolders), or URLs. Names that begin with - go after --.
    listed
        File with more sources, one per line.
    out
        Folder of the store. A store holds features of one backbone and one rate.
    backbone
        efficientnet_lite0, efficientnet_lite0_whole (that of the model immediate), resnet50 (the paper's),
        tsn-kinetics or tsn-sthv2. The last three need PyTorch.
    fps
        Frames a second to use: 24 for Kinetics-GEBD, 6 for TAPOS. A slower video keeps its own rate.
    weights
        Checkpoint of the backbone. resnet50 downloads torchvision's by default.
    device
        cpu, cuda or cuda:N, for the PyTorch backbones.
    precision
        Number format of the PyTorch backbones. The store always holds float16.
    ids
        CSV file whose first column lists the ids to extract; other videos are skipped.
    id_pattern
        A regular expression whose one group finds the id in a file's name.
    jobs
        Videos in parallel; on a cluster, per worker. [CPU: 1, GPU: half the processors]
    batch
        Frames per call of the backbone. [CPU: 1, GPU: 64]
    source_fps
        Frames per second of a source without timestamps (raw H.264). [--fps]
    quiet
        Print only failures.
    """
    sources = checked_sources("extract", sources, listed)
    where = where or ClusterOption()
    where.check(sources, device)
    exact_rate(fps)  # raises for an impossible rate
    # A CPU computes frames in parallel; a GPU takes batches from many decoders.
    on_cpu, processors = device == "cpu", os.cpu_count() or 1
    config = ExtractConfig(
        jobs=(1 if on_cpu else min(_MOST_JOBS, max(1, processors // 2))) if jobs is None else jobs,
        workers=min(4, processors) if on_cpu else 1,
        batch=(1 if on_cpu else _GPU_BATCH) if batch is None else batch,
        stream=stream,
        source_fps=source_fps,
        **asdict(access or AccessOption()),
    )
    videos = _videos(sources, id_pattern)
    unknown: list[str] = []
    if ids is not None:
        wanted = read_ids(ids)
        unknown = [video_id for video_id in wanted if video_id not in videos]
        videos = {video_id: videos[video_id] for video_id in wanted if video_id in videos}
    # On a cluster only the workers need the device; here the backbone identifies the store.
    net = backbones.get(
        backbone, weights=weights, device=device if where.cluster is None else "cpu", precision=precision
    )
    with ExitStack() as stack:
        cluster: Cluster | None = None
        if where.cluster is not None:  # before the store, so that an unreachable one leaves none
            known = FeatureStore.open(out).ids() if (out / "store.json").exists() else []
            needed = not set(videos).issubset(known)
            cluster = stack.enter_context(where.connected(needed=needed, quiet=quiet))
        store = stack.enter_context(
            FeatureStore.open_or_create(
                out, backbone=net.identity, dim=net.dim, fps=fps, sampling=sampling_identity(net)
            )
        )
        store.lock()  # immediately: a second writer must be refused before any work is done
        todo = [pair for pair in videos.items() if pair[0] not in store]
        started: Generator[Extracted | Failure | Working, None, None]
        if where.cluster is None:
            started = run_extract(videos.items(), store, net, config)
        else:
            from ongebd.cluster.extract import FeatureTask, extract_on

            task = FeatureTask(
                backbone=backbone,
                identity=net.identity,
                fps=fps,
                weights=weights,
                device=device,
                precision=precision,
                config=replace(config, workers=1),  # a worker has one processor
            )
            started = extract_on(videos.items(), store, task, cluster)
        progress = stack.enter_context(Progress(quiet=quiet, lines=True))
        if unknown:
            shown = ", ".join(unknown[:3]) + (" …" if len(unknown) > 3 else "")
            progress.say(f"ongebd: {len(unknown)} of the wanted ids have no video: {shown}")
        tally = Videos(progress, "extracting", len(todo), len(videos) - len(todo), out / "failures.jsonl")
        frames = 0

        def summary() -> str:
            return f"{counted(tally.done, 'video')}, {frames} frames, into {out} in {span(progress.seconds)}"

        with closing(started) as events, tally.summed_up(summary):
            for event in events:
                match event:
                    case Working():
                        tally.show(event.videos, f"{event.frames / progress.seconds:.0f} frames/s  ")
                        continue
                    case Extracted():
                        tally.add(None)
                        frames += event.frames
                        for warning in event.warnings:
                            progress.summary(f"ongebd: {event.source}: {warning}")
                    case Failure():
                        tally.add(f"{event.id}: {event.reason}")
                tally.show(more=f"{frames / progress.seconds:.0f} frames/s  ")
        return 2 if tally.failed else 0


def _videos(sources: Sequence[str], id_pattern: str | None) -> dict[str, str]:
    """Each video's source by its id."""
    expression = None if id_pattern is None else compile_pattern(id_pattern)
    videos: dict[str, str] = {}
    for source in sources:
        stem = source_stem(source)
        video_id = stem if expression is None else captured_id(expression, stem)
        if not video_id:
            raise ConfigError(f"--id-pattern {id_pattern!r} finds no id in {stem!r}")
        if video_id in videos:
            first, second = public_name(videos[video_id]), public_name(source)
            raise ConfigError(
                f"{first} and {second} have the same id {video_id!r}: rename one, name each video once,"
                " or use --id-pattern"
            )
        videos[video_id] = source
    return videos
