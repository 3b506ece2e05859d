"""UBoCo and SBoCo: a video's self-similarity, taken apart at its boundaries again and again. Needs torch.

Kang, Kim, Kim and Kim: UBoCo: Unsupervised Boundary Contrastive Learning for Generic Event Boundary
Detection. CVPR 2022. An encoder makes a temporal self-similarity matrix (TSM). *Recursive TSM parsing* runs
a contrastive kernel along its diagonal, which is high where frames on either side are like their own and
unlike the others; the highest place is a boundary if it stands out from the mean, and both parts are parsed
in turn. The *BoCo* loss raises the similarity of near frames of one segment and lowers that of near frames
across a boundary. UBoCo takes its own parsed boundaries for that, SBoCo the labels', and a decoder that
reads the TSM along its diagonal.

Differs: we know of no public code and had the paper's abstract alone. Widths, kernels, thresholds, the form
of the loss, the decoder and the encoder (convolutions for near frames, a transformer for far ones) are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from ongebd.baselines.network import Layers, Size
from ongebd.common.settings import Range
from ongebd.offline.network import OfflineConfig, OfflineNetwork, bells, centres

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class UbocoConfig(OfflineConfig):
    """The shape of a UBoCo."""

    width: Size = 512
    """Numbers in an encoded frame."""
    heads: Size = 8
    """Attention heads."""
    layers: Layers = 2
    """Of the transformer."""
    reach: Size = 8
    """Frames on either side that the kernel, the loss and the decoder see; also a segment's least length."""
    prominence: Annotated[float, Range(least=0)] = 0.03
    """How far a boundary stands out from the mean of its segment."""
    shared_by: ClassVar[tuple[str, ...]] = ("heads",)


class Uboco(OfflineNetwork):
    """Encoder, similarity, recursive parsing."""

    method: ClassVar[str] = "uboco"
    Shape: ClassVar[type[OfflineConfig]] = UbocoConfig
    scope: ClassVar[int | None] = 0
    shape: UbocoConfig

    def __init__(self, config: UbocoConfig = UbocoConfig()) -> None:
        super().__init__()
        self.shape = config
        width = config.width
        self.project = nn.Linear(config.dim, width)
        self.near = nn.Sequential(
            *(layer for _ in range(2) for layer in (nn.Conv1d(width, width, 3, padding=1), nn.ReLU()))
        )
        one = nn.TransformerEncoderLayer(width, config.heads, 2 * width, 0.1, batch_first=True)
        self.far = nn.TransformerEncoder(one, config.layers, enable_nested_tensor=False)

    def similarity(self, frames: Tensor, real: Tensor) -> Tensor:
        """The TSM, (B, N, N): cosines of encoded frames."""
        projected = self.project(frames)
        near = self.near(projected.transpose(1, 2)).transpose(1, 2)
        kept = real | ~real.any(1, keepdim=True)  # a clip without a frame attends to what fills it up
        unit = functional.normalize(
            projected + near + self.far(projected, src_key_padding_mask=~kept), dim=-1
        )
        return unit @ unit.transpose(1, 2)

    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        """(B, N, D) → how far the kernel says that each frame is a boundary, (B, N)."""
        return along_diagonal(self.similarity(frames, real), self.shape.reach)

    def losses(self, frames: Tensor, targets: Tensor, real: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """The BoCo loss by the boundaries that the network itself parses; the labels aren't looked at."""
        del targets, weight
        matrix = self.similarity(frames, real)
        return self.contrast(matrix, self.parsed(matrix.detach(), real) > 0, real)

    def contrast(self, matrix: Tensor, boundaries: Tensor, real: Tensor) -> Tensor:
        """The BoCo loss of each frame, (B, N), from a TSM (B, N, N) and where new segments begin (B, N).

        Mean similarity with near frames across a boundary, less that with near frames of its own segment.
        """
        segment = boundaries.long().cumsum(1)
        place = torch.arange(matrix.shape[1], device=matrix.device)
        near = ((place[:, None] - place).abs() <= self.shape.reach) & real[:, :, None] & real[:, None]
        same = segment[:, :, None] == segment[:, None]
        alike, apart = near & same, near & ~same
        return (matrix * apart).sum(2) / apart.sum(2).clamp_min(1) - (matrix * alike).sum(2) / alike.sum(
            2
        ).clamp_min(1)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def parsed(self, matrix: Tensor, real: Tensor) -> Tensor:
        """The recursively parsed boundaries of TSMs (B, N, N), each with how far it stands out, (B, N)."""
        reach, least = self.shape.reach, self.shape.prominence
        found = [
            parse(each.double().cpu().numpy()[:count, :count], reach, least)
            for each, count in zip(matrix, real.sum(1).tolist(), strict=True)
        ]
        out = np.zeros(matrix.shape[:2])
        for row, each in zip(out, found, strict=True):
            row[: len(each)] = each
        return torch.from_numpy(out).to(matrix)

    def scores(self, frames: Tensor, real: Tensor) -> Tensor:
        """How far each parsed boundary stands out, (B, N)."""
        found: Tensor = self.parsed(self.similarity(frames, real), real)
        return found


class Sboco(Uboco):
    """UBoCo with labels: the BoCo loss by their boundaries, and a decoder of the TSM's diagonal."""

    method: ClassVar[str] = "sboco"
    scope: ClassVar[int | None] = 4

    def __init__(self, config: UbocoConfig = UbocoConfig()) -> None:
        super().__init__(config)
        side, width = 2 * config.reach + 1, config.width
        self.decode = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(1),
        )
        self.classify = nn.Sequential(nn.Linear(32 * side * side, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        """(B, N, D) → logits (B, N)."""
        return self._decoded(self.similarity(frames, real))

    def losses(self, frames: Tensor, targets: Tensor, real: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Cross-entropy with soft targets, and the BoCo loss."""
        matrix = self.similarity(frames, real)
        soft = bells(targets & real)
        each = functional.binary_cross_entropy_with_logits(self._decoded(matrix), soft, reduction="none")
        return each + self.contrast(matrix, centres(targets & real), real)

    def scores(self, frames: Tensor, real: Tensor) -> Tensor:
        """Probabilities, (B, N)."""
        return torch.sigmoid(self(frames, real))

    def _decoded(self, matrix: Tensor) -> Tensor:
        """Logits (B, N) from the squares around each place of the diagonal of TSMs (B, N, N)."""
        reach, (clips, frames, _) = self.shape.reach, matrix.shape
        place = torch.arange(frames, device=matrix.device)
        around = (place[:, None] + torch.arange(-reach, reach + 1, device=matrix.device)).clamp(0, frames - 1)
        squares = matrix[:, around[:, :, None], around[:, None]]  # (B, N, 2R + 1, 2R + 1)
        logits: Tensor = self.classify(self.decode(squares.flatten(0, 1)[:, None])).view(clips, frames)
        return logits


def along_diagonal(matrix: Tensor, reach: int) -> Tensor:
    """The contrastive kernel along the diagonal of TSMs (B, N, N), (B, N).

    Half the mean similarity within `reach` frames before each one and within as many from it on, less across.
    """
    frames = matrix.shape[-1]
    place = torch.arange(frames, device=matrix.device)
    around = place[:, None] + torch.arange(-reach, reach, device=matrix.device)
    around = around.clamp(0, frames - 1)
    squares = matrix[:, around[:, :, None], around[:, None]]  # (B, N, 2R, 2R)
    sign = torch.ones(2 * reach, device=matrix.device)
    sign[:reach] = -1
    return (squares * (sign[:, None] * sign)).mean((-1, -2))


def parse(matrix: Matrix, reach: int, prominence: float) -> npt.NDArray[np.float64]:
    """Recursive TSM parsing of an (N, N): each frame's score if a new segment begins with it, else 0.

    >>> two = np.kron(np.eye(2), np.ones((6, 6)))
    >>> np.flatnonzero(parse(two, 2, 0.1))
    array([6])
    """
    out = np.zeros(len(matrix))
    waiting = [(0, len(matrix))]
    while waiting:
        first, end = waiting.pop()
        if end - first < 2 * reach + 1:
            continue
        scores = along_diagonal(torch.from_numpy(matrix[None, first:end, first:end]), reach)[0].numpy()
        inside = scores[reach : end - first - reach + 1]
        best = int(inside.argmax())
        if (apart := inside[best] - scores.mean()) > prominence:
            cut = first + reach + best
            out[cut] = apart
            waiting += [(first, cut), (cut, end)]
    return out
