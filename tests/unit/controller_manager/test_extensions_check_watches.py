"""Which Seeds are looked at when they, or their ControllerInstallations, change."""

from collections.abc import Callable, Iterator

import pytest

from agent.controller_manager.common.api import CONTROLLER_INSTALLATIONS_VIEW, SEEDS_VIEW
from agent.controller_manager.seed.extensions_check import Triggers
from kube.objects import Key, Object
from kube.runtime.cache import Change, Store
from kube.runtime.watch import Deleted, ListBegins, ListEnds, Present


class Watches:
    """What is enqueued, and what is seen."""

    def __init__(self) -> None:
        seeds, installations = Store(SEEDS_VIEW), Store(CONTROLLER_INSTALLATIONS_VIEW)
        triggers = Triggers(seeds=seeds, installations=installations)
        self._seeds, self._installations = seeds.source(""), installations.source("")
        self.found: list[str] = []
        for source in (self._seeds, self._installations):
            source.apply(ListBegins(1))
            source.apply(ListEnds(1))
        seeds.subscribe(self._enqueue(triggers.by_seed))
        installations.subscribe(self._enqueue(triggers.by_installation))

    def seed(self, version: int, **conditions: str) -> list[str]:
        self._seeds.apply(Present(_object("a", version, **conditions)))
        return list(self._taken())

    def installation(self, version: int, *, gone: bool = False, **conditions: str) -> list[str]:
        obj = _object("i", version, **conditions) | {"spec": {"seedRef": {"name": "a"}}}
        self._installations.apply(Deleted(obj) if gone else Present(obj))
        return list(self._taken())

    def _enqueue(self, keys: Callable[[Change[Object]], list[Key]]) -> Callable[[Change[Object]], None]:
        return lambda change: self.found.extend(key.name for key in keys(change))

    def _taken(self) -> Iterator[str]:
        while self.found:
            yield self.found.pop(0)


def _object(name: str, version: int, **conditions: str) -> Object:
    reported = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "status": {"conditions": reported}}


@pytest.fixture
def watches() -> Watches:
    return Watches()


def test_what_installations_report_counts(watches: Watches) -> None:
    assert watches.seed(2) == []
    assert watches.installation(3) == ["a"]
    assert watches.installation(4, Healthy="True") == ["a"]
    assert watches.installation(5, Healthy="True", Required="True") == []
    assert watches.installation(6, gone=True) == ["a"]


def test_what_was_reported_before_the_seed_was_there_does_not_count(watches: Watches) -> None:
    assert watches.installation(2) == []
    assert watches.installation(3, Healthy="True") == []
    assert watches.seed(5) == []
    # The news of it may be late.
    assert watches.installation(4, Healthy="False") == []
    assert watches.installation(6, Healthy="True") == ["a"]


def test_the_news_of_the_seed_may_be_late(watches: Watches) -> None:
    assert watches.installation(6, Healthy="True") == []
    assert watches.seed(5) == ["a"]


def test_a_condition_that_another_client_changes_counts(watches: Watches) -> None:
    watches.seed(2)
    assert watches.seed(3, GardenletReady="True") == []
    assert watches.seed(4, GardenletReady="True", ExtensionsReady="True") == ["a"]
    assert watches.seed(5, GardenletReady="True") == ["a"]
