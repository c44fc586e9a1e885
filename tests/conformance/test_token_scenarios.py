"""The agent's token requestor leaves the cluster as the original does: recorded scenarios, played in one cluster.

Each line of `tokens.jsonl.gz` is a scenario, see `scenario_data`. In the recordings tokens are told by what is in them,
the CA of the cluster by its name, and kubeconfigs by what they hold.
"""

import base64
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from conformance.scenario_data import load
from conformance.scenario_normal import Judge
from conformance.scenario_player import Played, check, chosen, play_alone
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # the first test waits for all scenarios
]

SCENARIOS = load("tokens")
_PREFIX = "tokens"
_JWT = re.compile(r"eyJ[\w-]+\.(eyJ[\w-]+)\.[\w-]+")
_OWN_NAMESPACE = re.compile(rf"{_PREFIX}-\d{{3}}")


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    """Not the one of all tests: the agent gives tokens to whatever is in it."""
    with Cluster() as own:
        yield own


@pytest.fixture(scope="module")
def judge(own_cluster: Cluster) -> Judge:
    return Judge(seen_as=partial(_normal, ca=own_cluster.ca))


@pytest.fixture(scope="module")
def results(own_cluster: Cluster, judge: Judge, request: pytest.FixtureRequest) -> dict[str, Played]:
    """By the id of the scenario; those that no test of this run is about are left out."""
    install_crd(own_cluster)
    return play_alone(
        own_cluster,
        chosen(request.session, SCENARIOS),
        judge=judge,
        prefix=_PREFIX,
        at_once=16,
        controllers={"tokenRequestor": {"enabled": True, "class": "shoot"}},
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_leaves_the_cluster_as_recorded(scenario: str, results: dict[str, Played], judge: Judge) -> None:
    check(judge, SCENARIOS[scenario], results[scenario])


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
