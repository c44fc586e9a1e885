"""Policies of a Service: one function from the known state to the desired policies.

Traffic is let through pairwise: one policy for traffic that reaches the Service's pods, in its namespace, and one for
traffic that leaves the client's pods, in theirs. A client is known by a label with the Service's name and port, or by
an alias that several Services share.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from agent.shared.network_policy.rules.annotations import Port
from agent.shared.network_policy.rules.limits import MOST_POLICIES
from agent.shared.network_policy.rules.projections import Backend, Namespace, Service, ServicePort, policy_digest
from gardener import keys
from kube.objects import Key, Object, matches_label_selector

T = TypeVar("T")

NAMESPACE_LABEL = "kubernetes.io/metadata.name"

_LONGEST_LABEL = 63
_KEPT_OF_LABEL = 57
_HASH_DIGITS = 5

_EVERYBODY: list[Object] = [
    {"namespaceSelector": {}, "podSelector": {}},
    {"ipBlock": {"cidr": "0.0.0.0/0"}},
    {"ipBlock": {"cidr": "::/0"}},
]


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of the configuration."""

    namespace_selectors: tuple[Object, ...] = ()
    ingress_controller: tuple[str, Object] | None = None
    """Namespace and selector of its pods."""
    requires_pods: bool = False
    names_everybody: bool = False
    """Whether policies for traffic from everywhere name all peers, or none."""


@dataclass(frozen=True, slots=True)
class GatewayRoute:
    """A port of a Service that an Istio gateway leads to."""

    number: int
    selector: Object
    """Labels of the gateway's pods."""
    namespaces: Mapping[str, frozenset[str]]
    """Namespaces of these pods, with the labels of clients that all pods there have."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Other objects that the policies of a Service depend on."""

    namespaces: Mapping[str, Namespace]
    backends: Collection[Backend] = ()
    """Backends of Ingresses that lead to the Service."""
    routes: Collection[GatewayRoute] = ()
    served: Collection[str] = ()
    """Namespaces where the Service has policies already; they come first if the limit is reached."""
    has_client: Callable[[str, str], bool] = lambda _namespace, _label: False
    """Whether a pod in this namespace has this label, with the value that lets it through."""


@dataclass(frozen=True, slots=True)
class Policy:
    key: Key
    description: str
    spec: Object

    def digest(self) -> bytes:
        return policy_digest(self.description, self.spec)


@dataclass(frozen=True, slots=True)
class ShortenedLabel:
    usual: str
    mutated: str


@dataclass(slots=True)
class Desired:
    """Policies of a Service by namespace and name, and the labels that had to be shortened for them."""

    policies: dict[Key, Policy] = field(default_factory=dict)
    shortened: set[ShortenedLabel] = field(default_factory=set)
    namespaces_left_out: int = 0
    """Number of namespaces that the Service lets in, but that get no policies because of the limit."""

    def add(self, policy: Policy) -> None:
        present = self.policies.get(policy.key)
        self.policies[policy.key] = policy if present is None else _joined(present, policy)


def is_handled(namespace: Namespace | None, selectors: Sequence[Object]) -> bool:
    """Whether Services of a namespace get policies; a missing namespace has no labels."""
    having = namespace.labels if namespace is not None else {}
    return not selectors or any(matches_label_selector(selector, having) for selector in selectors)


def selects(service: Service, namespace: Namespace) -> bool:
    """Whether a Service lets in clients of a namespace other than its own."""
    return any(matches_label_selector(selector, namespace.labels) for selector in service.settings.namespace_selectors)


def compute_policies(desired: Desired, service: Service, rules: Rules, around: Surroundings) -> Iterator[None]:
    """Compute all policies of a Service, in steps between which the caller may yield to others.

    `around` must include the Service's own namespace.
    """
    if around.namespaces[service.key.namespace].is_terminating:
        return
    for_everybody = list(_for_everybody(service, rules, around.backends))
    yield from _for_clients(desired, service, rules, around, most=MOST_POLICIES - len(for_everybody))
    for policy in for_everybody:
        desired.add(policy)
    yield from _for_gateways(desired, service, around)


# --- clients with labels


@dataclass(frozen=True, slots=True)
class _Entry:
    port: Port
    name: str
    """Name in names of policies."""
    label: str
    """Name in labels of clients."""


@dataclass(frozen=True, slots=True)
class _Client:
    """Pods that request access to an entry: in the Service's namespace, or in any other."""

    entry: _Entry
    label: str
    usual_label: str


def _for_clients(
    desired: Desired, service: Service, rules: Rules, around: Surroundings, *, most: int
) -> Iterator[None]:
    """Add at most `most` policies: for all clients of a namespace, or for none."""
    namespaces = []
    for name, namespace in around.namespaces.items():
        if name != service.key.namespace and not namespace.is_terminating and selects(service, namespace):
            namespaces.append(name)
        yield
    namespaces.sort(key=lambda name: (name not in around.served, name))
    own, others = _clients(service, own=True), _clients(service, own=False)
    for name in (service.key.namespace, *namespaces):
        clients = own if name == service.key.namespace else others
        if rules.requires_pods:
            clients = [client for client in clients if around.has_client(name, client.label)]
        yield
        if len(desired.policies) + 2 * len(clients) > most:
            desired.namespaces_left_out += 1
            continue
        for client in clients:
            if client.label != client.usual_label:
                desired.shortened.add(ShortenedLabel(client.usual_label, client.label))
            for policy in _client_pair(service, client, name):
                desired.add(policy)
            yield


def _clients(service: Service, *, own: bool) -> list[_Client]:
    labels = ((entry, _usual_label(service, entry, own=own)) for entry in _entries(service))
    return [_Client(entry, client_label(usual), usual) for entry, usual in labels]


def labels_of_clients(service: Service) -> Iterator[str]:
    """Labels by which pods in any namespace request access to the Service."""
    for own in (True, False):
        yield from (client.label for client in _clients(service, own=own))


def _entries(service: Service) -> Iterator[_Entry]:
    stem = service.key.name
    for port in service.ports:
        name = f"{stem}-{port.target.slug}"
        yield _Entry(port.target, name, name)
    for alias, ports in service.settings.aliases:
        for allowed in ports:
            name = f"{stem}-{allowed.slug}"
            yield _Entry(allowed, f"{name}-via-{alias}", alias) if alias else _Entry(allowed, name, name)


def client_label(usual: str) -> str:
    """Label of client pods, with its name shortened to the maximum length."""
    name = usual.removeprefix(keys.NETWORKING_PREFIX)
    if len(name) <= _LONGEST_LABEL:
        return usual
    return f"{keys.NETWORKING_PREFIX}{name[:_KEPT_OF_LABEL]}-{hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]}"


def _usual_label(service: Service, entry: _Entry, *, own: bool) -> str:
    if own:
        return f"{keys.TO_PREFIX}{entry.label}"
    alias = service.settings.namespace_alias
    return f"{keys.TO_PREFIX}{service.key.namespace if alias is None else alias}-{entry.label}"


def _client_pair(service: Service, client: _Client, namespace: str) -> Iterator[Policy]:
    own, name = namespace == service.key.namespace, client.entry.name
    return _pair(
        service,
        client.entry.port,
        {"matchLabels": {client.label: keys.ALLOWED}},
        namespace,
        ingress=f"ingress-to-{name}" if own else f"ingress-to-{name}-from-{namespace}",
        egress=f"egress-to-{name}" if own else f"egress-to-{service.key.namespace}-{name}",
    )


# --- others


def _for_everybody(service: Service, rules: Rules, backends: Collection[Backend]) -> Iterator[Policy]:
    if service.settings.from_world is not None:
        yield _from_world(service, service.settings.from_world, rules)
    if rules.ingress_controller is not None:
        namespace, pods = rules.ingress_controller
        for port in _exposed(service, backends):
            yield from _ingress_controller_pair(service, port, namespace, pods)


def _for_gateways(desired: Desired, service: Service, around: Surroundings) -> Iterator[None]:
    ports = _first_of(service, lambda port: port.number)
    left_out: set[str] = set()
    for route in around.routes:
        port = ports.get(route.number)
        for namespace in sorted(route.namespaces) if port is not None else ():
            yield
            found = around.namespaces.get(namespace)
            if port is None or (found is not None and found.is_terminating):
                continue
            if _is_let_through(desired, service, port.target, namespace, route.namespaces[namespace]):
                continue
            if len(desired.policies) + 2 > MOST_POLICIES:
                left_out.add(namespace)
                continue
            for policy in _gateway_pair(service, route, port, namespace):
                desired.add(policy)
    desired.namespaces_left_out += len(left_out)


def _is_let_through(desired: Desired, service: Service, port: Port, namespace: str, labels: Collection[str]) -> bool:
    """Whether pods with these labels reach the port already, as other clients of their namespace do.

    Releases of the original that do not follow routes give the gateways' pods such labels.
    """
    return any(
        client.label in labels
        and client.entry.port.rule() == port.rule()
        and all(policy.key in desired.policies for policy in _client_pair(service, client, namespace))
        for client in (_clients(service, own=namespace == service.key.namespace) if labels else ())
    )


def _first_of(service: Service, called: Callable[[ServicePort], T]) -> dict[T, ServicePort]:
    """Ports of the Service by the result of `called`; the first counts."""
    return {called(port): port for port in reversed(service.ports)}


def _from_world(service: Service, ports: tuple[Port, ...], rules: Rules) -> Policy:
    rule: Object = {"from": _EVERYBODY} if rules.names_everybody else {}
    if ports:
        rule = {**rule, "ports": [port.rule() for port in ports]}
    listed = " ".join(str(port) for port in ports)
    return Policy(
        Key(service.key.namespace, from_world_name(service.key)),
        f"Allows ingress traffic from everywhere to ports [{listed}] for pods selected by the {service.key} service "
        "selector.",
        {"podSelector": {"matchLabels": service.selector}, "policyTypes": ["Ingress"], "ingress": [rule]},
    )


def from_world_name(service: Key) -> str:
    return f"ingress-to-{service.name}-from-world"


def _exposed(service: Service, backends: Collection[Backend]) -> Iterator[Port]:
    """Ports of the backends in a stable order, without duplicates."""
    by_name, by_number = _first_of(service, lambda port: port.name), _first_of(service, lambda port: port.number)
    wanted: dict[Port, None] = {}
    for backend in backends:
        named = by_name.get(backend.name) if backend.name else None
        port = named or (by_number.get(backend.number) if backend.number else None)
        if port is not None:
            wanted[port.target] = None
    yield from sorted(wanted, key=lambda port: (port.protocol, str(port.port)))


def _ingress_controller_pair(service: Service, port: Port, namespace: str, pods: Object) -> Iterator[Policy]:
    name = f"{service.key.name}-{port.slug}"
    stem = name if namespace == service.key.namespace else f"{service.key.namespace}-{name}"
    yield from _pair(
        service,
        port,
        pods,
        namespace,
        ingress=f"ingress-to-{name}-from-ingress-controller",
        egress=f"egress-to-{stem}-from-ingress-controller",
    )


def _gateway_pair(service: Service, route: GatewayRoute, port: ServicePort, namespace: str) -> Iterator[Policy]:
    own = namespace == service.key.namespace
    name = f"{service.key.name}-{port.target.slug}"
    yield from _pair(
        service,
        port.target,
        {"matchLabels": route.selector},
        namespace,
        ingress=f"ingress-to-{name}-from-{'istio' if own else namespace}",
        egress=f"egress-to-{name if own else f'{service.key.namespace}-{name}'}-from-istio",
    )


# --- a pair


def _pair(
    service: Service, port: Port, clients: Object, namespace: str, *, ingress: str, egress: str
) -> Iterator[Policy]:
    """Policies at the Service's pods and at the clients' pods, which `clients` selects in `namespace`.

    The policies have the names `ingress` and `egress`; their descriptions match the original to the letter.
    """
    own, pods = service.key.namespace, {"matchLabels": service.selector}
    called = f"pods running in namespace {namespace} labeled with {_selector_text(clients)}"
    what = f"{port.protocol} traffic to port {port.port}"
    behind = f"pods selected by the {service.key} service selector"
    yield Policy(
        Key(own, ingress),
        f"Allows ingress {what} for {behind} from {called}.",
        {
            "podSelector": pods,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [_peer(clients, namespace, seen_from=own)], "ports": [port.rule()]}],
        },
    )
    yield Policy(
        Key(namespace, egress),
        f"Allows egress {what} from {called} to {behind}.",
        {
            "podSelector": clients,
            "policyTypes": ["Egress"],
            "egress": [{"to": [_peer(pods, own, seen_from=namespace)], "ports": [port.rule()]}],
        },
    )


def _peer(pods: Object, namespace: str, *, seen_from: str) -> Object:
    if namespace == seen_from:
        return {"podSelector": pods}
    return {"podSelector": pods, "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: namespace}}}


def _selector_text(selector: Object) -> str:
    """Selector in the format in which Go prints the struct: labels, then expressions."""
    pairs = " ".join(f"{name}:{value}" for name, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = " ".join(
        f"{{{each.get('key')} {each.get('operator')} [{' '.join(each.get('values') or [])}]}}"
        for each in selector.get("matchExpressions") or []
    )
    return f"{{map[{pairs}] [{expressions}]}}"


def _joined(one: Policy, other: Policy) -> Policy:
    """Join two policies of the same name into one that lets through the traffic of both.

    Clients in a namespace that are known by a label, and Istio's gateway in that namespace, lead to the same name at
    the Service. If a name stands for different pods, which takes a port named like an alias, the first one counts.
    """
    if one.spec == other.spec or one.spec["podSelector"] != other.spec["podSelector"]:
        return one
    direction, peers = ("ingress", "from") if "ingress" in one.spec else ("egress", "to")
    rules = [dict(rule) for rule in one.spec[direction]]
    for rule in other.spec[direction]:
        same = next((present for present in rules if present.get("ports") == rule.get("ports")), None)
        if same is None:
            rules.append(rule)
        else:
            same[peers] = same[peers] + [peer for peer in rule[peers] if peer not in same[peers]]
    return Policy(one.key, one.description, {**one.spec, direction: rules})
