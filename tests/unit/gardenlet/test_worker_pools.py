"""What nodes of worker pools get, from what a Shoot requests."""

import base64
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from components import container_runtimes, shoot_pods
from components.worker_pools import kubelet, node_agent, operating_system, worker
from components.worker_pools.pools import Pool, pools_of
from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.plan import data_of
from kube.objects import Object, key
from kube.paths import at

POOL: Object = {
    "name": "a",
    "minimum": 1,
    "maximum": 2,
    "machine": {"type": "small", "image": {"name": "linux", "version": "1.0.0"}},
    "zones": ["z"],
}
PROFILE: Object = {"metadata": {"name": "p"}, "spec": {"machineTypes": [{"name": "small", "cpu": "1"}]}}


def shoot(*pools: Mapping[str, Any], **kubernetes: Any) -> Object:
    """Args: pools: what differs from the usual one."""
    return {
        "metadata": {"name": "s", "namespace": "garden-p"},
        "spec": {
            "kubernetes": {"version": "1.30.14", **kubernetes},
            "provider": {"type": "t", "workers": [{**POOL, **each} for each in pools]},
        },
    }


def pool(*, kubernetes: Object | None = None, **fields: Any) -> Pool:
    (found,) = pools_of(shoot(fields, **(kubernetes or {})), PROFILE)
    return found


def systems(of: Pool, *public_keys: bytes) -> list[Object]:
    return operating_system.objects(
        operating_system.Values(
            namespace="shoot--p--s",
            pool=of,
            type="linux",
            server="https://api",
            ca_bundle=b"ca",
            trusted=b"ca",
            kubelet_ca=b"kubelet",
            dns="10.4.0.10",
            images=operating_system.Images(pause="pause", agent="agent", kubelet="kubelet"),
            public_keys=public_keys,
        )
    )


def file(system: Object, path: str) -> str:
    inline = next(each for each in system["spec"]["files"] if each["path"] == path)["content"]["inline"]
    data: str = inline["data"]
    return base64.b64decode(data).decode() if inline["encoding"] == "b64" else data


# --- many pools


def of_pools(count: int) -> list[Object]:
    """Secrets with what node agents apply."""
    pools = pools_of(shoot(*({"name": f"p{number}"} for number in range(count))), PROFILE)
    found = node_agent.objects("shoot--p--s", [(each, systems(each)[1]) for each in pools])
    return [each for each in found if key(each).name.startswith("managedresource-shoot-gardener-node-agent-p")]


def size(obj: Object) -> int:
    return len(orjson.dumps(obj))


def test_no_object_holds_what_the_machines_of_100_pools_start_with() -> None:
    pools = pools_of(shoot(*({"name": f"p{number}"} for number in range(100))), PROFILE)
    references = [(each, {"name": systems(each)[0]["metadata"]["name"], "key": "cloud_config"}) for each in pools]
    common: dict[str, Any] = {"namespace": "n", "name": "s", "type": "t", "region": "r", "secret": "c", "status": None}
    assert size(worker.worker(worker.Values(**common, pools=references))) < 100 << 10
    (alone,), found = of_pools(1), of_pools(100)
    assert len(found) == 100
    assert max(map(size, found)) < size(alone) + 100


def test_a_pool_may_be_called_like_a_part_of_what_nodes_may_do() -> None:
    config = pool(name="rbac")
    objects = node_agent.objects("shoot--p--s", [(config, systems(config)[1])])
    secrets = [data_of(each) for each in objects if key(each).name.startswith("managedresource-")]
    kinds = {each.object["kind"] for each in decode_secrets(secrets).objects}
    assert {"Secret", "ClusterRole", "Role"} <= kinds


# --- kubelets


def test_a_kubelet_evicts_as_the_shoot_states_and_else_as_usual() -> None:
    requested = {"evictionHard": {"memoryAvailable": "1Gi"}, "kubeReserved": {"cpu": "80m", "ephemeralStorage": "1Gi"}}
    config = kubelet.configuration(pool(kubernetes={"kubelet": requested}), dns="10.4.0.10")
    assert config["evictionHard"]["memory.available"] == "1Gi"
    assert config["evictionHard"]["nodefs.available"] == "5%"
    assert config["kubeReserved"] == {"cpu": "80m", "ephemeral-storage": "1Gi"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("maxPods", 200), ("imageGCHighThresholdPercent", 60), ("memorySwap", {"swapBehavior": "LimitedSwap"})],
)
def test_other_settings_reach_kubelets_as_they_are(name: str, value: Any) -> None:
    assert kubelet.configuration(pool(kubernetes={"kubelet": {name: value}}), dns="d")[name] == value


def test_settings_of_a_pool_replace_those_of_the_shoot() -> None:
    (of_pool,) = pools_of(shoot({"kubernetes": {"kubelet": {"maxPods": 3}}}, kubelet={"maxPods": 1}), PROFILE)
    assert kubelet.configuration(of_pool, dns="d")["maxPods"] == 3


def test_feature_gates_that_a_kubelet_does_not_know_are_left_out() -> None:
    requested = {"featureGates": {"NoSuchFeature": True, "AllAlpha": True}}
    assert kubelet.configuration(pool(kubernetes={"kubelet": requested}), dns="d")["featureGates"] == {"AllAlpha": True}


# --- machines


def test_both_keys_open_while_they_are_rotated() -> None:
    _, system = systems(pool(), b"ssh-rsa new\n", b"ssh-rsa old\n")
    assert file(system, "/var/lib/gardener-user-authorized-keys") == "ssh-rsa new\nssh-rsa old\n"


# --- system components


def test_system_components_tolerate_the_taints_of_pools_that_they_may_run_on() -> None:
    taints = [{"key": "b", "value": "1", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]
    closed = {"taints": [{"key": "c", "effect": "NoSchedule"}], "systemComponents": {"allow": False}}
    assert shoot_pods.tolerations(
        shoot({"taints": taints}, {"name": "b", "taints": taints}, {"name": "c", **closed})
    ) == [
        {"key": "a", "operator": "Exists", "effect": "NoExecute"},
        {"key": "b", "operator": "Equal", "value": "1", "effect": "NoSchedule"},
    ]


def test_each_further_runtime_of_a_pool_is_requested() -> None:
    runtimes = [{"type": "gvisor"}, {"type": "kata", "providerConfig": {"a": 1}}]
    pools = ({"cri": {"name": "containerd", "containerRuntimes": runtimes}}, {"name": "b"})
    found = list(container_runtimes.objects(shoot(*pools), "n"))
    assert [key(each).name for each in found] == ["gvisor-a", "kata-a"]
    assert found[1]["spec"]["providerConfig"] == {"a": 1}
    assert at(found[0], "spec", "workerPool", "selector", "matchLabels") == {"worker.gardener.cloud/pool": "a"}


def test_secrets_of_former_keys_are_as_many_as_pools_can_have_left() -> None:
    assert node_agent.former(["b", "a", "own", "a"], {"own"}) == ["a", "b"]
    assert len(node_agent.former(map(str, range(10_000)), {"own"})) == 12
