"""The agent leaves the NetworkPolicies that the original does, to the letter: recorded scenarios, replayed in one cluster."""

import pytest

from conformance.scenario_data import load
from conformance.scenario_normal import Judge
from conformance.scenario_player import check, chosen, play_alone
from devcluster.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # the first test waits for all scenarios

INGRESS_CONTROLLER = {"namespace": "ingress-ctl", "podSelector": {"matchLabels": {"app": "ingress-ctl"}}}
NODES = 1
SCENARIOS = load("network_policies")


@pytest.fixture(scope="module")
def problems(own_cluster: Cluster, request: pytest.FixtureRequest) -> dict[str, str]:
    own_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": "ingress-ctl"}})
    controllers = {"networkPolicy": {"enabled": True, "ingressControllerSelector": INGRESS_CONTROLLER}}
    scenarios = chosen(request.session, SCENARIOS)
    return play_alone(own_cluster, scenarios, judge=Judge(), prefix="netpol", at_once=24, controllers=controllers)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_policies_are_as_recorded(scenario: str, problems: dict[str, str]) -> None:
    check(problems[scenario])
