"""Conditions of extension objects: care of Shoots and Seeds takes them over.

Types that a Shoot has are those of `gardener.conditions.SHOOT_CONDITIONS`. A check that can't be carried out makes the
conditions that the object has unknown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from extension.actuators import Actuator
from extension.rules import has_health
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import IN_PROGRESS, not_checked
from gardener.managed_resource.care import problem_of
from kube.clock import utc_now
from kube.conditions import Condition, conditions_of, with_conditions
from kube.objects import Key, Object, text
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.status import StatusWriter

_ANY_TIME = float("inf")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(eq=False, kw_only=True, slots=True)
class HealthReconciler:
    """Reconciler of conditions. Args: seconds: between two checks of an object."""

    actuator: Actuator
    clock: Callable[[], datetime]
    seconds: float
    _objects: Store[Object] | None = None
    _clusters: Store[bool] | None = None
    _statuses: StatusWriter | None = None

    def begin(self, objects: Store[Object], clusters: Store[bool], statuses: StatusWriter) -> None:
        """Begin when the kinds are served."""
        self._objects, self._clusters, self._statuses = objects, clusters, statuses

    async def reconcile(self, name: Key) -> Result:
        assert self._objects is not None
        assert self._clusters is not None
        obj = self._objects.get(name)
        if obj is None or not self.actuator.handles(obj) or not has_health(obj, self.actuator.finalizer):
            return Done()
        if self._clusters.get(Key("", name.namespace)):
            return Done()
        found: Sequence[Condition]
        try:
            found = await self.actuator.health(obj)
        except Exception as error:  # noqa: BLE001 - whatever an extension raises, its conditions are out of date
            log.error("Cannot check the health of an object", object=str(name), error=repr(error))
            found = [not_checked(text(each.get("type")), str(error)) for each in conditions_of(obj)]
        await self._write(obj, found)
        return RequeueAfter(self.seconds)

    async def _write(self, obj: Object, found: Sequence[Condition]) -> None:
        def with_found(status: Object) -> Object:
            conditions = with_conditions(conditions_of({"status": status}), found, now=self.clock())
            return {**status, "conditions": conditions} if conditions else status

        assert self._statuses is not None
        await self._statuses.update_if_exists(obj, with_found)


async def health_in_shoot(seed: Client, name: Key, type_: str) -> Condition:
    """Return a condition of the objects that `objects.deploy_into_shoot` has deployed under this name."""
    managed_resource, now = await seed.find(MANAGED_RESOURCES, name), utc_now()
    if managed_resource is None:
        return Condition(type_, "False", "ManagedResourceMissing", f"ManagedResource {name} does not exist.")
    for status, threshold in (("False", _ANY_TIME), (IN_PROGRESS, None)):
        if problem := problem_of(managed_resource, progressing_threshold=threshold, now=now):
            return Condition(type_, status, problem.reason, problem.message)
    return Condition(type_, "True", "ManagedResourceHealthy", f"All objects of ManagedResource {name} are healthy.")
