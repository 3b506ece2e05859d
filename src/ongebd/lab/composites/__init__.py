"""Composites: videos made at the pixel level from any folder of clips, with boundaries known to the frame.

    from ongebd.lab.composites import ComposeConfig, compose, read_clips, read_composites

    library = read_clips(["clips"])                       # decoded once, measured, cut into shots
    config = ComposeConfig(videos=40, seed=1, split="test")
    for video in compose(library, config, "made"):        # writes made/*.mp4, labels.json, composites.json
        print(video.id, video.duration)

    for video in read_composites("made").videos.values():
        video.path, video.part, video.duration
        [(each.time, each.kind, each.start, each.end) for each in video.boundaries]
        [(each.start, each.end, each.kind) for each in video.distractors]

One distractor alone: `ComposeConfig(boundaries="none", distractors="shake")`. Without files:
`plan_videos(library, config)` gives plans, and `render(plan)` the pictures of one.
docs/composites.md explains each kind, and what the labels don't know.
"""

from ongebd.lab.composites.compose import compose
from ongebd.lab.composites.config import BOUNDARY_KINDS, DISTRACTOR_KINDS, ComposeConfig
from ongebd.lab.composites.planner import plan_videos
from ongebd.lab.composites.records import (
    CompositeBoundary,
    CompositeDistractor,
    Composites,
    CompositeVideo,
    read_composites,
)
from ongebd.lab.composites.render import render
from ongebd.lab.composites.scan import read_clips

__all__ = [
    "BOUNDARY_KINDS",
    "DISTRACTOR_KINDS",
    "ComposeConfig",
    "CompositeBoundary",
    "CompositeDistractor",
    "CompositeVideo",
    "Composites",
    "compose",
    "plan_videos",
    "read_clips",
    "read_composites",
    "render",
]
