"""Import aiohttp such that it does not load the CA certificates of this machine.

On import, aiohttp makes two TLS contexts for connections without one, and loads all CAs of the machine for each: a
tenth of the CPU for the start of a program, and 2 MiB. Here every connection has its own context
(`kube.runtime.connection` loads the machine's CAs if a kubeconfig names none). A connection without one would trust no
server.

The first import counts, so this one has to precede any other of aiohttp.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_PLACES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables with the places in which OpenSSL looks for CAs."""


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
