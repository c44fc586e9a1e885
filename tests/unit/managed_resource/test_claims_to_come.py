"""Which ManagedResources of other agents are looked at before something is removed."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from agent.resource_manager.managed_resource.ownership import Ownership
from agent.resource_manager.managed_resource.source import SecretVersion, Source
from agent.resource_manager.managed_resource.unwatched import Unwatched
from kit.objects import managed_resource, reference
from kube.objects import Key, Object, key

NAMESPACE = "n"
WRITTEN = 100
"""The version of each ManagedResource."""


class Counted(dict[Key, Object]):
    """What the watch tells, and how often that was asked for."""

    asked = 0

    def get(self, wanted: Key, default: Any = None) -> Any:
        self.asked += 1
        return super().get(wanted, default)


class World(Source):
    """ManagedResources of another class, with a Secret each, of the same name."""

    def __init__(self) -> None:
        stand_ins: Any = (Counted(), {})
        self.managed_resources, self.secrets = stand_ins
        self.planned: list[Key] = []
        nothing: Any = None
        self.unwatched = Unwatched(nothing, is_watched=self.sees)
        others: Any = (self, self)
        source, plans = others
        self.ownership = Ownership(
            source=source,
            plans=plans,
            resource_class="own",
            cluster_id="",
            is_one_cluster=True,
            wake=lambda _names: None,
        )

    def write(
        self, name: str, *, generation: int = 1, secret: int = 1, pending: str = "", deleting: bool = False
    ) -> None:
        listed = [reference("v1 ConfigMap", f"{NAMESPACE}/{pending}")] if pending else []
        managed: Any = self.managed_resources
        managed[Key(NAMESPACE, name)] = managed_resource(
            f"{NAMESPACE}/{name}",
            resourceVersion=str(WRITTEN),
            generation=generation,
            deletionTimestamp="2025-01-01T00:00:00Z" if deleting else None,
            spec={"class": "other", "secretRefs": [{"name": name}]},
            status={"observedGeneration": 1, "pendingResources": listed},
        )
        self.write_secret(name, secret, is_told=False)
        self.ownership.changed(Key(NAMESPACE, name), is_elsewhere=True)

    def write_secret(self, name: str, version: int, *, is_told: bool = True) -> None:
        secrets: Any = self.secrets
        secrets[Key(NAMESPACE, name)] = SecretVersion("u", version)
        if is_told:
            self.ownership.changed_elsewhere(Key(NAMESPACE, name))

    def sees(self, namespace: str) -> bool:
        return True

    async def awaited(self) -> Mapping[str, Key]:
        return (await self.ownership.look([])).awaited

    async def wanted_elsewhere(self, managed_resources: Iterable[Object]) -> dict[str, Key]:
        """As `Plans` does."""
        self.planned = sorted(map(key, managed_resources))
        return {f"planned by {name.name}": name for name in self.planned}


@pytest.fixture
def world() -> World:
    return World()


async def test_those_at_rest_are_not_even_looked_at(world: World) -> None:
    for number in range(1000):
        world.write(f"at-rest-{number}")
    world.write("with-news", generation=2)
    managed: Any = world.managed_resources
    managed.asked = 0
    assert await world.awaited() == {"planned by with-news": Key(NAMESPACE, "with-news")}
    assert managed.asked == 1


async def test_what_is_listed_and_what_is_planned_is_about_to_be_claimed(world: World) -> None:
    world.write("listed", pending="config")
    world.write("changed", generation=2)
    world.write("with-new-secret", secret=WRITTEN + 1)
    found = await world.awaited()
    assert {name.name for name in found.values()} == {"listed", "changed", "with-new-secret"}
    assert [name.name for name in world.planned] == ["changed", "with-new-secret"]


async def test_a_secret_that_changes_is_news_until_its_agent_has_written(world: World) -> None:
    world.write("other")
    assert await world.awaited() == {}
    world.write_secret("other", WRITTEN + 1)
    assert await world.awaited() == {"planned by other": Key(NAMESPACE, "other")}
    world.write("other")
    assert await world.awaited() == {}


async def test_who_goes_or_comes_over_claims_nothing(world: World) -> None:
    for name in ("deleted", "gone", "ours"):
        world.write(name, generation=2)
    world.write("deleted", generation=2, deleting=True)
    managed: Any = world.managed_resources
    del managed[Key(NAMESPACE, "gone")]
    world.ownership.changed(Key(NAMESPACE, "gone"), is_elsewhere=True)
    world.ownership.changed(Key(NAMESPACE, "ours"), is_elsewhere=False)
    assert await world.awaited() == {}
