"""What one author writes does not keep the objects of others from being removed, however much it takes to plan it."""

from collections.abc import Iterator

import brotli
import pytest

from devcluster.cluster import Cluster
from kit.objects import config_map, managed_resource, secret
from kit.rig import Rig
from kit.world import Place

_ATTACKERS = 3


def unfolding() -> bytes:
    """Two objects of 400 copies of 1,000 fields, in some hundred bytes: more than is planned for other agents."""
    fields = ", ".join(f"k{number}: 1" for number in range(1000))
    documents = (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\nx: &x {{{fields}}}\ny:\n" + "- <<: *x\n" * 400
        for name in "ab"
    )
    packed: bytes = brotli.compress("---\n".join(documents).encode(), quality=5)
    return packed


@pytest.fixture
def attacker(cluster: Cluster, namespace: str) -> Iterator[Place]:
    other = f"{namespace}-b"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": other}})
    yield Place(cluster, other)
    cluster.api.delete(f"/api/v1/namespaces/{other}")


@pytest.mark.parametrize("resource_class", ["that-of-no-agent", ""])
def test_removals_do_not_wait_for_what_is_expensive_to_plan(resource_class: str, rig: Rig, attacker: Place) -> None:
    names = [f"mr-{number}" for number in range(4)]
    for name in names:
        rig.apply(name, config_map(name))
    packed, own_class = unfolding(), resource_class or rig.agent.resource_class
    for number in range(_ATTACKERS):
        attacker.create(secret(f"e{number}", {"o.yaml.br": packed}))
        attacker.create(
            managed_resource(f"e{number}", spec={"class": own_class, "secretRefs": [{"name": f"e{number}"}]})
        )
    for name in names:
        rig.delete("ManagedResource", name)
    for name in names:
        rig.until(lambda name=name: rig.find("ManagedResource", name) is None, "it to go", seconds=30.0)  # type: ignore[misc]
        assert rig.find("ConfigMap", name) is None
    for number in range(_ATTACKERS):
        attacker.delete("ManagedResource", f"e{number}")
