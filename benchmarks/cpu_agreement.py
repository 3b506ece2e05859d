"""How many boundaries of ResNet-50 with a trained CEA stay where they are in OpenVINO's bfloat16.

The reference is the same model in float32 by onnxruntime, on the same frames of real clips. The CEA is
trained here, by `ongebd.lab.training`, on the reference's features.

The backbone has random weights unless --weights gives a checkpoint. With random normalisation pictures hardly
differ, so it has the statistics of frames of other clips, as a trained network has those of its pictures.
--branch is by how much each residual branch is scaled: at 1 a random network is chaotic, and neighbouring
frames are as far apart as others.

Usage: python benchmarks/cpu_agreement.py --clips DIR [DIR …] --labels FILE.json --work FOLDER

What was computed stays in --work, and the same command goes on from it. Needs the extras train and openvino.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu_agreement import compare

import ongebd
from ongebd import Model, backbones
from ongebd.backbones import Backbone
from ongebd.backbones.onnx_backbone import on_cpu_runtime as backbone_on_cpu_runtime
from ongebd.data import read_labels
from ongebd.detector.openvino import on_cpu_runtime
from ongebd.features import FeatureStore
from ongebd.lab.benchmark.random_weights import random_resnet50, resnet50_backbone
from ongebd.lab.training.config import TrainConfig
from ongebd.lab.training.loop import train
from ongebd.types import Frame
from ongebd.video import VideoReader

FPS = 24
WAYS = {"float32": ("onnxruntime", "float32"), "bfloat16": ("openvino", "bfloat16")}
Films = dict[str, tuple[np.ndarray, list[float]]]
"""By clip: features (T, D) and the times of their frames."""


def main() -> None:
    """All of it, from clips to figures."""
    asked = arguments()
    torch.set_num_threads(1)
    asked.work.mkdir(parents=True, exist_ok=True)
    files = {path.stem: path for folder in asked.clips for path in sorted(folder.iterdir())}
    labelled = sorted(name for name in read_labels(asked.labels).videos if name in files)
    chosen = labelled[::2][: asked.count]
    others = [name for name in labelled if name not in chosen]

    weights = asked.weights or random_weights([files[name] for name in others], asked)
    films = {}
    for way in WAYS:
        backbone = backbone_on_cpu_runtime(backbones.get("resnet50", weights=weights), *WAYS[way])
        films[way] = features([files[name] for name in chosen], backbone, asked.frames, asked.work / way)
    trained = asked.work / "cea"
    if not (trained / "report.md").exists():
        train_cea(films["float32"], backbones.get("resnet50", weights=weights), asked, trained)
    report(films, ongebd.load(f"estimator:{trained / 'model'}", weights=weights), asked)


def arguments() -> argparse.Namespace:
    """What was asked for."""
    asker = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asker.add_argument("--clips", type=Path, nargs="+", required=True)
    asker.add_argument("--labels", type=Path, required=True, help="of the clips, to train on")
    asker.add_argument("--work", type=Path, required=True, help="folder for features, weights and model")
    asker.add_argument("--weights", type=Path, help="a ResNet-50's checkpoint")
    asker.add_argument("--branch", type=float, default=0.2, help="scale of the random residual branches")
    asker.add_argument("--count", type=int, default=24, help="clips, every second of those with labels")
    asker.add_argument("--frames", type=int, default=160, help="of each clip at most")
    asker.add_argument("--epochs", type=int, default=5)
    asker.add_argument("--tau", type=float, nargs="+", default=[0.25, 0.5, 1.0, 1.5])
    return asker.parse_args()


def frames_of(path: Path, backbone: Backbone, most: int) -> Iterator[Frame]:
    """The first frames as `ongebd detect` sees them."""
    with VideoReader(path, FPS, view=backbone.view) as video:
        for number, frame in enumerate(video):
            if number == most or frame.epoch:
                return
            yield frame


def random_weights(paths: list[Path], asked: argparse.Namespace) -> Path:
    """A checkpoint of random weights, with the statistics of two frames of each clip."""
    file: Path = asked.work / "resnet50.pth"
    if file.exists():
        return file
    torch.manual_seed(0)
    network = random_resnet50()
    backbone = resnet50_backbone()
    seen = [list(frames_of(path, backbone, 60))[::59] for path in paths]
    pictures = np.stack([backbone.crop(frame.rgb) for some in seen for frame in some])
    mean, deviation = (torch.tensor(values).view(1, 3, 1, 1) for values in backbone.normalisation)
    for name, module in network.named_modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.train().momentum = 1.0  # the statistics become those of this one batch
            if name.endswith("bn3"):
                torch.nn.init.constant_(module.weight, asked.branch)
    with torch.no_grad():
        network((torch.from_numpy(pictures).permute(0, 3, 1, 2).float() - mean) / deviation)
    torch.save(network.state_dict(), file)
    return file


def features(paths: list[Path], backbone: Backbone, most: int, folder: Path) -> Films:
    """The features of every clip, kept in a folder."""
    folder.mkdir(exist_ok=True)
    films = {}
    for path in paths:
        kept = folder / f"{path.stem}.npz"
        if not kept.exists():
            frames = [(backbone.crop(f.rgb), float(f.time)) for f in frames_of(path, backbone, most)]
            rows = np.concatenate([backbone.embed(picture[None]) for picture, _ in frames])
            np.savez(kept, rows=rows, times=[seconds for _, seconds in frames])
        with np.load(kept) as stored:
            films[path.stem] = stored["rows"], stored["times"].tolist()
    return films


def train_cea(films: Films, backbone: Backbone, asked: argparse.Namespace, out: Path) -> None:
    """Train the paper's shape as `ongebd train` does."""
    store = asked.work / "store"
    if not store.exists():
        with FeatureStore.create(store, backbone=backbone.identity, dim=backbone.dim, fps=FPS) as new:
            for name, (rows, times) in films.items():
                new.add(name, rows, times, [0] * len(times), times[-1] + 1 / FPS, name)
    # Weighted, most errors go to one half where events are alike: docs/training.md.
    config = TrainConfig(
        store=str(store),
        labels=str(asked.labels),
        out=str(out),
        epochs=asked.epochs,
        batch=128,
        balanced=False,
        residual=True,
        validate_every=asked.epochs,
        device="cpu",
        tensorboard=False,
    )
    began = time.perf_counter()
    trained = train(config)
    losses = [round(row["loss"], 4) for row in trained.progress.history]
    print(f"trained in {time.perf_counter() - began:.0f} s; loss by epoch: {losses}")


def decided(model: Model, films: Films, **settings: Any) -> dict[str, Any]:
    """By clip: every decision, and the boundary that was open at the end."""
    said = {}
    for name, (rows, times) in films.items():
        stream = model.stream(**settings)
        decisions = [stream.update_feature(row, seconds) for row, seconds in zip(rows, times, strict=True)]
        said[name] = (decisions, stream.flush())
    return said


def report(films: dict[str, Films], model: Model, asked: argparse.Namespace) -> None:
    """Print how far features are apart, and at every τ the errors and the agreement."""
    models = {way: on_cpu_runtime(model, *how) for way, how in WAYS.items()}
    exact, ours = (np.concatenate([rows for rows, _ in films[way].values()]) for way in WAYS)
    apart = float(np.linalg.norm(ours - exact) / np.linalg.norm(exact))
    print(f"{len(films['float32'])} clips, {len(exact)} frames; features apart by {apart:.3%} of their norm")
    for tau in asked.tau:
        said = {way: decided(models[way], films[way], tau=tau) for way in WAYS}
        errors = [each.error for decisions, _ in said["float32"].values() for each in decisions]
        tenth, middle, most = np.quantile(errors, (0.1, 0.5, 0.9))
        print(f"tau {tau:g}: errors {middle:.3g} (four fifths {tenth:.3g} to {most:.3g})")
        print(json.dumps(compare(said["bfloat16"], said["float32"])), flush=True)


if __name__ == "__main__":
    main()
