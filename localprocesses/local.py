"""Servers on this computer: waiting for them, and for any other condition."""

import time
import urllib.request
from collections.abc import Callable

HOST = "127.0.0.1"


class LocalProcessError(Exception):
    """Error for the user; the message names the cause and the remedy."""


def is_good(url: str) -> bool:
    """Whether a server answers at this http URL, with a status of success."""
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - a URL of this package
            return True
    except OSError:
        return False


def wait_until(
    holds: Callable[[], bool],
    *,
    what: str,
    within: float,
    pause: float = 0.05,
    explain: Callable[[], str] = str,
) -> float:
    """Wait until the condition holds, and return the time by `time.monotonic`.

    Raises:
        LocalProcessError: it does not hold within the seconds; with the explanation.
    """
    deadline = time.monotonic() + within
    while not holds():
        if time.monotonic() > deadline:
            reasons = filter(None, [f"timed out after {within:.0f} s waiting for {what}", explain()])
            raise LocalProcessError("\n".join(reasons))
        time.sleep(pause)
    return time.monotonic()
