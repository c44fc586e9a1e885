"""What is kept of the objects that the settings are computed from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gardener import keys
from gardener.api.kinds import DESTINATION_RULES
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
from kube.packing import digest

EXPORT_TO = "networking.istio.io/exportTo"

MOST_PORTS = 250
"""Of a Service; the first of them count."""
EXPLICIT, DOWNSTREAM = "explicit_http_config", "use_downstream_protocol_config"

ALL = "*"
_OWN, _NONE = ".", "~"


@dataclass(frozen=True, slots=True)
class Exports:
    """Namespaces to which something is exported."""

    names: frozenset[str]

    @classmethod
    def of(cls, entries: Iterable[str], *, own: str) -> "Exports":
        """Args: own: the namespace of what is exported."""
        names: set[str] = set()
        for entry in entries:
            if entry == _NONE:
                return cls(frozenset())
            if entry == ALL:
                return cls(frozenset({ALL}))
            names.add(own if entry == _OWN else entry)
        return cls(frozenset(names))

    def among(self, candidates: Sequence[str]) -> list[str]:
        """Those of the candidates, in their order."""
        return [name for name in candidates if ALL in self.names or name in self.names]


@dataclass(frozen=True, slots=True)
class Http2:
    """The fields that switch on HTTP/2, as a traffic policy says; empty: it says nothing of that."""

    by_port: Mapping[int, str]
    otherwise: str

    @classmethod
    def of(cls, traffic_policy: Object) -> "Http2":
        by_port: dict[int, str] = {}
        for level in mappings(traffic_policy.get("portLevelSettings")):
            if mode := _http2_mode(level):
                by_port.setdefault(integer(mapping(level.get("port")).get("number")), mode)
        return cls(by_port, _http2_mode(traffic_policy))

    def mode(self, port: int) -> str:
        return self.by_port.get(port) or self.otherwise


def _http2_mode(settings: Object) -> str:
    http = mapping(mapping(settings.get("connectionPool")).get("http"))
    if http.get("useClientProtocol") is True:
        return DOWNSTREAM
    return EXPLICIT if http.get("h2UpgradePolicy") == "UPGRADE" else ""


@dataclass(frozen=True, slots=True)
class DestinationRule:
    key: Key
    uid: str
    host: str
    export_to: Exports
    http2: Http2
    is_partial: bool
    """It has subsets or selects workloads: whole clusters can't be derived from it."""

    @classmethod
    def of(cls, obj: Object) -> "DestinationRule":
        rule = spec(obj)
        return cls(
            key=key(obj),
            uid=uid(obj),
            host=text(rule.get("host")),
            export_to=Exports.of(texts(rule.get("exportTo")), own=key(obj).namespace),
            http2=Http2.of(mapping(rule.get("trafficPolicy"))),
            is_partial=bool(rule.get("subsets") or rule.get("workloadSelector")),
        )

    def service(self) -> Key | None:
        """The Service that the host means; None: none of this cluster."""
        name, _, rest = self.host.partition(".")
        namespace, _, domain = rest.partition(".")
        if domain not in {"", "svc", "svc.cluster.local"} or not name:
            return None
        return Key(namespace or self.key.namespace, name)

    def reference(self) -> Object:
        return DESTINATION_RULES.reference(namespace=self.key.namespace, name=self.key.name, uid=self.uid)


@dataclass(frozen=True, slots=True)
class ServicePort:
    number: int
    name: str
    app_protocol: str


@dataclass(frozen=True, slots=True)
class Service:
    key: Key
    ports: tuple[ServicePort, ...]
    export_to: Exports

    @classmethod
    def of(cls, obj: Object) -> "Service":
        exported: str = annotations(obj).get(EXPORT_TO) or ""
        return cls(
            key=key(obj),
            ports=tuple(
                ServicePort(integer(port.get("port")), text(port.get("name")), text(port.get("appProtocol")))
                for port in mappings(spec(obj).get("ports"))[:MOST_PORTS]
            ),
            export_to=Exports.of(
                (entry.strip() for entry in exported.split(",") if entry.strip()), own=key(obj).namespace
            ),
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
