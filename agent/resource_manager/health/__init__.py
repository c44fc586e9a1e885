"""Checks whether managed objects are healthy, and whether their roll-outs are complete.

Rules, functions of objects and the time; the checks of single objects are in `gardener.health`:

    projections.py     what is kept of an object: the findings about it, and whose it is
    conditions.py      from all findings to the condition, and whether it has to be written
    predicates.py      whether a ManagedResource is to be checked now; which events lead to a check, and how soon

Around them what talks to clusters:

    objects.py, pods.py   what is known of objects and pods, from watches and by reading
    warnings.py           the Events about Services that are not healthy
    checks.py             one look at all objects of a ManagedResource
    reconcile.py          the look, and the condition that comes of it
    controller.py         which event concerns which ManagedResource

The original has the same two controllers (`health` and `health-progressing`) with the same reasons and messages, since
programs parse them.
"""
