"""Features and boundaries of many videos on many machines, with Ray; the same as one machine computes.

Needs the extra `cluster`. The driver alone writes; the workers read videos and return what they found.
"""

from ongebd.cluster.connection import Cluster, connected
from ongebd.cluster.detect import DetectTask, detect_on, jobs_of
from ongebd.cluster.extract import FeatureTask, extract_on
from ongebd.cluster.manifest import Entry, Manifest

__all__ = [
    "Cluster",
    "DetectTask",
    "Entry",
    "FeatureTask",
    "Manifest",
    "connected",
    "detect_on",
    "extract_on",
    "jobs_of",
]
