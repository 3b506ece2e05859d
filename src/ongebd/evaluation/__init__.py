"""How good a set of boundaries is, and what a score hides."""

from ongebd.evaluation.evaluation import Evaluation, evaluate
from ongebd.evaluation.relative_distance import THRESHOLDS, RelativeDistance, relative_distance
from ongebd.evaluation.system import EvaluationConfig

__all__ = [
    "THRESHOLDS",
    "Evaluation",
    "EvaluationConfig",
    "RelativeDistance",
    "evaluate",
    "relative_distance",
]
