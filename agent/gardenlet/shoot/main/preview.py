"""Preview of the next reconciliation of a Shoot: its flow without side effects.

The operation is the one that a pass would run now; recorders (`dry_run`) replace all clients that write.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from agent.gardenlet.common.extension_objects.objects import ExtensionObjects
from agent.gardenlet.common.shoot_clusters import ShootClusters
from agent.gardenlet.flow.previews import NoPreviewError
from agent.gardenlet.shoot.dry_run.client import ReadingClient, RecordingClient
from agent.gardenlet.shoot.dry_run.compare import Components, recorded
from agent.gardenlet.shoot.dry_run.components import RecordedComponents
from agent.gardenlet.shoot.dry_run.run import run_once
from agent.gardenlet.shoot.dry_run.secrets import NoNewSecrets
from agent.gardenlet.shoot.dry_run.statuses import NoStatuses
from agent.gardenlet.shoot.dry_run.waiting import NoWaiting
from agent.gardenlet.shoot.main import surroundings
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.reconcile import Reconciler
from agent.gardenlet.shoot.main.results import CLUSTER
from agent.gardenlet.shoot.main.rules import status
from agent.gardenlet.shoot.main.rules.domains import DomainError
from agent.gardenlet.shoot.main.rules.support import unsupported
from agent.gardenlet.shoot.main.tasks.secrets import rotation_times
from components.gateways import GatewayError
from components.results import Results
from gardener import operations
from gardener.api.extensions import CLUSTERS
from gardener.difference_reports import DifferenceReport, Place
from gardener.garden.shoots import operation_of, responsible_seed, technical_id_of
from kube.objects import Key, Object, key, mapping, text, uid
from kube.paths import at
from kube.runtime.controller import ReconcileError
from process.clusters import Cluster

_PREVIEWED = frozenset({operations.CREATE, operations.RECONCILE})


@dataclass(frozen=True, slots=True)
class ShootPreviews:
    reconciler: Reconciler

    async def make(self, name: Key) -> DifferenceReport:
        """Return the differences that the next reconciliation would make.

        Raises:
            NoPreviewError: no preview of the next operation is possible.
        """
        of = self.reconciler
        shoot = of.shoots.get(name)
        if shoot is None or responsible_seed(shoot) != of.seed_name:
            raise NoPreviewError(404, f"Shoot {name} is not on Seed {of.seed_name}")
        kind = operation_of(shoot)
        if kind not in _PREVIEWED:
            raise NoPreviewError(409, f"the next operation of Shoot {name} is {kind}, which has no preview")
        if problem := unsupported(of.config, shoot, kind):
            raise NoPreviewError(409, f"Shoot {name} can't be reconciled: {problem}")
        try:
            return await self._made(shoot, kind)
        except (ReconcileError, DomainError, GatewayError) as error:
            raise NoPreviewError(409, f"no operation of Shoot {name} can start: {error}") from error

    async def _made(self, shoot: Object, kind: str) -> DifferenceReport:
        of = self.reconciler
        project = await surroundings.project_of(of.garden.client, shoot)
        around = await surroundings.read(of.garden.client, shoot, project=project, seed=of.seed_name)
        components = RecordedComponents(of.objects)
        seed = RecordingClient(of.seed.client, planned=components.find)
        garden = RecordingClient(of.garden.client)
        shoot = self._begun(shoot, kind, project)
        namespace = text(at(shoot, "status", "technicalID"))
        keys = await NoNewSecrets.open(seed, namespace, clock=of.seed.clock, requested=rotation_times(shoot))
        results = Results({CLUSTER: await of.seed.client.find(CLUSTERS, namespace)})
        operation = self._without_writes(
            await of.operation(shoot, kind, around, made=keys, results=results),
            seed=seed,
            garden=garden,
            components=components,
        )
        unknown = await run_once(of.flows[kind], operation, results)
        if not unknown:
            await keys.clean_up()
        compared = Components(
            client=seed, discovery=of.seed.discovery, namespace=namespace, recorded=components
        ).differences()
        differences = [*await recorded(Place.GARDEN, garden), *await recorded(Place.SEED, seed), *await compared]
        return DifferenceReport(sorted(differences, key=lambda each: (each.place, each.kind, each.name)), unknown)

    def _begun(self, shoot: Object, kind: str, project: str) -> Object:
        """Return the Shoot as it would be at the start of the operation."""
        of = self.reconciler
        technical_id = technical_id_of(project, key(shoot).name)
        fields = status.begun(shoot, kind, gardener=of.gardener, technical_id=technical_id, now=of.clock())
        fields["uid"] = text(at(shoot, "status", "uid")) or uid(shoot)
        return {**shoot, "status": {**mapping(shoot.get("status")), **fields}}

    def _without_writes(
        self,
        operation: ShootOperation,
        *,
        seed: RecordingClient,
        garden: RecordingClient,
        components: RecordedComponents,
    ) -> ShootOperation:
        of = self.reconciler
        waiting = NoWaiting(client=seed, caches=of.seed.caches, discovery=of.seed.discovery)
        return replace(
            operation,
            seed=replace(of.seed, client=seed),
            garden=replace(of.garden, client=garden),
            objects=components,
            extensions=ExtensionObjects(client=seed, waiting=waiting, clock=of.seed.clock, sleep=_no_pause),
            waiting=waiting,
            garden_waiting=NoWaiting(client=garden, caches=of.garden.caches, discovery=of.garden.discovery),
            statuses=NoStatuses(),
            shoots=_ReadOnly(of.shoot_clusters),
        )


async def _no_pause(_: float) -> None:
    return


class _ReadOnly(ShootClusters):
    """Read-only connections to Shoots; writes are not recorded either, since there may be any number of objects."""

    def __init__(self, real: ShootClusters) -> None:
        self._real = real

    @asynccontextmanager
    async def use(self, namespace: str, **options: Any) -> AsyncIterator[Cluster]:  # noqa: ARG002 - may not run yet
        async with self._real.use(namespace) as cluster:
            yield replace(cluster, client=ReadingClient(cluster.client))

    def expect_none(self, namespace: str) -> None:
        pass

    def expect(self, namespace: str) -> None:
        pass

    async def drop(self, namespace: str) -> None:  # noqa: ARG002 - it stays
        return

    async def close(self) -> None:
        return
