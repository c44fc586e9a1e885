"""The control loops: one package a controller, each with `controller.py` (what is watched, what an event means) and
`reconcile.py` (the story of one pass) over modules of pure rules. No controller imports another; what two need stands
beside them: `api` (the ManagedResource), `conditions`, `status`.
"""
