"""Labels and predictions: what annotators marked, what a system found, and which belongs to which."""

from ongebd.data.id_matching import IdMatch, match_ids
from ongebd.data.label_set import LabelSet, VideoLabels
from ongebd.data.labels import as_label_set, min_consistency_of, read_ids, read_labels
from ongebd.data.prediction_set import PredictionSet, VideoPrediction, as_prediction_set
from ongebd.data.predictions import read_predictions

__all__ = [
    "IdMatch",
    "LabelSet",
    "PredictionSet",
    "VideoLabels",
    "VideoPrediction",
    "as_label_set",
    "as_prediction_set",
    "match_ids",
    "min_consistency_of",
    "read_ids",
    "read_labels",
    "read_predictions",
]
