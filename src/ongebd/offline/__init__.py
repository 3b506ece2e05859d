"""The offline systems of the paper's tables: each sees the whole video before it decides.

A system is one file. `systems` lists them without importing torch. Trained ones are networks on stored
features (`network`); the others are functions of a video's features. `whole_video` runs either on one
video. They refuse streams, and their rows never stand among those of online methods.
"""
