"""aiohttp, imported such that it does not read the certificate authorities of this machine.

When it is imported, aiohttp makes two TLS contexts for connections that name none, and reads all authorities of the
machine for each: a tenth of the CPU that a program takes to start, and 2 MiB. Here every connection names its context
(`kube.runtime.connection` reads the machine's authorities where a kubeconfig names none). One that did not would trust
no server.

The first import counts, so this one has to come before any other of aiohttp.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_PLACES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where OpenSSL looks for authorities, if they are set."""


@contextmanager
def _no_authorities() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(_PLACES, os.devnull))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


with _no_authorities():
    import aiohttp

__all__ = ["aiohttp"]
