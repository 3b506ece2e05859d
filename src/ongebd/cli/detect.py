"""`ongebd detect`."""


def detect() -> int:
    """Find the event boundaries of videos, as they stream."""
    return 0
