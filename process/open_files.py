"""Limit of open files (RLIMIT_NOFILE), and the share of it for the clients of a server.

A connection is an open file. Without a limit below that of the process, idle clients would keep the process from
accepting probes, and from opening its own files and connections.
"""

import contextlib
import resource

_ENOUGH = 65_536
_PARTS = 10
"""A server may take one part for its connections and one for TLS handshakes; no program has more than five servers."""
_FEWEST = 4


def raise_limit() -> None:
    """Raise the soft limit to the hard one, up to the maximum that any program needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # Some sandboxes refuse any change.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections(wanted: int) -> int:
    """Return the number of connections for a server that wants so many."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return share(wanted, limit=_ENOUGH if soft == resource.RLIM_INFINITY else soft)


def share(wanted: int, *, limit: int) -> int:
    return min(wanted, max(limit // _PARTS, _FEWEST))
