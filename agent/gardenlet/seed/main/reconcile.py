"""One reconciliation of the own Seed: its components are deployed, or deleted, and the status reports the result.

    begun         known values of the seed are written to the status, with the observed generation
    prerequisites provided by others: Secrets of the garden, a version of Kubernetes
    flow          RECONCILE or DELETE
    ended         one more write of the status

A conflict on the Seed itself causes another pass, without a report. A process that ends in between leaves
`Processing`; the next one repeats everything, and finds most of it done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import structlog

from agent.gardenlet.bootstrap.rules.registration import finalised_marker
from agent.gardenlet.common.component_objects import ComponentObjects
from agent.gardenlet.common.identity import is_garden
from agent.gardenlet.common.secrets_manager import SecretsManager
from agent.gardenlet.flow.graph import Graph, Snapshot
from agent.gardenlet.flow.progress import Progress
from agent.gardenlet.flow.record import FlowRecords, Subject
from agent.gardenlet.flow.run import FlowCanceled, FlowFailed, run
from agent.gardenlet.seed.main import backup_bucket
from agent.gardenlet.seed.main.flows import DELETE, RECONCILE
from agent.gardenlet.seed.main.operation import GARDEN, SeedOperation
from agent.gardenlet.seed.main.rules import prerequisites, status
from agent.gardenlet.seed.main.rules.prerequisites import GardenSecrets, PrerequisiteMissing
from components import cluster_identity
from components import namespaces as labelled_namespaces
from components.secrets.rotation import Old, old_of_a_seed
from components.secrets.stored import Stored
from components.secrets.tables import CA_SEED
from config.gardenlet.schema import GardenletConfiguration
from gardener import keys
from gardener.api.garden import SEEDS, SHOOTS
from gardener.garden.seeds import namespace_of
from gardener.garden.shoots import selectors_of_users
from gardener.operations import is_repeated
from kube.apply.shared_objects import ensure
from kube.errors import KindNotServed, KubeError, NotFound, refusal_of
from kube.objects import Key, Object, finalizers, is_deleting, key, mapping, text, uid
from kube.resources import CONFIG_MAPS, NAMESPACES, SECRETS
from kube.runtime.cache import Store
from kube.runtime.client import Form, Selection
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result, is_conflict
from kube.runtime.events import EventRecorder
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.server_version import server_version
from kube.runtime.status import StatusWriter
from kube.runtime.waiting import Waiting
from process.clusters import Cluster

FLOW_SECONDS = 1800.0
_REPORT_SECONDS = 5.0
_IN_USE_SECONDS = 60.0
_REMOVED_SECONDS = 60.0
_MOST_NAMED = 10
_MONITORING = "global-monitoring"
_REFERENCED = "ResourceReferenced"
_AUTOSCALER = ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler")


def _old_authority(current: Stored, *, now: datetime) -> Old:
    return old_of_a_seed(datetime.fromtimestamp(current.issued_at, UTC), now)


log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    config: GardenletConfiguration
    gardener: Object
    seed: Cluster
    garden: Cluster
    seeds: Store[Object]
    installations: Store[Object]
    registrations: Store[Object]
    statuses: StatusWriter
    objects: ComponentObjects
    waiting: Waiting
    components: frozenset[str]
    recorder: EventRecorder
    certificate_expires: Callable[[], datetime | None]
    flows: FlowRecords
    clock: Callable[[], datetime]

    async def reconcile(self, own: Key) -> Result:
        present = self.seeds.get(own)
        if present is None or (is_deleting(present) and keys.GARDENER_FINALIZER not in finalizers(present)):
            return Done()
        try:
            identity = await self._cluster_identity()
            seed = await self._begin(present, identity)
            if is_deleting(seed):
                return await self._delete(seed, identity)
            return await self._reconcile(seed, identity, is_repeated=is_repeated(present))
        except (FlowFailed, FlowCanceled) as error:
            reported = error.as_list if isinstance(error, FlowFailed) else str(error)
            await self._fail(seed, reported, progress=error.snapshot.progress)
            raise
        except (KubeError, ReconcileError, PrerequisiteMissing) as error:
            if is_conflict(error):
                raise
            await self._fail(seed, refusal_of(error))
            raise ReconcileError(str(error)) from error

    # --- status

    async def _begin(self, seed: Object, identity: Object | None) -> Object:
        """Return the Seed with the status of a started operation.

        Raises:
            PrerequisiteMissing: a prerequisite is missing.
        """
        fields = status.begun(
            seed,
            gardener=self.gardener,
            kubernetes_version=await server_version(self.seed.client),
            cluster_identity=await self._identity(seed, identity),
            certificate_expires=self.certificate_expires(),
            resources=self.config.resources,
            now=self.clock(),
        )
        return await self.statuses.write(seed, fields)

    async def _fail(self, seed: Object, reported: str, *, progress: int | None = None) -> None:
        """Write an error to the status; a failure to do so does not hide the error."""
        try:
            await self.statuses.update(
                seed, lambda present: status.failed(seed, present, reported, progress=progress, now=self.clock())
            )
        except KubeError as error:
            log.info("Cannot write the status of the Seed", error=str(error))

    async def _report(self, seed: Object, snapshot: Snapshot) -> None:
        await self.statuses.update(seed, lambda present: status.progressing(present, snapshot, now=self.clock()))

    async def _succeed(self, seed: Object, *, is_repeated: bool = False) -> Object:
        return await self.statuses.update(
            seed, lambda present: status.succeeded(seed, present, is_repeated=is_repeated, now=self.clock())
        )

    # --- reconciliation

    async def _reconcile(self, seed: Object, identity: Object | None, *, is_repeated: bool) -> Result:
        seed = await ensure_finalizer(self.garden.client, SEEDS, seed, keys.GARDENER_FINALIZER)
        prerequisites.demand_version(text(mapping(seed["status"]).get("kubernetesVersion")))
        if not prerequisites.has_vertical_pod_autoscaler(seed):
            await self._demand_autoscaler()
        secrets = await self._garden_secrets(key(seed).name)
        certificate = await self._prepare(seed)
        copy = prerequisites.monitoring_copy(secrets.monitoring)
        await self.objects.deploy(_MONITORING, [copy])
        made = await self._open_keys()
        await made.generate(CA_SEED, old=partial(_old_authority, now=self.seed.clock()))
        await self._run(RECONCILE, seed, identity, made, login_secret=key(copy).name, wildcard_certificate=certificate)
        await made.clean_up()
        await backup_bucket.deploy(self.garden.client, seed)
        await self._succeed(seed, is_repeated=is_repeated)
        return RequeueAfter(self.config.controllers.seed.sync_period)

    async def _demand_autoscaler(self) -> None:
        try:
            await self.seed.discovery.find(*_AUTOSCALER)
        except KindNotServed as error:
            raise PrerequisiteMissing(
                f"VPA is required for seed cluster: {error}; install it, or set "
                "spec.settings.verticalPodAutoscaler.enabled of the Seed to have the gardenlet install it"
            ) from error

    async def _garden_secrets(self, seed: str) -> GardenSecrets:
        namespace = namespace_of(seed)
        try:
            await self.garden.client.get(NAMESPACES, namespace, form=Form.METADATA)
        except NotFound as error:
            raise PrerequisiteMissing(f"failed to get seed namespace in garden cluster: {error}") from error
        selection = Selection(namespace=namespace, label_selector=keys.ROLE)
        return prerequisites.garden_secrets(await self.garden.client.list(SECRETS, selection))

    async def _prepare(self, seed: Object) -> str:
        """Prepare namespaces before the flow, since all tasks may need them. Return the name of the wildcard
        certificate.
        """
        zones = mapping(mapping(seed["spec"]).get("provider")).get("zones") or []
        for namespace in labelled_namespaces.objects(zones=zones):
            await ensure(self.seed.client, NAMESPACES, namespace)
        selection = Selection(namespace=GARDEN, label_selector=prerequisites.WILDCARD_SELECTOR)
        return prerequisites.wildcard_certificate(await self.seed.client.list(SECRETS, selection, form=Form.METADATA))

    async def _open_keys(self) -> SecretsManager:
        return await SecretsManager.open(self.seed.client, GARDEN, clock=self.seed.clock, renews_authorities=True)

    # --- deletion

    async def _delete(self, seed: Object, identity: Object | None) -> Result:
        if users := await self._users(key(seed).name):
            named = ", ".join(users[:_MOST_NAMED]) + (" and more" if len(users) > _MOST_NAMED else "")
            message = f"Cannot delete Seed, because it is still associated by the following Shoots: {named}"
            self.recorder.event(seed, "Normal", _REFERENCED, message)
            return RequeueAfter(_IN_USE_SECONDS)
        await backup_bucket.destroy(self.garden.client, seed)
        made = await self._open_keys()
        await self._run(DELETE, seed, identity, made)
        await made.clean_up()
        await self.objects.destroy(_MONITORING, [SECRETS.type_meta], seconds=_REMOVED_SECONDS)
        await self._mark_finalised(seed)
        seed = await self._succeed(seed)
        # Other clients write conditions at any time: a conflict is no reason to repeat the whole deletion.
        await remove_finalizer(self.garden.client, SEEDS, seed, keys.GARDENER_FINALIZER)
        return Done()

    async def _users(self, seed: str) -> list[str]:
        """Shoots of the Seed, from the API server: a Shoot that the watch has not reported yet would lose its seed."""
        found = set()
        for selector in selectors_of_users(seed):
            page = await self.garden.client.list_page(
                SHOOTS, Selection(field_selector=selector), form=Form.METADATA, limit=_MOST_NAMED + 1
            )
            found |= {str(key(each)) for each in page.get("items") or ()}
        return sorted(found)

    async def _mark_finalised(self, seed: Object) -> None:
        """Prevent that a restart of this process recreates the Seed."""

        def other_data(marker: Object, live: Object) -> Object | None:
            return {"data": marker["data"]} if live.get("data") != marker["data"] else None

        marker = finalised_marker(seed, self.config.seed)
        await ensure(self.seed.client, CONFIG_MAPS, marker, patch=other_data)

    # --- flow

    async def _run(
        self, graph: Graph[SeedOperation], seed: Object, identity: Object | None, made: SecretsManager, **names: str
    ) -> None:
        """Run a flow.

        Raises:
            FlowFailed: tasks failed.
            FlowCanceled: it took too long.
        """
        operation = SeedOperation(
            config=self.config,
            seed=seed,
            cluster=self.seed,
            garden=self.garden,
            objects=self.objects,
            waiting=self.waiting,
            components=self.components,
            installations=self.installations,
            registrations=self.registrations,
            keys=made,
            identity=text(mapping(seed["status"]).get("clusterIdentity")),
            has_own_identity=cluster_identity.is_of_others(identity),
            is_garden=await is_garden(self.seed),
            **names,
        )
        async with Progress(partial(self._report, seed), period=_REPORT_SECONDS) as progress:
            record = self.flows, Subject(SEEDS.kind, key(seed))
            await run(graph, operation, on_change=progress.report, limit=FLOW_SECONDS, record=record)

    async def _cluster_identity(self) -> Object | None:
        return await self.seed.client.find(CONFIG_MAPS, Key(labelled_namespaces.KUBE_SYSTEM, cluster_identity.NAME))

    async def _identity(self, seed: Object, live: Object | None) -> str:
        """Identity of the cluster; one that is in the status stays."""
        known = text(mapping(seed.get("status")).get("clusterIdentity"))
        if found := known or cluster_identity.identity_in(live):
            return found
        namespace = labelled_namespaces.KUBE_SYSTEM
        return uid(await self.seed.client.get(NAMESPACES, namespace, form=Form.METADATA))
