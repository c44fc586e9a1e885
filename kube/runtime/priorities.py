"""How urgent it is to look at a key of a work queue."""

from typing import Final, Literal

Priority = Literal[0, -50, -100, -200]
CHANGE: Final = 0
"""Something happened to the object."""
REMOVAL: Final = -50
"""The object is being deleted, perhaps with thousands of others."""
RESYNC: Final = -100
"""The object is looked at because it is time: the initial list, resyncs."""
LAST: Final = -200
"""The object is looked at when nothing else is left, or many others have had their turns."""

PRIORITIES: tuple[Priority, ...] = (CHANGE, REMOVAL, RESYNC, LAST)


def any_priority(_key: object) -> Priority:
    """A key may have any."""
    return CHANGE
