"""The agent leaves the NetworkPolicies that the original does: recorded scenarios, played in one cluster.

What a policy is for is said in other words, and traffic from everywhere is let in by peers that say so.
"""

from typing import Any

import pytest

from conformance.scenario_data import load
from conformance.scenario_normal import Judge
from conformance.scenario_player import check, chosen, play_alone
from devcluster.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # the first test waits for all scenarios

INGRESS_CONTROLLER = {"namespace": "ingress-ctl", "podSelector": {"matchLabels": {"app": "ingress-ctl"}}}
NODES = 1
SCENARIOS = load("network_policies")
EVERYBODY = [
    {"namespaceSelector": {}, "podSelector": {}},
    {"ipBlock": {"cidr": "0.0.0.0/0"}},
    {"ipBlock": {"cidr": "::/0"}},
]


@pytest.fixture(scope="module")
def problems(own_cluster: Cluster, request: pytest.FixtureRequest) -> dict[str, str]:
    own_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": "ingress-ctl"}})
    controllers = {"networkPolicy": {"enabled": True, "ingressControllerSelector": INGRESS_CONTROLLER}}
    judge = Judge(seen_as=_in_the_originals_words, compared_as=_in_the_originals_words)
    scenarios = chosen(request.session, SCENARIOS)
    return play_alone(own_cluster, scenarios, judge=judge, prefix="netpol", at_once=24, controllers=controllers)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_policies_are_as_recorded(scenario: str, problems: dict[str, str]) -> None:
    check(problems[scenario])


def _in_the_originals_words(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _in_the_originals_words(inner) for key, inner in value.items() if not key.endswith("/description")}
        if kept.get("from") == EVERYBODY:
            del kept["from"]
        return kept
    return [_in_the_originals_words(each) for each in value] if isinstance(value, list) else value
