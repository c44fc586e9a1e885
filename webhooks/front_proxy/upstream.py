"""Connections to the API server, with and without the certificate of a front proxy.

The certificate is read again for every connection, so that it can be replaced at any time.
"""

import asyncio
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from kube.files import read_bounded
from kube.runtime.client import RoundTripper
from webhooks.front_proxy.streams import MOST, Stream
from webhooks.tls import CERTIFICATE, KEY, CertificateError

_SECONDS = 10.0
_LARGEST_FILE = 1 << 20
_HTTPS = 443
_UNNAMED = "http/1.1"
"""Protocol of servers that name none."""


class Upstream:
    """The garden's API server.

    Args:
        garden: names its address and CA.
        certificates: directory with certificate and key of a front proxy; None: there are none.
    """

    def __init__(self, garden: RoundTripper, certificates: Path | None) -> None:
        self._garden = garden
        self._certificates = certificates
        self._contexts: dict[tuple[str, bool], tuple[tuple[bytes, ...], ssl.SSLContext]] = {}

    def check(self) -> None:
        """Check that the certificate is usable.

        Raises:
            CertificateError: it is not.
        """
        if self._certificates is not None:
            self._context(_UNNAMED, trusted=True)

    async def dial(self, protocol: str, *, trusted: bool) -> Stream:
        """Return a new connection.

        Args:
            protocol: of HTTP, as in ALPN; without it, the API server does not serve this version.
            trusted: whether the API server may believe headers that name a user.

        Raises:
            OSError: the API server is unreachable, or does not speak the protocol.
            CertificateError: the certificate is unusable.
        """
        connection = self._garden.connection
        url = urlsplit(connection.server)
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(
                url.hostname,
                url.port or _HTTPS,
                ssl=self._context(protocol, trusted=trusted),
                server_hostname=connection.tls_server_name or url.hostname,
                limit=MOST,
            )
        spoken = writer.get_extra_info("ssl_object").selected_alpn_protocol()
        if (spoken or _UNNAMED) != protocol:
            writer.close()
            raise OSError(f"the API server does not speak {protocol}; start it without --disable-http2-serving")
        return Stream(reader, writer)

    def _context(self, protocol: str, *, trusted: bool) -> ssl.SSLContext:
        authority = self._garden.connection.authority
        made_of = (authority, *(self._pair() if trusted else ()))
        known = self._contexts.get((protocol, trusted))
        if known is None or known[0] != made_of:
            known = made_of, self._new_context(protocol, authority, trusted=trusted)
            self._contexts[protocol, trusted] = known
        return known[1]

    def _pair(self) -> tuple[bytes, bytes]:
        assert self._certificates is not None
        try:
            files = (self._certificates / CERTIFICATE, self._certificates / KEY)
            return read_bounded(files[0], most=_LARGEST_FILE), read_bounded(files[1], most=_LARGEST_FILE)
        except (OSError, ValueError) as error:
            raise CertificateError(
                f"cannot read the certificate of server.frontProxy.clientCertDir: {error}"
            ) from error

    def _new_context(self, protocol: str, authority: bytes, *, trusted: bool) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=authority.decode("ascii", "ignore") or None)
        context.set_alpn_protocols([protocol])
        if trusted and self._certificates is not None:
            try:
                context.load_cert_chain(self._certificates / CERTIFICATE, self._certificates / KEY, password="")
            except (OSError, ValueError) as error:
                what = f"the certificate in {self._certificates} of server.frontProxy.clientCertDir"
                raise CertificateError(f"cannot use {what}: {error}") from error
        return context
