"""The official rule as it reads, loop by loop: what the vectorised score is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def plain_counts(
    labels: Mapping[str, Mapping[str, object]],
    predictions: Mapping[str, Sequence[float]],
    threshold: float,
    min_consistency: float = 0.3,
) -> tuple[int, int, int]:
    """(true positives, positives, detections) at one threshold."""
    hits = positives = detections = 0
    for name, video in labels.items():
        if video.get("f1_consis_avg", 1.0) < min_consistency:  # type: ignore[operator]
            continue
        rows, duration = video["substages_timestamps"], video["video_duration"]
        found = [time for time in predictions.get(name, []) if 0 <= time <= duration]  # type: ignore[operator]
        if not found:
            positives += len(rows[0])  # type: ignore[index]
            continue
        detections += len(found)
        best = (-1.0, 0, 0)
        for boundaries in rows:  # type: ignore[attr-defined]
            free, hit = list(found), 0
            for boundary in boundaries:
                distances = [abs(boundary - time) for time in free]
                if distances and min(distances) <= threshold * duration:  # type: ignore[operator]
                    hit += 1
                    del free[distances.index(min(distances))]
            recall = hit / len(boundaries) if boundaries else 1
            precision = hit / len(found)
            f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0
            if f1 > best[0]:
                best = (f1, hit, len(boundaries))
        hits, positives = hits + best[1], positives + best[2]
    return hits, positives, detections
