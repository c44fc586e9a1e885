"""Who may ask webhooks: API servers, by the certificates that they show.

What is asked of a webhook names the user who is to be believed to have sent a request. So an answer shows whoever asks
what that user may do, and what there is; and it costs time. Where certificates are asked for, all others get nothing.
"""

import asyncio
from collections.abc import Collection
from typing import Any


class Clients:
    """Args: names: common names that a certificate may have; empty: any, so each that the authorities have signed."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    def knows(self, transport: asyncio.BaseTransport | None) -> bool:
        """Whether the client of a connection has shown such a certificate."""
        shown = None if transport is None else transport.get_extra_info("peercert")
        if not shown:
            return False
        return not self._names or not self._names.isdisjoint(_common_names(shown))


def _common_names(certificate: dict[str, Any]) -> list[str]:
    return [value for rdn in certificate.get("subject", ()) for name, value in rdn if name == "commonName"]
