"""Settings of Envoy's clusters from DestinationRules: cached parts of objects, and the patches computed from them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gardener import keys
from gardener.api import kinds
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
from kube.resources import NAMESPACES

# --- cached parts of objects


EXPORT_TO = "networking.istio.io/exportTo"

MOST_PORTS = 250
"""Number of ports of a Service that are used: the first ones."""
EXPLICIT, DOWNSTREAM = "explicit_http_config", "use_downstream_protocol_config"

ALL = "*"
_OWN, _NONE = ".", "~"


@dataclass(frozen=True, slots=True)
class Exports:
    """Namespaces to which an object is exported."""

    names: frozenset[str]

    @classmethod
    def of(cls, entries: Iterable[str], *, own: str) -> "Exports":
        """Args: own: namespace of the exported object."""
        names: set[str] = set()
        for entry in entries:
            if entry == _NONE:
                return cls(frozenset())
            if entry == ALL:
                return cls(frozenset({ALL}))
            names.add(own if entry == _OWN else entry)
        return cls(frozenset(names))

    def among(self, candidates: Sequence[str]) -> list[str]:
        """Return the candidates in the set, in their order."""
        return [name for name in candidates if ALL in self.names or name in self.names]


@dataclass(frozen=True, slots=True)
class Http2:
    """Fields that switch on HTTP/2 in a traffic policy; empty if the policy does not state it."""

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
    """Whether it has subsets or selects workloads: settings of whole clusters cannot be derived from it."""

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
        """Return the Service of the host; None if it is not in this cluster."""
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
    """Whether the labels mark a namespace with ingress gateways."""
    return having.get(keys.ROLE) == keys.ROLE_ISTIO_INGRESS or keys.EXPOSURE_CLASS_HANDLER in having


@dataclass(frozen=True, slots=True)
class Existing:
    """An EnvoyFilter with our label."""

    uid: str
    version: str
    digest: bytes

    @classmethod
    def of(cls, obj: Object) -> "Existing":
        return cls(uid(obj), text(metadata(obj).get("resourceVersion")), decided(obj))


def decided(obj: Object) -> bytes:
    """Return a digest of the parts that the controller sets."""
    meta = metadata(obj)
    content = [meta.get("labels"), meta.get("ownerReferences"), spec(obj).get("configPatches")]
    return digest(content)


# --- patches


NAME = "istio-cluster-configuration"
SUFFIX = "-cluster-configuration"

MOST_PATCHES = 1000
"""Maximum number of patches for the gateways of a namespace from all DestinationRules of another one."""

_BUFFER_BYTES = 32768
_HTTP2_PROTOCOLS = frozenset({"http2", "kubernetes.io/h2c", "grpc", "grpc-web"})
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


@dataclass(slots=True)
class Patches:
    """Patches for each namespace with ingress gateways, and rules beyond the limit."""

    by_namespace: dict[str, list[Object]]
    left_out: list[DestinationRule] = field(default_factory=list)


def compute_patches(
    found: Patches, rules: Iterable[DestinationRule], service_of: Callable[[Key], Service | None]
) -> Iterator[None]:
    """Compute the patches of the DestinationRules of one namespace, in steps between which the caller may yield.

    A rule that would exceed the limit of a namespace with ingress gateways gets no patches.
    """
    ingress_namespaces = list(found.by_namespace)
    for rule in sorted(rules, key=lambda rule: rule.key):
        yield
        name = rule.service()
        service = service_of(name) if name is not None else None
        if service is None or rule.is_partial:
            continue
        targets = service.export_to.among(rule.export_to.among(ingress_namespaces))
        if any(len(found.by_namespace[each]) + len(service.ports) > MOST_PATCHES for each in targets):
            found.left_out.append(rule)
            continue
        patches = [_patch(service, port, http2_mode(rule.http2, port)) for port in service.ports] if targets else []
        for namespace in targets:
            found.by_namespace[namespace] += patches


def http2_mode(http2: Http2, port: ServicePort) -> str:
    """Return the field that switches on HTTP/2; empty if HTTP/2 stays off."""
    if mode := http2.mode(port.number):
        return mode
    protocol = port.app_protocol or _protocol_of(port.name)
    return EXPLICIT if protocol.lower() in _HTTP2_PROTOCOLS else ""


def _protocol_of(name: str) -> str:
    return "grpc-web" if name.lower().startswith("grpc-web") else name.partition("-")[0]


def _patch(service: Service, port: ServicePort, mode: str) -> Object:
    value: Object = {"per_connection_buffer_limit_bytes": _BUFFER_BYTES}
    if mode:
        windows = {"initial_stream_window_size": 65536, "initial_connection_window_size": 1048576}
        value["typed_extension_protocol_options"] = {
            _HTTP_OPTIONS: {
                "@type": f"type.googleapis.com/{_HTTP_OPTIONS}",
                "common_http_protocol_options": {"max_connection_duration": "86400s"},
                mode: {"http2_protocol_options": windows},
            }
        }
    host = f"{service.key.name}.{service.key.namespace}.svc.cluster.local"
    return {
        "applyTo": "CLUSTER",
        "match": {"context": "GATEWAY", "cluster": {"name": f"outbound|{port.number}||{host}"}},
        "patch": {"operation": "MERGE", "value": value},
    }


def envoy_filter(source: str, source_uid: str, target: str, patches: Sequence[Object]) -> Object:
    """Return the EnvoyFilter with the patches; it is deleted with the namespace that they come from."""
    owner = {**NAMESPACES.reference(name=source, uid=source_uid), "controller": True, "blockOwnerDeletion": True}
    return {
        **kinds.ENVOY_FILTERS.type_meta,
        "metadata": {
            "name": f"{source}{SUFFIX}",
            "namespace": target,
            "labels": {keys.MANAGED_BY: NAME},
            "ownerReferences": [owner],
        },
        "spec": {"configPatches": list(patches)},
    }
