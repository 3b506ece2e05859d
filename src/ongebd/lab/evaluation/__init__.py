"""How good a set of boundaries is, and what a score hides."""

from ongebd.lab.evaluation.evaluation import EvaluationConfig, evaluate
from ongebd.lab.evaluation.relative_distance import THRESHOLDS, RelativeDistance, relative_distance

__all__ = ["THRESHOLDS", "EvaluationConfig", "RelativeDistance", "evaluate", "relative_distance"]
