"""Several agents share the work of one cluster, by namespace or by class, and never touch each other's share."""

from collections.abc import Iterator, Sequence

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.objects import config_map
from kit.shards import Shard, agents_by_class, agents_by_namespace, sharing
from kit.world import WRITES
from kube.objects import annotations, labels

_ORIGIN = "resources.gardener.cloud/origin"
_MANAGED_BY = "resources.gardener.cloud/managed-by"


@pytest.fixture
def other_namespace(cluster: Cluster, namespace: str) -> Iterator[str]:
    name = f"{namespace}-b"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    cluster.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def by_namespace(cluster: Cluster, namespace: str, other_namespace: str) -> Iterator[list[Shard]]:
    with sharing(cluster, agents_by_namespace(cluster, namespace, other_namespace)) as shards:
        yield shards


@pytest.fixture
def by_class(cluster: Cluster, namespace: str) -> Iterator[list[Shard]]:
    with sharing(cluster, agents_by_class(cluster, namespace)) as shards:
        yield shards


def share_out(shards: Sequence[Shard]) -> None:
    """Two ManagedResources for each, and wait until they are applied."""
    names = [(shard, f"{shard.name}-{number}") for shard in shards for number in range(2)]
    for shard, name in names:
        shard.rig.write(name, config_map(f"{name}-x"), config_map(f"{name}-y"))
    for shard, name in names:
        shard.rig.until_applied(name)


def restore(shards: Sequence[Shard]) -> None:
    """A user changes an object of each; wait until it is as it was."""
    for shard in shards:
        shard.rig.patch("ConfigMap", f"{shard.name}-0-x", {"data": {"changed": "by hand"}})
    for shard in shards:
        shard.rig.until_data(f"{shard.name}-0-x", {"k": "v"})


def clear(shards: Sequence[Shard]) -> None:
    for shard in shards:
        shard.rig.delete("ManagedResource", f"{shard.name}-1")
    for shard in shards:
        shard.rig.until_gone("ManagedResource", f"{shard.name}-1")
        assert shard.rig.find("ConfigMap", f"{shard.name}-1-x") is None


def assert_each_wrote_only_its_own(audit: Audit, mark: int, shards: Sequence[Shard]) -> None:
    users = {shard.user: shard.name for shard in shards}
    written: dict[str, set[str]] = {user: set() for user in users}
    for call in audit.calls(since=mark, verbs=WRITES):
        if call.user in users and call.resource != "events":
            written[call.user].add(call.name)
    for user, name in users.items():
        assert len(written[user]) == 6  # two ManagedResources, four ConfigMaps
        assert all(each.startswith(name) for each in written[user])


def assert_stamps_and_leases(cluster: Cluster, lease_namespace: str, shards: Sequence[Shard]) -> None:
    for shard in shards:
        found = shard.rig.get("ConfigMap", f"{shard.name}-0-x")
        assert labels(found)[_MANAGED_BY] == shard.rig.agent.managed_by
        assert annotations(found)[_ORIGIN] == f"{shard.rig.namespace}/{shard.name}-0"
    path = f"/apis/coordination.k8s.io/v1/namespaces/{lease_namespace}/leases"
    holders = {lease["metadata"]["name"]: lease["spec"]["holderIdentity"] for lease in cluster.api.get(path)["items"]}
    assert len({holders[shard.name] for shard in shards}) == len(shards)
    for shard in shards:
        shard.rig.until(
            lambda s=shard: (s.rig.process.metric("rest_client_open_watches") or 0) >= 3,  # type: ignore[misc]
            "watches of ManagedResources, Secrets, ConfigMaps",
        )


def assert_they_share_the_work(cluster: Cluster, namespace: str, shards: list[Shard], audit: Audit) -> None:
    mark = audit.mark()
    share_out(shards)
    restore(shards)
    assert_stamps_and_leases(cluster, namespace, shards)
    clear(shards)
    assert_each_wrote_only_its_own(audit, mark, shards)
    assert_an_object_stays_with_its_first_owner(shards)


def test_agents_that_watch_a_namespace_each_keep_to_it(
    cluster: Cluster, namespace: str, by_namespace: list[Shard], audit: Audit
) -> None:
    assert_they_share_the_work(cluster, namespace, by_namespace, audit)


def test_agents_with_a_class_each_keep_to_it_in_one_namespace(
    cluster: Cluster, namespace: str, by_class: list[Shard], audit: Audit
) -> None:
    assert_they_share_the_work(cluster, namespace, by_class, audit)


def assert_an_object_stays_with_its_first_owner(shards: Sequence[Shard]) -> None:
    """The second agent wants an object of the first one; it reports so, and leaves it alone until it is given up."""
    first, second = shards
    second.rig.write("greedy", config_map(f"{first.name}-0-x", {"k": "mine"}, namespace=first.rig.namespace))
    held = f"is held by ManagedResource {first.rig.namespace}/{first.name}-0"
    second.rig.until_failed("greedy", held)
    live = first.rig.get("ConfigMap", f"{first.name}-0-x")
    assert live["data"] == {"k": "v"}
    assert annotations(live)[_ORIGIN] == f"{first.rig.namespace}/{first.name}-0"
