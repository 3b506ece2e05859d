"""How many incidents, and how many alerts, fixed cameras give: real clips, looped to hours.

    python benchmarks/incidents.py FOLDER/OF/CLIPS --out benchmarks/results/incidents.md

Each clip is decoded once. Its features are played again and again, each time as after a reconnect, so that no
seam is an event. A loop repeats exactly, which real cameras don't: so the busy cameras are also measured with
`quieten` off. The night is a frame of the hall under noise that never repeats.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

import numpy as np

import ongebd
from ongebd.types import Boundary, ImageU8
from ongebd.video import VideoReader
from ongebd.watch.incidents import Alerts, Incidents
from ongebd.watch.pictures import Album, look_of
from ongebd.watch.records import Digest, Held, Incident, Onset, Point, Updated

MODEL = ongebd.load("immediate")
HALL = "one-by-one-person-detection"
VISITS = (6.0, 18.0, 22.7, 43.2, 50.1, 67.8, 74.5, 84.7, 92.1, 117.8, 123.3, 134.0)
"""When someone enters or leaves the hall, as three raters agree."""
BUSY = ("vtest", "car-detection", "haarcascades__video1", "bgslibrary__video03")
OTHERS = (
    "bottle-detection",
    "opencv4nodejs__people",
    "haarcascades__video2",
    "PostOfficeAnalyser",
    "Person-Tracker__cctv",
    "cafe_2mpx",
)

ABOUT = """Real clips of fixed cameras, each played again and again (`benchmarks/incidents.py`).
The gap of 2.5 s, what counts as the same, and how often is too often were chosen on these very clips:
expect less elsewhere. A loop repeats exactly, which real cameras don't: so there is a column that isn't
quietened."""

Frames = list[tuple[float, np.ndarray, float | None, list[Boundary]]]
"""Of each frame: time, look, the score if a boundary begins, and boundaries whose peak is now known."""


def read(path: Path, night: bool = False) -> Frames:
    """Decode and judge a clip; or a minute of noise on its first picture, dark."""
    frames: Frames = []
    chance, detector = np.random.default_rng(1), MODEL.stream()
    with VideoReader(path, MODEL.defaults.rate(), view=MODEL.backbone.view) as reader:
        shown: Iterable[tuple[float, ImageU8]] = ((float(frame.time), frame.rgb) for frame in reader)
        if night:
            dark = next(iter(reader)).rgb * 0.2
            noisy = (np.clip(dark + chance.normal(0, 4, dark.shape), 0, 255) for _ in range(24 * 60))
            shown = ((n / 24, rgb.astype(np.uint8)) for n, rgb in enumerate(noisy))
        for time, rgb in shown:
            decision = detector.update(rgb, time)
            onset = decision.z if decision.onset else None
            frames.append((time, look_of(rgb), onset, detector.closed()))
    return frames


def play(clip: Frames, hours: float, alerts: Alerts) -> Iterator[Incident | Digest]:
    """The incidents of a camera that shows a clip again and again."""
    incidents, album = Incidents(alerts), Album()
    begin = wall = 1_800_000_000.0
    numbers = count()
    for epoch in count():
        if wall >= begin + hours * 3600:
            return
        for time, look, score, closed in clip:
            known = "cam", epoch, time, wall + time
            if score is not None:
                if not incidents.open:
                    album.begin()
                incidents.take(Onset("cam", next(numbers), epoch, time, wall + time, score, False))
            for boundary in closed:
                incidents.take(Updated("cam", 0, epoch, boundary, wall + time))
            album.add(time, look)
            if incidents.looks(time) and (judged := album.judge(None)) is not None:
                incidents.improves(*judged)
            yield from incidents.take(Point(*known, 0, 0, 0, 0, 0, score is not None, True))
        yield from incidents.end()
        wall += clip[-1][0]


def counted(records: Iterable[Incident | Digest], hours: float) -> tuple[float, float, Counter[Held]]:
    """Incidents and alerts an hour, and why the others were held."""
    newest = {one.number: one for one in records if isinstance(one, Incident)}
    held = Counter(one.held for one in newest.values() if one.held)
    return len(newest) / hours, (len(newest) - sum(held.values())) / hours, held


def main() -> None:
    """Measure, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = {
        path.stem: path for path in sorted(options.folder.rglob("*.*")) if path.suffix in (".mp4", ".avi")
    }

    def clip_of(part: str, night: bool = False) -> Frames:
        return read(next(path for stem, path in found.items() if stem.endswith(part) or part in stem), night)

    hall = clip_of(HALL)
    visits = [
        one
        for one in play(hall, hall[-1][0] / 3600 / 2, Alerts())
        if isinstance(one, Incident) and one.state == "ended"
    ]
    inside = [any(one.start - 1 <= time <= (one.end or 0) + 1 for one in visits) for time in VISITS]
    own = sum(any(abs(one.start - time) <= 1 and one.held is None for one in visits) for time in VISITS)
    lines = [
        f"Hall: {sum(inside)} of {len(VISITS)} entries and exits are inside an incident, {own} have an alert"
        f" of their own; incidents: {len(visits)}."
    ]
    rows = [
        "",
        f"| camera ({options.hours:g} h) | incidents an hour | alerts an hour, default | not quietened"
        " | at most 2 | held, default |",
        "|---|---|---|---|---|---|",
    ]
    total = np.zeros(3)
    clips = {
        "still night": clip_of(HALL, night=True),
        "hall": hall,
        **{name: clip_of(name) for name in (*BUSY, *OTHERS)},
    }
    for name, clip in clips.items():
        every, alerts, held = counted(play(clip, options.hours, Alerts()), options.hours)
        loud = counted(play(clip, options.hours, Alerts(quieten=False)), options.hours)[1]
        few = counted(play(clip, options.hours, Alerts(alerts_per_hour=2)), options.hours)[1]
        total += np.array([alerts, loud, few]) * (name in BUSY)
        why = ", ".join(f"{reason} {count}" for reason, count in held.most_common())
        rows.append(f"| {name} | {every:.0f} | {alerts:.0f} | {loud:.0f} | {few:.0f} | {why} |")
    rows.append(
        f"| **the four busy ones ({', '.join(BUSY)})** | | **{total[0]:.0f}** | {total[1]:.0f}"
        f" | **{total[2]:.0f}** | |"
    )
    report = "\n".join([*lines, *rows])
    print(report)
    if options.out is not None:
        options.out.write_text(f"# Incidents of fixed cameras\n\n{ABOUT}\n\n{report}\n")


if __name__ == "__main__":
    main()
