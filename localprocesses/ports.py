"""Ports for servers of this computer.

Ports that the kernel gives to clients are left out: a client may get one a moment later. A server with a given port may
not listen yet, or pause for a moment. So ports given by any process of this user are noted for a while, and not given
again.
"""

import json
import random
import socket
import time
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from localprocesses.local import HOST, LocalProcessError
from localprocesses.state import locked, root

_PORTS = range(10_000, 32_000)
_NOTED_SECONDS = 300.0


def free_port() -> int:
    """Return one port, like `free_ports`."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return free ports.

    Raises:
        LocalProcessError: too few are free, or the directory of the notes belongs to another user.
        OSError: the notes can't be written.
    """
    file, now = root() / "ports.json", time.time()
    with locked(file.with_suffix(".lock")):
        given = {port: when for port, when in _noted(file).items() if 0 <= now - when < _NOTED_SECONDS}
        candidates = (port for port in random.sample(_PORTS, len(_PORTS)) if str(port) not in given)
        found = list(islice(filter(_is_free, candidates), count))
        if len(found) < count:
            raise LocalProcessError(
                f"{HOST} has no free port from {_PORTS.start} to {_PORTS.stop - 1}: end some servers"
            )
        new = file.with_suffix(".new")
        new.write_text(json.dumps(given | dict.fromkeys(map(str, found), now)))
        new.replace(file)
    return found


def _noted(file: Path) -> Mapping[str, float]:
    """Time at which each port was given."""
    try:
        written: Mapping[str, float] = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return written


def _is_free(port: int) -> bool:
    try:
        with socket.create_server((HOST, port)):
            return True
    except OSError:
        return False
