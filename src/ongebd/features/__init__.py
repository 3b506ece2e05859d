"""The features of many videos: extracted as the stream does it, in a store that training reads."""

from ongebd.backbones.pipeline import frame_features
from ongebd.features.extract import (
    ExtractConfig,
    Extracted,
    VideoFeatures,
    Working,
    extract,
    sampling_identity,
    video_features,
)
from ongebd.features.failures import Failure, Failures
from ongebd.features.store import FeatureStore, StoredVideo

__all__ = [
    "ExtractConfig",
    "Extracted",
    "Failure",
    "Failures",
    "FeatureStore",
    "StoredVideo",
    "VideoFeatures",
    "Working",
    "extract",
    "frame_features",
    "sampling_identity",
    "video_features",
]
