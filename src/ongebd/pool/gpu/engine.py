"""One step of many streams on a device: fixed buffers, the state of every slot, and CUDA graphs. Needs torch.

A step has three parts, each a graph for each bucket (a number of rows):

    embed       pictures → features
    conclude    features, control, state → verdicts, new state
    anticipate  new state → what the next step needs before its frame comes

`anticipate` needs only the past, so it runs on its own stream beside the next step's `embed`. Rows beyond a
step's frames belong to a spare slot, so that padding a batch changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ongebd.backbones import Backbone
from ongebd.pool.gpu.batched_scorer import BatchedScorer, Rows
from ongebd.pool.gpu.cuda import captured, new_event, new_stream, tuned
from ongebd.pool.gpu.discriminator import SETTINGS, judge
from ongebd.types import AGO

CONTROL = ("slot", "forced", "time", *SETTINGS)
"""What the device reads for each row of a step, float64; `forced` starts a new epoch."""
VERDICT = ("error", "mean", "std", "z", "threshold", "positive", "ready", "known", "restarted", "fault")
"""What the device reports for each row of a step, float64; truth values are 0 and 1. For a method of several
views, `error` is what the first one says, and the others' follow these columns; where cuts are looked for,
the last ones are the frame's `Signs`."""
FEATURE_BROKEN, FEATURE_ZERO, SCORE_BROKEN = 1, 2, 3
"""Values of `fault`; 0 is none."""

_PARTS = ("embed", "conclude", "anticipate")


class SlotState(NamedTuple):
    """Everything kept of the streams; the first dimension of each tensor is the slot.

    Attributes:
        rows: The scorer's.
        prepared: What it computed ahead.
        seen: Frames since the epoch began, int64.
        time: Seconds of the last of them, float64.
        queue: The last errors, float64, (slots, Δ).
        filled: How many there were, up to Δ, int64.
    """

    rows: Rows
    prepared: Rows
    seen: Tensor
    time: Tensor
    queue: Tensor
    filled: Tensor

    @classmethod
    def new(cls, scorer: BatchedScorer, slots: int, delta: int, device: torch.device) -> SlotState:
        """State of streams that have seen nothing."""
        return cls(
            tuple(row.repeat(slots, *[1] * (row.dim() - 1)) for row in scorer.empty),
            tuple(row.new_zeros((slots, *row.shape[1:])) for row in scorer.prepare(scorer.empty)),
            torch.zeros(slots, dtype=torch.int64, device=device),
            torch.zeros(slots, dtype=torch.float64, device=device),
            torch.zeros(slots, delta, dtype=torch.float64, device=device),
            torch.zeros(slots, dtype=torch.int64, device=device),
        )


class Engine:
    """The device's part of a runtime, made and used in inference mode by one thread at a time.

    Args:
        network: From pictures (B, S, S, 3) uint8 to features (B, D) float32.
        scorer: The method.
        backbone: Whose D and S, in pixels, are the network's.
        slots: How many streams there may be.
        delta: Δ, the longest queue of errors.
        buckets: The numbers of rows that a step may have, rising.
        device: Where.
        compiles: Whether `torch.compile` joins the small kernels of `conclude` and `anticipate`.

    Attributes:
        uploaded: The memory of `control` and `pictures`, so that one copy uploads both.
        control: (most rows, len(CONTROL)), float64: written before a step.
        pictures: (most rows, S, S, 3), uint8: written before a step.
        features: (most rows, D), float32: what `embed` gives, or what is written instead.
        verdicts: (most rows, at least len(VERDICT)), float64: what a step gives.
    """

    def __init__(
        self,
        network: nn.Module,
        scorer: BatchedScorer,
        backbone: Backbone,
        *,
        slots: int,
        delta: int,
        buckets: Sequence[int],
        device: torch.device,
        compiles: bool,
    ) -> None:
        self.buckets = tuple(buckets)
        self.device = device
        self.graphs = device.type == "cuda"
        self.spare = slots  # the slot of rows that only fill a bucket
        self._network, self._scorer = network, scorer
        most = self.buckets[-1]
        columns = len(VERDICT) + (len(AGO) + 2) * scorer.cuts
        self.state = SlotState.new(scorer, slots + 1, delta, device)
        control_bytes, picture_bytes = most * len(CONTROL) * 8, 3 * backbone.input_size**2
        self.uploaded = torch.zeros(control_bytes + most * picture_bytes, dtype=torch.uint8, device=device)
        self.control = self.uploaded[:control_bytes].view(torch.float64).view(most, len(CONTROL))
        self.pictures = self.uploaded[control_bytes:].view(most, backbone.input_size, backbone.input_size, 3)
        self.features = torch.zeros(most, backbone.dim, device=device)
        self.verdicts = torch.zeros(most, columns, dtype=torch.float64, device=device)
        self._recent = torch.full((most,), self.spare, dtype=torch.int64, device=device)
        self._compiled = self.graphs and compiles and scorer.compiles
        self._conclude: Callable[..., None] = torch.compile(_conclude) if self._compiled else _conclude
        self._anticipate: Callable[..., None] = torch.compile(_anticipate) if self._compiled else _anticipate
        self._captured: dict[tuple[str, int], torch.cuda.CUDAGraph] = {}
        if self.graphs:
            self.main = new_stream(device)
            self._side = new_stream(device)
            self._concluded, self._anticipated = new_event(), new_event()
            # Parts that run beside each other must not share memory.
            self._pools = {part: torch.cuda.graph_pool_handle() for part in _PARTS}
            self._pools["conclude"] = self._pools["embed"]
            self._capture()

    def bucket(self, rows: int) -> int:
        """The smallest allowed number of rows that is enough."""
        return next(bucket for bucket in self.buckets if bucket >= rows)

    def embed(self, bucket: int) -> None:
        """Enqueue the features of `pictures`; on a GPU on `main`."""
        self._play("embed", bucket)

    def decide(self, bucket: int) -> None:
        """Enqueue the verdicts on `features` and `control`, and what can be computed ahead."""
        if not self.graphs:
            self._play("conclude", bucket)
            self._play("anticipate", bucket)
            return
        self.main.wait_event(self._anticipated)
        self._play("conclude", bucket)
        self._concluded.record(self.main)
        with torch.cuda.stream(self._side):
            self._side.wait_event(self._concluded)
            self._play("anticipate", bucket)
            self._anticipated.record(self._side)

    def _capture(self) -> None:
        """Make the graphs of every bucket, on a GPU."""
        self.control[:, 0] = self.spare
        for bucket, part in product(self.buckets, _PARTS):
            torch.cuda.synchronize(self.device)
            run = partial(self._run, part, bucket)  # at first compiles, and lets cuDNN choose its kernels
            self._captured[part, bucket], _ = captured(run, self.device, warm_up=3, pool=self._pools[part])
        torch.cuda.synchronize(self.device)

    def _play(self, part: str, bucket: int) -> None:
        if self.graphs:
            self._captured[part, bucket].replay()
        else:
            self._run(part, bucket)

    def _run(self, part: str, bucket: int) -> None:
        recent = self._recent[:bucket]
        if part == "embed":
            with tuned() if self.graphs else nullcontext():
                self.features[:bucket] = self._network(self.pictures[:bucket])
        elif part == "anticipate":
            self._call(self._anticipate, recent)
        else:
            inputs = self.features[:bucket], self.control[:bucket], self.verdicts[:bucket]
            self._call(self._conclude, *inputs, recent)

    def _call(self, function: Callable[..., None], *tensors: Tensor) -> None:
        for tensor in tensors:
            if self._compiled and len(tensor) > 1:  # one program for every bucket but the first
                torch._dynamo.maybe_mark_dynamic(tensor, 0)
        # Each model has its own program; the limit on their number is for functions with many shapes.
        limits = {"recompile_limit": 256, "accumulated_recompile_limit": 1024}
        with torch._dynamo.config.patch(limits) if self._compiled else nullcontext():
            function(*tensors, self._scorer, self.state)


def _conclude(
    features: Tensor,
    control: Tensor,
    verdicts: Tensor,
    recent: Tensor,
    scorer: BatchedScorer,
    state: SlotState,
) -> None:
    """The decision on each row: writes `verdicts`, `recent` (the slots) and the state of those slots.

    A broken feature changes nothing of a stream except a forced restart.
    """
    slots = control[:, 0].long()
    forced, time = control[:, 1] > 0, control[:, 2]
    stepped_back = ~forced & (state.seen[slots] > 0) & (time < state.time[slots])
    fresh = forced | stepped_back

    known_seen = torch.where(forced, 0, state.seen[slots])
    known_filled = torch.where(forced, 0, state.filled[slots])
    seen = torch.where(fresh, 0, known_seen)
    filled = torch.where(fresh, 0, known_filled)
    held = tuple(rows[slots] for rows in state.rows)
    rows = tuple(_where(fresh, empty, row) for empty, row in zip(scorer.empty, held, strict=True))
    prepared = tuple(row[slots] for row in state.prepared)

    scores, known, new_rows = scorer.step(features, rows, prepared, seen, time)
    scores = torch.where(known[:, None], scores.double().view(len(known), -1), 0)
    score, further = scores[:, 0], scores[:, 1:]
    judged, queue, new_filled = judge(score, known, state.queue[slots], filled, control[:, 3:])

    square = features.double().square().sum(1)
    fault = torch.where(torch.isfinite(scores).all(1), 0, SCORE_BROKEN)
    fault = torch.where(square == 0, FEATURE_ZERO, fault)
    fault = torch.where(torch.isfinite(square), fault, FEATURE_BROKEN)
    fine = fault == 0

    for kept, empty, old, new in zip(state.rows, scorer.empty, held, new_rows, strict=True):
        kept[slots] = _where(fine, new, _where(forced, empty, old)).to(kept.dtype)
    state.seen[slots] = torch.where(fine, seen + 1, known_seen)
    state.time[slots] = torch.where(fine, time, state.time[slots])
    state.queue[slots] = _where(fine, queue, state.queue[slots])
    state.filled[slots] = torch.where(fine, new_filled, known_filled)
    recent.copy_(slots)
    columns = (score, *judged, known, stepped_back, fault)  # in the order of VERDICT
    verdicts.copy_(torch.cat([torch.stack([column.double() for column in columns], dim=1), further], dim=1))


def _anticipate(recent: Tensor, scorer: BatchedScorer, state: SlotState) -> None:
    """Compute ahead for the slots of the last step."""
    ahead = scorer.prepare(tuple(rows[recent] for rows in state.rows))
    for kept, row in zip(state.prepared, ahead, strict=True):
        kept[recent] = row.to(kept.dtype)


def _where(condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """By row: the condition is (B,), the others (B or 1, …)."""
    return torch.where(condition.view(-1, *[1] * (no.dim() - 1)), yes, no)
