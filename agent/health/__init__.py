"""Tells whether managed objects are healthy, and whether their roll-outs are complete.

Rules, functions of objects and the time:

    checks/            one module a kind: an object in, what is wrong with it out
    findings.py        applies the checks to an object that a ManagedResource lists
    judged.py          what is kept of an object: the findings about it, and whose it is
    verdicts.py        from all findings to the condition, and whether it has to be written
    gate.py            whether a ManagedResource is to be checked now
    triggers.py        which events lead to a check, and how soon

Around them what talks to clusters:

    objects.py, pods.py   what is known of objects and pods, from watches and by reading
    warnings.py           the Events about Services that are not healthy
    walks.py              one look at all objects of a ManagedResource
    passes.py             the look, and the condition that comes of it
    controller.py         which event concerns which ManagedResource

The original has the same two controllers (`health` and `health-progressing`) with the same reasons and messages, since
programs parse them.
"""
