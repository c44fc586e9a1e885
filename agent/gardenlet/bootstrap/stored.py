"""The Secret in the seed cluster that holds the kubeconfig for the garden, and the parsed kubeconfig."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.gardenlet.bootstrap.rules.certificate import Life
from agent.gardenlet.bootstrap.rules.kubeconfig import KEY, secret, secret_patch
from kube.errors import AlreadyExists, Conflict
from kube.objects import Key, Object, mapping, text
from kube.resources import SECRETS
from kube.runtime.client import Client
from kube.runtime.connection import Connection, connection_of_kubeconfig, load_kubeconfig
from kube.runtime.kubeconfig import find_entry, parse_kubeconfig, read_kubeconfig
from kube.x509 import Certificate, load_certificates

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """Relevant parts of a kubeconfig's current context."""

    connection: Connection
    cluster: Object
    """Cluster entry, with the CA as data."""
    certificate_pem: bytes
    """Client certificate, perhaps with intermediate CAs; empty if there is none. The same holds for `key`."""
    key: bytes
    content: bytes

    @property
    def certificate(self) -> Certificate | None:
        return next(iter(load_certificates(self.certificate_pem)), None)

    @property
    def life(self) -> Life | None:
        certificate = self.certificate
        return None if certificate is None else Life.of(certificate)

    def __repr__(self) -> str:
        return f"Kubeconfig({self.connection.server})"


def of_content(content: bytes, *, origin: str) -> Kubeconfig:
    """Parse a kubeconfig; `origin` names it in errors.

    Raises:
        ConfigurationError: it is invalid.
    """
    connection = connection_of_kubeconfig(content, origin=origin)
    return _kubeconfig(connection, parse_kubeconfig(content, origin=origin), content)


def of_file(path: Path) -> Kubeconfig:
    """Read a kubeconfig file.

    Raises:
        ConfigurationError: it is invalid.
    """
    connection, found = load_kubeconfig(path), read_kubeconfig(path)
    kubeconfig = _kubeconfig(connection, found, b"")
    file = text(kubeconfig.cluster.get("certificate-authority"))
    if file and not kubeconfig.cluster.get("certificate-authority-data"):
        authority = base64.b64encode((path.parent / file).read_bytes()).decode()
        kubeconfig.cluster["certificate-authority-data"] = authority
    return kubeconfig


def _kubeconfig(connection: Connection, document: Mapping[str, object], content: bytes) -> Kubeconfig:
    context = find_entry(document, "contexts", document.get("current-context"), "context") or {}
    user = find_entry(document, "users", context.get("user"), "user") or {}
    return Kubeconfig(
        connection=connection,
        cluster=dict(find_entry(document, "clusters", context.get("cluster"), "cluster") or {}),
        certificate_pem=_decoded(user.get("client-certificate-data")),
        key=_decoded(user.get("client-key-data")),
        content=content,
    )


def _decoded(value: object) -> bytes:
    """Decode leniently: invalid data was already rejected when the connection was made."""
    return base64.b64decode("".join(text(value).split()))


# --- the Secret


def content_of(found: Object | None) -> bytes:
    """Kubeconfig in a Secret; empty if there is none."""
    try:
        return base64.b64decode(text(mapping((found or {}).get("data")).get(KEY)))
    except ValueError:
        return b""


class Overtaken(Exception):
    """Another kubeconfig was stored in the Secret meanwhile."""


async def store(
    client: Client,
    where: tuple[str, str],
    content: bytes,
    *,
    instead_of: bytes,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """Store the kubeconfig as the only data of the Secret, and return the Secret.

    Args:
        client: of the seed cluster.
        where: namespace and name.
        content: the kubeconfig.
        instead_of: the expected present kubeconfig; empty if none.
        annotations: to set.

    Raises:
        Overtaken: another kubeconfig was stored meanwhile.
    """
    (namespace, name), noted, attempts = where, annotations or {}, _ATTEMPTS
    while True:
        attempts -= 1
        present = await client.find(SECRETS, Key(namespace, name))
        if content_of(present) not in {instead_of, content}:
            raise Overtaken(f"another client replaced the kubeconfig in the Secret {namespace}/{name}")
        try:
            if present is None:
                return await client.create(SECRETS, secret(namespace, name, content, annotations=noted))
            patch = secret_patch(present, content, annotations=noted)
            return await client.patch(SECRETS, Key(namespace, name), patch)
        except (AlreadyExists, Conflict):
            if not attempts:
                raise  # else it has changed, perhaps in other fields: try again
