"""The state machine of one stream, and the models that can run in it."""
