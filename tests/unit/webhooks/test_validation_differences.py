from typing import Any

import pytest

from kit.webhooks.validating import valid
from kube.objects import Object
from webhooks.handlers.extension_validation.dns_record import DNS_RECORD
from webhooks.handlers.extension_validation.kind import Kind
from webhooks.handlers.extension_validation.plain_kinds import BASTION, CONTAINER_RUNTIME, INFRASTRUCTURE
from webhooks.handlers.extension_validation.rules.difference import differences
from webhooks.handlers.extension_validation.rules.typed import decode
from webhooks.handlers.extension_validation.worker import WORKER


def between(kind: Kind, new: Object, old: Object) -> list[str]:
    def spec(change: Object) -> Any:
        obj: Any = decode(kind.typed, valid(kind.name, **change), kind=kind.name)
        return obj.spec

    return differences(spec(new), spec(old))


def pools(**pool: Any) -> Object:
    return {"pools": [pool]}


def drained(timeout: str) -> Object:
    return {"machineDrainTimeout": timeout}


CONFIG = {"providerConfig": {"a": 1}}
A_POOL = " 0 0 0 map[] map[] [] { } 0  <nil> <nil> {{s}  <nil>} {<nil> <nil> 1 true} [] <nil> []" + 7 * " <nil>"
NEW_YEAR = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("kind", "new", "old", "expected"),
    [
        (INFRASTRUCTURE, {"providerConfig": {}}, {}, []),
        (INFRASTRUCTURE, CONFIG, {}, ["DefaultSpec.ProviderConfig: runtime.RawExtension != <nil pointer>"]),
        (INFRASTRUCTURE, {"class": "a"}, {}, ["DefaultSpec.Class: v1alpha1.ExtensionClass != <nil pointer>"]),
        (
            INFRASTRUCTURE,
            {"providerConfig": {"a": 1, "b": [1, {"c": "d"}]}},
            {"providerConfig": {"b": [1, {"c": "e"}, None], "x": {"y": True}}},
            [
                "DefaultSpec.ProviderConfig.map[a]: 1 != <does not have key>",
                "DefaultSpec.ProviderConfig.map[b].slice[1].map[c]: d != e",
                "DefaultSpec.ProviderConfig.map[b].slice[2]: <no value> != <nil>",
                "DefaultSpec.ProviderConfig.map[x]: <does not have key> != map[y:true]",
            ],
        ),
        (
            INFRASTRUCTURE,
            {"region": "", "secretRef": None, "sshPublicKey": "eA=="},
            {},
            [
                *("Region:  != r", "SecretRef.Name:  != s", "SecretRef.Namespace:  != n"),
                "SSHPublicKey: [120] != <nil slice>",
            ],
        ),
        (INFRASTRUCTURE, {"sshPublicKey": ""}, {}, []),
        (DNS_RECORD, {"ttl": 1}, {}, ["TTL: int64 != <nil pointer>"]),
        (DNS_RECORD, {"ttl": 1}, {"ttl": 2}, ["TTL: 1 != 2"]),
        (DNS_RECORD, {}, {"region": ""}, ["Region: <nil pointer> != string"]),
        (
            DNS_RECORD,
            {"values": ["a"]},
            {"values": ["b", "c"]},
            ["Values.slice[0]: a != b", "Values.slice[1]: <no value> != c"],
        ),
        (
            BASTION,
            {"userData": "eA==", "ingress": []},
            {"userData": "", "ingress": [{}]},
            ["UserData.slice[0]: 120 != <no value>", "Ingress.slice[0]: <no value> != {{ []}}"],
        ),
        (
            BASTION,
            {"ingress": [{"ipBlock": {"cidr": "a"}}]},
            {"ingress": [{"ipBlock": {"cidr": "b", "except": ["c"]}}]},
            ["Ingress.slice[0].IPBlock.CIDR: a != b", "Ingress.slice[0].IPBlock.Except: <nil slice> != [c]"],
        ),
        (
            CONTAINER_RUNTIME,
            {"workerPool": {"name": "w", "selector": {"matchLabels": {"a": "b"}}}},
            {"workerPool": {"name": "w"}},
            ["WorkerPool.Selector.MatchLabels: map[a:b] != <nil map>"],
        ),
        (
            CONTAINER_RUNTIME,
            {"workerPool": {"selector": {"matchLabels": {"a": "b", "c": "d"}}}},
            {"workerPool": {"selector": {"matchLabels": {"a": "x", "e": "f"}}}},
            [
                "WorkerPool.Selector.MatchLabels.map[a]: b != x",
                "WorkerPool.Selector.MatchLabels.map[c]: d != <does not have key>",
                "WorkerPool.Selector.MatchLabels.map[e]: <does not have key> != f",
            ],
        ),
        (
            WORKER,
            pools(nodeTemplate={"capacity": {"cpu": "1", "memory": "1Gi"}}),
            pools(nodeTemplate={"capacity": {"cpu": "1000m", "memory": "2Gi"}}),
            ["Pools.slice[0].NodeTemplate.Capacity.map[memory]: 1Gi != 2Gi"],
        ),
        (WORKER, pools(machineControllerManager=drained("60s")), pools(machineControllerManager=drained("1m")), []),
        (
            WORKER,
            pools(machineControllerManager=drained("1h"), maxSurge=1),
            pools(machineControllerManager={"maxEvictRetries": 1}, maxSurge="10%"),
            [
                "Pools.slice[0].MaxSurge: 1 != 10%",
                "Pools.slice[0].MachineControllerManagerSettings.MachineDrainTimeout: v1.Duration != <nil pointer>",
                "Pools.slice[0].MachineControllerManagerSettings.MaxEvictRetries: <nil pointer> != int32",
            ],
        ),
        (
            WORKER,
            pools(machineControllerManager={}),
            pools(volume={"size": "1Gi"}, userDataSecretRef={"name": "a"}),
            [
                "Pools.slice[0].UserDataSecretRef.LocalObjectReference.Name:  != a",
                "Pools.slice[0].Volume: <nil pointer> != v1alpha1.Volume",
                "Pools.slice[0].MachineControllerManagerSettings: v1beta1.MachineControllerManagerSettings != <nil pointer>",
            ],
        ),
        (
            WORKER,
            pools(taints=[{"key": "a", "timeAdded": "2026-01-01T01:00:00+01:00"}]),
            pools(taints=[{"key": name, "timeAdded": NEW_YEAR} for name in "ab"]),
            ["Pools.slice[0].Taints.slice[1]: <no value> != {b   2026-01-01T00:00:00Z}"],
        ),
        (
            WORKER,
            pools(userDataSecretRef={"name": "s"}, volume={"size": "1", "encrypted": True}),
            {"pools": []},
            [f"Pools.slice[0]: {{{A_POOL}}} != <no value>"],
        ),
    ],
)
def test_differences(kind: Kind, new: Object, old: Object, expected: list[str]) -> None:
    assert between(kind, new, old) == expected


def test_no_more_than_ten_are_named() -> None:
    assert len(between(DNS_RECORD, {"values": ["a"] * 50}, {"values": ["b"] * 50})) == 10
    found = between(DNS_RECORD, {"name": "x", "values": ["a"] * 50}, {"values": ["b"] * 50})
    assert found[0] == "Name: x != a.example.com"
    assert found[-1] == "Values.slice[8]: a != b"


def test_long_values_are_cut() -> None:
    (found,) = between(DNS_RECORD, {"name": "x" * 300}, {"name": "y"})
    assert found == f"Name: {'x' * 256}... != y"
    (found,) = between(INFRASTRUCTURE, {"sshPublicKey": "AAAA" * 10_000}, {})
    assert found == f"SSHPublicKey: [{('0 ' * 256)[:255]}... != <nil slice>"
