"""How much one Service may cause, whatever it requests, and that the rest of it still counts."""

import json
from typing import Any

import pytest

from agent.shared.network_policy import istio
from agent.shared.network_policy.rules.annotations import policy_settings
from agent.shared.network_policy.rules.limits import (
    MOST_POLICIES,
    MOST_PORTS,
    MOST_REQUIREMENTS,
    MOST_SELECTORS,
    MOST_VALUES,
)
from agent.shared.network_policy.rules.policies import (
    Desired,
    GatewayRoute,
    Rules,
    Surroundings,
    compute_policies,
)
from agent.shared.network_policy.rules.projections import Namespace, Service
from gardener import keys
from kit.network_policies import desired_policies
from kit.objects import obj
from kube.objects import Key, Object

PFX = keys.NETWORKING_PREFIX
EVERYWHERE: list[Object] = [{}]


def service(*, ports: int = 1, aliases: dict[str, int] | None = None, **annotations: Any) -> Service:
    marks = {f"{PFX}from-{alias}-allowed-ports": json.dumps(listed(count)) for alias, count in (aliases or {}).items()}
    marks |= {f"{PFX}{name.replace('_', '-')}": json.dumps(value) for name, value in annotations.items()}
    spec = {"selector": {"app": "db"}, "ports": [{"port": port} for port in range(1, ports + 1)]}
    return Service.of(obj("v1 Service", "shop/db", annotations=marks, spec=spec))


def listed(count: int) -> list[Object]:
    return [{"port": 10_000 + port} for port in range(count)]


def around(count: int, **more: Any) -> Surroundings:
    names = ["shop", *(f"n{number:05}" for number in range(count))]
    return Surroundings(namespaces={name: Namespace({}, is_terminating=False) for name in names}, **more)


def selectors(count: int, *, labels: int = 1) -> list[Object]:
    return [{"matchLabels": {f"l{number}": "x" for number in range(labels)}} for _ in range(count)]


# --- what is requested


def test_the_flood_of_one_service_is_cut_to_its_share() -> None:
    flood = service(aliases={f"a{number}": 200 for number in range(85)}, namespace_selectors=EVERYWHERE)
    found = desired_policies(flood, Rules(), around(10))
    assert len(found.policies) <= MOST_POLICIES
    assert sum(key.namespace == "n00000" for key in found.policies) <= MOST_PORTS
    assert len([problem for problem in flood.settings.problems if problem.is_limit]) > 10


def test_ports_of_a_service_count_before_those_of_its_annotations() -> None:
    many = service(ports=MOST_PORTS - 10, aliases={"a": 10, "b": 1})
    assert [alias for alias, _ in many.settings.aliases] == ["a"]
    [problem] = many.settings.problems
    assert problem.annotation == f"{PFX}from-b-allowed-ports"
    assert problem.is_limit
    assert problem.message == (
        "Too many: 1 ports, where 0 are possible: a Service and its annotations have 250 at most; use ranges (endPort),"
        " or another Service"
    )
    assert service(ports=MOST_PORTS).ports_left_out == 0
    more = service(ports=MOST_PORTS + 7)
    assert (len(more.ports), more.ports_left_out) == (MOST_PORTS, 7)


@pytest.mark.parametrize(
    ("annotation", "largest", "too_large"),
    [
        ("namespace-selectors", selectors(MOST_SELECTORS), selectors(MOST_SELECTORS + 1)),
        (
            "namespace-selectors",
            selectors(1, labels=MOST_REQUIREMENTS),
            selectors(2, labels=MOST_REQUIREMENTS // 2 + 1),
        ),
        *(
            (
                "namespace-selectors",
                *(
                    [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"] * (count + more)}]}]
                    for more in (0, 1)
                ),
            )
            for count in (MOST_VALUES,)
        ),
        ("from-world-to-ports", listed(MOST_PORTS), listed(MOST_PORTS + 1)),
        ("from-a-allowed-ports", listed(MOST_PORTS), listed(MOST_PORTS + 1)),
    ],
)
def test_an_annotation_may_request_so_much_and_no_more(annotation: str, largest: Any, too_large: Any) -> None:
    assert not policy_settings({f"{PFX}{annotation}": json.dumps(largest)}).problems
    [problem] = policy_settings({f"{PFX}{annotation}": json.dumps(too_large)}).problems
    assert problem.is_limit
    assert "Too many" in problem.message


# --- what comes of it


def test_policies_of_a_service_end_with_the_namespaces_for_which_there_is_no_room() -> None:
    wide = service(ports=20, namespace_selectors=EVERYWHERE, from_world_to_ports=[])
    found = desired_policies(wide, Rules(), around(400))
    assert len(found.policies) <= MOST_POLICIES
    namespaces = {key.namespace for key in found.policies}
    assert namespaces == {"shop", *(f"n{number:05}" for number in range(len(namespaces) - 1))}
    assert found.namespaces_left_out == 401 - len(namespaces)
    assert Key("shop", "ingress-to-db-from-world") in found.policies


def test_namespaces_that_are_served_keep_their_policies_when_others_come() -> None:
    wide = service(ports=20, namespace_selectors=EVERYWHERE)
    found = desired_policies(wide, Rules(), around(400, served={"n00399"}))
    assert Key("n00399", "egress-to-shop-db-tcp-1") in found.policies
    assert found.namespaces_left_out


def test_gateways_count_as_well() -> None:
    everywhere: dict[str, frozenset[str]] = {f"n{number:05}": frozenset() for number in range(400)}
    routes = [GatewayRoute(port, {"gateway": "x"}, everywhere) for port in range(1, 21)]
    found = desired_policies(service(ports=20), Rules(), around(400, routes=routes))
    assert len(found.policies) == MOST_POLICIES
    assert found.namespaces_left_out


def test_what_a_real_seed_requests_has_room() -> None:
    usual = service(ports=4, aliases={"scrapers": 2}, namespace_selectors=[{"matchLabels": {}}] * 5)
    found = desired_policies(usual, Rules(), around(500))
    assert (len(found.policies), found.namespaces_left_out) == (501 * 6 * 2, 0)


def test_others_may_have_their_turns_after_each_namespace_and_each_client() -> None:
    wide = service(ports=10, namespace_selectors=EVERYWHERE)
    desired, before = Desired(), 0
    for _ in compute_policies(desired, wide, Rules(), around(100)):
        assert len(desired.policies) - before <= 2
        before = len(desired.policies)
    narrow = service(namespace_selectors=selectors(MOST_SELECTORS))
    assert sum(1 for _ in compute_policies(Desired(), narrow, Rules(), around(1000))) > 1000


# --- Istio


def test_destinations_in_other_namespaces_lead_nowhere_and_gateways_count_once() -> None:
    hosts = ["ui.shop.svc.cluster.local", "ui.victim.svc.cluster.local"]
    routes = [{"destination": {"host": host, "port": {"number": 80}}} for host in hosts]
    virtual = istio.virtual_service(
        obj(
            "networking.istio.io/v1beta1 VirtualService",
            "shop/v",
            spec={"gateways": ["g"] * 9, "http": [{"route": routes}]},
        )
    )
    assert virtual.destinations == {Key("shop", "ui"): frozenset({80})}
    assert virtual.gateways == (Key("shop", "g"),)
