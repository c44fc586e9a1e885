"""Kubeconfigs for the garden: the choice of one, and the format of the stored one."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Any

import yaml

from agent.gardenlet.bootstrap.rules.certificate import Life
from gardener import keys
from kube.clock import format_time
from kube.objects import Object
from kube.resources import SECRETS
from kube.x509 import load_certificates

KEY = "kubeconfig"
NAME = "gardenlet"
"""Name of cluster, user and context."""
NO_AUTHORITY = frozenset({"none", "null"})
"""Configured values of the CA that select the system's CAs."""
_KEPT = ("server", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify")
"""Fields of a cluster entry that are copied to the stored kubeconfig."""


# --- the choice


class Source(Enum):
    FILE = auto()
    """The file of `gardenClientConnection.kubeconfig`."""
    STORED = auto()
    BOOTSTRAP = auto()
    """Request a certificate with the bootstrap kubeconfig."""
    NONE_VALID = auto()
    """The stored one has expired, and there is no bootstrap kubeconfig."""


class NoKubeconfig(Exception):
    """No way into the garden is configured; the text names the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Sources to choose from."""

    file: str
    """Path of the file; empty if none."""
    has_secret: bool
    """Whether a Secret for the kubeconfig is configured."""
    stored: bytes
    life: Life | None
    """Validity of the certificate in the stored kubeconfig; None if it has none."""
    may_bootstrap: bool
    """Whether a Secret with a bootstrap kubeconfig is configured."""
    bootstrap: bytes


def choice(found: Found, *, now: datetime) -> Source:
    """Return the source of the kubeconfig.

    Raises:
        NoKubeconfig: there is none.
    """
    if found.has_secret and found.stored:
        if found.life is None or not found.life.is_over(now):
            return Source.STORED
        return Source.BOOTSTRAP if found.bootstrap else Source.NONE_VALID
    if found.has_secret and found.may_bootstrap:
        if not found.bootstrap:
            raise NoKubeconfig("bootstrap secret does not contain a kubeconfig, cannot bootstrap")
        return Source.BOOTSTRAP
    if not found.file:
        raise NoKubeconfig(
            "no kubeconfig for the garden is configured; set gardenClientConnection.kubeconfig, or kubeconfigSecret and"
            " bootstrapKubeconfig there"
        )
    return Source.FILE


def expired_text(*, secret: str, bootstrap: str, seed: str, life: Life) -> str:
    """Message for expired credentials, with the remedy; `secret` and `bootstrap` are `namespace/name`."""
    ways = [f"store a bootstrap kubeconfig in the Secret {bootstrap}"] if bootstrap else []
    ways.append(f"store a new kubeconfig in the Secret {secret}")
    if not bootstrap:
        ways.append("configure gardenClientConnection.bootstrapKubeconfig")
    return (
        f"the certificate in the Secret {secret}, of the gardenlet of seed {seed}, expired at"
        f" {format_time(life.until)}; {' or '.join(ways)}"
    )


# --- the stored kubeconfig


def document(cluster: Mapping[str, Any], *, certificate: bytes, key: bytes) -> bytes:
    """Kubeconfig to store, as YAML.

    Args:
        cluster: entry of another kubeconfig, its CA as data.
        certificate: PEM.
        key: PEM.
    """
    encoded = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {field: cluster[field] for field in _KEPT if cluster.get(field)}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
        "users": [{"name": NAME, "user": encoded}],
    }
    return yaml.dump(config, Dumper=yaml.CSafeDumper, sort_keys=False, width=1 << 20, encoding="utf-8")


def with_authority(cluster: Mapping[str, Any], authority: bytes) -> Object:
    """Return the cluster entry with another CA: PEM, or empty for the system's CAs."""
    changed = {field: value for field, value in cluster.items() if field != "certificate-authority-data"}
    return changed | ({"certificate-authority-data": base64.b64encode(authority).decode()} if authority else {})


def authority_of(cluster: Mapping[str, Any]) -> bytes:
    """CA as PEM; empty for the system's CAs."""
    return base64.b64decode(cluster.get("certificate-authority-data") or "")


def same_authority(one: bytes, other: bytes) -> bool:
    """Whether two bundles hold the same certificates, in any order."""
    return set(load_certificates(one)) == set(load_certificates(other)) if one and other else one == other


def configured_authority(setting: str) -> bytes | None:
    """Return the configured CA as PEM, empty for the system's CAs; None if nothing is configured.

    Raises:
        ValueError: it is not valid base64.
    """
    if not setting:
        return None
    decoded = base64.b64decode(setting, validate=True)
    return b"" if decoded.strip().decode(errors="replace") in NO_AUTHORITY else decoded


def secret(namespace: str, name: str, content: bytes, *, annotations: Mapping[str, str]) -> Object:
    """Build a new Secret."""
    meta: Object = {"name": name, "namespace": namespace} | ({"annotations": dict(annotations)} if annotations else {})
    return {**SECRETS.type_meta, "metadata": meta, "type": "Opaque", "data": {KEY: base64.b64encode(content).decode()}}


def secret_patch(present: Object, content: bytes, *, annotations: Mapping[str, str]) -> Object:
    """Merge patch that keeps only the kubeconfig in the data, and removes the operation annotation.

    It includes the resourceVersion: users may put kubeconfigs there, too.
    """
    data = dict.fromkeys(present.get("data") or {}) | {KEY: base64.b64encode(content).decode()}
    meta = {
        "resourceVersion": present["metadata"]["resourceVersion"],
        "annotations": {keys.OPERATION: None, **annotations},
    }
    return {"metadata": meta, "data": data}
