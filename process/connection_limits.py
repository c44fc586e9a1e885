"""Limits on the connections of a server, and the choice of connections to close beyond them.

There is a limit on connections, and one on the unanswered bytes of all of them together. Beyond either, the client that
has kept the server waiting for the longest time is disconnected: one that is idle, sends slowly, or has stopped in the
middle of a request. So a quick client is served regardless of others.

These are the rules, without I/O. `process.server` reports events, and closes the connections that these rules return.
"""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar


class Connected(Protocol):
    """A connection, as these rules see it."""

    held: int
    """Unanswered bytes that it has sent."""
    since: float
    """Monotonic time when it was opened, or sent the first byte of its latest request."""

    @property
    def complete(self) -> bool:
        """Whether one of its requests has arrived completely, and is being answered."""


C = TypeVar("C", bound=Connected)


class ConnectionLimits(Generic[C]):
    """All connections of a server.

    Args:
        most: maximum number of connections.
        most_held: maximum unanswered bytes of all of them together.
    """

    def __init__(self, *, most: int, most_held: int) -> None:
        self.most_held = most_held
        self.held = 0
        """Sum over all connections, updated where the bytes arrive, since that is often."""
        self._most = most
        self._all: set[C] = set()

    def opened(self, new: C) -> C | None:
        """Add a connection; return the one to close for it: the new one, if all others are being answered."""
        self._all.add(new)
        if len(self._all) <= self._most:
            return None
        others = (each for each in self._all if each is not new and not each.complete)
        return self._left(min(others, key=_since, default=new))

    def longest(self) -> C | None:
        """Return the one to close if the process has no more file descriptors; None if all are being answered."""
        found = min((each for each in self._all if not each.complete), key=_since, default=None)
        return None if found is None else self._left(found)

    def too_much(self, sender: C) -> Iterator[C]:
        """Yield connections to close while too many bytes are held after new ones from a sender."""
        while self.held > self.most_held:
            incomplete = (each for each in self._all if each.held and not each.complete)
            yield self._left(min(incomplete, key=_since, default=sender))

    def answered(self, connection: C) -> None:
        self.held -= connection.held
        connection.held = 0

    def closed(self, connection: C) -> None:
        """Remove a connection; may be called twice."""
        self._all.discard(connection)
        self.answered(connection)

    def _left(self, connection: C) -> C:
        self.closed(connection)
        return connection


def _since(connection: Connected) -> float:
    return connection.since
