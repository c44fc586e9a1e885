"""Kubeconfigs with which an API server calls a webhook of a tenant.

All clusters and users are kept: plugins that call several webhooks choose a user by the name of the server.
"""

import base64
import binascii
from collections.abc import Container
from typing import Any, Literal

import msgspec

from gardener.tenant_files.reading import (
    Fields,
    UnusableFile,
    decoded,
    demand_certificates,
    demand_url,
    model,
    plain,
    written,
)

KEY = "kubeconfig"
"""Key of the Secret."""
MOST_ENTRIES = 64
"""Maximum length of each list."""


class _Cluster(Fields, frozen=True, kw_only=True, rename="kebab"):
    server: str
    certificate_authority_data: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool = False
    disable_compression: bool = False


class _User(Fields, frozen=True, kw_only=True, rename="kebab"):
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None


class _Context(Fields, frozen=True, kw_only=True):
    cluster: str
    user: str | None = None
    namespace: str | None = None


class _NamedCluster(Fields, frozen=True, kw_only=True):
    name: str
    cluster: _Cluster


class _NamedUser(Fields, frozen=True, kw_only=True):
    name: str
    user: _User


class _NamedContext(Fields, frozen=True, kw_only=True):
    name: str
    context: _Context


class _Kubeconfig(Fields, frozen=True, kw_only=True):
    apiVersion: Literal["v1"]
    kind: Literal["Config"]
    preferences: dict[str, Any] | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = msgspec.field(default=None, name="current-context")


def kubeconfig(content: bytes | str, *, token_files: Container[str] = ()) -> str:
    """The kubeconfig, written from the allowed fields.

    Args: token_files: paths that it may name; empty for a kubeconfig of a tenant.

    Raises:
        UnusableFile: the kubeconfig is not allowed, or not readable.
    """
    found = model(decoded(content), _Kubeconfig)
    for field, entries in (("clusters", found.clusters), ("users", found.users), ("contexts", found.contexts)):
        _demand_names(field, [each.name for each in entries or ()])
    for index, cluster in enumerate(found.clusters or ()):
        _demand_cluster(cluster.cluster, f"clusters[{index}].cluster")
    for index, user in enumerate(found.users or ()):
        _demand_user(user.user, f"users[{index}].user", token_files)
    return written({field: value for field, value in plain(found).items() if field != "preferences"})


def _demand_names(field: str, names: list[str]) -> None:
    if len(names) > MOST_ENTRIES:
        raise UnusableFile(f"{field} has more than {MOST_ENTRIES} entries")
    if len(set(names)) < len(names):
        raise UnusableFile(f"{field} has two entries with the same name; rename one")


def _demand_cluster(cluster: _Cluster, where: str) -> None:
    demand_url(cluster.server, f"{where}.server")
    if authority := cluster.certificate_authority_data:
        place = f"{where}.certificate-authority-data"
        demand_certificates(_bytes(authority, place), place)


def _demand_user(user: _User, where: str, token_files: Container[str]) -> None:
    if user.token_file is not None and user.token_file not in token_files:
        raise UnusableFile(f"{where}.tokenFile must not be set; put the token into the field token")
    _bytes(user.client_certificate_data or "", f"{where}.client-certificate-data")
    _bytes(user.client_key_data or "", f"{where}.client-key-data")


def _bytes(encoded: str, where: str) -> bytes:
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        raise UnusableFile(f"{where} must be base64") from None
