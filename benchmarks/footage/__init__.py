"""Shared by the benchmarks on real clips and on composites."""
