"""Which ManagedResources of other agents are looked at before something is removed."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.resource_manager.managed_resource.ownership import Ownership
from agent.resource_manager.managed_resource.rules.unknown import Unknown
from agent.resource_manager.managed_resource.source import SecretVersion, Source
from agent.resource_manager.managed_resource.unwatched import Unwatched
from config.resource_manager.restrictions import Restrictions
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.plan import Basis
from gardener.managed_resource.references import secret_names
from kit.objects import managed_resource, reference
from kube.clock import format_time
from kube.objects import Key, Object, key
from kube.resources import SECRETS, Resource
from kube.runtime.cache import Change

NAMESPACE = "n"
WRITTEN = 100
"""The version of each ManagedResource."""


def other(
    name: str, *, generation: int = 1, version: int = WRITTEN, deleting: bool = False, healthy: str = "True"
) -> Object:
    types = {"ResourcesApplied": "True", "ResourcesHealthy": healthy}
    conditions = [{"type": type_, "status": status} for type_, status in types.items()]
    return managed_resource(
        f"{NAMESPACE}/{name}",
        resourceVersion=str(version),
        generation=generation,
        deletionTimestamp="2025-01-01T00:00:00Z" if deleting else None,
        spec={"class": "other", "secretRefs": [{"name": name}]},
        status={"observedGeneration": 1, "conditions": conditions},
    )


class Counted(dict[Key, Object]):
    """What the watch shows, and how often that was requested."""

    requested = 0

    def get(self, wanted: Key, default: Any = None) -> Any:
        self.requested += 1
        return super().get(wanted, default)


class World(Source):
    """ManagedResources of another class, with a Secret each, of the same name."""

    def __init__(self) -> None:
        stand_ins: Any = (Counted(), {})
        self.managed_resources, self.secrets = stand_ins
        self.planned: list[Key] = []
        self.unknown = Unknown()
        nothing: Any = None
        self.unwatched = Unwatched(nothing, is_watched=self.sees)
        others: Any = (self, self)
        source, plans = others
        self.ownership = Ownership(
            restrictions=Restrictions(),
            source=source,
            plans=plans,
            resource_class="own",
            cluster_id="",
            is_one_cluster=True,
            enqueue=lambda _names: None,
        )

    def write(
        self,
        name: str,
        *,
        generation: int = 1,
        secret: int = 1,
        pending: str = "",
        deleting: bool = False,
        version: int = WRITTEN,
        checksum: str = "",
        healthy: str = "True",
    ) -> None:
        listed = [reference("v1 ConfigMap", f"{NAMESPACE}/{pending}")] if pending else []
        managed: Any = self.managed_resources
        old = managed.get(Key(NAMESPACE, name))
        managed[Key(NAMESPACE, name)] = other(
            name, generation=generation, version=version, deleting=deleting, healthy=healthy
        )
        managed[Key(NAMESPACE, name)]["status"] |= {"pendingResources": listed, "secretsDataChecksum": checksum}
        self.write_secret(name, secret, is_announced=False)
        self.change(name, old)

    def change(self, name: str, old: Object | None, *, is_elsewhere: bool = True) -> None:
        managed: Any = self.managed_resources
        change = Change(Key(NAMESPACE, name), old, dict.get(managed, Key(NAMESPACE, name)), initial=False)
        self.ownership.changed(change, is_elsewhere=is_elsewhere)

    def write_secret(self, name: str, version: int, *, is_announced: bool = True) -> None:
        secrets: Any = self.secrets
        secrets[Key(NAMESPACE, name)] = SecretVersion("u", version)
        if is_announced:
            self.ownership.changed_elsewhere(Key(NAMESPACE, name))

    watches_all = True

    def sees(self, namespace: str) -> bool:
        return self.watches_all

    async def awaited(self) -> dict[str, str]:
        """The objects that are about to be claimed, and by whom, when all is planned."""
        self.planned = []
        look = self.ownership.look(Key(NAMESPACE, "own"), [])
        while self.ownership.elsewhere.unknown:
            await asyncio.sleep(0.001)
        names = {*(name.name for name in self.ownership.elsewhere.at_work()), "gone"}
        objects = [f"planned by {name}" for name in names] + [f"/ConfigMap/{NAMESPACE}/config"]
        return {each: claimant.name for each in objects if (claimant := look.awaits(each, "")) is not None}

    # --- the plans

    async def basis(self, managed_resource: Object) -> Basis:
        secrets: Any = self.secrets
        versions = ((name, "u", secrets[Key(NAMESPACE, name)].version) for name in secret_names(managed_resource))
        return Basis((("generation", str(managed_resource["metadata"]["generation"])),), tuple(versions))

    async def wanted(self, managed_resource: Object, _basis: Basis) -> tuple[frozenset[str], str]:
        self.planned.append(key(managed_resource))
        return frozenset({f"planned by {key(managed_resource).name}"}), ""


@pytest.fixture
def world() -> World:
    return World()


async def test_idle_ones_are_not_even_looked_at(world: World) -> None:
    for number in range(1000):
        world.write(f"idle-{number}")
    world.write("with-news", generation=2)
    managed: Any = world.managed_resources
    managed.requested = 0
    assert await world.awaited() == {"planned by with-news": "with-news"}
    assert managed.requested < 10


async def test_what_is_listed_and_what_is_planned_is_about_to_be_claimed(world: World) -> None:
    world.write("listed", pending="config")
    world.write("changed", generation=2)
    world.write("with-new-secret", secret=WRITTEN + 1)
    found = await world.awaited()
    assert set(found.values()) == {"listed", "changed", "with-new-secret"}
    assert [name.name for name in world.planned] == ["changed", "with-new-secret"]
    await world.awaited()
    assert world.planned == []  # nothing has changed since


async def test_a_secret_that_changes_is_news_until_its_agent_has_written(world: World) -> None:
    world.write("other")
    assert await world.awaited() == {}
    world.write_secret("other", WRITTEN + 1)
    assert await world.awaited() == {"planned by other": "other"}
    world.write("other", secret=WRITTEN + 1, version=WRITTEN + 2, checksum="new")
    assert await world.awaited() == {}


@pytest.mark.parametrize("is_reported_first", [True, False])
async def test_health_that_is_written_meanwhile_hides_no_secret_that_changed(
    world: World, is_reported_first: bool
) -> None:
    """The two kinds come by two watches, so in any order."""
    world.write("other", checksum="old")
    if is_reported_first:
        world.write_secret("other", WRITTEN + 1)
    world.write("other", secret=WRITTEN + 1, version=WRITTEN + 2, checksum="old", healthy="False")
    if not is_reported_first:
        world.write_secret("other", WRITTEN + 1)
    assert await world.awaited() == {"planned by other": "other"}
    world.write("other", secret=WRITTEN + 1, version=WRITTEN + 3, checksum="new", healthy="False")
    assert await world.awaited() == {}
    world.write("other", secret=WRITTEN + 1, version=WRITTEN + 4, checksum="new")
    assert await world.awaited() == {}


class Lists:
    """What is in a namespace that is not watched: a ManagedResource, and its Secret, written some time ago."""

    def __init__(self, *, secret_age: float) -> None:
        written = format_time(datetime.now(UTC) - timedelta(seconds=secret_age))
        name = {"namespace": NAMESPACE, "name": "other", "uid": "u", "resourceVersion": str(WRITTEN - 1)}
        fields = [{"manager": "kubectl", "time": written}, {"manager": "creator", "time": "2020-01-01T00:00:00Z"}]
        secret = {"metadata": {**name, "managedFields": fields}}
        self._items = {MANAGED_RESOURCES: [other("other")], SECRETS: [secret]}

    async def pages(self, resource: Resource, *_: Any, **_options: Any) -> AsyncIterator[list[Object]]:
        yield self._items[resource]


@pytest.mark.parametrize(("secret_age", "expected"), [(5.0, ["other"]), (600.0, [])])
async def test_a_secret_in_another_namespace_is_news_for_a_while_whatever_is_written(
    world: World, secret_age: float, expected: list[str]
) -> None:
    """It was not seen whether a pass or health was written last."""
    lists: Any = Lists(secret_age=secret_age)
    world.unwatched = Unwatched(lists, is_watched=lambda _namespace: False)
    world.watches_all = False
    world.ownership.resource_class = "other"
    world.write_secret("other", WRITTEN - 1, is_announced=False)
    due = time.monotonic()
    while world.ownership.look(Key(NAMESPACE, "own"), [due]).unwatched_since <= due:
        await asyncio.sleep(0.001)
    await world.awaited()
    assert [name.name for name in world.ownership.elsewhere.at_work()] == expected


async def test_who_goes_or_comes_over_claims_nothing(world: World) -> None:
    for name in ("deleted", "gone", "ours"):
        world.write(name, generation=2)
    world.write("deleted", generation=2, deleting=True)
    managed: Any = world.managed_resources
    del managed[Key(NAMESPACE, "gone")]
    world.change("gone", None)
    world.change("ours", None, is_elsewhere=False)
    assert await world.awaited() == {}
