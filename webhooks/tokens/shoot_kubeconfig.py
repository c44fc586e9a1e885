"""Short-lived kubeconfigs for a Shoot, signed by the authority that its API server trusts for clients."""

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from kube.objects import Object, text
from kube.x509 import Pair, UnusablePair, make_client, read_pair

SHORTEST, LONGEST = timedelta(minutes=10), timedelta(days=1)
_SLACK = timedelta(minutes=5)
"""Maximum lag of the clock of the API server."""
_PUBLIC = "wildcard-tls-seed-bound"
"""Name of the address with a certificate that all clients trust."""
_SUITABLE = ("external", "internal", _PUBLIC, "unmanaged")
"""Names of addresses that belong to an API server."""


class CannotIssue(ValueError):
    """A prerequisite is missing; the text names it, and the component that adds it."""


class NoAuthority(CannotIssue):
    """The gardenlet has not written a necessary object to the garden: neither the request nor the Shoot is wrong."""

    def __init__(self, problem: str, *, remedy: str = "") -> None:
        default = "the gardenlet writes it to InternalSecret SHOOT.ca-client when it reconciles the Shoot"
        super().__init__(f"could not get client CA secret: {problem}; {remedy or default}")


def issue(
    *,
    name: str,
    addresses: Mapping[str, str],
    authority: Object | None,
    cluster: str,
    user: str,
    group: str,
    now: datetime,
    lifetime: timedelta,
) -> tuple[bytes, datetime]:
    """Return the kubeconfig and its expiry: as requested within `SHORTEST` and `LONGEST`, but not after its authority.

    Args:
        name: name of user and contexts.
        addresses: URLs of the API server by name; the first is that of the current context.
        authority: data of the Secret with certificate and key of the authority for clients; None if there is none.
        cluster: CA certificates of the API server, PEM.
        user: name of the user in the Shoot.
        group: group of the user.
        now: begin of the lifetime.
        lifetime: requested lifetime.

    Raises:
        CannotIssue: an address or the CA certificates are missing.
        NoAuthority: the authority for clients is missing, unusable or expired.
    """
    servers = {known: url for known, url in addresses.items() if known in _SUITABLE and url}
    if not servers:
        raise CannotIssue(
            "no suitable advertised address for kube-apiserver found in .status.advertisedAddresses;"
            " the gardenlet adds it once the API server has an address"
        )
    if not cluster:
        raise CannotIssue(
            "the CA of its API server is unknown; the gardenlet writes it to key"
            " ca.crt of ConfigMap SHOOT.ca-cluster when it reconciles the Shoot"
        )
    issuer = _loaded(authority)
    end = issuer.certificate.not_valid_after_utc
    if end <= now:
        raise NoAuthority("the authority has expired", remedy="rotate the certificate authorities of the Shoot")
    expires = min(now + min(max(lifetime, SHORTEST), LONGEST), end)
    client = make_client(issuer, user, [group], now=now, lifetime=expires - now, slack=_SLACK)
    return json.dumps(_kubeconfig(name, servers, cluster=cluster, client=client)).encode(), expires


def _kubeconfig(name: str, servers: Mapping[str, str], *, cluster: str, client: Pair) -> Object:
    """Make a kubeconfig with a context for each server; the first is the current one. Args: cluster: see `issue`."""
    ca = {"certificate-authority-data": base64.b64encode(cluster.encode()).decode()}
    contexts = {f"{name}-{known}": url for known, url in servers.items()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(contexts)),
        "clusters": [
            {"name": f"{name}-{known}", "cluster": {"server": url, **({} if known == _PUBLIC else ca)}}
            for known, url in servers.items()
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


def _loaded(authority: Object | None) -> Pair:
    if authority is None:
        raise NoAuthority("it does not exist")
    try:
        pem = [base64.b64decode(text(authority.get(name)), validate=True) for name in ("ca.crt", "ca.key")]
        return read_pair(*pem)
    except binascii.Error:
        raise NoAuthority("the authority is missing or not readable") from None
    except UnusablePair as error:
        raise NoAuthority(f"the authority {error}") from None
