"""Features of many videos, computed on a cluster and stored by the driver alone."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from ongebd import backbones
from ongebd.backbones import Backbone
from ongebd.cluster.connection import Cluster
from ongebd.cluster.manifest import Entry, Manifest
from ongebd.cluster.worker import Answer, Video, Work, answers
from ongebd.common.text import public_name
from ongebd.errors import ClusterError, ConfigError
from ongebd.features.extract import ONE_VIDEOS_FAULT, ExtractConfig, Extracted, VideoFeatures, video_features
from ongebd.features.records import Failure, Failures
from ongebd.features.store import FeatureStore


@dataclass(frozen=True, kw_only=True, slots=True)
class FeatureTask:
    """The features of each video; see `ongebd extract`.

    Attributes:
        backbone: Name of the backbone.
        identity: The identity of the store's backbone, weights included, that every worker must have.
        fps: Frames per second to sample to.
        weights: Checkpoint of the backbone if it needs one; a path that every worker can read.
        device: Where it computes: `cpu` or `cuda`.
        precision: Its number format.
        config: How sources are read, and how many in parallel.
    """

    backbone: str
    identity: str
    fps: float
    weights: Path | None = None
    device: str = "cpu"
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    config: ExtractConfig = field(default_factory=ExtractConfig)

    def ready(self) -> Work:
        """Load the backbone."""
        net = backbones.get(self.backbone, weights=self.weights, device=self.device, precision=self.precision)
        if net.identity != self.identity:
            raise ClusterError(f"it has {net.identity}, but the store has {self.identity}; install the same")
        return partial(self._features, net)

    def _features(self, net: Backbone, video: Video) -> VideoFeatures | Failure:
        try:
            return video_features(video.source, net, self.fps, self.config)
        except ONE_VIDEOS_FAULT as problem:
            return Failure.of(video.id, video.source, problem)


def extract_on(
    videos: Iterable[tuple[str, str]], store: FeatureStore, task: FeatureTask, cluster: Cluster | None
) -> Generator[Extracted | Failure, None, None]:
    """Store the features of videos, in the order of the videos, as `features.extract` does.

    The store and its `failures.jsonl` equal those of the plain command to the byte. A `manifest.jsonl` beside
    them has a line for every video.

    Args:
        videos: Unique ids, and sources that the workers can open under the same names.
        store: Of this task's features.
        task: How they are computed.
        cluster: None is enough if all videos are in the store.

    Raises:
        ConfigError: The store has another backbone or rate.
        StoreError: Another process writes to the store, or the disk is full.
        ClusterError: A machine can't do the work, or the cluster was lost.
    """
    if (store.backbone, store.fps) != (task.identity, task.fps):
        raise ConfigError(f"{store.path}: has features of {store.backbone} at {store.fps:g} frames/s")
    store.lock()
    named = list(videos)
    missing = [pair for pair in named if pair[0] not in store]
    todo = [Video(number, video_id, source) for number, (video_id, source) in enumerate(missing)]
    failures, manifest = Failures(store.path), Manifest(store.path)
    again = {video.id for video in todo}
    failures.keep(lambda failure: failure.id not in again and failure.id not in store)
    skipped = (
        Entry(id=video_id, source=public_name(source), status="skipped")
        for video_id, source in named
        if video_id in store
    )
    manifest.begin(skipped, again)
    for video, answer in answers(cluster, task, todo, task.config.jobs, gpu=task.device != "cpu"):
        yield _kept(video, answer, store, failures, manifest)


def _kept(
    video: Video, answer: Answer, store: FeatureStore, failures: Failures, manifest: Manifest
) -> Extracted | Failure:
    """Store a result, or record why there is none."""
    name = public_name(video.source)
    result: VideoFeatures | Failure = answer.result
    kept: Extracted | Failure
    if isinstance(result, Failure):
        failures.add(result)
        kept, reason = result, result.reason
    else:
        store.add(video.id, result.features, result.times, result.epochs, result.duration, name)
        kept, reason = Extracted(video.id, name, len(result.times), result.duration, result.warnings), None
    manifest.add(Entry.of(video.id, name, reason, answer.attempts, answer.trace))
    return kept
