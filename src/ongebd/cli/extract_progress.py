"""What a person sees while features are extracted: a bar over all videos, or lines now and then."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

from rich.progress import BarColumn, SpinnerColumn, TextColumn

from ongebd.cli.bars import StderrBar
from ongebd.features import Extracted, Failure, Working

_EVERY = 10.0  # seconds between two lines where there is no terminal


class ExtractProgress(StderrBar):
    """A bar on a terminal, a line every ten seconds elsewhere, and a summary. Never writes to stdout.

    Args:
        videos: To be done.
        out: Folder of the store.
        quiet: Failures only.

    Attributes:
        failures: How many videos failed so far.
        complete: Set when all were tried.
    """

    def __init__(self, videos: int, out: Path, *, quiet: bool) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[now]}"),
            quiet=quiet,
        )
        if self._bar is not None:
            self._task = self._bar.add_task("extracting", total=videos, now="")
        self.failures = 0
        self.complete = False
        self._videos = videos
        self._out = out
        self._extracted = 0
        self._frames = 0
        self._there = 0
        self._started = self._last_line = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if not self._quiet and (self.complete or self._extracted or self.failures):
            self._sum_up()

    def begin(self, *, there: int, without_video: list[str]) -> None:
        """So many are in the store already; these ids were asked for, but no video has them."""
        self._there = there
        self._started = self._last_line = time.monotonic()
        if without_video:
            shown = ", ".join(without_video[:3]) + (" …" if len(without_video) > 3 else "")
            self.say(f"ongebd: {len(without_video)} of the ids asked for have no video: {shown}")

    def working(self, event: Working) -> None:
        """Nothing new, but work goes on."""
        self._show(event.videos, event.frames)

    def extracted(self, event: Extracted) -> None:
        """A video is in the store."""
        self._extracted += 1
        self._frames += event.frames
        if not self._quiet:
            for warning in event.warnings:
                self.say(f"ongebd: {event.source}: {warning}")
        self._show(self._extracted + self.failures, self._frames)

    def failed(self, event: Failure) -> None:
        """A video could not be extracted."""
        self.failures += 1
        self.say(f"ongebd: {event.id}: {event.reason}")
        self._show(self._extracted + self.failures, self._frames)

    def _show(self, videos: float, frames: int) -> None:
        took = time.monotonic() - self._started
        rate = f"{frames / max(took, 1e-9):.0f} frames/s"
        now = f"{int(videos)}/{self._videos} videos  {rate}  {self._left(videos, took)}"
        if self._bar is not None:
            self._bar.update(self._task, completed=videos, now=now)
        elif not self._quiet and time.monotonic() - self._last_line >= _EVERY:
            self._last_line = time.monotonic()
            self.say(now)

    def _left(self, videos: float, took: float) -> str:
        """How long the rest will take, if it goes on like this."""
        return f"about {span(took / videos * (self._videos - videos))} left" if videos else ""

    def _sum_up(self) -> None:
        took = time.monotonic() - self._started
        videos = f"{self._extracted} video{'' if self._extracted == 1 else 's'}"
        rate = f" ({self._frames / max(took, 1e-9):.0f} frames/s)" if self._frames else ""
        parts = [f"{videos}, {self._frames} frames, into {self._out} in {span(took)}{rate}"]
        if self._there:
            parts.append(f"{self._there} were in it already")
        if self.failures:
            parts.append(f"{self.failures} failed: see {self._out / 'failures.jsonl'}")
        if not self.complete:
            parts.append("stopped early: the same command goes on from here")
        self.say("; ".join(parts))


def span(seconds: float) -> str:
    """A stretch of time, for people.

    >>> span(7.31), span(95), span(7300)
    ('7.3 s', '1 min 35 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
