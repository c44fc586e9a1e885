"""The controller `seed-extensions-check`: reports the state of ControllerInstallations in a condition of their Seed.

ControllerInstallations   that come, go, or have another condition: their Seed
Seeds                     whose condition another writer has changed
"""

from collections.abc import Iterable, Mapping

from agent.controller_manager.common.api import BY_SEED, CONTROLLER_INSTALLATIONS_VIEW, SEEDS_VIEW
from agent.controller_manager.common.seeds import SeedConditions
from agent.controller_manager.context import Context
from gardener.api.garden import SEEDS
from gardener.conditions import EXTENSIONS_READY, HEALTHY, INSTALLED, PROGRESSING, VALID
from gardener.garden import users
from kube.conditions import Condition, conditions_of
from kube.objects import Key, Object, condition, metadata, resource_version, text
from kube.runtime.cache import Change, Store
from kube.runtime.controller import Done, Result
from kube.runtime.loop import ControlLoop, enqueue_mapped
from kube.runtime.predicates import Predicate, changed

_GOOD = {VALID: "True", INSTALLED: "True", HEALTHY: "True", PROGRESSING: "False"}
"""Good statuses, by weight: the first bad type of any installation hides the later ones."""
_BAD = {
    VALID: ("NotAllExtensionsValid", "Some extensions are not valid"),
    INSTALLED: ("NotAllExtensionsInstalled", "Some extensions are not installed"),
    HEALTHY: ("NotAllExtensionsHealthy", "Some extensions are not healthy"),
    PROGRESSING: ("SomeExtensionsProgressing", "Some extensions are progressing"),
}
_READY = "All extensions installed into the seed cluster are ready and healthy."


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.seed_extensions_check, context.garden.caches
    loop = ControlLoop(
        "seed-extensions-check",
        kind=SEEDS,
        workers=settings.concurrent_syncs,
        time_limit=settings.time_limit,
        max_backoff=settings.sync_period,
    )
    seeds = loop.watch(caches, SEEDS_VIEW)
    installations = loop.watch(caches, CONTROLLER_INSTALLATIONS_VIEW)
    triggers = Triggers(seeds=seeds, installations=installations)
    loop.watch(caches, SEEDS_VIEW, enqueue_mapped(triggers.by_seed))
    loop.watch(caches, CONTROLLER_INSTALLATIONS_VIEW, enqueue_mapped(triggers.by_installation))
    conditions = SeedConditions(context, seeds, thresholds=settings.condition_thresholds)
    return loop.reconciled_by(Reconciler(seeds=seeds, installations=installations, conditions=conditions))


class Reconciler:
    """One pass over a Seed: its condition reports the state of its ControllerInstallations."""

    def __init__(self, *, seeds: Store[Object], installations: Store[Object], conditions: SeedConditions) -> None:
        self._seeds = seeds
        self._installations = installations
        self._conditions = conditions

    async def reconcile(self, key: Key) -> Result:
        seed = self._seeds.get(key)
        if seed is None:
            return Done()
        installations = self._installations.values_by_index(BY_SEED, key)
        if not installations and condition(seed, EXTENSIONS_READY) is None:
            return Done()  # it never had any
        return await self._conditions.soften_and_write(seed, condition_of(installations))


class Triggers:
    """Seeds that a change leads to.

    Conditions of ControllerInstallations from before their Seed came do not count: then nothing was installed in it.
    Versions show the order; those of one API group can be compared.
    """

    def __init__(self, *, seeds: Store[Object], installations: Store[Object]) -> None:
        self._seeds = seeds
        self._installations = installations
        self._since: dict[str, int] = {}
        """First versions of the Seeds that came while they were watched."""

    def by_seed(self, change: Change[Object]) -> list[Key]:
        """Return the Seed if it needs a pass after a change of it."""
        old, new, name = change.old, change.new, change.key.name
        if new is None:
            self._since.pop(name, None)
            return []
        if old is not None:
            return [change.key] if condition(old, EXTENSIONS_READY) != condition(new, EXTENSIONS_READY) else []
        if not change.initial:
            self._since[name] = resource_version(new)
        installations = self._installations.values_by_index(BY_SEED, change.key)
        return [change.key] if any(resource_version(each) > resource_version(new) for each in installations) else []

    def by_installation(self, change: Change[Object]) -> list[Key]:
        """Return the Seed of a ControllerInstallation whose conditions have changed."""
        old, new = change.old, change.new
        if not _is_changed(change):
            return []
        seeds = {seed for each in (old, new) if each is not None for seed in users.seeds(each)}
        return [seed for seed in sorted(seeds) if self._is_newer(seed, new)]

    def _is_newer(self, seed: Key, installation: Object | None) -> bool:
        if self._seeds.get(seed) is None:
            return False
        return installation is None or resource_version(installation) > self._since.get(seed.name, 0)


def condition_of(installations: Iterable[Object]) -> Condition:
    groups: dict[str, dict[str, str]] = {kind: {} for kind in _GOOD}
    for installation in installations:
        for kind, message in _bad(installation).items():
            groups[kind][text(metadata(installation).get("name"))] = message
    for kind, found in groups.items():
        if found:
            reason, reported = _BAD[kind]
            return Condition(EXTENSIONS_READY, "False", reason, f"{reported}: {_listed(found)}")
    return Condition(EXTENSIONS_READY, "True", "AllExtensionsReady", _READY)


def _bad(installation: Object) -> dict[str, str]:
    """Return messages of bad conditions, by type."""
    if not conditions_of(installation):
        return {INSTALLED: "extension was not yet installed"}
    found = {kind: present for kind in _GOOD if (present := condition(installation, kind)) is not None}
    bad = {kind: text(each.get("message")) for kind, each in found.items() if each.get("status") != _GOOD[kind]}
    if len(found) < len(_GOOD) and HEALTHY not in bad:
        bad[HEALTHY] = "not all required conditions found in ControllerInstallation"
    return bad


def _listed(messages: Mapping[str, str]) -> str:
    return f"map[{' '.join(f'{name}:{messages[name]}' for name in sorted(messages))}]"


def reported(installation: Object) -> list[tuple[object, ...] | None]:
    """Return the fields that the Seed's condition depends on."""
    found = (condition(installation, kind) for kind in _GOOD)
    return [None if each is None else (each.get("status"), each.get("reason"), each.get("message")) for each in found]


_is_changed: Predicate[Object] = changed("spec.seedRef.name", reported)
