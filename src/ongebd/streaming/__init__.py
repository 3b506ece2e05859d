"""The state machine of one stream, the models that run in it, and a whole source run through it."""

from ongebd.streaming.config import StreamConfig
from ongebd.streaming.detector import OnlineDetector
from ongebd.streaming.models import Model, load, model_names
from ongebd.streaming.run import Seen, SourceRun, detect

__all__ = ["Model", "OnlineDetector", "Seen", "SourceRun", "StreamConfig", "detect", "load", "model_names"]
