"""Servers on this computer: waiting for them, and for any other condition."""

import sys
import time
import urllib.request
from collections.abc import Callable

HOST = "127.0.0.1"
PATIENT = {"leaseDuration": "300s", "renewDeadline": "240s"}
"""Times of elections on this computer, which may be busy, or sleep. A program has no second replica, and its next
process has the same identity.
"""
_NOTICE_SECONDS = 15.0


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
    """Wait until the condition holds, and return the time by `time.monotonic`. A long wait is shown on stderr.

    Raises:
        LocalProcessError: it does not hold within the seconds; with the explanation.
    """
    begin = time.monotonic()
    notice = begin + _NOTICE_SECONDS
    while not holds():
        now = time.monotonic()
        if now > begin + within:
            reasons = filter(None, [f"timed out after {within:.0f} s waiting for {what}", explain()])
            raise LocalProcessError("\n".join(reasons))
        if now > notice:
            print(f"waiting for {what}, for {now - begin:.0f} s", file=sys.stderr, flush=True)
            notice = now + _NOTICE_SECONDS
        time.sleep(pause)
    return time.monotonic()
