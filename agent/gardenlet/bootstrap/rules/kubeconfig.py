"""Kubeconfigs for the garden: which one is used, and what the one that is stored looks like."""

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
"""Of cluster, user and context."""
NO_AUTHORITY = frozenset({"none", "null"})
"""What is configured as certificate authority where those of the system count."""
_KEPT = ("server", "certificate-authority-data", "tls-server-name", "insecure-skip-tls-verify")
"""Of the cluster for which a certificate was asked."""


# --- which one


class Source(Enum):
    FILE = auto()
    """That of `gardenClientConnection.kubeconfig`."""
    STORED = auto()
    BOOTSTRAP = auto()
    """A certificate is asked for with the bootstrap kubeconfig."""
    NONE_VALID = auto()
    """The stored one has expired, and there is nothing to ask for another one with."""


class NoKubeconfig(Exception):
    """Nothing is configured that leads to the garden; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is to choose from."""

    file: str
    """Its path; empty: none."""
    has_secret: bool
    """Whether a Secret is configured in which the kubeconfig is kept."""
    stored: bytes
    life: Life | None
    """Of the certificate in it; None: it has none."""
    may_bootstrap: bool
    """Whether a Secret with a bootstrap kubeconfig is configured."""
    bootstrap: bytes


def choice(found: Found, *, now: datetime) -> Source:
    """Raises NoKubeconfig."""
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
            "there is no kubeconfig for the garden; set gardenClientConnection.kubeconfig, or kubeconfigSecret and"
            " bootstrapKubeconfig there"
        )
    return Source.FILE


def expired_text(*, secret: str, bootstrap: str, seed: str, life: Life) -> str:
    """What to do where nothing valid is left. Args: secret, bootstrap: Secrets as `namespace/name`."""
    ways = [f"put a bootstrap kubeconfig into the Secret {bootstrap}"] if bootstrap else []
    ways.append(f"put a new kubeconfig into the Secret {secret}")
    if not bootstrap:
        ways.append("configure gardenClientConnection.bootstrapKubeconfig")
    return (
        f"the certificate in the Secret {secret}, of the gardenlet of seed {seed}, expired at"
        f" {format_time(life.until)}; {' or '.join(ways)}"
    )


# --- what is stored


def document(cluster: Mapping[str, Any], *, certificate: bytes, key: bytes) -> bytes:
    """The kubeconfig as it is stored, YAML.

    Args:
        cluster: as it stands in another kubeconfig, its authority as data.
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
    """Args: authority: PEM; empty: those of the system."""
    changed = {field: value for field, value in cluster.items() if field != "certificate-authority-data"}
    return changed | ({"certificate-authority-data": base64.b64encode(authority).decode()} if authority else {})


def authority_of(cluster: Mapping[str, Any]) -> bytes:
    """PEM; empty: those of the system count."""
    return base64.b64decode(cluster.get("certificate-authority-data") or "")


def same_authority(one: bytes, other: bytes) -> bool:
    """Whether two bundles hold the same certificates, in any order."""
    return set(load_certificates(one)) == set(load_certificates(other)) if one and other else one == other


def configured_authority(setting: str) -> bytes | None:
    """PEM, empty for those of the system; None: nothing is configured. Raises ValueError: it is no base64."""
    if not setting:
        return None
    decoded = base64.b64decode(setting, validate=True)
    return b"" if decoded.strip().decode(errors="replace") in NO_AUTHORITY else decoded


def secret(namespace: str, name: str, content: bytes, *, annotations: Mapping[str, str]) -> Object:
    """A new one."""
    meta: Object = {"name": name, "namespace": namespace} | ({"annotations": dict(annotations)} if annotations else {})
    return {**SECRETS.type_meta, "metadata": meta, "type": "Opaque", "data": {KEY: base64.b64encode(content).decode()}}


def secret_patch(present: Object, content: bytes, *, annotations: Mapping[str, str]) -> Object:
    """Merge patch: of the data only the kubeconfig stays, and what was asked for is done.

    It holds for this version only: people may put kubeconfigs there, too.
    """
    data = dict.fromkeys(present.get("data") or {}) | {KEY: base64.b64encode(content).decode()}
    meta = {
        "resourceVersion": present["metadata"]["resourceVersion"],
        "annotations": {keys.OPERATION: None, **annotations},
    }
    return {"metadata": meta, "data": data}
