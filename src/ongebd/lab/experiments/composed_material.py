"""Composites in the places of the paper's sets: made of a folder of clips, split by clip."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from ongebd import backbones
from ongebd.errors import ConfigError
from ongebd.features.extract import ExtractConfig, extract, sampling_identity
from ongebd.features.failures import Failure
from ongebd.features.store import FeatureStore
from ongebd.lab.composites import ComposeConfig, compose, read_clips, read_composites
from ongebd.lab.composites.scan import find_clips
from ongebd.lab.experiments.material import LackingError, Part, VideoSet
from ongebd.lab.experiments.scales import Scale
from ongebd.lab.experiments.shelf import Shelf
from ongebd.lab.experiments.table import PAPERS, TSN, Which

VERSION = 1
"""Of what is made; another one makes everything anew."""

_RATES: dict[Which, float] = {"main": 24.0, "second": 6.0, "zero-shot": 24.0}


class ComposedMaterial:
    """Sets of composites.

    Args:
        clips: Folders or files of clips.
        scale: How many, how long.
        shelf: Where they are kept.
        backbone: Name of the backbone.
        tell: Told what is being made, for a progress bar.

    Raises:
        ConfigError: There is no clip.
    """

    are_composites = True

    def __init__(
        self,
        clips: Sequence[Path],
        scale: Scale,
        shelf: Shelf,
        backbone: str = "efficientnet_lite0",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._files = list(find_clips(clips).values())
        self._scale, self._shelf, self._backbone, self._tell = scale, shelf, backbone, tell
        self._sets: dict[Which, VideoSet] = {}
        self._clips_key = ""
        self.about = (
            f"Composites of {len(self._files)} clips, made by `ongebd compose`, with features of {backbone};"
            " training and test videos share no clip. Composites are not real videos: see docs/composites.md."
        )

    def get(self, which: Which) -> VideoSet:
        """See `Material`."""
        if which in TSN:
            raise LackingError(
                f"it needs features of TSN trained on {TSN[which]}, whose weights do not come with the"
                " package; --data can have them, composites have not"
            )
        if which not in self._sets:
            self._sets[which] = self._made(which)
        return self._sets[which]

    def _made(self, which: Which) -> VideoSet:
        config = self._config(which)
        composites = self._composites(config)
        videos = read_composites(composites).videos
        store = self._features(composites, _RATES[which])
        labels = read_composites(composites).labels()

        def part(name: str) -> Part:
            ids = [video.id for video in videos.values() if video.part == name]
            return Part(
                store, labels.restrict(ids, f"the part {name}"), {i: Path(videos[i].path) for i in ids}
            )

        named = f"composites at {_RATES[which]:g} frames a second, in place of {PAPERS[which]}"
        return VideoSet(named, part("train") if which != "zero-shot" else part("test"), part("test"))

    def _config(self, which: Which) -> ComposeConfig:
        """Main and second are the same videos at two rates; the long ones use clips that did not train."""
        scale, share = self._scale, self._scale.share
        split = f"{share:g},0,{1 - share:g}"
        if which == "zero-shot":
            return ComposeConfig(
                videos=scale.long_videos, seconds=scale.long_seconds, size=scale.size, seed=2, split="test"
            )
        return ComposeConfig(videos=scale.videos, seconds=scale.seconds, size=scale.size, seed=1, split=split)

    def _composites(self, config: ComposeConfig) -> Path:
        settings = {**asdict(config), "fps": str(config.rate)}
        key = {"version": VERSION, "clips": self._content(), "settings": settings}

        def make(folder: Path) -> dict[str, Any]:
            self._tell(f"composing {config.videos} videos")
            library = read_clips(self._files)
            workers = os.cpu_count() or 1
            with closing(compose(library, config, folder / "videos", workers=workers)) as videos:
                return {"videos": sum(1 for _ in videos)}

        return self._shelf.kept("composites", key, make) / "videos"

    def _features(self, composites: Path, fps: float) -> Path:
        backbone = backbones.get(self._backbone)
        key = {
            "version": VERSION,
            "videos": composites.parent.name,
            "backbone": backbone.identity,
            "fps": fps,
        }

        def make(folder: Path) -> dict[str, Any]:
            self._tell(f"features at {fps:g} frames a second")
            videos = read_composites(composites).videos
            cores = os.cpu_count() or 1
            config = ExtractConfig(jobs=max(1, cores // 2), workers=min(2, cores))
            store = FeatureStore.create(
                folder / "features",
                backbone=backbone.identity,
                dim=backbone.dim,
                fps=fps,
                sampling=sampling_identity(backbone),
            )
            with (
                store,
                closing(extract(((v.id, v.path) for v in videos.values()), store, backbone, config)) as done,
            ):
                failed = [each for each in done if isinstance(each, Failure)]
            if failed:
                raise ConfigError(f"no features of composite {failed[0].id}: {failed[0].reason}")
            return {"videos": len(videos)}

        return self._shelf.kept("features", key, make) / "features"

    def _content(self) -> str:
        """A fingerprint of all clips."""
        if not self._clips_key:
            digest = sha256()
            for path in self._files:
                digest.update(path.name.encode())
                digest.update(sha256(path.read_bytes()).digest())
            self._clips_key = digest.hexdigest()
        return self._clips_key
