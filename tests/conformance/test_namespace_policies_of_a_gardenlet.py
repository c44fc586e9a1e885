"""The policies of the seed's namespaces are those that a gardenlet of v1.104.3 wrote, so a takeover writes none again."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.gardenlet.seed.network_policy.rules.networks import SeedNetworks, ShootNetworks, endpoints_of
from agent.gardenlet.seed.network_policy.rules.policies import Surroundings, compute
from gardener.network_policies import names_of
from kube.objects import Object

RECORDED: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "gardenlet" / "namespace-policies.yaml").read_text(encoding="utf-8")
)
ADDITIONAL: list[Object] = [
    {"matchLabels": {"conf.example.com/policies": "yes"}},
    {"matchExpressions": [{"key": "conf.example.com/kind", "operator": "In", "values": ["a", "b"]}]},
]
"""With which the scenarios were recorded."""


def cluster(networking: Object) -> Object:
    return {"spec": {"shoot": {"spec": {"networking": networking}}}}


@pytest.mark.parametrize(
    ("seed", "namespace"),
    [(seed, entry["name"]) for seed, recorded in RECORDED.items() for entry in recorded["namespaces"]],
)
def test_policies_are_those_of_the_original(seed: str, namespace: str) -> None:
    recorded = RECORDED[seed]
    (entry,) = (each for each in recorded["namespaces"] if each["name"] == namespace)
    expected = {policy["name"]: policy for policy in entry["policies"]}
    around = Surroundings(
        seed=SeedNetworks.of({"spec": {"networks": recorded["networks"]}}),
        endpoints=endpoints_of(recorded["endpoints"]),
        shoots={name: ShootNetworks.of(cluster(found)) for name, found in recorded["clusters"].items()},
    )
    names = names_of(namespace, entry["labels"], additional=ADDITIONAL)
    if entry.get("partly"):
        names = tuple(expected)
    assert sorted(names) == sorted(expected)
    for name in names:
        policy = compute(name, namespace, around)
        assert policy is not None
        assert policy.spec == expected[name]["spec"]
        assert policy.description == expected[name].get("description", policy.description)
