"""What the paper prints, to stand beside what is measured; nothing here was measured by us."""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """Millions of parameters, GFLOPs, and frames a second over all on an RTX A6000."""

    parameters: float
    gflops: float
    fps: float
    why: str


PAPER = {
    "testra": Printed(
        48.73,
        17.0,
        72.5,
        "The paper's count is that of thop, which does not see the packed projections of query, key and value"
        " (31.49 M) nor the learned queries (0.05 M). Its GFLOPs are nearer to those of a window of 512 + 32"
        " frames anew; in a stream the long memory is a running sum, and a frame is embedded once.",
    ),
    "simon": Printed(
        24.70,
        8.2,
        76.3,
        "thop again: it sees nothing of torch's own attention modules (2.11 M). The GFLOPs agree: all but the"
        " backbone's are 0.01.",
    ),
    "oadtr": Printed(
        97.10,
        13.0,
        48.9,
        "The counts agree, and so do the GFLOPs of a window anew (torch counts no normalisations). In a"
        " stream each frame is embedded once and not 64 times.",
    ),
    "miniroad": Printed(37.15, 8.2, 99.8, "Counts and GFLOPs agree."),
    "estimator": Printed(
        42.41,
        10.3,
        96.3,
        "The paper does not state width, heads and feed-forward size, and no shape that we could enumerate"
        " has all of its figures: ours is our own.",
    ),
}
"""By the method's name. On the paper's card features alone run at 181 frames a second, its model at 481."""
