"""Which Nodes a pool gets, and how many are there meanwhile."""

import base64
import gzip
import json
from itertools import count
from typing import Any

import pytest

from kube.objects import Object, key, labels
from localprovider.extensions.machines import rules

NAMESPACE = "shoot--p--s"


def pool(**fields: Any) -> Object:
    given = {"name": "w", "minimum": 3, "maximum": 5, "maxSurge": 1, "maxUnavailable": 0, "zones": ["a", "b"]}
    return {**given, "kubernetesVersion": "1.30.1", "machineType": "small", "labels": {rules.POOL: "w"}, **fields}


def ready(node: Object) -> Object:
    return {**node, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def play(wanted: Object, nodes: list[Object], *, size: int) -> tuple[list[Object], list[int], list[int]]:
    """What is there in the end, and after each step how many Nodes were there, and how many of them ready."""
    there, ready_ones = list[int](), list[int]()
    for steps in count():
        assert steps < 50
        step = rules.next_step(NAMESPACE, wanted, nodes, size=size)
        if step.is_done:
            return nodes, there, ready_ones
        made = [rules.node(name, wanted, region="r", checksum="c") for name in step.create]
        nodes = [each for each in nodes if key(each).name not in step.delete] + made
        there.append(len(nodes))
        ready_ones.append(sum(rules.is_node_ready(each) for each in nodes))
        if not step.create and not step.delete:
            nodes = [ready(each) for each in nodes]
    raise AssertionError


def test_an_empty_pool_gets_all_at_once_in_all_zones() -> None:
    nodes, there, _ = play(pool(), [], size=3)
    assert there[0] == 3
    assert [labels(each)["topology.kubernetes.io/zone"] for each in nodes] == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("limits", "most", "least"),
    [
        ({"maxSurge": 1, "maxUnavailable": 0}, 5, 4),
        ({"maxSurge": 0, "maxUnavailable": 1}, 4, 3),
        ({"maxSurge": "50%", "maxUnavailable": "25%"}, 6, 3),
        ({"maxSurge": 0, "maxUnavailable": 0}, 5, 4),
        ({"maxSurge": 4, "maxUnavailable": 4}, 8, 0),
    ],
)
def test_old_machines_make_way_within_the_limits(limits: Object, most: int, least: int) -> None:
    old, _, _ = play(pool(), [], size=4)
    wanted = pool(machineType="large", **limits)
    nodes, there, ready_ones = play(wanted, [ready(each) for each in old], size=4)
    assert {labels(each)[rules.CLASS] for each in nodes} == {rules.class_of(wanted)}
    assert (len(nodes), max(there) <= most, min(ready_ones) >= least) == (4, True, True)


def test_what_is_asleep_has_none() -> None:
    nodes, _, _ = play(pool(), [], size=3)
    assert play(pool(), nodes, size=0)[0] == []


@pytest.mark.parametrize(("there", "size"), [(0, 3), (4, 4), (9, 5)])
def test_as_many_stay_as_there_are_within_the_limits(there: int, size: int) -> None:
    nodes = [rules.node(f"n-{number}", pool(), region="r", checksum="c") for number in range(there)]
    assert rules.sizes_of([pool()], nodes, {}) == {"w": size}


@pytest.mark.parametrize(("noted", "size"), [(3, 3), (4, 4), (9, 5), (1, 3)])
def test_surplus_machines_of_a_replacement_do_not_count(noted: int, size: int) -> None:
    old = [rules.node(f"n-{number}", pool(), region="r", checksum="c") for number in range(3)]
    wanted = pool(machineType="large")
    nodes = [*old, rules.node("n-3", wanted, region="r", checksum="c")]
    assert rules.is_outdated(wanted, nodes)
    assert rules.sizes_of([wanted], nodes, {"w": noted}) == {"w": size}


@pytest.mark.parametrize(
    ("fields", "is_other"),
    [
        ({"kubernetesVersion": "1.30.2"}, False),
        ({"minimum": 1}, False),
        ({"kubernetesVersion": "1.31.0"}, True),
        ({"machineType": "large"}, True),
        ({"machineImage": {"name": "i", "version": "2"}}, True),
    ],
)
def test_what_makes_other_machines(fields: Object, is_other: bool) -> None:
    assert (rules.class_of(pool(**fields)) != rules.class_of(pool())) is is_other


def test_a_patch_of_kubernetes_changes_nodes_in_place() -> None:
    node = rules.node("n-0", pool(), region="r", checksum="c")
    node["status"] = {"nodeInfo": {"kubeletVersion": "v1.30.1"}}
    newer = pool(kubernetesVersion="1.30.2")
    assert rules.change_of(node, pool(), checksum="c") == {}
    assert rules.change_of(node, newer, checksum="d")["metadata"].keys() == {"labels", "annotations"}
    assert rules.version_change_of(node, newer) == {"status": {"nodeInfo": {"kubeletVersion": "v1.30.2"}}}
    assert rules.version_change_of(node, pool()) == {}


def test_each_zone_has_its_share() -> None:
    found = list(rules.deployments(NAMESPACE, pool()))
    assert [(each["name"], each["minimum"], each["maximum"]) for each in found] == [
        (f"{NAMESPACE}-w-z1", 2, 3),
        (f"{NAMESPACE}-w-z2", 1, 2),
    ]


def test_saved_machines_are_those_of_all_deployments_within_a_limit() -> None:
    def packed(content: bytes) -> Object:
        return {"state": base64.b64encode(gzip.compress(content)).decode()}

    saved = {"machineDeployments": {"a": {"machineSets": [{"kind": "S"}], "machines": [{"kind": "M"}]}}}
    assert rules.saved_machines({}) == []
    assert rules.saved_machines(packed(json.dumps(saved).encode())) == [{"kind": "S"}, {"kind": "M"}]
    with pytest.raises(ValueError, match="is longer than 16777216 bytes"):
        rules.saved_machines(packed(bytes(20 << 20)))
