"""Which Seeds a change concerns.

What ControllerInstallations said before there was their Seed is not said about it: then nobody had installed anything
in it. Versions tell what was before; those of one API group can be compared.
"""

from agent.controller_manager.common.api import BY_SEED
from agent.controller_manager.seed.extensions_check.rules import said
from gardener.conditions import EXTENSIONS_READY
from kube.objects import Key, Object, condition, resource_version, text
from kube.paths import at
from kube.runtime.cache import Change, Store


class Watched:
    def __init__(self, *, seeds: Store[Object], installations: Store[Object]) -> None:
        self._seeds = seeds
        self._installations = installations
        self._since: dict[str, int] = {}
        """The first versions of the Seeds that came while they were watched."""

    def by_seed(self, change: Change[Object]) -> list[Key]:
        """Of a Seed: itself, if it is to be looked at."""
        old, new, name = change.old, change.new, change.key.name
        if new is None:
            self._since.pop(name, None)
            return []
        if old is not None:
            return [change.key] if condition(old, EXTENSIONS_READY) != condition(new, EXTENSIONS_READY) else []
        if not change.initial:
            self._since[name] = resource_version(new)
        installations = self._installations.values_by_index(BY_SEED, name)
        return [change.key] if any(resource_version(each) > resource_version(new) for each in installations) else []

    def by_installation(self, change: Change[Object]) -> list[Key]:
        """Of a ControllerInstallation: its Seed, if it says something else than before."""
        old, new = change.old, change.new
        if old is not None and new is not None and (_seed(old), said(old)) == (_seed(new), said(new)):
            return []
        names = {_seed(installation) for installation in (old, new) if installation is not None}
        return [Key("", name) for name in sorted(names) if self._concerns(name, new)]

    def _concerns(self, seed: str, installation: Object | None) -> bool:
        if self._seeds.get(Key("", seed)) is None:
            return False
        return installation is None or resource_version(installation) > self._since.get(seed, 0)


def _seed(installation: Object) -> str:
    return text(at(installation, "spec", "seedRef", "name"))
