"""Urgency of keys in a work queue."""

from typing import Final, Literal

Priority = Literal[0, -50, -100, -200]
CHANGE: Final = 0
"""The object was changed."""
REMOVAL: Final = -50
"""The object is being deleted, perhaps with thousands of others."""
RESYNC: Final = -100
"""Regular pass: the initial list, resyncs."""
LAST: Final = -200
"""Pass when nothing else is left, or many others have had their turns."""

PRIORITIES: tuple[Priority, ...] = (CHANGE, REMOVAL, RESYNC, LAST)


def any_priority(_key: object) -> Priority:
    """Allow any priority."""
    return CHANGE
