"""Speed on the user's machine: the paper's tables for every method, with torch's own way beside each.

>>> from ongebd.lab.benchmark import Bench, BenchPlan
>>> result = Bench(BenchPlan(methods=("persistence",), repeats=1, seconds=0.01)).run()
>>> result.complete, result.methods[0].ways[0].overall.fps.median > 0
(True, True)
"""

from ongebd.lab.benchmark.bench import Bench
from ongebd.lab.benchmark.plan import BenchPlan

__all__ = ["Bench", "BenchPlan"]
