"""The agent leaves the NetworkPolicies that the original does: recorded scenarios, played in one cluster.

What a policy is for is said in other words, and traffic from everywhere is let in by peers that say so.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.scenario_data import load
from conformance.scenario_normal import Judge
from conformance.scenario_player import Played, check, play_alone
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # the first test waits for all scenarios
]

INGRESS_CONTROLLER = {"namespace": "ingress-ctl", "podSelector": {"matchLabels": {"app": "ingress-ctl"}}}
SCENARIOS = load("network_policies")
EVERYBODY = [
    {"namespaceSelector": {}, "podSelector": {}},
    {"ipBlock": {"cidr": "0.0.0.0/0"}},
    {"ipBlock": {"cidr": "::/0"}},
]


@pytest.fixture(scope="module")
def cluster_with_policies(devcluster_run: object) -> Iterator[Cluster]:
    """Not the one of all tests: the agent writes policies for whatever is in it."""
    with Cluster(nodes=1) as own:
        install_crd(own)
        own.api.create("/api/v1/namespaces", {"metadata": {"name": "ingress-ctl"}})
        yield own


@pytest.fixture(scope="module")
def played(cluster_with_policies: Cluster) -> dict[str, Played]:
    controllers = {"networkPolicy": {"enabled": True, "ingressControllerSelector": INGRESS_CONTROLLER}}
    return play_alone(
        cluster_with_policies,
        [*SCENARIOS.values()],
        judge=JUDGE,
        prefix="netpol",
        at_once=24,
        controllers=controllers,
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_policies_are_as_recorded(scenario: str, played: dict[str, Played]) -> None:
    check(JUDGE, SCENARIOS[scenario], played[scenario])


def _in_the_originals_words(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _in_the_originals_words(inner) for key, inner in value.items() if not key.endswith("/description")}
        if kept.get("from") == EVERYBODY:
            del kept["from"]
        return kept
    return [_in_the_originals_words(each) for each in value] if isinstance(value, list) else value


JUDGE = Judge(seen_as=_in_the_originals_words, compared_as=_in_the_originals_words)
