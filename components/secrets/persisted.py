"""Secrets that move with a Shoot, as entries of `spec.gardener` of its ShootState."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from components.secrets import labels as names
from components.secrets.stored import OPAQUE, TLS
from kube.objects import Object, labels, mapping, mappings, metadata, string_map, text

SECRET = "secret"
"""Type of such an entry."""
_PROPERTIES = "secret-properties"
"""Type of an entry with the type and immutability of a Secret of an extension; upstream skips it."""


def entries(secrets: Iterable[Object]) -> list[Object]:
    """Entries for persistent Secrets, sorted."""
    persistent = [each for each in secrets if labels(each).get(names.PERSIST) == "true"]
    found = [entry for each in persistent for entry in _entries(each)]
    return sorted(found, key=lambda entry: (str(entry["name"]), str(entry["type"])))


def _entries(secret: Object) -> Iterator[Object]:
    name, data = text(metadata(secret).get("name")), mapping(secret.get("data"))
    yield {"name": name, "type": SECRET, "labels": labels(secret), "data": data}
    properties = {"type": text(secret.get("type")), "immutable": secret.get("immutable") is True}
    if properties["type"] and labels(secret).get(names.IDENTITY) != names.GARDENLET and properties != _usual(data):
        yield {"name": name, "type": _PROPERTIES, "data": properties}


def secrets(state: Mapping[str, Any], namespace: str) -> list[Object]:
    """Return the Secrets to restore, with their original names and labels; `state` is the `spec` of a ShootState."""
    found = [each for each in mappings(state.get("gardener")) if each.get("name")]
    properties = {text(each["name"]): mapping(each.get("data")) for each in found if each.get("type") == _PROPERTIES}
    return [
        _secret(each, namespace, properties.get(text(each["name"]), {})) for each in found if each.get("type") == SECRET
    ]


def _secret(entry: Mapping[str, Any], namespace: str, properties: Object) -> Object:
    data = string_map(entry.get("data"))
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": text(entry["name"]), "namespace": namespace, "labels": string_map(entry.get("labels"))},
        **_usual(data),
        **properties,
        "data": data,
    }


def _usual(data: Object) -> Object:
    """Properties of Secrets of the gardenlet, and of others in states that have none."""
    return {"immutable": True, "type": TLS if data.keys() == {"tls.crt", "tls.key"} else OPAQUE}
