"""The agent's token requestor leaves the cluster as the original does: recorded scenarios, replayed in one cluster.

Each line of `tokens.jsonl.gz` is a scenario, see `scenario_data`. In the recordings tokens are told by what is in them,
the CA of the cluster by its name, and kubeconfigs by what they hold.
"""

import base64
import json
import re
from functools import partial
from typing import Any

import pytest
import yaml

from conformance.scenario_data import load
from conformance.scenario_normal import Judge
from conformance.scenario_player import check, chosen, play_alone
from devcluster.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # the first test waits for all scenarios

NODES = 0
SCENARIOS = load("tokens")
_PREFIX = "tokens"
_JWT = re.compile(r"eyJ[\w-]+\.(eyJ[\w-]+)\.[\w-]+")
_OWN_NAMESPACE = re.compile(rf"{_PREFIX}-\d{{3}}")


@pytest.fixture(scope="module")
def problems(own_cluster: Cluster, request: pytest.FixtureRequest) -> dict[str, str]:
    controllers = {"tokenRequestor": {"enabled": True, "class": "shoot"}}
    judge = Judge(seen_as=partial(_normal, ca=own_cluster.ca))
    scenarios = chosen(request.session, SCENARIOS)
    return play_alone(own_cluster, scenarios, judge=judge, prefix=_PREFIX, at_once=16, controllers=controllers)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_leaves_the_cluster_as_recorded(scenario: str, problems: dict[str, str]) -> None:
    check(problems[scenario])


def test_tokens_were_recorded() -> None:
    assert len(SCENARIOS) == 37


def _normal(value: Any, *, ca: str) -> Any:
    if isinstance(value, dict):
        read = {name: yaml.safe_load(inner) if name == "kubeconfig" else inner for name, inner in value.items()}
        return {name: _normal(inner, ca=ca) for name, inner in read.items()}
    if isinstance(value, list):
        return [_normal(inner, ca=ca) for inner in value]
    if not isinstance(value, str):
        return value
    encoded = base64.b64encode(ca.encode()).decode()
    return _JWT.sub(_claims, value).replace(encoded, "<ca>").replace(ca, "<ca>")


def _claims(token: re.Match[str]) -> str:
    claims = json.loads(base64.urlsafe_b64decode(token[1] + "=" * (-len(token[1]) % 4)))
    subject = _OWN_NAMESPACE.sub("$NS", claims["sub"])
    minutes = round((claims["exp"] - claims["iat"]) / 60)
    return f"<token of {subject} for {','.join(claims['aud'])}, {minutes} min>"
