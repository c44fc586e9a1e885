"""Policies mean what was requested: who reaches whom, before and after.

In all of these clusters everything is forbidden that no policy lets through.
"""

import json
import random
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.shared.network_policy.rules.policies import (
    NAMESPACE_LABEL,
    Rules,
    Surroundings,
    client_label,
)
from agent.shared.network_policy.rules.projections import Backend, Namespace, Service
from gardener import keys
from kit.network_model import Network, Pod
from kit.network_policies import desired_policies
from kit.objects import obj
from kube.objects import Key, Object

INGRESS_CONTROLLER = Rules(ingress_controller=("b", {"matchLabels": {"role": "ingress"}}))


def policy(key: Key, spec: Object) -> Object:
    return {"metadata": {"namespace": key.namespace, "name": key.name}, "spec": spec}


def network(namespaces: dict[str, dict[str, str]], services: Sequence[Service], rules: Rules, **around: Any) -> Network:
    known = {name: Namespace(labels, is_terminating=False) for name, labels in namespaces.items()}
    everything = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    policies = [policy(Key(name, "deny-all"), everything) for name in namespaces]
    for service in services:
        found = {key: value for key, value in around.items() if key != "backends"}
        found["backends"] = {Backend("", 1)} if service.key in around.get("backends", ()) else ()
        desired = desired_policies(service, rules, Surroundings(namespaces=known, **found))
        policies += [policy(each.key, each.spec) for each in desired.policies.values()]
    return Network(dict(namespaces), policies)


def service(namespace: str, name: str, *, port: int, annotations: dict[str, Any]) -> Service:
    marks = {
        f"{keys.NETWORKING_PREFIX}{key}": value if isinstance(value, str) else json.dumps(value)
        for key, value in annotations.items()
    }
    ports = [{"port": 1, "targetPort": port, "protocol": "TCP"}]
    spec = {"selector": {"app": name}, "ports": ports}
    return Service.of(obj("v1 Service", f"{namespace}/{name}", annotations=marks, spec=spec))


def asking(namespace: str, *labels: str, **others: str) -> Pod:
    marks = {client_label(f"{keys.NETWORKING_PREFIX}{label}"): keys.ALLOWED for label in labels}
    return Pod(namespace, tuple({**marks, **others}.items()))


NAMESPACES = {
    name: {NAMESPACE_LABEL: name, **labels}
    for name, labels in {"shop-1": {}, "front": {"team": "web"}, "other": {"team": "db"}}.items()
}
DB = service(
    "shop-1",
    "db",
    port=13306,
    annotations={
        "namespace-selectors": [{"matchLabels": {"team": "web"}}],
        "pod-label-selector-namespace-alias": "all-shops",
        "from-scrapers-allowed-ports": [{"port": "metrics", "protocol": "TCP"}],
    },
)
SERVER = Pod("shop-1", (("app", "db"),), ports=(("metrics", 9100),))


@pytest.mark.parametrize(
    ("client", "port", "reaches"),
    [
        (asking("shop-1", "to-db-tcp-13306"), 13306, True),
        (asking("shop-1", "to-db-tcp-13306"), 9100, False),
        (asking("shop-1", "to-scrapers"), 9100, True),
        (asking("shop-1", "to-scrapers"), 13306, False),
        (asking("shop-1"), 13306, False),
        (asking("shop-1", "to-all-shops-db-tcp-13306"), 13306, False),
        (asking("front", "to-all-shops-db-tcp-13306"), 13306, True),
        (asking("front", "to-db-tcp-13306"), 13306, False),
        (asking("front", "to-all-shops-scrapers"), 9100, True),
        (asking("other", "to-all-shops-db-tcp-13306"), 13306, False),
        (asking("other", "to-all-shops-scrapers"), 9100, False),
    ],
)
def test_clients_reach_what_their_label_names_and_nothing_else(client: Pod, port: int, reaches: bool) -> None:
    after = network(NAMESPACES, [DB], Rules())
    assert after.may_reach(client, SERVER, "TCP", port) is reaches
    assert not after.may_reach(client, SERVER, "UDP", port)
    assert not network(NAMESPACES, [], Rules()).may_reach(client, SERVER, "TCP", port)


@pytest.mark.parametrize("names_everybody", [True, False])
@pytest.mark.parametrize(
    ("ports", "open_ports"), [([{"port": 8443}], [8443]), ([], [1, 8443]), ([{"port": 1, "endPort": 3}], [1, 2, 3])]
)
def test_the_world_comes_in_and_pods_inside_still_need_their_label(
    names_everybody: bool, ports: list[Object], open_ports: list[int]
) -> None:
    gateway = service("front", "gw", port=7, annotations={"from-world-to-ports": ports})
    after = network(NAMESPACES, [gateway], Rules(names_everybody=names_everybody))
    server = Pod("front", (("app", "gw"),))
    after.namespaces["world"] = {}  # no policy applies to what is outside
    for port in (1, 2, 3, 4, 8443):
        for address in ("192.0.2.1", "2001:db8::1"):
            assert after.may_reach(Pod("world", (), address=address), server, "TCP", port) is (
                port in open_ports or not ports
            )
        assert not after.may_reach(asking("shop-1"), server, "TCP", port)


# --- random clusters

_LABELS = st.sampled_from([{}, {"team": "web"}, {"team": "db"}])
_SELECTORS: st.SearchStrategy[Any] = st.sampled_from(
    [None, [], [{}], [{"matchLabels": {"team": "web"}}], [{"matchLabels": {"team": "db"}}]]
)
_ALIASES = st.sampled_from([None, "", "alias"])
_NAMES = ("a", "b", "c")


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[str, dict[str, str]], list[Service], set[Key]]:
    namespaces = {name: {NAMESPACE_LABEL: name, **draw(_LABELS)} for name in _NAMES}
    services, exposed = [], set()
    for namespace, name in draw(
        st.sets(st.tuples(st.sampled_from(_NAMES), st.sampled_from(["x", "y", "z" * 60])), max_size=4)
    ):
        annotations = {
            "namespace-selectors": draw(_SELECTORS),
            "pod-label-selector-namespace-alias": draw(_ALIASES),
            "from-scrapers-allowed-ports": draw(st.sampled_from([None, [{"port": 9}]])),
        }
        present = {key: value for key, value in annotations.items() if value is not None}
        services.append(service(namespace, name, port=draw(st.sampled_from([80, 81])), annotations=present))
        if draw(st.booleans()):
            exposed.add(Key(namespace, name))
    return namespaces, services, exposed


def labels_that_open(service: Service, client_namespace: str, port: int, *, selected: bool) -> Iterator[str]:
    """What a client may carry to be let through, derived from the rules in other words than the controller's."""
    own = client_namespace == service.key.namespace
    if not own and not selected:
        return
    alias = service.settings.namespace_alias
    prefix = "" if own else f"{service.key.namespace if alias is None else alias}-"
    if port == service.ports[0].target.port:
        yield f"to-{prefix}{service.key.name}-tcp-{port}"
    if port == 9 and service.settings.aliases:
        yield f"to-{prefix}scrapers"


def labels_around(services: Sequence[Service]) -> set[str]:
    """All that clients could come upon."""
    found = set()
    for each, namespace in product(services, ("", "alias", *_NAMES)):
        prefix = f"to-{namespace}-" if namespace else "to-"
        found |= {f"{prefix}{each.key.name}-tcp-{each.ports[0].target.port}", f"{prefix}scrapers"}
    return found


@given(clusters())
def test_in_any_cluster_just_those_reach_a_service_who_ask_for_it_where_it_lets_them(cluster: Any) -> None:
    namespaces, services, exposed = cluster
    after = network(namespaces, services, INGRESS_CONTROLLER, backends=exposed)
    for server, namespace, port in product(services, _NAMES, (80, 81, 9)):
        selectors = server.settings.namespace_selectors
        having = namespaces[namespace].items()
        selected = any(selector["matchLabels"].items() <= having for selector in selectors)
        opening = set(labels_that_open(server, namespace, port, selected=selected))
        pod = Pod(server.key.namespace, (("app", server.key.name),))
        for label in labels_around(services):
            assert after.may_reach(asking(namespace, label), pod, "TCP", port) is (label in opening)
        is_exposed = server.key in exposed
        reaches = is_exposed and namespace == "b" and port == server.ports[0].target.port
        assert after.may_reach(asking(namespace, role="ingress"), pod, "TCP", port) is reaches


@given(clusters(), st.randoms(use_true_random=False))
def test_policies_depend_on_the_state_alone(cluster: Any, shuffle: random.Random) -> None:
    namespaces, services, exposed = cluster
    names = list(namespaces)
    shuffle.shuffle(names)
    again = network({name: namespaces[name] for name in names}, services, INGRESS_CONTROLLER, backends=set(exposed))
    once = network(namespaces, services, INGRESS_CONTROLLER, backends=exposed)
    assert sorted(map(json.dumps, again.policies)) == sorted(map(json.dumps, once.policies))
