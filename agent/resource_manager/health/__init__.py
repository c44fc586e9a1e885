"""Check whether managed objects are healthy, and whether their roll-outs are complete.

The checks of single objects are in `gardener.health`. The original has the same two controllers (`health` and
`health-progressing`) with the same reasons and messages, since programs parse them.
"""
