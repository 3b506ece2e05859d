"""What the benchmarks on footage share: methods by name, what they find, scores, tables."""
