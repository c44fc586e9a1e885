"""A Secret with decoded data and manager labels."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from components.secrets import labels as names
from kube.objects import Object, is_deleting, labels, metadata, string_map, text

TLS = "kubernetes.io/tls"
OPAQUE = "Opaque"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    name: str
    labels: Mapping[str, str]
    data: Mapping[str, bytes]
    uid: str = ""
    resource_version: str = ""
    is_deleting: bool = False

    @property
    def config_name(self) -> str:
        return self.labels.get(names.NAME, "")

    @property
    def rotated(self) -> str:
        return self.labels.get(names.ROTATED, "")

    @property
    def issued_at(self) -> float:
        """Seconds since 1970; 0 if unknown."""
        issued = names.time_of(self.labels, names.ISSUED_AT)
        return issued.timestamp() if issued else 0.0

    def __repr__(self) -> str:
        return f"Stored({self.name})"


def stored(secret: Object) -> Stored:
    """Read a Secret.

    Raises:
        ValueError: the data is not valid base64.
    """
    return Stored(
        name=text(metadata(secret).get("name")),
        labels=labels(secret),
        data={field: base64.b64decode(value) for field, value in string_map(secret.get("data")).items()},
        uid=text(metadata(secret).get("uid")),
        resource_version=text(metadata(secret).get("resourceVersion")),
        is_deleting=is_deleting(secret),
    )


def secret(namespace: str, name: str, labels: Mapping[str, str], data: Mapping[str, bytes]) -> Object:
    """Build the object to create."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "immutable": True,
        "type": TLS if data.keys() == {"tls.crt", "tls.key"} else OPAQUE,
        "data": {field: base64.b64encode(value).decode() for field, value in data.items()},
    }
