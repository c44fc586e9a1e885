"""One check of a Shoot: watched objects of the seed, a probe of the Shoot's API server, and a status update.

Observations are taken once, at the start of the check, and handed to pure rules. Objects in the Shoot are listed only
now and then, and right after an operation has succeeded. A failure on this side leaves conditions unchanged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from agent.gardenlet.common.shoot_clusters import ShootClusters
from agent.gardenlet.shoot.care.inside import Inspection, probe, remove
from agent.gardenlet.shoot.care.rules import conditions, status
from agent.gardenlet.shoot.care.rules.constraints import constraints
from agent.gardenlet.shoot.care.rules.garbage import is_overdue
from agent.gardenlet.shoot.care.rules.observed import ApiServer, Inside, Observed, Part, Probe
from agent.gardenlet.shoot.care.stores import Stores
from components import kube_apiserver
from config.gardenlet.controllers import ShootCare
from gardener.garden.shoots import last_operation, responsible_seed
from gardener.operations import PENDING, PROCESSING
from kube.conditions import Condition
from kube.objects import Key, Object, is_deleting, key, text
from kube.paths import at
from kube.resources import DEPLOYMENTS, PODS
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.status import StatusWriter

_SOON = 0.5
"""Seconds until the first lists are likely complete."""
_INSPECTED = 5
"""Checks between two inspections of a Shoot."""


@dataclass(slots=True)
class _Inspected:
    inside: Inside
    when: datetime
    operation: str
    """End of the last successful operation before the inspection; empty if there is none."""
    is_collected: bool = False
    """Whether the garbage of this inspection was collected."""

    def counts(self, ended: str, *, within: timedelta, now: datetime) -> bool:
        """Whether this inspection is still valid. Args: ended: end of the last successful operation; empty if none."""
        return not self.inside.is_due and now - self.when < within and ended in {"", self.operation}


@dataclass(eq=False, slots=True, kw_only=True)
class Reconciler:
    """Args:
    is_monitored: whether the configuration enables monitoring of Shoots.
    names: the Shoots that were checked, by namespace in the seed.
    """

    settings: ShootCare
    seed_name: str
    seed: Client
    shoots: Store[Object]
    statuses: StatusWriter
    stores: Stores
    clusters: ShootClusters
    inspection: Inspection
    is_monitored: bool
    names: dict[str, Key]
    clock: Callable[[], datetime]
    _inspected: dict[str, _Inspected] = field(default_factory=dict)

    async def reconcile(self, name: Key) -> Result:
        shoot = self.shoots.get(name)
        if shoot is None or responsible_seed(shoot) != self.seed_name:
            self._forget(name)
            return Done()
        namespace = text(at(shoot, "status", "technicalID"))
        if not namespace:
            return Done()  # no namespace yet; its assignment triggers the next check
        is_new = self.names.get(namespace) != name
        self.names[namespace] = name
        rolled_out = self.stores.rolled_out(namespace)
        if not self.stores.are_listed or (rolled_out is None and is_new):
            return RequeueAfter(_SOON)
        if rolled_out is not None or not _is_coming_or_going(shoot):
            await self._check(namespace, shoot, rolled_out)
        await self._collect(namespace, shoot)
        return RequeueAfter(self.settings.sync_period)

    def _forget(self, name: Key) -> None:
        for namespace in [each for each, shoot in self.names.items() if shoot == name]:
            del self.names[namespace]
            self._inspected.pop(namespace, None)
            self.inspection.webhooks.forget(namespace)

    # --- the check

    async def _check(self, namespace: str, shoot: Object, rolled_out: Object | None) -> None:
        found, found_constraints = await self._found(namespace, shoot, rolled_out)
        thresholds = {each.type: each.duration for each in self.settings.condition_thresholds}

        def compute(present: Object) -> Object:
            return status.with_checks(
                present, found, found_constraints, shoot=shoot, thresholds=thresholds, now=self.clock()
            )

        await self.statuses.update_if_exists(shoot, compute)

    async def _found(
        self, namespace: str, shoot: Object, rolled_out: Object | None
    ) -> tuple[list[Condition], list[Condition]]:
        if rolled_out is None or not last_operation(rolled_out):
            return status.not_initialized(shoot)
        observed = self._seen(namespace, shoot, rolled_out)
        if status.is_asleep(shoot):
            self._inspected.pop(namespace, None)
            return _asleep(observed)
        observed = await self._requested(namespace, observed)
        found = conditions.conditions(observed, self.settings, is_monitored=self.is_monitored)
        return found, constraints(observed)

    async def _requested(self, namespace: str, observed: Observed) -> Observed:
        """Add the results of probing and inspecting the Shoot."""
        if not _runs(observed.parts):
            self._inspected.pop(namespace, None)
            return observed
        found = await probe(self.clusters, namespace, key(observed.shoot))
        if found.api_server is ApiServer.HEALTHY:
            inside: Inside | None = await self._inside(namespace, observed.shoot, observed.rolled_out)
        else:  # keep the last inspection
            known = self._inspected.get(namespace)
            inside = None if known is None else known.inside
        return replace(observed, probe=found, inside=inside, now=self.clock())

    async def _inside(self, namespace: str, shoot: Object, rolled_out: Object) -> Inside:
        now, known = self.clock(), self._inspected.get(namespace)
        operation = last_operation(shoot)
        ended = text(operation.get("lastUpdateTime")) if operation.get("state") == "Succeeded" else ""
        period = timedelta(seconds=_INSPECTED * self.settings.sync_period)
        if known is not None and known.counts(ended, within=period, now=now):
            return known.inside
        inside = await self.inspection.inspect(namespace, rolled_out, shoot)
        self._inspected[namespace] = _Inspected(inside, now, ended)
        return inside

    def _seen(self, namespace: str, shoot: Object, rolled_out: Object) -> Observed:
        """Snapshot of the seed; the rest of the check reads no store again."""
        reports = self.stores.reports_in(namespace)
        if not conditions.has_workers(rolled_out):
            reports = [each for each in reports if each.kind in _WITHOUT_WORKERS]
        return Observed(
            shoot=shoot,
            rolled_out=rolled_out,
            parts=self.stores.parts_in(namespace),
            managed_resources=self.stores.managed_resources_in(namespace),
            reports=reports,
            heartbeats=self.stores.heartbeats_of(reports),
            authorities=self.stores.authorities_in(namespace),
            probe=Probe(ApiServer.NOT_RUNNING),
            inside=None,
            now=self.clock(),
            machines=self.stores.machines_in(namespace),
        )

    # --- garbage collection

    async def _collect(self, namespace: str, shoot: Object) -> None:
        inspected, now = self._inspected.get(namespace), self.clock()
        if inspected is not None and not inspected.is_collected:
            inspected.is_collected = True
            await self.inspection.collect(namespace, shoot, inspected.inside)
        for each in self.stores.stale_pods(namespace):
            if each.leaving_since is None:
                await remove(self.seed, PODS, each.name, each.uid)
            elif is_overdue(each.leaving_since, now=now):
                await remove(self.seed, PODS, each.name, each.uid, grace_seconds=0)


_WITHOUT_WORKERS = frozenset({"Extension"})


def _is_coming_or_going(shoot: Object) -> bool:
    """Whether the Cluster object is about to be written, or deleted with the Shoot."""
    return is_deleting(shoot) or last_operation(shoot).get("state", PENDING) in {PENDING, PROCESSING}


def _asleep(observed: Observed) -> tuple[list[Condition], list[Condition]]:
    found, found_constraints = status.asleep(observed.shoot)
    is_so = at(observed.shoot, "status", "hibernated") is True
    if is_so and (wrong := conditions.scaled_while_asleep(observed)) is not None:
        found = [wrong if each.type == wrong.type else each for each in found]
    return found, found_constraints


def _runs(parts: Sequence[Part]) -> bool:
    """Whether the API server is deployed with replicas."""
    found = (each for each in parts if (each.kind, each.name.name) == (DEPLOYMENTS.kind, kube_apiserver.NAME))
    api_server = next(found, None)
    return api_server is not None and not api_server.is_deleting and api_server.replicas > 0
