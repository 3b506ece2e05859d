"""Sets of composites, and the paper's method and MiniROAD trained on one: by the library's own commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ongebd.errors import ConfigError
from ongebd.lab.composites import Composites, read_composites
from ongebd.lab.composites.config import DISTRACTOR_KINDS

CONTROL = "control"
_NOTE = "made-by.json"

# What fits into some minutes on one core. The published MiniROAD has 13.6 M parameters and 128 frames in a
# window; ESTimator is ours at half of the width that it has for features of 1280 numbers.
TRAININGS: dict[str, tuple[str, ...]] = {
    "miniroad": (
        "method=miniroad",
        "network=embedding=256,hidden=256,window=64",
        "own_recipe=false",
        "lr=0.001",
        "epochs=4",
        "batch=128",
    ),
    "estimator": ("method=estimator", "width=256", "ffn=256", "epochs=4", "batch=256", "lr=0.0003"),
}
"""Settings that differ from those of `ongebd train`."""


@dataclass(frozen=True)
class Trained:
    """A trained model: its folder, the settings, and how long it took, seconds."""

    folder: Path
    settings: tuple[str, ...]
    seconds: float

    def as_json(self) -> dict[str, object]:
        """For the JSON."""
        return {"settings": list(self.settings), "seconds": round(self.seconds)}


def run(*arguments: str | Path) -> float:
    """Run `ongebd` with one thread; seconds.

    Raises:
        ConfigError: It failed, and has said why.
    """
    began = time.monotonic()
    command = [sys.executable, "-m", "ongebd", *map(str, arguments)]
    print("ongebd", *arguments[:1], *map(str, arguments[-1:]), "…", file=sys.stderr, flush=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if subprocess.run(command, check=False, env=environment).returncode:
        raise ConfigError(f"ongebd {arguments[0]} failed; what it said stands above")
    return time.monotonic() - began


def composed(out: Path, clips: Sequence[Path], *settings: str) -> Composites:
    """The set of composites in a folder, which is made where it is not there.

    Raises:
        ConfigError: The folder holds a set of other settings, or half of one.
    """
    note = {"clips": sorted(path.name for path in clips), "settings": list(settings)}
    if (out / _NOTE).exists():
        if json.loads((out / _NOTE).read_text(encoding="utf-8")) != note:
            raise ConfigError(f"{out}: made of other clips or with other settings; remove it")
        return read_composites(out)
    if out.exists() and any(out.iterdir()):
        raise ConfigError(f"{out}: half of a set, or not one of ours; remove it")
    run("compose", *clips, *settings, "--split", "all", "--quiet", "--out", out)
    (out / _NOTE).write_text(json.dumps(note) + "\n", encoding="utf-8")
    return read_composites(out)


def joined(folders: Sequence[Path]) -> Composites:
    """Several sets as one; a video is then called FOLDER/ID."""
    sets = [read_composites(folder) for folder in folders]
    videos = {}
    for some in sets:
        for name, video in some.videos.items():
            videos[f"{some.folder.name}/{name}"] = replace(video, id=f"{some.folder.name}/{name}")
    clips = {name: facts for some in sets for name, facts in some.clips.items()}
    same = {
        key: value
        for key, value in sets[0].settings.items()
        if all(s.settings.get(key) == value for s in sets)
    }
    return Composites(sets[0].folder.parent, videos, same, clips)


def distractor_sets(
    folder: Path,
    clips: Sequence[Path],
    motion: str,
    minutes: float,
    seed: int,
    kinds: Sequence[str] | None = None,
) -> dict[str, Composites]:
    """A set without boundaries for each kind of distractor, and the control without any; by kind."""
    result = {}
    for kind in (CONTROL, *(DISTRACTOR_KINDS if kinds is None else kinds)):
        given = "none" if kind == CONTROL else kind
        result[kind] = composed(
            folder / f"{motion}-{kind}",
            clips,
            *("--boundaries", "none", "--distractors", given, "--motion", motion),
            *("--minutes", f"{minutes:g}", "--seed", str(seed), "--no-contact-sheet"),
        )
    return result


def trained(name: str, store: Path, labels: Path, out: Path, *settings: str) -> Trained:
    """A model trained by `ongebd train`, where it is not there.

    Args:
        name: Of `TRAININGS`.
        store: Features.
        labels: Labels.
        out: Folder.
        settings: Changes to those of `TRAININGS`.
    """
    chosen = (*TRAININGS[name], *settings)
    note = out / _NOTE
    if note.exists():
        kept = json.loads(note.read_text(encoding="utf-8"))
        if kept["settings"] != list(chosen):
            raise ConfigError(f"{out}: trained with other settings; remove it")
        return Trained(out / "model", chosen, float(kept["seconds"]))
    given = [part for setting in (*chosen, "tensorboard=false") for part in ("-s", setting)]
    took = run(
        "train", "--store", store, "--labels", labels, "--device", "cpu", *given, "--quiet", "--out", out
    )
    note.write_text(json.dumps({"settings": list(chosen), "seconds": took}) + "\n", encoding="utf-8")
    return Trained(out / "model", chosen, took)


def clips_in(folders: Sequence[Path], without: Path | None) -> list[Path]:
    """Folders of clips as they are; or, where a list of names is to be left out, all other files in them.

    Raises:
        ConfigError: A name of the list is none of the files, or nothing is left.
    """
    if without is None:
        return list(folders)
    names = {line.strip() for line in without.read_text(encoding="utf-8").splitlines() if line.strip()}
    files = sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in {".csv", ".json", ".md", ".txt"}
    )
    left = [path for path in files if path.stem not in names and path.name not in names]
    unknown = names - {path.stem for path in files} - {path.name for path in files}
    if unknown or not left:
        raise ConfigError(f"{without}: {', '.join(sorted(unknown)[:3]) or 'nothing is left'}; no such clips")
    return left
