"""The controller `controllerinstallation-required`: whether objects in the seed still need an extension.

ControllerInstallations  new ones
extension objects        the first of a type appears, or the last one is gone: all installations for the kind

Only the types of each kind are cached. A kind that the seed does not serve has no objects; it is watched as soon as it
is served. The controller runs regardless of the Seed's state, since the Seed is deleted after the installations.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from agent.gardenlet.common.views import CONTROLLER_REGISTRATIONS_VIEW, controller_installations_view
from agent.gardenlet.context import Context
from gardener.api.extensions import ALL_EXTENSIONS
from gardener.api.garden import CONTROLLER_INSTALLATIONS
from gardener.conditions import REQUIRED
from kube.conditions import Condition, conditions_of, with_conditions
from kube.objects import Key, Object, condition, key, spec, text
from kube.paths import at, mappings_at
from kube.resources import Resource
from kube.runtime.cache import Change, Store, View
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, Queue, always, enqueue_mapped, enqueue_own
from kube.runtime.predicates import changed, listed
from kube.runtime.priorities import CHANGE
from kube.runtime.status import StatusWriter

_BY_TYPE = "type"
_SOON = 1.0


def provided(registration: Object) -> list[tuple[str, str]]:
    """Kinds and types for which an extension is registered."""
    resources = mappings_at(registration, "spec", "resources")
    return [(text(each.get("kind")), text(each.get("type"))) for each in resources]


def required(needed: list[str]) -> Condition:
    """Condition for kinds and types that have objects, like `Network/calico`."""
    if needed:
        message = f"extension objects still exist in the seed: [{' '.join(sorted(needed))}]"
        return Condition(REQUIRED, "True", "ExtensionObjectsExist", message)
    message = (
        "no extension objects exist in the seed having the kind/type combinations the controller is responsible for"
    )
    return Condition(REQUIRED, "False", "NoExtensionObjects", message)


def _type_of(obj: Object) -> str:
    return text(spec(obj).get("type"))


def _itself(kept: str) -> tuple[str]:
    return (kept,)


def types_view(kind: Resource) -> View[str]:
    return View(kind, _type_of, indexes=((_BY_TYPE, _itself),))


def declare(context: Context) -> ControlLoop:
    settings = context.config.controllers.controller_installation_required
    loop = ControlLoop(
        "controllerinstallation-required", kind=CONTROLLER_INSTALLATIONS, workers=settings.concurrent_syncs
    )
    garden = context.garden
    view = controller_installations_view(context.seed_name)
    installations = loop.watch(garden.caches, view, enqueue_own(always, when=listed))

    def of_registration(change: Change[Object]) -> list[Key]:
        return [key(each) for each in installations.values() if _registration_of(each) == change.key.name]

    registrations = loop.watch(
        garden.caches,
        CONTROLLER_REGISTRATIONS_VIEW,
        enqueue_mapped(of_registration, when=changed("spec.resources")),
    )
    reconciler = Reconciler(
        installations=installations,
        registrations=registrations,
        statuses=context.statuses.of(garden, installations),
        clock=context.clock,
    )
    for kind in ALL_EXTENSIONS:
        loop.when_served(context.seed.discovery, [kind], partial(_follow, loop, context, reconciler, kind))
    return loop.reconciled_by(reconciler)


def _follow(loop: ControlLoop, context: Context, reconciler: "Reconciler", kind: Resource) -> None:
    store: Store[str]

    def handle(queue: Queue, change: Change[str]) -> None:
        """Handle a type when its first object appears, or its last one is gone."""
        for each in {change.old, change.new} - {None}:
            count = store.count(_BY_TYPE, each)
            if count == 0 or (count == 1 and each == change.new and change.old != change.new):
                for name in reconciler.of_kind(kind.kind):
                    reconciler.affected.add(name)
                    queue.add(name, CHANGE)
                return

    store = loop.watch(context.seed.caches, types_view(kind), handle)
    reconciler.types[kind.kind] = store


def _registration_of(installation: Object) -> str:
    return text(at(installation, "spec", "registrationRef", "name"))


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """Reconciler of the condition.

    Attributes:
        types: of existing objects, by kind; a missing kind has none.
        affected: installations for a kind with objects of other types than before.
    """

    installations: Store[Object]
    registrations: Store[Object]
    statuses: StatusWriter
    clock: Callable[[], datetime]
    types: dict[str, Store[str]] = field(default_factory=dict)
    affected: set[Key] = field(default_factory=set)

    def of_kind(self, kind: str) -> list[Key]:
        """Installations of extensions that are registered for the kind."""
        names = {
            key(registration).name
            for registration in self.registrations.values()
            if any(each == kind for each, _ in provided(registration))
        }
        return [key(each) for each in self.installations.values() if _registration_of(each) in names]

    async def reconcile(self, name: Key) -> Result:
        installation = self.installations.get(name)
        if installation is None:
            self.affected.discard(name)
            return Done()
        if not all(store.synced.is_set() for store in self.types.values()):
            return RequeueAfter(_SOON)
        registration = self.registrations.get(Key("", _registration_of(installation)))
        if registration is None:
            return Done()
        needed = [f"{kind}/{type_}" for kind, type_ in provided(registration) if self._has(kind, type_)]
        await self._write(installation, required(needed), keeps_false=not needed and name not in self.affected)
        self.affected.discard(name)
        return Done()

    async def _write(self, installation: Object, found: Condition, *, keeps_false: bool) -> None:
        """Write the condition. Args: keeps_false: whether a present `False` stays, whatever its reason is."""
        now = self.clock()

        def compute(status: Object) -> Object:
            present = condition({"status": status}, REQUIRED) or {}
            if keeps_false and present.get("status") == "False":
                return status
            having = conditions_of({"status": status})
            return {**status, "conditions": with_conditions(having, [found], now=now)}

        await self.statuses.update_if_exists(installation, compute)

    def _has(self, kind: str, type_: str) -> bool:
        store = self.types.get(kind)
        return store is not None and store.count(_BY_TYPE, type_) > 0
