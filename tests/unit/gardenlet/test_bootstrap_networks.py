"""The configured Seed is compared with its cluster."""

import pytest

from agent.gardenlet.bootstrap.rules.networks import against_samples, against_shoot_info
from kube.objects import Object

NETWORKS: Object = {"nodes": "10.10.0.0/16", "pods": "10.20.0.0/16", "services": "10.0.0.0/16"}


def wrong(network: str, found: str, wanted: str) -> str:
    return f"incorrect {network} network specified in seed configuration ({found} vs. config={wanted})"


@pytest.mark.parametrize(
    ("info", "violations"),
    [
        ({"nodeNetwork": "10.10.0.0/16", "podNetwork": "10.20.0.0/16", "serviceNetwork": "10.0.0.0/16"}, []),
        ({"podNetwork": "10.20.0.0/16", "serviceNetwork": "10.0.0.0/16"}, []),
        (
            {},
            [
                wrong("pod", 'cluster=""', '"10.20.0.0/16"'),
                wrong("service", 'cluster=""', '"10.0.0.0/16"'),
            ],
        ),
        (
            {"nodeNetwork": "10.1.0.0/16", "podNetwork": "10.20.0.0/16", "serviceNetwork": "10.0.0.0/16"},
            [wrong("node", 'cluster="10.1.0.0/16"', '"10.10.0.0/16"')],
        ),
    ],
)
def test_a_shoot_states_what_its_networks_are(info: dict[str, str], violations: list[str]) -> None:
    assert list(against_shoot_info(NETWORKS, info)) == violations


def test_a_seed_without_nodes_states_nothing_of_theirs() -> None:
    networks = {"pods": "10.20.0.0/16", "services": "10.0.0.0/16"}
    info = {"nodeNetwork": "10.1.0.0/16", "podNetwork": "10.20.0.0/16", "serviceNetwork": "10.0.0.0/16"}
    assert list(against_shoot_info(networks, info)) == []


def node(address: str, kind: str = "InternalIP") -> Object:
    return {"status": {"addresses": [{"type": kind, "address": address}]}}


def pod(address: str, *, host: bool = False, annotations: Object | None = None) -> Object:
    return {"metadata": {"annotations": annotations or {}}, "spec": {"hostNetwork": host}, "status": {"podIP": address}}


def service(address: str, kind: str = "ClusterIP") -> Object:
    return {"spec": {"type": kind, "clusterIP": address}}


POOL = {"cni.projectcalico.org/ipv4pools": '["p"]'}
POOL_6 = {"cni.projectcalico.org/ipv6pools": '["p"]'}
INSIDE = (node("10.10.0.1"), pod("10.20.0.1"), service("10.0.0.1"))


@pytest.mark.parametrize(
    "sample",
    [
        INSIDE,
        (node("9.9.9.9", "ExternalIP"),),
        (node("fd00::7"),),
        (pod("9.9.9.9", host=True), pod("9.9.9.8", annotations=POOL), pod("9.9.9.7", annotations=POOL_6), pod("")),
        (service("9.9.9.9", "NodePort"), service("None"), service("")),
        ({"status": "odd"}, {"spec": 7}, {}),
    ],
)
def test_addresses_within_the_networks_and_those_that_do_not_count(sample: tuple[Object, ...]) -> None:
    assert list(against_samples(NETWORKS, nodes=sample, pods=sample, services=sample)) == []


@pytest.mark.parametrize(
    ("sample", "found"),
    [
        (node("10.9.0.4"), 'incorrect node network specified in seed configuration (cluster node="10.9.0.4" vs.'),
        (pod("10.9.0.4"), 'incorrect pod network specified in seed configuration (cluster pod="10.9.0.4" vs.'),
        (pod("fd00::5"), '(cluster pod="fd00::5" vs. config="10.20.0.0/16")'),
        (service("10.9.0.4"), '(cluster service="10.9.0.4" vs. config="10.0.0.0/16")'),
        (service("fd00::5"), '(cluster service="fd00::5" vs.'),
        (pod("nonsense"), '(cluster pod="nonsense" vs.'),
    ],
)
def test_an_address_outside_is_a_violation(sample: Object, found: str) -> None:
    (violation,) = against_samples(NETWORKS, nodes=[sample], pods=[sample], services=[sample])
    assert found in violation


def test_all_violations_are_reported_together_but_not_hundreds() -> None:
    pods = [pod(f"9.9.9.{number}") for number in range(100)]
    found = list(against_samples(NETWORKS, nodes=[node("9.9.9.9")], pods=pods, services=[service("9.9.9.9")]))
    assert sum("node network" in each for each in found) == 1
    assert sum("service network" in each for each in found) == 1
    assert [each for each in found if "pod network" in each][-1].endswith("(and of 97 more)")
    assert len(found) == 5


def test_with_both_families_addresses_without_a_network_of_theirs_do_not_count() -> None:
    networks = {**NETWORKS, "ipFamilies": ["IPv4", "IPv6"]}
    both = [pod("fd00::5"), pod("9.9.9.9")]
    (violation,) = against_samples(networks, nodes=[], pods=both, services=[service("fd00::6")])
    assert 'pod="9.9.9.9"' in violation


def test_without_a_network_of_nodes_they_may_have_any_address() -> None:
    networks = {"pods": "10.20.0.0/16", "services": "10.0.0.0/16"}
    assert list(against_samples(networks, nodes=[node("9.9.9.9")], pods=[], services=[])) == []
