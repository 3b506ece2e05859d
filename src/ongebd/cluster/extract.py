"""Features of many videos, computed on a cluster and put into the store by the driver alone."""

from __future__ import annotations

from collections.abc import Generator, Iterable

from ongebd.cluster.connection import Cluster
from ongebd.cluster.manifest import Entry, Manifest
from ongebd.cluster.run import answers
from ongebd.cluster.tasks import FeatureTask, Video
from ongebd.cluster.worker import Answer
from ongebd.common.text import public_name
from ongebd.errors import ConfigError
from ongebd.features import Extracted, Failure, Failures, FeatureStore, VideoFeatures


def extract_on(
    videos: Iterable[tuple[str, str]], store: FeatureStore, task: FeatureTask, cluster: Cluster | None
) -> Generator[Extracted | Failure, None, None]:
    """Bring the features of videos into a store, in the order of the videos, as `features.extract` does.

    The store, `failures.jsonl` in it and what is passed over are those of the plain command, to the byte. A
    `manifest.jsonl` beside them has a line for every video.

    Args:
        videos: Ids, no two the same, and sources that the workers can open under the same names.
        store: Of this task's features.
        task: How they are computed.
        cluster: Where; None will do where all videos are in the store.

    Yields:
        `Extracted` for each video that is now in the store, `Failure` for each that is not.

    Raises:
        ConfigError: The store is of another backbone or rate.
        StoreError: The store is written to by another process, or the disk is full.
        ClusterError: A machine cannot do the work, or the cluster was lost.
    """
    if (store.backbone, store.fps) != (task.identity, task.fps):
        raise ConfigError(f"{store.path}: holds features of {store.backbone} at {store.fps:g} frames/s")
    store.lock()
    named = list(videos)
    todo = [
        Video(number, video_id, source)
        for number, (video_id, source) in enumerate(pair for pair in named if pair[0] not in store)
    ]
    failures, manifest = Failures(store.path), Manifest(store.path)
    again = {video.id for video in todo}
    failures.keep(lambda failure: failure.id not in again and failure.id not in store)
    there = (_skipped(video_id, source) for video_id, source in named if video_id in store)
    manifest.begin(there, again)
    for video, answer in answers(cluster, task, todo, task.config.jobs, gpu=task.device != "cpu"):
        yield _kept(video, answer, store, failures, manifest)


def _kept(
    video: Video, answer: Answer, store: FeatureStore, failures: Failures, manifest: Manifest
) -> Extracted | Failure:
    """Store a result, or record why there is none."""
    name = public_name(video.source)
    if isinstance(answer.result, VideoFeatures):
        found = answer.result
        store.add(video.id, found.features, found.times, found.epochs, found.duration, name)
        manifest.add(Entry(id=video.id, source=name, status="done", attempts=answer.attempts))
        return Extracted(video.id, name, len(found.times), found.duration, found.warnings)
    assert isinstance(answer.result, Failure)
    failures.add(answer.result)
    manifest.add(
        Entry(
            id=video.id,
            source=name,
            status="failed",
            reason=answer.result.reason,
            attempts=answer.attempts,
            trace=answer.trace,
        )
    )
    return answer.result


def _skipped(video_id: str, source: str) -> Entry:
    return Entry(id=video_id, source=public_name(source), status="skipped")
