"""The paper's method."""
