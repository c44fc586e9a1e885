"""One pass over a Shoot of the own Seed.

    due          now, later, or only the Cluster object; see `rules.timing`
    begun        the status reports `Processing` and the operation
    surroundings inputs from the garden
    Seed         has to be ready, then the Cluster object is written: extensions see the Shoot with this status
    flow         RECONCILE, RESTORE, MIGRATE, DELETE, or FORCE
    ended        one more write of the status, and of the Cluster

A conflict about the Shoot itself leads to another pass, without any report. A process that ends in between leaves
`Processing`; the next one marks the operation as aborted, and repeats all of it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import structlog

from agent.gardenlet.common.component_objects import ComponentObjects
from agent.gardenlet.common.extension_objects.objects import ExtensionObjects
from agent.gardenlet.common.secrets_manager import SecretsManager
from agent.gardenlet.common.shoot_clusters import ShootClusters
from agent.gardenlet.common.shoot_states.saving import saved
from agent.gardenlet.flow.graph import Graph, O, Snapshot
from agent.gardenlet.flow.progress import Progress
from agent.gardenlet.flow.record import FlowRecords, Subject
from agent.gardenlet.flow.run import FlowCanceled, FlowFailed, run, waits_for
from agent.gardenlet.shoot.main import bastions, cluster_objects, seed_objects, surroundings
from agent.gardenlet.shoot.main.departure import Departures
from agent.gardenlet.shoot.main.flows.force import FORCE
from agent.gardenlet.shoot.main.operation import ShootOperation, running_after
from agent.gardenlet.shoot.main.remains import Remains
from agent.gardenlet.shoot.main.results import CLUSTER
from agent.gardenlet.shoot.main.rules import cluster, moving, rotation, seed, status
from agent.gardenlet.shoot.main.rules.domains import DomainError
from agent.gardenlet.shoot.main.rules.support import unsupported
from agent.gardenlet.shoot.main.rules.timing import Due, Timing
from agent.gardenlet.shoot.main.surroundings import Surroundings
from agent.gardenlet.shoot.main.tasks import backup, migration
from agent.gardenlet.shoot.main.tasks.force import Patience, Removal, text_of
from agent.gardenlet.shoot.main.tasks.rotation import settle
from agent.gardenlet.shoot.main.tasks.secrets import rotation_times
from agent.gardenlet.shoot.responsibility import files_changed, while_on
from components import gateways
from components.gateways import Gateway, GatewayError
from components.results import Results
from config.gardenlet.schema import GardenletConfiguration
from gardenapi.api import GardenApi
from gardener import keys, operations
from gardener.api.garden import SHOOTS
from gardener.api.kinds import VERTICAL_POD_AUTOSCALERS
from gardener.error_codes import CONFIGURATION_PROBLEM
from gardener.garden.shoots import (
    is_settled,
    is_to_move,
    last_errors,
    last_operation,
    parse_technical_id,
    responsible_seed,
    technical_id_of,
)
from kube.errors import Forbidden, KubeError, NotFound, refusal_of
from kube.objects import Key, Object, annotations, finalizers, is_deleting, is_truthy, key, text, uid
from kube.paths import at
from kube.runtime.cache import Store
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result, failure_of, is_conflict
from kube.runtime.edits import take_annotation
from kube.runtime.events import EventRecorder
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.status import StatusWriter
from kube.runtime.waiting import Waiting
from process.clusters import Cluster

SEED_SECONDS = 15.0
"""Seconds until an unready Seed is checked again without an event."""
_BASTIONS_SECONDS = 15.0
_EVENTS = {
    operations.DELETE: ("Deleting", "Deleted", "DeleteError"),
    operations.MIGRATE: ("PrepareMigration", "MigrationPrepared", "MigrationPreparationFailed"),
}
_TEXTS = {
    operations.RESTORE: ("Restoring Shoot cluster", "Restored Shoot cluster"),
    operations.DELETE: ("Deleting Shoot cluster", "Deleted Shoot cluster"),
    operations.MIGRATE: ("Preparing Shoot cluster for migration", "Prepared Shoot cluster for migration"),
}

_LEAVES = {operations.DELETE, operations.MIGRATE}
_SOON_SECONDS = 1.0

Flows = Mapping[str, Graph[ShootOperation]]
"""Keys: kind of operation."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class NoRestorationError(ReconcileError):
    """A Shoot can't be restored; the code lets users delete it by force."""

    codes = (CONFIGURATION_PROBLEM,)


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """Attributes:
    held: Shoots whose operations start when the Seed is ready.
    period: minimum seconds between progress reports.
    patience: time limits of a force deletion.
    """

    config: GardenletConfiguration
    seed_name: str
    gardener: Object
    garden_identity: str
    seed: Cluster
    garden: Cluster
    api: GardenApi
    shoots: Store[Object]
    seeds: Store[Object]
    registrations: Store[Object]
    statuses: StatusWriter
    objects: ComponentObjects
    waiting: Waiting
    garden_waiting: Waiting
    shoot_clusters: ShootClusters
    timing: Timing
    held: set[Key]
    flows: Flows
    records: FlowRecords
    recorder: EventRecorder
    period: float
    patience: Patience
    departures: Departures
    clock: Callable[[], datetime]

    async def reconcile(self, name: Key) -> Result:
        shoot = self.shoots.get(name)
        if shoot is None or responsible_seed(shoot) != self.seed_name:
            return Done()
        if is_deleting(shoot) and keys.GARDENER_FINALIZER not in finalizers(shoot):
            return Done()
        kind = await self._kind(shoot)
        if kind == operations.DELETE and not _may_exist(shoot):
            return await self._finalise(shoot)
        match self.timing.due(shoot, self.clock()):
            case Due.CLUSTER_ONLY:
                return await self._follow(shoot, kind)
            case Due.LATER:
                await self._show(shoot)
                return self._later(shoot)
            case Due.NOW if self._is_held(shoot):
                return RequeueAfter(SEED_SECONDS)
            case Due.NOW:
                self.held.discard(name)
                return await self._operate(shoot, kind)

    async def _kind(self, shoot: Object) -> str:
        """Type of the operation. A Shoot that is given up does not complete a move."""
        if is_deleting(shoot) and _is_forced(shoot):
            return operations.DELETE
        if moving.was_taken_back(shoot):
            return moving.after_return(shoot, await migration.progress_of(self.seed, shoot))
        return moving.operation_on(shoot)

    def _is_held(self, shoot: Object) -> bool:
        """Whether the Shoot has no new request, and waits for the Seed. Its status does not report that."""
        own = self.seeds.get(Key("", self.seed_name))
        if own is None or is_deleting(own) or not self.timing.is_repetition(shoot):
            return False
        if not seed.problem_of_repetition(own, shoot, gardener=self.gardener):
            return False
        self.held.add(key(shoot))
        return True

    def _later(self, shoot: Object) -> Result:
        if is_to_move(shoot) or is_deleting(shoot):
            return RequeueAfter(_SOON_SECONDS)  # the next operation was requested during this one
        delay = self.timing.next_delay(shoot, self.clock())
        return Done() if delay is None else RequeueAfter(delay)

    async def _follow(self, shoot: Object, kind: str) -> Result:
        """Refresh the Cluster object; the cache may still have the previous Seed."""
        around = await self._surroundings(shoot, kind, await self._project(shoot, kind))
        live = await self.garden.client.find(SHOOTS, key(shoot))
        if live is not None and responsible_seed(live) == self.seed_name:
            await self._write_cluster(live, around)
        return Done()

    async def _show(self, shoot: Object) -> None:
        """Report the last operation to extensions, if its end could not be written to the Cluster object."""
        if technical_id := text(at(shoot, "status", "technicalID")):
            await cluster_objects.show_operation(self.seed.client, technical_id, shoot)

    # --- an operation

    async def _operate(self, shoot: Object, kind: str) -> Result:
        if kind == operations.DELETE and _is_forced(shoot):
            return await self._force(shoot)
        if kind == operations.MIGRATE:
            await self._demand_that_it_can_leave(shoot)
        elif kind != operations.DELETE:
            shoot = await ensure_finalizer(self.garden.client, SHOOTS, shoot, keys.GARDENER_FINALIZER)
        elif result := await self._held_by_bastions(shoot):
            return result
        is_new = not text(at(shoot, "status", "technicalID"))
        shoot, around = await self._initialized(shoot, kind)
        shoot = await self.statuses.write(shoot, {"uid": text(at(shoot, "status", "uid")) or uid(shoot)})
        problem, written = await self._unready(shoot, around, is_new=is_new)
        if problem:
            self.held.add(key(shoot))
            await self.statuses.write(shoot, status.waiting_for_seed(shoot, problem, now=self.clock()))
            return RequeueAfter(SEED_SECONDS)
        results = Results({CLUSTER: written})
        done = await self._carry_out(shoot, kind, lambda: self._run(shoot, kind, around, results))
        if done is None:
            await self._show(self.shoots.get(key(shoot)) or shoot)
            return Done()
        if kind == operations.DELETE:
            return await self._finalise(done)
        if kind == operations.MIGRATE:
            return await self._left(done)
        await self._write_cluster(done, around, known=results[CLUSTER])
        if kind == operations.RESTORE:
            await self.departures.arrived(done)
        return self._later(done)

    async def _initialized(self, shoot: Object, kind: str) -> tuple[Object, Surroundings]:
        """Write the start of the operation to the status, and return the Shoot with its surroundings.

        Raises:
            ReconcileError: an input is missing or invalid; the status reports it.
        """
        try:
            project = await self._project(shoot, kind)
            if problem := unsupported(self.config, shoot, kind):
                raise (NoRestorationError if kind == operations.RESTORE else ReconcileError)(problem)
            shoot = await self._begin(shoot, kind, technical_id_of(project, key(shoot).name))
            around = await self._surroundings(shoot, kind, project)
            self._gateway(shoot, kind, around)
        except (KubeError, ReconcileError, DomainError, GatewayError) as error:
            if is_conflict(error):
                raise
            await self._not_initialized(shoot, kind, error)
            raise ReconcileError(str(error)) from error
        return shoot, around

    async def _project(self, shoot: Object, kind: str) -> str:
        """Name of the Project, or of the former one in the name of the namespace. Raises ReconcileError, KubeError."""
        try:
            return await surroundings.project_of(self.garden.client, shoot)
        except (ReconcileError, Forbidden):
            former, _ = parse_technical_id(text(at(shoot, "status", "technicalID")))
            if not former or not _leaves(shoot, kind):
                raise
            return former

    async def _surroundings(self, shoot: Object, kind: str, project: str) -> Surroundings:
        """Inputs from the garden; a Shoot that leaves needs only those in the seed. Raises DomainError, KubeError."""
        remains = Remains(self.seed.client, shoot) if _leaves(shoot, kind) else None
        return await surroundings.read(self.garden.client, shoot, project=project, seed=self.seed_name, remains=remains)

    async def _force(self, shoot: Object) -> Result:
        """Delete by force, regardless of the state of Seed and garden, which is not needed for that."""
        technical_id = text(at(shoot, "status", "technicalID"))
        if not technical_id:
            return await self._finalise(shoot)
        if result := await self._held_by_bastions(shoot):
            return result
        shoot = await self._begin(shoot, operations.DELETE, technical_id)
        await cluster_objects.show(self.seed.client, technical_id, shoot)
        removed = await self._carry_out(shoot, operations.DELETE, lambda: self._run_forced(shoot, technical_id))
        return Done() if removed is None else await self._finalise(removed)

    async def _begin(self, shoot: Object, kind: str, technical_id: str) -> Object:
        fields = status.begun(shoot, kind, gardener=self.gardener, technical_id=technical_id, now=self.clock())
        if self.api.has_own_fields:
            fields["observedOperationSequence"] = at(shoot, "operation", "sequence")
        shoot = await self.statuses.write(shoot, fields)
        # A rotation that is requested during a migration begins on the other Seed.
        is_taken = kind != operations.MIGRATE and rotation.asked_of(shoot) is not None
        return await self._without_operation(shoot) if is_taken else shoot

    async def _without_operation(self, shoot: Object) -> Object:
        """Remove the operation annotation: the status has the request from now on."""
        written = await take_annotation(self.garden.client, SHOOTS, shoot, keys.OPERATION)
        self.shoots.observe(written)
        return written

    async def _unready(self, shoot: Object, around: Surroundings, *, is_new: bool) -> tuple[str, Object | None]:
        """Return a problem of the Seed, empty if none, and the Cluster object. Args: is_new: there was no namespace."""
        own = self._own_seed()
        if not is_deleting(own) and (found := seed.problem(own, gardener=self.gardener)):
            return f"seed is not yet ready: {found}", None
        try:
            return "", await self._write_cluster(shoot, around, is_absent=is_new)
        except KubeError as error:
            return f"could not sync cluster resource to seed: {error}", None

    async def _carry_out(self, shoot: Object, kind: str, run: Callable[[], Awaitable[bool]]) -> Object | None:
        """Run, and return the Shoot after success, or None if it has failed for good. Raises the errors of `run`.

        Args: run: returns whether anything has changed, so that the conditions are outdated.
        """
        begun, done, failed = _EVENTS.get(kind, ("Reconciling", "Reconciled", "ReconcileError"))
        begun_text, done_text = _TEXTS.get(kind, ("Reconciling Shoot cluster", "Reconciled Shoot cluster"))
        self.recorder.event(shoot, "Normal", begun, begun_text)
        try:
            has_changed = await while_on(
                self.seed_name, self.shoots, shoot, run, until=lambda: files_changed(self.garden.client, shoot)
            )
        except Exception as error:
            if is_conflict(error):
                raise
            self.recorder.event(shoot, "Warning", failed, str(error))
            if await self._fail(shoot, kind, error):
                return None
            raise
        self.recorder.event(shoot, "Normal", done, done_text)
        return await self._succeed(shoot, kind, has_changed=has_changed)

    async def _run(self, shoot: Object, kind: str, around: Surroundings, results: Results) -> bool:
        """Run the flow of an operation; return whether anything has changed.

        Raises:
            FlowFailed: a task failed.
            FlowCanceled: the flow ran out of time.
            ReconcileError: an input is missing or invalid.
        """
        namespace = text(at(shoot, "status", "technicalID"))
        made = await SecretsManager.open(
            self.seed.client, namespace, clock=self.seed.clock, requested=rotation_times(shoot)
        )
        operation = await self.operation(shoot, kind, around, made=made, results=results)
        async with self.waiting.keeping(namespace):
            await self._run_flow(shoot, kind, self.flows[kind], operation, results)
        if kind not in _LEAVES:
            await made.clean_up()
            await settle(operation)
            await operation.waiting_skipped()
        if kind == operations.RESTORE:
            await migration.forget_progress(self.seed.client, shoot)
        return operation.has_changed

    async def operation(
        self, shoot: Object, kind: str, around: Surroundings, *, made: SecretsManager, results: Results
    ) -> ShootOperation:
        """Args: shoot: with the started operation. made: its Secrets. Raises ReconcileError, KubeError."""
        namespace = text(at(shoot, "status", "technicalID"))
        # The other operations create it if necessary.
        place = await seed_objects.living(self.seed.client, namespace) if kind in _LEAVES else None
        lives = kind not in _LEAVES or place is not None
        own, is_restored = self._own_seed(), kind == operations.RESTORE
        return ShootOperation(
            config=self.config,
            kind=kind,
            running=running_after(shoot, kind),
            shoot=shoot,
            seed_object=own,
            technical_id=namespace,
            garden_identity=self.garden_identity,
            internal=around.internal,
            external=around.external,
            gateway=self._gateway(shoot, kind, around),
            profile=around.profile,
            registrations={name.name: each for name, each in self.registrations.items()},
            seed=self.seed,
            garden=self.garden,
            objects=self.objects,
            extensions=ExtensionObjects(
                client=self.seed.client,
                waiting=self.waiting,
                clock=self.seed.clock,
                report=lambda name, reason: waits_for(f"{name}: {reason}"),
            ),
            waiting=self.waiting,
            garden_waiting=self.garden_waiting,
            autoscaled=await self.seed.discovery.is_served(VERTICAL_POD_AUTOSCALERS),
            namespace_lives=lives,
            cleans_up=lives and kind in _LEAVES and await seed_objects.has_api_server(self.seed.client, namespace),
            leaving=annotations(place or {}).get(keys.SHOOT_LEAVING, ""),
            copies_backups=is_restored
            and await backup.copies(self.garden.client, self.seed.client, shoot, bucket=uid(own)),
            state=(await saved(self.garden.client, key(shoot))).whole if is_restored else {},
            keys=made,
            statuses=self.statuses,
            shoots=self.shoot_clusters,
            results=results,
        )

    async def _run_forced(self, shoot: Object, technical_id: str) -> bool:
        """Run the force deletion, and report objects that were released by force.

        Raises:
            FlowFailed: a task failed.
            FlowCanceled: the flow ran out of time.
        """
        removal = Removal(
            name=key(shoot),
            technical_id=technical_id,
            seed=self.seed,
            garden=self.garden,
            waiting=self.waiting,
            shoots=self.shoot_clusters,
            patience=self.patience,
        )
        try:
            await self._run_flow(shoot, operations.DELETE, FORCE, removal)
        finally:
            if removal.left_behind:
                self.recorder.event(shoot, "Warning", "LeftBehind", text_of(removal.left_behind))
        return True

    async def _run_flow(
        self, shoot: Object, kind: str, flow: Graph[O], operation: O, results: Results | None = None
    ) -> None:
        before = [text(each.get("taskID")) for each in last_errors(shoot)]
        async with Progress(partial(self._report, shoot, kind), period=self.period) as progress:
            record = self.records, Subject(SHOOTS.kind, key(shoot))
            await run(flow, operation, results=results, on_change=progress.report, failed_before=before, record=record)

    # --- the status

    async def _report(self, shoot: Object, kind: str, snapshot: Snapshot) -> None:
        await self.statuses.update(shoot, lambda present: status.progressing(present, kind, snapshot, now=self.clock()))

    async def _not_initialized(self, shoot: Object, kind: str, error: Exception) -> None:
        reported, codes, now = refusal_of(error), status.codes_of(error), self.clock()
        if kind == operations.MIGRATE and is_settled(shoot):
            await self._try_to_write(shoot, lambda present: {**present, **status.waiting(shoot, reported, now=now)})
            return
        await self._try_to_write(shoot, lambda present: status.not_initialized(present, kind, reported, codes, now=now))

    async def _fail(self, shoot: Object, kind: str, error: Exception) -> bool:
        """Write the failure, and return whether it is final. A failure to write does not hide the original error."""
        now = self.clock()
        if isinstance(error, FlowFailed | FlowCanceled):
            reported, progress = status.failure(str(error), error.snapshot.failures, now=now), error.snapshot.progress
        else:
            reported, progress = status.unexpected(failure_of(error).text, now=now), None
        retry_duration = self.config.controllers.shoot.retry_duration
        written = await self._try_to_write(
            shoot,
            lambda present: status.failed(
                present, kind, reported, retry_duration=retry_duration, progress=progress, now=now
            ),
        )
        return last_operation(written or {}).get("state") == operations.FAILED

    async def _succeed(self, shoot: Object, kind: str, *, has_changed: bool = True) -> Object:
        def succeeded(present: Object) -> Object:
            return status.succeeded(shoot, present, kind, rolled_out=shoot, has_changed=has_changed, now=self.clock())

        return await self.statuses.update(shoot, succeeded)

    async def _try_to_write(self, shoot: Object, compute: Callable[[Object], Object]) -> Object | None:
        try:
            return await self.statuses.update(shoot, compute)
        except KubeError as error:
            log.info("The status of the Shoot could not be written", error=str(error))
            return None

    # --- departure and deletion

    async def _demand_that_it_can_leave(self, shoot: Object) -> None:
        """Check that the Shoot can leave; otherwise report that, keeping the last operation if no migration has begun.

        Raises:
            ReconcileError: the Shoot can't leave now.
        """
        problem = await self.departures.problem(shoot) or await self._problem_elsewhere(shoot)
        if not problem:
            return
        error = ReconcileError(problem)
        self.recorder.event(shoot, "Warning", _EVENTS[operations.MIGRATE][2], problem)
        if not is_settled(shoot):
            await self._fail(shoot, operations.MIGRATE, error)
        else:
            await self.statuses.write(shoot, status.waiting(shoot, problem, now=self.clock()))
        raise error

    async def _problem_elsewhere(self, shoot: Object) -> str:
        """Reason why the destination could not restore the Shoot; empty if there is none, or the move has begun."""
        if not is_settled(shoot):
            return ""
        try:
            project = await surroundings.project_of(self.garden.client, shoot)
            await surroundings.read(self.garden.client, shoot, project=project, seed=self.seed_name)
        except (NotFound, ReconcileError, DomainError) as error:
            return f"the Shoot can't move, since it could not be restored: {error}"
        return ""

    async def _left(self, shoot: Object) -> Result:
        technical_id = text(at(shoot, "status", "technicalID"))
        self.objects.forget(technical_id)
        await self.shoot_clusters.drop(technical_id)
        await self.departures.left(shoot)
        return Done()

    async def _held_by_bastions(self, shoot: Object) -> Result | None:
        """Wait for Bastions, forcing their deletion in a force deletion. Raises ReconcileError, KubeError."""
        found = await bastions.of(self.garden.client, shoot)
        if not found:
            return None
        if _is_forced(shoot):
            is_held = await bastions.force(self.garden.client, found, now=self.clock())
            return RequeueAfter(_BASTIONS_SECONDS) if is_held else None
        error = ReconcileError(bastions.STILL_THERE)
        await self._fail(shoot, operations.DELETE, error)
        raise error

    async def _finalise(self, shoot: Object) -> Result:
        """Delete the Cluster object, and release the Shoot."""
        if technical_id := text(at(shoot, "status", "technicalID")):
            await cluster_objects.delete(self.seed.client, technical_id)
            self.objects.forget(technical_id)
        if not status.is_deleted(shoot):
            shoot = await self._succeed(shoot, operations.DELETE)
        await remove_finalizer(self.garden.client, SHOOTS, shoot, keys.GARDENER_FINALIZER)
        return Done()

    # --- helpers

    def _gateway(self, shoot: Object, kind: str, around: Surroundings) -> Gateway | None:
        """Gateway of the API server; None if the seed has none.

        Raises:
            GatewayError: the configuration has no such gateway.
        """
        if not self.config.has_gateways:
            return None
        find = gateways.of_leaving_shoot if _leaves(shoot, kind) else gateways.of_shoot
        return find(self.config, around.exposure_class)

    def _own_seed(self) -> Object:
        """Return the Seed of this gardenlet.

        Raises:
            ReconcileError: the cache has no Seed of this name.
        """
        own = self.seeds.get(Key("", self.seed_name))
        if own is None:
            raise ReconcileError(f"Seed {self.seed_name} is not known yet")
        return own

    async def _write_cluster(
        self, shoot: Object, around: Surroundings, *, known: Object | None = None, is_absent: bool = False
    ) -> Object | None:
        technical_id = text(at(shoot, "status", "technicalID"))
        if not technical_id:
            return None
        wanted = cluster.cluster(technical_id, shoot=shoot, seed=self._own_seed(), profile=around.profile)
        return await cluster_objects.write(self.seed.client, wanted, known=known, is_absent=is_absent)


def _is_forced(obj: Object) -> bool:
    return is_truthy(annotations(obj).get(keys.CONFIRM_FORCE_DELETION))


def _leaves(shoot: Object, kind: str) -> bool:
    """Whether the Shoot is to leave the seed, now or later: then it needs nothing that only a creation needs."""
    return kind in _LEAVES or is_deleting(shoot)


def _may_exist(shoot: Object) -> bool:
    """Whether the seed may have objects of it."""
    return bool(text(at(shoot, "status", "uid"))) and not status.is_deleted(shoot)
