"""Composites in place of the paper's data sets, made from clips that training and test do not share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from ongebd import backbones
from ongebd.errors import ConfigError, MissingDataError
from ongebd.features.extract import ExtractConfig, extract, sampling_identity
from ongebd.features.records import Failure
from ongebd.features.store import FeatureStore
from ongebd.lab.composites import ComposeConfig, compose, read_clips, read_composites
from ongebd.lab.composites.scan import find_clips
from ongebd.lab.experiments.cache import Cache
from ongebd.lab.experiments.datasets import DataSet, Part
from ongebd.lab.experiments.definition import PAPER_SETS, TSN, SetName
from ongebd.lab.experiments.scales import TRAINING_SHARE, Scale

VERSION = 1
"""Of what is made; another one makes everything again."""

_FPS: Mapping[SetName, float] = {"kinetics": 24.0, "tapos": 6.0, "inria": 24.0}


class ComposedDataSets:
    """A `DataSource` of composites, made of files or folders of clips; `tell` prints what is being made.

    Raises:
        ConfigError: The folders have no clips.
    """

    def __init__(
        self,
        clips: Sequence[Path],
        scale: Scale,
        cache: Cache,
        backbone: str = "efficientnet_lite0",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._files = list(find_clips(clips).values())
        self._scale, self._cache, self._backbone, self._tell = scale, cache, backbone, tell
        self.about = (
            f"Composites of {len(self._files)} clips, made by `ongebd compose`, with features of {backbone};"
            " training and test videos share no clip. Composites are not real videos: see docs/composites.md."
        )

    def get(self, name: SetName) -> DataSet:
        """See `DataSource`."""
        if name in TSN:
            raise MissingDataError(
                f"it needs features of TSN trained on {TSN[name]}, whose weights do not come with the"
                " package; use --data with such features"
            )
        composites = self._composites(self._config(name))
        store = self._features(composites, _FPS[name])
        made = read_composites(composites)
        videos, labels = made.videos, made.labels()

        def part(name: str) -> Part:
            ids = [video.id for video in videos.values() if video.part == name]
            files = {video: Path(videos[video].path) for video in ids}
            return Part(store, labels.restrict(ids, f"the part {name}"), files)

        shown = f"composites at {_FPS[name]:g} frames a second, in place of {PAPER_SETS[name]}"
        unlike = [f"composites, not {PAPER_SETS[name]}"]
        if self._backbone != "resnet50":
            unlike.append(f"features of {self._backbone}, not of ResNet-50")
        return DataSet(shown, part("test" if name == "inria" else "train"), part("test"), tuple(unlike))

    def _config(self, name: SetName) -> ComposeConfig:
        """Kinetics and TAPOS are the same videos at two rates; INRIA's use clips that did not train."""
        scale = self._scale
        if name == "inria":
            seconds = "{:g},{:g}".format(*scale.long_seconds)
            return ComposeConfig(
                videos=scale.long_videos, seconds=seconds, size=scale.size, seed=2, split="test"
            )
        split = f"{TRAINING_SHARE:g},0,{1 - TRAINING_SHARE:g}"
        seconds = "{:g},{:g}".format(*scale.seconds)
        return ComposeConfig(videos=scale.videos, seconds=seconds, size=scale.size, seed=1, split=split)

    def _composites(self, config: ComposeConfig) -> Path:
        settings = {**asdict(config), "fps": str(config.rate)}

        def make(folder: Path) -> dict[str, int]:
            self._tell(f"composing {config.videos} videos")
            library, workers = read_clips(self._files), os.cpu_count() or 1
            with closing(compose(library, config, folder / "videos", workers=workers)) as videos:
                return {"videos": sum(1 for _ in videos)}

        key = {"version": VERSION, "clips": self._clips_key, "settings": settings}
        return self._cache.get("composites", key, make) / "videos"

    def _features(self, composites: Path, fps: float) -> Path:
        backbone = backbones.get(self._backbone)

        def make(folder: Path) -> dict[str, int]:
            self._tell(f"features at {fps:g} frames a second")
            videos = [(video.id, video.path) for video in read_composites(composites).videos.values()]
            cores = os.cpu_count() or 1
            config = ExtractConfig(jobs=max(1, cores // 2), workers=min(2, cores))
            store = FeatureStore.create(
                folder / "features",
                backbone=backbone.identity,
                dim=backbone.dim,
                fps=fps,
                sampling=sampling_identity(backbone),
            )
            with store, closing(extract(videos, store, backbone, config)) as done:
                failed = [each for each in done if isinstance(each, Failure)]
            if failed:
                raise ConfigError(f"no features of composite {failed[0].id}: {failed[0].reason}")
            return {"videos": len(videos)}

        key = {
            "version": VERSION,
            "videos": composites.parent.name,
            "backbone": backbone.identity,
            "fps": fps,
        }
        return self._cache.get("features", key, make) / "features"

    @cached_property
    def _clips_key(self) -> str:
        """A fingerprint of all clips."""
        digest = sha256()
        for path in self._files:
            digest.update(path.name.encode())
            digest.update(sha256(path.read_bytes()).digest())
        return digest.hexdigest()
