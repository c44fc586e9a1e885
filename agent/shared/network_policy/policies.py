"""Which policies a Service needs: one function from what is known to what should be there.

Traffic is let through pairwise: one policy for what reaches the Service's pods, in its namespace, and one for what
leaves the client's pods, in theirs. A client is known by a label with the Service's name and port, or by an alias
that several Services share.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent.shared.network_policy.ports import Port
from agent.shared.network_policy.projections import Backend, Namespace, Service, ServicePort
from gardener import keys
from kube.bodies import digest
from kube.objects import Key, Object, matches_label_selector

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
    """What the configuration says."""

    namespace_selectors: tuple[Object, ...] = ()
    ingress_controller: tuple[str, Object] | None = None
    """Namespace and selector of its pods."""
    requires_pods: bool = False
    names_everybody: bool = True
    """Whether traffic from everywhere is let in by naming all peers, or by naming none."""


@dataclass(frozen=True, slots=True)
class GatewayRoute:
    """A port of a Service that an Istio gateway leads to."""

    number: int
    selector: Object
    """Labels of the gateway's pods."""
    namespaces: frozenset[str]
    """Where these pods are."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is there besides the Service."""

    namespaces: Mapping[str, Namespace]
    backends: Collection[Backend] = ()
    """Of Ingresses, those that lead to the Service."""
    routes: Collection[GatewayRoute] = ()
    has_client: Callable[[str, str], bool] = lambda _namespace, _label: False
    """Whether a pod in this namespace has this label, with the value that lets it through."""


@dataclass(frozen=True, slots=True)
class Policy:
    key: Key
    description: str
    spec: Object

    def digest(self) -> bytes:
        return digest(self.spec)


@dataclass(frozen=True, slots=True)
class ShortenedLabel:
    usual: str
    mutated: str


@dataclass(slots=True)
class Desired:
    """The policies of a Service by namespace and name, and the labels that had to be shortened for them."""

    policies: dict[Key, Policy] = field(default_factory=dict)
    shortened: set[ShortenedLabel] = field(default_factory=set)

    def add(self, policy: Policy) -> None:
        present = self.policies.get(policy.key)
        self.policies[policy.key] = policy if present is None else _joined(present, policy)


def is_handled(namespace: Namespace | None, selectors: Sequence[Object]) -> bool:
    """Whether Services of a namespace get policies; one that is not there has no labels."""
    having = namespace.labels if namespace is not None else {}
    return not selectors or any(matches_label_selector(selector, having) for selector in selectors)


def selects(service: Service, namespace: Namespace) -> bool:
    """Whether a Service lets in clients of a namespace other than its own."""
    return any(matches_label_selector(selector, namespace.labels) for selector in service.settings.namespace_selectors)


def desired_policies(service: Service, rules: Rules, around: Surroundings) -> Desired:
    """All policies that a Service should have. What is around it has to hold the Service's own namespace."""
    desired = Desired()
    if around.namespaces[service.key.namespace].is_terminating:
        return desired
    for client in _clients(service, rules, around):
        if client.label != client.usual_label:
            desired.shortened.add(ShortenedLabel(client.usual_label, client.label))
        for policy in _client_pair(service, client):
            desired.add(policy)
    for policy in _for_others(service, rules, around):
        desired.add(policy)
    return desired


def _for_others(service: Service, rules: Rules, around: Surroundings) -> Iterator[Policy]:
    if service.settings.from_world is not None:
        yield _from_world(service, service.settings.from_world, rules)
    if rules.ingress_controller is not None:
        namespace, pods = rules.ingress_controller
        for port in _exposed(service, around.backends):
            yield from _ingress_controller_pair(service, port, namespace, pods)
    for route in around.routes:
        for namespace in sorted(route.namespaces):
            found = around.namespaces.get(namespace)
            if found is None or not found.is_terminating:
                yield from _gateway_pair(service, route, namespace)


# --- clients with labels


@dataclass(frozen=True, slots=True)
class _Entry:
    port: Port
    name: str
    """In names of policies."""
    label: str
    """In labels of clients."""


@dataclass(frozen=True, slots=True)
class _Client:
    """Pods of a namespace that ask for an entry."""

    entry: _Entry
    namespace: str
    label: str
    usual_label: str


def _clients(service: Service, rules: Rules, around: Surroundings) -> Iterator[_Client]:
    for namespace in _client_namespaces(service, around.namespaces):
        for entry in _entries(service):
            usual = _usual_label(service, entry, namespace)
            label = client_label(usual)
            if not rules.requires_pods or around.has_client(namespace, label):
                yield _Client(entry, namespace, label, usual)


def _entries(service: Service) -> Iterator[_Entry]:
    stem = service.key.name
    for port in service.ports:
        name = f"{stem}-{port.target.slug}"
        yield _Entry(port.target, name, name)
    for alias, ports in service.settings.aliases:
        for allowed in ports:
            name = f"{stem}-{allowed.slug}"
            yield _Entry(allowed, f"{name}-via-{alias}", alias) if alias else _Entry(allowed, name, name)


def _client_namespaces(service: Service, namespaces: Mapping[str, Namespace]) -> Iterator[str]:
    yield service.key.namespace
    if service.settings.namespace_selectors:
        for name, namespace in namespaces.items():
            if name != service.key.namespace and not namespace.is_terminating and selects(service, namespace):
                yield name


def client_label(usual: str) -> str:
    """A label of client pods, shortened where its name is longer than a label's may be."""
    name = usual.removeprefix(keys.NETWORKING_PREFIX)
    if len(name) <= _LONGEST_LABEL:
        return usual
    return f"{keys.NETWORKING_PREFIX}{name[:_KEPT_OF_LABEL]}-{hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]}"


def _usual_label(service: Service, entry: _Entry, namespace: str) -> str:
    if namespace == service.key.namespace:
        return f"{keys.TO_PREFIX}{entry.label}"
    alias = service.settings.namespace_alias
    return f"{keys.TO_PREFIX}{service.key.namespace if alias is None else alias}-{entry.label}"


def _client_pair(service: Service, client: _Client) -> Iterator[Policy]:
    own, name = client.namespace == service.key.namespace, client.entry.name
    return _pair(
        service,
        client.entry.port,
        {"matchLabels": {client.label: keys.ALLOWED}},
        client.namespace,
        ingress=f"ingress-to-{name}" if own else f"ingress-to-{name}-from-{client.namespace}",
        egress=f"egress-to-{name}" if own else f"egress-to-{service.key.namespace}-{name}",
    )


# --- others


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
    for backend in sorted(backends, key=lambda backend: (backend.name, backend.number)):
        port = next((port for port in service.ports if backend.is_for(port)), None)
        if port is not None:
            yield port.target


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
        ingress_clients=f"ingress controller pods running in the {namespace} namespace",
        egress_clients=f"pods running in the {namespace} namespace",
    )


def _gateway_pair(service: Service, route: GatewayRoute, namespace: str) -> Iterator[Policy]:
    port: ServicePort | None = next((port for port in service.ports if port.number == route.number), None)
    if port is None:
        return
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
    service: Service,
    port: Port,
    clients: Object,
    namespace: str,
    *,
    ingress: str,
    egress: str,
    ingress_clients: str = "",
    egress_clients: str = "",
) -> Iterator[Policy]:
    """The policy at the Service's pods and the one at the clients' pods, which `clients` selects in `namespace`.

    The policies have the names `ingress` and `egress`; their descriptions call the clients as given, or as usual.
    """
    own, pods = service.key.namespace, {"matchLabels": service.selector}
    called, labelled = f"pods running in namespace {namespace}", f"labeled with {_selector_text(clients)}"
    what = f"{port.protocol} traffic to port {port.port}"
    behind = f"pods selected by the {service.key} service selector"
    yield Policy(
        Key(own, ingress),
        f"Allows ingress {what} for {behind} from {ingress_clients or called} {labelled}.",
        {
            "podSelector": pods,
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [_peer(clients, namespace, seen_from=own)], "ports": [port.rule()]}],
        },
    )
    yield Policy(
        Key(namespace, egress),
        f"Allows egress {what} from {egress_clients or called} {labelled} to {behind}.",
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
    texts = [f"map[{' '.join(f'{k}:{v}' for k, v in sorted((selector.get('matchLabels') or {}).items()))}]"]
    for expression in selector.get("matchExpressions") or []:
        values = f" ({' '.join(expression['values'])})" if expression.get("values") else ""
        texts.append(f"{expression.get('key')} {expression.get('operator')}{values}")
    return ", ".join(texts)


def _joined(one: Policy, other: Policy) -> Policy:
    """Two policies of the same name as one that lets through what either does.

    Clients in a namespace that are known by a label, and Istio's gateway in that namespace, lead to the same name at
    the Service. Where a name stands for different pods, which takes a port that is called like an alias, the first
    one counts.
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
