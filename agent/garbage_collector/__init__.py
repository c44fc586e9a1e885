"""Deletes ConfigMaps and Secrets of the target cluster that nothing refers to any more.

    candidates.py   what may be deleted: labelled, and old enough
    users.py        which kinds refer to objects by annotations, and how they are read
    rounds.py       the story of one round
    metrics.py      what came of it
    controller.py   when there is a round

What an annotation refers to is told by `agent.references`.
"""
