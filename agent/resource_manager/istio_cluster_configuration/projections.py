"""What is kept of the objects that the settings are computed from."""

from collections.abc import Mapping
from dataclasses import dataclass

from gardener import keys
from kube.bodies import digest
from kube.objects import (
    Key,
    Object,
    annotations,
    integer,
    is_deleting,
    key,
    labels,
    mapping,
    mappings,
    metadata,
    spec,
    text,
    texts,
    uid,
)

EXPORT_TO = "networking.istio.io/exportTo"


@dataclass(frozen=True, slots=True)
class DestinationRule:
    key: Key
    host: str
    export_to: tuple[str, ...]
    traffic_policy: Object
    is_partial: bool
    """It has subsets or selects workloads: whole clusters can't be derived from it."""

    @classmethod
    def of(cls, obj: Object) -> "DestinationRule":
        rule = spec(obj)
        return cls(
            key=key(obj),
            host=text(rule.get("host")),
            export_to=tuple(texts(rule.get("exportTo"))),
            traffic_policy=mapping(rule.get("trafficPolicy")),
            is_partial=bool(rule.get("subsets") or rule.get("workloadSelector")),
        )

    def service(self) -> Key | None:
        """The Service that the host means; None: none of this cluster."""
        name, _, rest = self.host.partition(".")
        namespace, _, domain = rest.partition(".")
        if domain not in {"", "svc", "svc.cluster.local"} or not name:
            return None
        return Key(namespace or self.key.namespace, name)


@dataclass(frozen=True, slots=True)
class ServicePort:
    number: int
    name: str
    app_protocol: str


@dataclass(frozen=True, slots=True)
class Service:
    key: Key
    ports: tuple[ServicePort, ...]
    export_to: tuple[str, ...]

    @classmethod
    def of(cls, obj: Object) -> "Service":
        exported: str = annotations(obj).get(EXPORT_TO) or ""
        return cls(
            key=key(obj),
            ports=tuple(
                ServicePort(integer(port.get("port")), text(port.get("name")), text(port.get("appProtocol")))
                for port in mappings(spec(obj).get("ports"))
            ),
            export_to=tuple(entry.strip() for entry in exported.split(",") if entry.strip()),
        )


@dataclass(frozen=True, slots=True)
class Namespace:
    uid: str
    is_ingress: bool
    is_terminating: bool

    @classmethod
    def of(cls, obj: Object) -> "Namespace":
        return cls(uid(obj), is_ingress(labels(obj)), is_deleting(obj))


def is_ingress(having: Mapping[str, str]) -> bool:
    """Whether a namespace has ingress gateways, by its labels."""
    return having.get(keys.ROLE) == keys.ROLE_ISTIO_INGRESS or keys.EXPOSURE_CLASS_HANDLER in having


@dataclass(frozen=True, slots=True)
class Existing:
    """An EnvoyFilter that carries our label."""

    uid: str
    version: str
    digest: bytes

    @classmethod
    def of(cls, obj: Object) -> "Existing":
        return cls(uid(obj), text(metadata(obj).get("resourceVersion")), decided(obj))


def decided(obj: Object) -> bytes:
    """Of what the controller decides."""
    meta = metadata(obj)
    content = [meta.get("labels"), meta.get("ownerReferences"), spec(obj).get("configPatches")]
    return digest(content)
