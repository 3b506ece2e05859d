"""Speed on the user's own machine: the paper's tables for every method, with torch's own way beside each.

>>> from ongebd.lab.benchmark import BenchPlan, benchmark
>>> result = benchmark(BenchPlan(methods=("persistence",), repeats=1, seconds=0.01))
>>> result.complete, result.methods[0].ways[0].overall.fps.median > 0
(True, True)
"""

from ongebd.lab.benchmark.plan import BenchPlan
from ongebd.lab.benchmark.result import BenchResult
from ongebd.lab.benchmark.run import Bench, benchmark

__all__ = ["Bench", "BenchPlan", "BenchResult", "benchmark"]
