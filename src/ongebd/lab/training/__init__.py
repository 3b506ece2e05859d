"""Training the anticipator on stored features: `ongebd train`. Needs the extra `train`.

Read in this order: `config` (every setting), `loop` (what happens, from top to bottom), `objective` (the loss
of a batch), `batches` (where a batch comes from), `validation` (how good it is), `report`.

Nothing is imported here, so that a part can be used without what the others need.
"""
