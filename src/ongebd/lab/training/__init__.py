"""Training the anticipator on stored features: `ongebd train`. Needs the extra `train`.

Read in this order: `config` (every setting), `loop` (the whole training), `task` (networks and losses),
`batches`, `validation`, `report`. This module imports nothing, so that each part needs only its own imports.
"""
