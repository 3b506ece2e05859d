"""Small tools that every room may use."""

MAX_PIXELS = 2**26
"""The largest picture that is decoded by default: 8192 × 8192."""
