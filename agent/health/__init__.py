"""Tells whether managed objects are healthy, and whether their roll-outs are complete.

    checks/            one module a kind: an object in, what is wrong with it out
    findings.py        applies the checks to an object that a ManagedResource lists
    verdicts.py        from all findings to the condition, and whether it has to be written
    gate.py            whether a ManagedResource is to be checked now
    triggers.py        which events lead to a check of which ManagedResource
    projection.py      the part of an object that all of this reads

Everything here is a function of objects and the time. The original has the same two controllers (`health` and
`health-progressing`) with the same reasons and messages, since programs parse them.
"""
