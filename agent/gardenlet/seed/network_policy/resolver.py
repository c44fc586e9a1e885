"""Addresses of the host name of the seed's API server: resolved every 30 seconds.

The last addresses stay if a lookup fails. An API server with an address needs no lookup.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import urlsplit

import structlog

from agent.gardenlet.seed.network_policy.rules.networks import Endpoint, is_address

PERIOD = 30.0
_HTTPS = 443
_MOST = 100
"""Maximum number of addresses."""

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Returns the addresses of a host name. Raises OSError, UnicodeError."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def host_name(server: str, environment: Mapping[str, str]) -> tuple[str, int] | None:
    """Host name and port to resolve; None if there are only addresses.

    Args:
        server: host and port of the connection.
        environment: in a Pod it names the API server, too.
    """
    parts = urlsplit(f"//{server}")
    if parts.hostname and not is_address(parts.hostname):
        return parts.hostname, parts.port or _HTTPS
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "")
    if host and not is_address(host):
        return host, int(port) if port.isdecimal() else _HTTPS
    return None


async def resolve(host: str) -> Sequence[str]:
    """Resolve a host name.

    Raises:
        OSError: the lookup failed.
        UnicodeError: it is not a valid host name.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Resolver:
    """Resolver of the API server's host name.

    Args:
        server: host name and port; None if there is nothing to resolve.
        changed: called when the addresses have changed.
    """

    def __init__(
        self,
        server: tuple[str, int] | None,
        *,
        changed: Callable[[], None],
        resolve: Resolve = resolve,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._server, self._changed, self._resolve, self._sleep = server, changed, resolve, sleep
        self._task: asyncio.Task[None] | None = None
        self.endpoints: Sequence[Endpoint] | None = None if server is not None else ()
        """Endpoints; None before the first lookup."""

    async def start(self) -> None:
        if self._server is not None:
            self._task = asyncio.create_task(self._run(*self._server), name="resolver")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _run(self, host: str, port: int) -> None:
        problem = ""
        while True:
            try:
                addresses = await self._resolve(host)
            except (OSError, UnicodeError) as error:
                if problem != str(error):
                    log.warning("The host name of the seed's API server can't be resolved", host=host, error=str(error))
                problem = str(error)
            else:
                problem = ""
                self._note(addresses, port)
            await self._sleep(PERIOD)

    def _note(self, addresses: Sequence[str], port: int) -> None:
        found = sorted({address for address in addresses if is_address(address)})[:_MOST]
        endpoints = (Endpoint(tuple(found), (("TCP", port),)),) if found else ()
        if endpoints != self.endpoints:
            self.endpoints = endpoints
            self._changed()
