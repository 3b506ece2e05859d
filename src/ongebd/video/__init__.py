"""Everything that touches PyAV: sources, clocks, sampling, upright frames."""
