"""Kubeconfigs for a Shoot, of short life, signed by the authority that its API server trusts for clients."""

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from kube.objects import Object, text
from kube.x509 import Pair, UnusablePair, make_client, read_pair

SHORTEST, LONGEST = timedelta(minutes=10), timedelta(days=1)
_SLACK = timedelta(minutes=5)
"""How far the clock of the API server may be behind."""
_SUITABLE = ("external", "internal", "unmanaged")
"""Names of addresses that are those of an API server."""


class CannotIssue(ValueError):
    """The text says what is missing."""


def issue(
    *,
    name: str,
    addresses: Mapping[str, str],
    authority: Object,
    cluster: str,
    user: str,
    group: str,
    now: datetime,
    lifetime: timedelta,
) -> tuple[bytes, datetime]:
    """The kubeconfig and when it expires: as asked within `SHORTEST` and `LONGEST`, but not after its authority.

    Args:
        name: of user and contexts.
        addresses: URLs of the API server by name; the first is the one of the current context.
        authority: data of the Secret with certificate and key of the authority for clients.
        cluster: certificates by which the API server is known, PEM.
        user: name of the user in the Shoot.
        group: of the user.
        now: begin of the lifetime.
        lifetime: as asked for.

    Raises: CannotIssue.
    """
    servers = {known: url for known, url in addresses.items() if known in _SUITABLE and url}
    if not servers:
        raise CannotIssue("no suitable advertised address for kube-apiserver found in .status.advertisedAddresses")
    if not cluster:
        raise CannotIssue("the certificates of its API server are not known")
    issuer = _loaded(authority)
    end = issuer.certificate.not_valid_after_utc
    if end <= now:
        raise CannotIssue("could not get client CA secret: the authority has expired")
    expires = min(now + min(max(lifetime, SHORTEST), LONGEST), end)
    client = make_client(issuer, user, [group], now=now, lifetime=expires - now, slack=_SLACK)
    ca = base64.b64encode(cluster.encode()).decode()
    contexts = {f"{name}-{known}": url for known, url in servers.items()}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(contexts)),
        "clusters": [
            {"name": each, "cluster": {"server": url, "certificate-authority-data": ca}}
            for each, url in contexts.items()
        ],
        "contexts": [{"name": each, "context": {"cluster": each, "user": name}} for each in contexts],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": base64.b64encode(client.certificate_pem).decode(),
                    "client-key-data": base64.b64encode(client.key_pem).decode(),
                },
            }
        ],
    }
    return json.dumps(config).encode(), expires


def _loaded(authority: Object) -> Pair:
    try:
        pem = [base64.b64decode(text(authority.get(name)), validate=True) for name in ("ca.crt", "ca.key")]
        return read_pair(*pem)
    except binascii.Error:
        raise CannotIssue("could not get client CA secret: the authority is missing or not readable") from None
    except UnusablePair as error:
        raise CannotIssue(f"could not get client CA secret: the authority {error}") from None
