"""The state machine of one stream, the models that run in it, and a whole source run through it."""

from ongebd.detector.config import StreamConfig
from ongebd.detector.detector import OnlineDetector
from ongebd.detector.model import Model
from ongebd.detector.models import load, model_names
from ongebd.detector.source_run import Seen, SourceRun, detect

__all__ = ["Model", "OnlineDetector", "Seen", "SourceRun", "StreamConfig", "detect", "load", "model_names"]
