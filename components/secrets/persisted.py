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

_ACTING = {"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"}


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
    properties = {text(each["name"]): _permitted(each) for each in found if each.get("type") == _PROPERTIES}
    return [
        _secret(each, namespace, properties.get(text(each["name"]), {})) for each in found if each.get("type") == SECRET
    ]


def _permitted(entry: Mapping[str, Any]) -> Object:
    """Type and immutability of an entry. Another gardenlet has saved it, so a type on which programs act is ignored."""
    saved = mapping(entry.get("data"))
    kind = text(saved.get("type"))
    return {} if not kind or kind in _ACTING else {"type": kind, "immutable": saved.get("immutable") is True}


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
