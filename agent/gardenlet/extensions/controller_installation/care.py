"""The controller `controllerinstallation-care`: health of installed extensions, from their ManagedResources.

ControllerInstallations  new ones; then a timer
ManagedResources         of installations: changed conditions

All conditions follow from the cached ManagedResource, so no request is needed. One without the label of installations
is not cached, and is read whenever the timer expires.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from agent.gardenlet.common.views import controller_installations_view
from agent.gardenlet.context import Context
from gardener import conditions, keys
from gardener.api.garden import CONTROLLER_INSTALLATIONS
from gardener.api.kinds import MANAGED_RESOURCES
from kube.conditions import Condition, conditions_of, with_conditions
from kube.objects import Key, Object, condition, finalizers, integer, is_deleting, key, labels, metadata, text
from kube.paths import at
from kube.runtime.cache import Change, Store, View, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, always, enqueue_mapped, enqueue_own
from kube.runtime.predicates import changed, listed
from kube.runtime.status import StatusWriter

NAMESPACE = "garden"
_MANAGED_RESOURCES_VIEW = View(
    MANAGED_RESOURCES,
    without_managed_fields,
    namespace=NAMESPACE,
    label_selector=keys.CONTROLLER_INSTALLATION_NAME,
)
_READ_ERROR = "SeedReadError"
_AGAIN_SECONDS = 1.0
"""Seconds until an installation is checked again while the cache of ManagedResources is not synced."""


def missing(name: str) -> list[Condition]:
    """Conditions of an installation without a ManagedResource."""
    what = f'ManagedResource "{NAMESPACE}/{name}": ManagedResource.{MANAGED_RESOURCES.group} "{name}" not found'
    message = f"Failed to get {what}"
    kinds = (conditions.INSTALLED, conditions.HEALTHY, conditions.PROGRESSING)
    return [Condition(kind, "Unknown", _READ_ERROR, message) for kind in kinds]


def reported(managed_resource: Object) -> list[Condition]:
    """Conditions of an installation, from its ManagedResource."""
    return [_installed(managed_resource), _healthy(managed_resource), _progressing(managed_resource)]


def _installed(managed_resource: Object) -> Condition:
    observed = integer(at(managed_resource, "status", "observedGeneration"))
    generation = integer(metadata(managed_resource).get("generation"))
    if observed != generation:
        name = key(managed_resource)
        problem = f"observed generation of managed resource {name} outdated ({observed}/{generation})"
    else:
        problem = _problem(managed_resource, conditions.RESOURCES_APPLIED, "True")
    if problem:
        return Condition(conditions.INSTALLED, "False", "InstallationPending", problem)
    message = "The controller was successfully installed in the seed cluster."
    return Condition(conditions.INSTALLED, "True", "InstallationSuccessful", message)


def _healthy(managed_resource: Object) -> Condition:
    if problem := _problem(managed_resource, conditions.RESOURCES_HEALTHY, "True"):
        return Condition(conditions.HEALTHY, "False", "ControllerNotHealthy", problem)
    message = "The controller running in the seed cluster is healthy."
    return Condition(conditions.HEALTHY, "True", "ControllerHealthy", message)


def _progressing(managed_resource: Object) -> Condition:
    if problem := _problem(managed_resource, conditions.RESOURCES_PROGRESSING, "False"):
        return Condition(conditions.PROGRESSING, "True", "ControllerNotRolledOut", problem)
    message = "The controller has been rolled out successfully."
    return Condition(conditions.PROGRESSING, "False", "ControllerRolledOut", message)


def _problem(managed_resource: Object, kind: str, wanted: str) -> str:
    """Problem if a condition does not have the desired status; empty if it does."""
    found, name = condition(managed_resource, kind), key(managed_resource)
    if found is None:
        return f"condition {kind} for managed resource {name} has not been reported yet"
    if found.get("status") == wanted:
        return ""
    return f"condition {kind} of managed resource {name} is {text(found.get('status'))}: {text(found.get('message'))}"


def declare(context: Context) -> ControlLoop:
    settings = context.config.controllers.controller_installation_care
    loop = ControlLoop("controllerinstallation-care", kind=CONTROLLER_INSTALLATIONS, workers=settings.concurrent_syncs)
    view = controller_installations_view(context.seed_name)
    installations = loop.watch(context.garden.caches, view, enqueue_own(always, when=listed))
    reconciler = Reconciler(
        installations=installations,
        statuses=context.statuses.of(context.garden, installations),
        clock=context.clock,
        period=settings.sync_period,
        seed=context.seed.client,
    )

    def follow() -> None:
        parts = [partial(condition, condition_type=each) for each in conditions.RESOURCES_GOOD]
        mapped = enqueue_mapped(_installation_of, when=changed("metadata.generation", *parts))
        reconciler.managed_resources = loop.watch(context.seed.caches, _MANAGED_RESOURCES_VIEW, mapped)

    loop.when_served(context.seed.discovery, [MANAGED_RESOURCES], follow)
    return loop.reconciled_by(reconciler)


def _installation_of(change: Change[Object]) -> list[Key]:
    name = labels(change.new or change.old or {}).get(keys.CONTROLLER_INSTALLATION_NAME, "")
    return [Key("", name)] if name else []


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """Reconciler of conditions.

    Args:
        managed_resources: None while the seed does not serve the kind.
        period: seconds between checks.
    """

    installations: Store[Object]
    statuses: StatusWriter
    clock: Callable[[], datetime]
    period: float
    seed: Client
    managed_resources: Store[Object] | None = None

    async def reconcile(self, name: Key) -> Result:
        installation = self.installations.get(name)
        if installation is None or is_deleting(installation):
            return Done()
        if self.managed_resources is None:
            return RequeueAfter(self.period)  # the installing controller reports the problem
        if not self.managed_resources.synced.is_set():
            return RequeueAfter(_AGAIN_SECONDS)
        place = Key(NAMESPACE, name.name)
        managed_resource = self.managed_resources.get(place) or await self.seed.find(MANAGED_RESOURCES, place)
        # Another program installs what has no chart, and reports it as valid.
        is_ours = keys.INSTALLATION_FINALIZER in finalizers(installation)
        if managed_resource is not None:
            await self._write(installation, reported(managed_resource))
        elif is_ours or condition(installation, conditions.VALID) is None:
            await self._write(installation, missing(name.name))
        return RequeueAfter(self.period)

    async def _write(self, installation: Object, found: list[Condition]) -> None:
        now = self.clock()

        def compute(status: Object) -> Object:
            having = conditions_of({"status": status})
            return {**status, "conditions": with_conditions(having, found, now=now)}

        await self.statuses.update_if_exists(installation, compute)
