"""What every room may use: geometry, prefetching, naming, printing."""
