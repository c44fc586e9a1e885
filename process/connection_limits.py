"""The connections of a server, and which of them is closed when it gets too much.

There is a limit of connections, and one of the bytes that all of them together have sent and that were not answered
yet. When either is passed, the client makes room that has kept the server waiting for the longest time: one that is
idle, sends slowly, or has stopped in the middle of a request. So a client that is quick is served whatever others do.

Here are the rules, without I/O. `process.server` reports what happens, and closes the connections that these rules
name.
"""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar


class Connected(Protocol):
    """A connection, as these rules see it."""

    held: int
    """Bytes that it has sent, and that were not answered yet."""
    since: float
    """When it was opened, or sent the first byte of its latest request."""

    @property
    def complete(self) -> bool:
        """Whether a request of it has come as a whole, and is being answered."""


C = TypeVar("C", bound=Connected)


class ConnectionLimits(Generic[C]):
    """All connections of a server.

    Args:
        most: how many there may be.
        most_held: how many bytes all of them may hold together.
    """

    def __init__(self, *, most: int, most_held: int) -> None:
        self.most_held = most_held
        self.held = 0
        """By all of them; as that of a connection it is counted where the bytes arrive, since that is often."""
        self._most = most
        self._all: set[C] = set()

    def opened(self, new: C) -> C | None:
        """There is another one; returns which to close for it: the new one, if all others are being answered."""
        self._all.add(new)
        if len(self._all) <= self._most:
            return None
        others = (each for each in self._all if each is not new and not each.complete)
        return self._left(min(others, key=_since, default=new))

    def longest(self) -> C | None:
        """Which to close if the process has no more file descriptors; None if all are being answered."""
        found = min((each for each in self._all if not each.complete), key=_since, default=None)
        return None if found is None else self._left(found)

    def too_much(self, sender: C) -> Iterator[C]:
        """Too much is held now that one has sent something; yields which to close for that."""
        while self.held > self.most_held:
            incomplete = (each for each in self._all if each.held and not each.complete)
            yield self._left(min(incomplete, key=_since, default=sender))

    def answered(self, connection: C) -> None:
        self.held -= connection.held
        connection.held = 0

    def closed(self, connection: C) -> None:
        """It is gone; may be called twice."""
        self._all.discard(connection)
        self.answered(connection)

    def _left(self, connection: C) -> C:
        self.closed(connection)
        return connection


def _since(connection: Connected) -> float:
    return connection.since
