"""`ongebd keyframes`: one sharp picture for each segment of a video."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ongebd.cli.options import (
    AccessOption,
    Force,
    ModelName,
    PartOption,
    Quiet,
    SourceFps,
    Sources,
    WhichStream,
    Whole,
    checked_sources,
)
from ongebd.cli.terminal import Progress, counted
from ongebd.common.text import is_unique, printable, public_name, spoken_name
from ongebd.common.writing import write_whole
from ongebd.detector import StreamConfig, detect, load
from ongebd.detector.models import DEFAULT_MODEL
from ongebd.detector.segments import Segment
from ongebd.detector.trace import jpeg
from ongebd.errors import ConfigError, OngebdError
from ongebd.output import output_stems, writing
from ongebd.output.jsonl import boundary_fields
from ongebd.output.writer import rounded
from ongebd.types import ImageU8


def keyframes(
    sources: Sources | None = None,
    /,
    *,
    out: Annotated[Path, Parameter(alias="-o")],
    max: int = 32,  # noqa: A002
    model: ModelName = DEFAULT_MODEL,
    config: Annotated[StreamConfig | None, Whole] = None,
    part: Annotated[PartOption | None, Whole] = None,
    stream: WhichStream = None,
    source_fps: SourceFps = None,
    device: str = "cpu",
    access: Annotated[AccessOption | None, Whole] = None,
    quiet: Quiet = False,
    force: Force = False,
) -> int:
    """Write one sharp picture for each segment of a video.

    The strongest boundaries divide the video into at most --max segments. The pictures of VIDEO.mp4 go to
    DIR/VIDEO-001.jpg and so on; DIR/VIDEO.keyframes.json lists them with their times and segments.

    Parameters
    ----------
    sources
        Files, folders of videos, or URLs of files.
    out
        Folder for the pictures.
    max
        Maximum number of pictures for each video.
    device
        Where networks run; see `ongebd detect --help-all`.
    """
    if max < 1:
        raise ConfigError(f"--max must be at least 1, not {max}")
    sources = checked_sources("keyframes", sources)
    loaded = load(model, device=device)
    how: dict[str, Any] = {"config": config, "stream": stream, "source_fps": source_fps, "chapters": max}
    how |= asdict(part or PartOption()) | asdict(access or AccessOption())
    failed = False
    with Progress(quiet=quiet) as progress:
        for source, stem in zip(sources, output_stems(sources), strict=True):
            progress.restart()
            name = spoken_name(source)
            try:
                index = _Index(out, stem, source, force=force)
                found = detect(source, loaded, progress=partial(progress.show, name), **how)
                for warning in found.warnings:
                    progress.say(f"ongebd: {name}: {warning}")
                index.begin(len(found.segments))
                for number, (segment, picture) in enumerate(found.keyframes(), 1):
                    index.add(segment, picture)
                    progress.show(name, number, len(found.segments), "writing pictures")
                progress.summary(f"{name}: {counted(len(index.listed), 'key frame')}, into {out}")
                failed |= not found.complete
            except OngebdError as problem:
                progress.say(f"ongebd: {problem}")
                failed = True
    return 2 if failed else 0


class _Index:
    """The pictures of one source in a folder, and the list of them, which says whose they are.

    Args:
        folder: Made if it does not exist.
        stem: How the files' names begin.
        source: As the user named it.
        force: Overwrite what the list doesn't name too.

    Attributes:
        listed: What the list says of each picture.

    Raises:
        ConfigError: The list exists already and isn't one of this source.
    """

    def __init__(self, folder: Path, stem: str, source: str, *, force: bool) -> None:
        self.listed: list[dict[str, Any]] = []
        self._folder, self._stem, self._force = folder, stem, force
        self._path, self._source = folder / f"{stem}.keyframes.json", public_name(source)
        self._earlier: set[str] = set()
        if self._path.exists():
            try:
                known = json.loads(self._path.read_bytes())
                ours = known["source"] == self._source and is_unique(self._source)
                self._earlier = {str(one["file"]) for one in known["keyframes"]} if ours else set()
            except (OSError, ValueError, TypeError, KeyError, RecursionError):
                ours = False
            self._protect(self._path, ours=ours)

    def begin(self, count: int) -> None:
        """Remove the pictures of an earlier run, and refuse names that are taken otherwise."""
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            for name in map(self._name, range(1, count + 1)):
                self._protect(self._folder / name, ours=name in self._earlier)
            for name in self._earlier & {self._name(number) for number in range(1, 10_000)}:
                (self._folder / name).unlink(missing_ok=True)

    def add(self, segment: Segment, picture: ImageU8) -> None:
        """Write the next picture. The list names it first."""
        name = self._name(len(self.listed) + 1)
        times = {"time": segment.keyframe, "start": segment.start, "end": segment.end}
        before = None if segment.boundary is None else boundary_fields(segment.boundary)
        self.listed.append(
            {"file": name} | {key: rounded(time) for key, time in times.items()} | {"boundary": before}
        )
        content = {"source": self._source, "keyframes": self.listed}
        with writing(self._path), write_whole(self._path) as part:
            part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        path = self._folder / name
        with writing(path), write_whole(path) as part:
            part.write_bytes(jpeg(picture, quality=2))

    def _name(self, number: int) -> str:
        return f"{self._stem}-{number:03}.jpg"

    def _protect(self, path: Path, *, ours: bool) -> None:
        if path.exists() and not (ours or self._force):
            raise ConfigError(
                f"{printable(str(path))} already exists and may not be a key frame of"
                f" {printable(spoken_name(self._source))}; write elsewhere (--out), or add --force"
            )
