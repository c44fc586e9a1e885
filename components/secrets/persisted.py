"""Secrets that move with a Shoot, as entries of `spec.gardener` of its ShootState."""

from collections.abc import Iterable, Mapping
from typing import Any

from components.secrets import labels as names
from components.secrets.stored import OPAQUE, TLS
from kube.objects import Object, labels, mapping, mappings, metadata, string_map, text

SECRET = "secret"
"""Type of such an entry."""


def entries(secrets: Iterable[Object]) -> list[Object]:
    """Entries for persistent Secrets, sorted."""
    found = [
        {
            "name": text(metadata(each).get("name")),
            "type": SECRET,
            "labels": labels(each),
            "data": mapping(each.get("data")),
        }
        for each in secrets
        if labels(each).get(names.PERSIST) == "true"
    ]
    return sorted(found, key=lambda entry: str(entry["name"]))


def secrets(state: Mapping[str, Any], namespace: str) -> list[Object]:
    """Return the Secrets to restore, with their original names and labels; `state` is the `spec` of a ShootState."""
    found = mappings(state.get("gardener"))
    return [_secret(entry, namespace) for entry in found if entry.get("type") == SECRET and entry.get("name")]


def _secret(entry: Mapping[str, Any], namespace: str) -> Object:
    data = string_map(entry.get("data"))
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": text(entry["name"]), "namespace": namespace, "labels": string_map(entry.get("labels"))},
        "immutable": True,
        "type": TLS if data.keys() == {"tls.crt", "tls.key"} else OPAQUE,
        "data": data,
    }
