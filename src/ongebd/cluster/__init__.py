"""Many videos on many machines: features and boundaries as one machine gives them, with Ray Data.

Needs the extra `cluster`. The driver alone writes; the workers read videos and send back what they found.
"""

from ongebd.cluster.connection import Cluster, connected
from ongebd.cluster.detect import Detected, Job, detect_on, jobs_of
from ongebd.cluster.extract import extract_on
from ongebd.cluster.manifest import Entry, Manifest
from ongebd.cluster.tasks import DetectTask, FeatureTask

__all__ = [
    "Cluster",
    "DetectTask",
    "Detected",
    "Entry",
    "FeatureTask",
    "Job",
    "Manifest",
    "connected",
    "detect_on",
    "extract_on",
    "jobs_of",
]
