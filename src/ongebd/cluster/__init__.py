"""Features and boundaries of many videos on many machines, with Ray; the same as one machine computes.

Needs the extra `cluster`. The driver alone writes; the workers read videos and return what they found.
"""
