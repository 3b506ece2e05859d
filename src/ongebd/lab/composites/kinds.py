"""The kinds of boundary and of distractor, and how they are named on a command line."""

from __future__ import annotations

from collections.abc import Sequence

from ongebd.errors import ConfigError

BOUNDARY_KINDS: dict[str, str] = {
    "cut": "to another clip",
    "jump": "to another time of the same clip",
    "action": "to another clip of the same setting",
    "dissolve": "from one picture into another",
    "fade": "through black or white",
    "speed": "the speed of play changes",
    "reverse": "the direction of play changes",
    "framing": "another crop, or mirrored",
    "stop": "motion stops, for 1.5 s or more",
    "start": "motion starts, after 1.5 s or more without",
    "natural": "labelled in the source",
}
"""What a boundary may be. `natural` is there only where labels of the sources are given."""

DISTRACTOR_KINDS: dict[str, str] = {
    "shake": "a shaking camera",
    "pan": "a slow pan to the side and back",
    "exposure": "the exposure drifts and comes back",
    "flash": "one or two bright frames",
    "noise": "sensor noise",
    "compression": "a stretch at a low bitrate, pulsing at its keyframes",
    "freeze": "a stall of less than 0.4 s",
    "overlay": "a caption or a logo comes and goes",
    "zoom": "a slow zoom in and out",
}
"""What may happen without being an event; none of it is labelled."""

SMOOTH = frozenset({"dissolve", "fade"})
"""Kinds that take time: the label is the centre."""

MOTIONS = frozenset({"speed", "reverse", "stop", "start"})
"""Kinds at which the picture stays and its motion changes."""

CAMERA = frozenset({"shake", "pan", "zoom"})
"""Distractors that move the camera."""


def chosen_kinds(given: str | Sequence[str], known: dict[str, str], what: str) -> tuple[str, ...]:
    """The kinds that a text or a sequence names, in the order in which they are known.

    Args:
        given: "all", "none", kinds with commas between them, or a sequence of kinds.
        known: `BOUNDARY_KINDS` or `DISTRACTOR_KINDS`.
        what: What to call them in a message.

    Raises:
        ConfigError: One is not known.

    >>> chosen_kinds("jump, cut", BOUNDARY_KINDS, "boundaries")
    ('cut', 'jump')
    """
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    if names == ["all"]:
        return tuple(known)
    if names in ([], ["none"]):
        return ()
    for name in names:
        if name not in known:
            raise ConfigError(
                f"{what}: {name!r} is no kind; there are {', '.join(known)}, and all or none by itself"
            )
    return tuple(name for name in known if name in names)
