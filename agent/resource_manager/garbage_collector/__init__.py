"""Deletes ConfigMaps and Secrets of the target cluster that nothing refers to any more.

    candidates.py   what may be deleted: labelled, and old enough
    reconcile.py    one round: list, drop what is referred to, delete the rest
    metrics.py      what came of it
    controller.py   when there is a round

What an annotation refers to is in `gardener.references`.
"""
