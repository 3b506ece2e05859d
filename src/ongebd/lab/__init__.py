"""For researchers: training, evaluation, composites, the benchmark and the experiments of the paper."""
