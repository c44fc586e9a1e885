"""What is kept of the objects that policies are computed from: only what counts."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from agent.network_policy import keys
from agent.network_policy.annotations import Wishes, wishes
from agent.network_policy.ports import Port
from kube.objects import Key, Object, annotations, is_deleting, key, labels, metadata, uid


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A port of a Service and the port of the containers behind it."""

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
    wishes: Wishes

    @classmethod
    def of(cls, obj: Object) -> "Service":
        spec = obj.get("spec") or {}
        return cls(
            key=key(obj),
            uid=uid(obj),
            is_deleting=is_deleting(obj),
            selector=spec.get("selector") or {},
            ports=tuple(_service_port(port) for port in spec.get("ports") or []),
            wishes=wishes(annotations(obj)),
        )

    def reference(self) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "namespace": self.key.namespace,
            "name": self.key.name,
            "uid": self.uid,
        }


def _service_port(port: Object) -> ServicePort:
    number = port.get("port") or 0
    return ServicePort(
        name=port.get("name") or "",
        number=number,
        target=Port(port.get("protocol") or "TCP", port.get("targetPort") or number),
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
    """A policy that carries the labels of a Service; whether that exists is another question."""

    owner: Key
    uid: str
    version: str
    digest: bytes
    has_annotations: bool

    @classmethod
    def of(cls, obj: Object) -> "Existing":
        return cls(
            owner=owner(obj),
            uid=uid(obj),
            version=metadata(obj).get("resourceVersion") or "",
            digest=digest(obj.get("spec") or {}),
            has_annotations=bool(annotations(obj)),
        )


def owner(policy: Object) -> Key:
    """The Service that a policy is labelled with; parts are empty where a label is missing."""
    marks = labels(policy)
    return Key(marks.get(keys.SERVICE_NAMESPACE, ""), marks.get(keys.SERVICE_NAME, ""))


def digest(spec: Object) -> bytes:
    """Of what a policy does. Its description only says the same for people, and others may have other words for it:
    a policy that is right but for them is not written again.
    """
    return hashlib.blake2b(orjson.dumps(spec, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Backend:
    """A port of a Service as an Ingress names it, by name or by number."""

    service: Key
    name: str
    number: int

    def is_for(self, port: ServicePort) -> bool:
        return (bool(self.name) and self.name == port.name) or (bool(self.number) and self.number == port.number)


def backends(ingress: Object) -> frozenset[Backend]:
    """The Services that the rules of an Ingress lead to; its default backend is not regarded."""
    return frozenset(_backends(ingress))


def _backends(ingress: Object) -> Iterator[Backend]:
    for rule in (ingress.get("spec") or {}).get("rules") or []:
        for path in (rule.get("http") or {}).get("paths") or []:
            service: Any = (path.get("backend") or {}).get("service")
            if service:
                port = service.get("port") or {}
                yield Backend(
                    service=Key(key(ingress).namespace, service.get("name") or ""),
                    name=port.get("name") or "",
                    number=port.get("number") or 0,
                )


def client_labels(pod: Object) -> frozenset[str]:
    """The labels with which a pod asks to be let through to Services."""
    marks = labels(pod)
    return frozenset(
        name for name, value in marks.items() if value == keys.ALLOWED and name.startswith(keys.CLIENT_PREFIX)
    )
