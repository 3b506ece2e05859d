"""How good a set of boundaries is, and what a score hides."""

from ongebd.lab.evaluation.evaluation import Evaluation, evaluate
from ongebd.lab.evaluation.relative_distance import THRESHOLDS, RelativeDistance, relative_distance
from ongebd.lab.evaluation.system import EvaluationConfig

__all__ = [
    "THRESHOLDS",
    "Evaluation",
    "EvaluationConfig",
    "RelativeDistance",
    "evaluate",
    "relative_distance",
]
