"""What is kept of the objects that the settings are computed from."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from agent.istio_cluster_configuration import keys
from kube.objects import Key, Object, annotations, is_deleting, key, labels, metadata, uid


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
        spec = obj.get("spec") or {}
        return cls(
            key=key(obj),
            host=spec.get("host") or "",
            export_to=tuple(spec.get("exportTo") or ()),
            traffic_policy=spec.get("trafficPolicy") or {},
            is_partial=bool(spec.get("subsets") or spec.get("workloadSelector")),
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
        exported: str = annotations(obj).get(keys.EXPORT_TO) or ""
        return cls(
            key=key(obj),
            ports=tuple(
                ServicePort(port.get("port") or 0, port.get("name") or "", port.get("appProtocol") or "")
                for port in (obj.get("spec") or {}).get("ports") or []
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
    return having.get(keys.ROLE) == keys.INGRESS_ROLE or keys.EXPOSURE_CLASS in having


@dataclass(frozen=True, slots=True)
class Existing:
    """An EnvoyFilter that carries our label."""

    uid: str
    version: str
    digest: bytes

    @classmethod
    def of(cls, obj: Object) -> "Existing":
        return cls(uid(obj), metadata(obj).get("resourceVersion") or "", digest(obj))


def digest(obj: Object) -> bytes:
    """Of what the controller decides."""
    meta: Any = metadata(obj)
    content = [meta.get("labels"), meta.get("ownerReferences"), (obj.get("spec") or {}).get("configPatches")]
    return hashlib.blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
