"""Cached fields of the objects that policies are computed from."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.shared.network_policy.rules.annotations import PolicySettings, Port, policy_settings
from agent.shared.network_policy.rules.limits import MOST_PORTS
from gardener import keys
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
    string_map,
    text,
    uid,
)
from kube.packing import digest
from kube.resources import SERVICES


@dataclass(frozen=True, slots=True)
class ServicePort:
    """Port of a Service and the port of the containers behind it."""

    name: str
    number: int
    target: Port


@dataclass(frozen=True, slots=True)
class Service:
    key: Key
    uid: str
    is_deleting: bool
    selector: Object
    ports: tuple[ServicePort, ...]
    """First ports, up to the limit."""
    ports_left_out: int
    settings: PolicySettings

    @classmethod
    def of(cls, obj: Object) -> "Service":
        ports = list(mappings(spec(obj).get("ports")))
        counted = ports[:MOST_PORTS]
        return cls(
            key=key(obj),
            uid=uid(obj),
            is_deleting=is_deleting(obj),
            selector=string_map(spec(obj).get("selector")),
            ports=tuple(_service_port(port) for port in counted),
            ports_left_out=len(ports) - len(counted),
            settings=policy_settings(annotations(obj), own_ports=len(counted)),
        )

    def reference(self) -> Object:
        return SERVICES.reference(namespace=self.key.namespace, name=self.key.name, uid=self.uid)


def _service_port(port: Object) -> ServicePort:
    number, target = integer(port.get("port")), port.get("targetPort")
    return ServicePort(
        name=text(port.get("name")),
        number=number,
        target=Port(text(port.get("protocol")) or "TCP", text(target) or integer(target) or number),
    )


@dataclass(frozen=True, slots=True)
class Namespace:
    labels: Object
    is_terminating: bool

    @classmethod
    def of(cls, obj: Object) -> "Namespace":
        return cls(labels=labels(obj), is_terminating=is_deleting(obj))


@dataclass(frozen=True, slots=True)
class Existing:
    """A policy with the labels of a Service, which may not exist."""

    owner: Key
    uid: str
    version: str
    digest: bytes
    """Digest of the written fields without the owner."""
    has_annotations: bool

    @classmethod
    def of(cls, obj: Object) -> "Existing":
        return cls(
            owner=owner(obj),
            uid=uid(obj),
            version=text(metadata(obj).get("resourceVersion")),
            digest=policy_digest(annotations(obj).get(keys.GARDENER_DESCRIPTION), spec(obj)),
            has_annotations=bool(annotations(obj)),
        )


def policy_digest(description: str | None, policy_spec: Object) -> bytes:
    return digest([description, policy_spec])


def owner(policy: Object) -> Key:
    """Service in the labels of a policy; parts are empty where a label is missing."""
    marks = labels(policy)
    return Key(marks.get(keys.POLICY_SERVICE_NAMESPACE, ""), marks.get(keys.POLICY_SERVICE_NAME, ""))


@dataclass(frozen=True, slots=True)
class Backend:
    """Port of a Service as an Ingress names it, by name or by number."""

    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Backends:
    of: Mapping[Key, frozenset[Backend]]
    """Backends by Service."""


def backends(ingress: Object) -> Backends:
    """Backends of the rules of an Ingress; its default backend is ignored."""
    found: dict[Key, set[Backend]] = {}
    for rule in mappings(spec(ingress).get("rules")):
        for path in mappings(mapping(rule.get("http")).get("paths")):
            service = mapping(mapping(path.get("backend")).get("service"))
            if service:
                port = mapping(service.get("port"))
                name = Key(key(ingress).namespace, text(service.get("name")))
                found.setdefault(name, set()).add(Backend(text(port.get("name")), integer(port.get("number"))))
    return Backends({name: frozenset(ports) for name, ports in found.items()})


def client_labels(pod: Object) -> frozenset[str]:
    """Labels with which a pod requests access to Services."""
    marks = labels(pod)
    return frozenset(name for name, value in marks.items() if value == keys.ALLOWED and name.startswith(keys.TO_PREFIX))
