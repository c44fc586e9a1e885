"""The agent's token requestor leaves the cluster as the original does: recorded scenarios, played in one cluster.

Each line of `tokens.jsonl.gz` is a scenario, see `scenario_data`. In the recordings tokens are told by what is in them,
the CA of the cluster by its name, and kubeconfigs by what they hold.
"""

import asyncio
import base64
import difflib
import gzip
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from agent_process import AgentProcess
from managed_world import install_crd
from scenario_data import Observations, Scenario
from scenario_normal import contains
from scenario_player import Played, Stage, connected, so_far

from devcluster.cluster import Cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # the first test waits for all scenarios
]

CONFIG: dict[str, Any] = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "leaderElection": {"leaderElect": False, "resourceNamespace": "default"},
    "logFormat": "json",
    "controllers": {"tokenRequestor": {"enabled": True, "class": "shoot"}},
}
_PREFIX = "tokens"
_AT_ONCE = 16
_JWT = re.compile(r"eyJ[\w-]+\.(eyJ[\w-]+)\.[\w-]+")
_OWN_NAMESPACE = re.compile(rf"{_PREFIX}-\d{{3}}")


def _scenarios() -> dict[str, Scenario]:
    lines = gzip.decompress(Path(__file__).with_name("tokens.jsonl.gz").read_bytes()).splitlines()
    scenarios = [msgspec.json.decode(line, type=Scenario) for line in lines]
    return {scenario.id: scenario for scenario in scenarios}


SCENARIOS = _scenarios()


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    """Not the one of all tests: the agent gives tokens to whatever is in it."""
    with Cluster() as own:
        yield own


@pytest.fixture(scope="module")
def results(own_cluster: Cluster, request: pytest.FixtureRequest) -> dict[str, Played]:
    """By the id of the scenario; those that no test of this run is about are left out."""
    install_crd(own_cluster)
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    chosen = {str(call.params["scenario"]) for call in calls if call is not None and "scenario" in call.params}
    with AgentProcess(CONFIG, kubeconfig=own_cluster.kubeconfig) as agent:
        agent.wait_until_ready(seconds=60)
        return asyncio.run(_play(own_cluster, agent, [each for name, each in SCENARIOS.items() if name in chosen]))


async def _play(cluster: Cluster, agent: AgentProcess, scenarios: list[Scenario]) -> dict[str, Played]:
    async with connected(cluster.kubeconfig) as site:
        judge = partial(_is_expected, cluster.ca)
        return await Stage(site, site, agent, prefix=_PREFIX, at_once=_AT_ONCE, judge=judge).play_all(scenarios)


def _is_expected(ca: str, scenario: Scenario, found: Observations) -> bool:
    seen = _normal(found, ca=ca)
    if scenario.peer_defect:
        return contains(seen, so_far(scenario.want, found))
    return any(seen == so_far(one, found) for one in scenario.expect.values())


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_leaves_the_cluster_as_recorded(scenario: str, results: dict[str, Played], own_cluster: Cluster) -> None:
    recorded, found = SCENARIOS[scenario], results[scenario]
    assert not found.error
    seen = _normal(found.seen, ca=own_cluster.ca)
    if recorded.peer_defect:
        assert contains(seen, recorded.want), _diff(recorded.want, seen)
    elif seen not in recorded.expect.values():
        pytest.fail(min((_diff(one, seen) for one in recorded.expect.values()), key=len))


def test_tokens_were_recorded() -> None:
    assert len(SCENARIOS) == 37


def _normal(value: Any, *, ca: str) -> Any:
    if isinstance(value, dict):
        return {name: _normal(_read(name, inner), ca=ca) for name, inner in value.items()}
    if isinstance(value, list):
        return [_normal(inner, ca=ca) for inner in value]
    if not isinstance(value, str):
        return value
    encoded = base64.b64encode(ca.encode()).decode()
    return _JWT.sub(_claims, value).replace(encoded, "<ca>").replace(ca, "<ca>")


def _read(name: str, value: Any) -> Any:
    if name != "kubeconfig" or not isinstance(value, str):
        return value
    return yaml.safe_load(value)


def _claims(token: re.Match[str]) -> str:
    claims = json.loads(base64.urlsafe_b64decode(token[1] + "=" * (-len(token[1]) % 4)))
    subject = _OWN_NAMESPACE.sub("$NS", claims["sub"])
    minutes = round((claims["exp"] - claims["iat"]) / 60)
    return f"<token of {subject} for {','.join(claims['aud'])}, {minutes} min>"


def _diff(wanted: Any, seen: Any) -> str:
    first, second = (yaml.safe_dump(value, width=1000).splitlines() for value in (wanted, seen))
    return "\n".join(difflib.unified_diff(first, second, "wanted", "seen", n=2, lineterm=""))
