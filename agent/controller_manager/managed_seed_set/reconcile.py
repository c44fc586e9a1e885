"""One pass over a ManagedSeedSet: the next step is decided, done, and written into the status.

If the process ends anywhere in between, the next pass finds its effects in the objects themselves, with one
exception: the number of a replica would be forgotten with its Shoot. Therefore it is in the status before the Shoot is
created. A Shoot that would be refused costs no number, since its creation is tried in a dry run before that.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from agent.controller_manager.managed_seed_set.history import Keeper, is_kept, kept_templates, templates_to_make
from agent.controller_manager.managed_seed_set.rules.history import History, rollout_of
from agent.controller_manager.managed_seed_set.rules.objects import managed_seed_of, shoot_of, updated
from agent.controller_manager.managed_seed_set.rules.status import (
    UNTRACKED,
    after,
    conditions_after,
    counted,
    of_revisions,
)
from agent.controller_manager.managed_seed_set.rules.steps import (
    Action,
    Decision,
    Idle,
    NoneDeletable,
    SetObservation,
    Step,
    decide,
)
from agent.controller_manager.managed_seed_set.set_objects import SetIsGone, SetObjects
from config.controller_manager.controllers import ManagedSeedSet
from gardener import keys
from gardener.api.garden import MANAGED_SEED_SETS, MANAGED_SEEDS, SHOOTS
from gardener.garden.managed_seed_sets import REVISION_LABEL, Membership, Pending, Replica, ordinal_of, priority_of
from gardener.garden.users import listed
from kube.conditions import conditions_of
from kube.errors import AlreadyExists, Forbidden, Invalid, KubeError, refusal_of
from kube.objects import Key, Object, finalizers, integer, is_deleting, key, mapping, selector_text, spec
from kube.repeats import Repeats
from kube.runtime.controller import Done, ReconcileError, Requeue, RequeueAfter, Result, is_conflict
from kube.runtime.events import EventRecorder, EventType
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer

_REPORTER = "managedseedset-controller"
_NUMBERED = frozenset({Action.CREATE_SHOOT, Action.DELETE_MANAGED_SEED, Action.DELETE_SHOOT})
"""Actions that depend on the number of replicas."""
_NEWS_SECONDS = 1.0
"""Seconds until scheduler and webhooks have observed that a Seed is cordoned."""


class _Behind(Exception):
    """The caches are incomplete."""


class _Cordoned(Exception):
    """A Seed was just cordoned: its Shoots are checked when other programs have observed that."""


class _UpdateRejected(ReconcileError):
    """The API server refuses the object that the new templates lead to."""


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    objects: SetObjects
    keeper: Keeper
    settings: ManagedSeedSet
    recorder: EventRecorder
    clock: Callable[[], datetime]
    _reported: Repeats[tuple[Key, str, str, int]] = field(default_factory=Repeats)

    async def reconcile(self, own: Key) -> Result:
        seed_set = self.objects.sets.get(own)
        if seed_set is None:
            self._reported.forget(own)
            return Done()
        if not is_deleting(seed_set):
            seed_set = await ensure_finalizer(self.objects.client, MANAGED_SEED_SETS, seed_set, keys.GARDENER_FINALIZER)
            self.objects.sets.observe(seed_set)
        elif keys.GARDENER_FINALIZER not in finalizers(seed_set):
            return Done()
        self._reported.begin(own)
        try:
            return await self._pass(seed_set)
        except SetIsGone:
            return Done()
        except _Behind:
            self._reported.suspend(own)
            return Requeue()
        except _Cordoned:
            self._reported.suspend(own)
            return RequeueAfter(_NEWS_SECONDS)
        except (KubeError, ReconcileError, ValueError) as error:
            if is_conflict(error):
                self._reported.suspend(own)
                return Requeue()
            reason = "UpdateRejected" if isinstance(error, _UpdateRejected) else "ReconcileError"
            self._event(seed_set, seed_set, "Warning", reason, refusal_of(error))
            what = "deletion" if is_deleting(seed_set) else "creation or update"
            raise ReconcileError(f"could not reconcile ManagedSeedSet {own} {what}: {error}") from error

    async def _pass(self, seed_set: Object) -> Result:
        membership = await self._members(seed_set)
        history = None
        if is_kept(seed_set) and not is_deleting(seed_set):
            history = await self.keeper.keep(seed_set)
            membership = await self._marked(seed_set, membership, history)
        observed = self._observe(seed_set, [self.objects.replica(shoot) for shoot in membership.owned], history)
        self._warn(seed_set, membership, observed.replicas)
        decision = await self._decide(seed_set, membership, observed)
        if isinstance(decision, Idle) and is_deleting(seed_set):
            return await self._leave(seed_set)
        if isinstance(decision, Step):
            if decision.action is not Action.WAIT or _is_new(decision, observed):
                self._event(seed_set, seed_set, "Normal", decision.event, decision.message, number=decision.retries)
            try:
                seed_set = await self._carry_out(seed_set, observed, decision, history)
            except (KubeError, ReconcileError) as error:
                status = self._status(seed_set, observed, history)
                if refusal := _refusal(error, decision):
                    status["conditions"] = conditions_after(seed_set, observed, decision, refusal=refusal)
                await self.objects.write_status(seed_set, status)
                raise
        status = self._status_after(seed_set, observed, history, decision)
        await self.objects.write_status(seed_set, status)
        if isinstance(decision, NoneDeletable):
            raise ReconcileError("no deletable replicas found")
        if history is not None:
            live = {revision for replica in observed.replicas for revision in replica.revisions}
            await self.keeper.forget(seed_set, history, live | {history.update, status["currentRevision"]})
        again_after = decision.again_after if isinstance(decision, Step) else None
        return RequeueAfter(min(self.settings.sync_period, again_after or self.settings.sync_period))

    # --- looking

    async def _members(self, seed_set: Object) -> Membership:
        membership = self.objects.membership(seed_set)
        if is_deleting(seed_set) or not membership.adoptable:
            return membership
        for shoot in membership.adoptable:
            await self.objects.adopt(seed_set, shoot)
        return self.objects.membership(seed_set)

    async def _marked(self, seed_set: Object, membership: Membership, history: History) -> Membership:
        """Mark replicas without a revision as made from the current templates."""
        marked = [await self.objects.mark(self.objects.replica(shoot), history.current) for shoot in membership.owned]
        return self.objects.membership(seed_set) if any(marked) else membership

    def _observe(self, seed_set: Object, replicas: list[Replica], history: History | None) -> SetObservation:
        own, status = key(seed_set), mapping(seed_set.get("status"))
        rollout = None if history is None else rollout_of(seed_set, history)
        is_free = rollout is None or rollout.max_unhealthy is None
        return SetObservation(
            namespace=own.namespace,
            name=own.name,
            replicas=replicas,
            target=0 if is_deleting(seed_set) else integer(spec(seed_set).get("replicas")),
            pending=Pending.of(status),
            next_number=integer(status.get("nextReplicaNumber")),
            used_seeds={replica.name for replica in replicas if self.objects.is_known_to_be_used(replica.name)},
            now=self.clock(),
            max_retries=self.settings.max_shoot_retries,
            pause=self.settings.sync_period,
            is_asked=self.objects.api.needs_work(seed_set),
            rollout=rollout,
            scheduled={} if is_free else {replica.name: self.objects.scheduled(replica.name) for replica in replicas},
        )

    async def _decide(self, seed_set: Object, membership: Membership, observed: SetObservation) -> Decision:
        """Decide by the caches; repeat irreversible decisions with the state in the API server.

        The Seed is cordoned one pass earlier, so that no waiting Shoot comes onto it.

        Raises:
            _Behind: the caches are incomplete.
            _Cordoned: the Seed was just cordoned.
        """
        decision = decide(observed)
        while isinstance(decision, Step) and decision.action is Action.DELETE_MANAGED_SEED:
            if await self.objects.cordon(seed_set, decision.name):
                raise _Cordoned
            if not await self.objects.is_used(decision.name):
                break
            observed = replace(observed, used_seeds={*observed.used_seeds, decision.name})
            decision = decide(observed)
        await self._uncordon(seed_set, observed, decision)
        ends = isinstance(decision, Idle) and is_deleting(seed_set)
        counts = isinstance(decision, Step) and decision.action in _NUMBERED
        if (ends or counts) and not await self.objects.knows_all(seed_set, membership):
            raise _Behind
        return decision

    async def _uncordon(self, seed_set: Object, observed: SetObservation, decision: Decision) -> None:
        """Uncordon the Seeds of replicas that stay."""
        removed = decision.name if isinstance(decision, Step) and decision.action is Action.DELETE_MANAGED_SEED else ""
        for replica in observed.replicas:
            if replica.managed_seed is not None and not replica.is_going and replica.name != removed:
                await self.objects.uncordon(seed_set, replica.name)

    # --- acting

    async def _carry_out(
        self, seed_set: Object, observed: SetObservation, step: Step, history: History | None
    ) -> Object:
        """Carry out the step, and return the set as it is afterwards."""
        if step.action is Action.CREATE_SHOOT:
            return await self._create_shoot(seed_set, observed, step, history)
        replica = next(each for each in observed.replicas if each.name == step.name)
        await _execute(self.objects, seed_set, replica, step, history)
        return seed_set

    async def _create_shoot(
        self, seed_set: Object, observed: SetObservation, step: Step, history: History | None
    ) -> Object:
        revision = observed.rollout.of_new(ordinal_of(step.name)) if observed.rollout is not None else ""
        shoot = shoot_of(seed_set, step.name, *templates_to_make(seed_set, history, revision))
        noted = self._status_after(seed_set, observed, history, step)
        try:
            await self.objects.try_to_create(shoot)
        except AlreadyExists as error:
            # The next pass takes the next number.
            await self.objects.write_status(seed_set, {"nextReplicaNumber": noted["nextReplicaNumber"]})
            raise ReconcileError(f"shoot {key(shoot)} exists already and does not belong to the set") from error
        seed_set = await self.objects.write_status(seed_set, noted)
        await self.objects.create_shoot(shoot)
        return seed_set

    def _status(self, seed_set: Object, observed: SetObservation, history: History | None) -> Object:
        """Fields of the status that do not depend on the next step."""
        status = counted(seed_set, observed.replicas)
        if self.objects.api.has_own_fields:
            status["selector"] = selector_text(mapping(spec(seed_set).get("selector")))
        return status | (UNTRACKED if history is None else of_revisions(history, observed.replicas))

    def _status_after(
        self, seed_set: Object, observed: SetObservation, history: History | None, decision: Decision
    ) -> Object:
        status = self._status(seed_set, observed, history) | after(decision, observed)
        has_conditions = history is not None or (is_deleting(seed_set) and conditions_of(seed_set))
        status["conditions"] = conditions_after(seed_set, observed, decision) if has_conditions else None
        return status

    async def _leave(self, seed_set: Object) -> Result:
        left = await remove_finalizer(self.objects.client, MANAGED_SEED_SETS, seed_set, keys.GARDENER_FINALIZER)
        if left is not None:
            self.objects.sets.observe(left)
        return Done()

    # --- Events

    def _warn(self, seed_set: Object, membership: Membership, replicas: Sequence[Replica]) -> None:
        if membership.foreign:
            names = listed(sorted(key(shoot) for shoot in membership.foreign))
            message = f"Shoots that match the selector but do not belong to the set are ignored: {names}"
            self._event(seed_set, seed_set, "Warning", "ForeignObjectMatchesSelector", message)
        for obj in _objects(replicas):
            try:
                priority_of(obj)
            except ValueError as error:
                self._event(seed_set, obj, "Warning", "InvalidPriority", str(error))

    def _event(
        self, seed_set: Object, about: Object, type_: EventType, reason: str, message: str, *, number: int = 0
    ) -> None:
        """Record an Event unless it is known; `number` distinguishes otherwise equal ones."""
        if self._reported.is_new(key(seed_set), (key(about), reason, message, number)):
            self.recorder.event(about, type_, reason, message, reporter=_REPORTER)


def _is_new(step: Step, observed: SetObservation) -> bool:
    """Whether the set was waiting for something else until now."""
    before = observed.pending
    return before is None or (before.name, before.reason, before.retries) != (step.name, step.reason, step.retries)


def _refusal(error: Exception, step: Step) -> str:
    """Return the reason why the API server refuses the step; empty for other errors."""
    if isinstance(error, _UpdateRejected):
        return str(error)
    return f"{step.message} was refused: {refusal_of(error)}" if isinstance(error, (Forbidden, Invalid)) else ""


def _objects(replicas: Sequence[Replica]) -> Iterator[Object]:
    for replica in replicas:
        yield replica.shoot
        if replica.managed_seed is not None:
            yield replica.managed_seed


async def _execute(
    objects: SetObjects, seed_set: Object, replica: Replica, step: Step, history: History | None
) -> None:
    """Execute any step but the creation of a Shoot, which the status has to record before.

    Raises:
        ReconcileError: the update was refused.
    """
    match step.action:
        case Action.RETRY_SHOOT:
            await objects.retry(replica.shoot)
        case Action.CREATE_MANAGED_SEED:
            templates, revision = templates_to_make(seed_set, history, replica.revisions[0])
            await objects.create_managed_seed(managed_seed_of(seed_set, step.name, templates, revision))
        case Action.UPDATE_SHOOT | Action.UPDATE_MANAGED_SEED if history is not None:
            await _update(objects, seed_set, replica, step, history)
        case Action.DELETE_MANAGED_SEED if replica.managed_seed is not None:
            await objects.delete_managed_seed(replica.managed_seed)
        case Action.DELETE_SHOOT:
            await objects.delete_shoot(replica.shoot)


async def _update(objects: SetObjects, seed_set: Object, replica: Replica, step: Step, history: History) -> None:
    """Bring the templates to a Shoot or ManagedSeed.

    Raises:
        _UpdateRejected: the API server refuses the update.
    """
    is_shoot = step.action is Action.UPDATE_SHOOT or replica.managed_seed is None
    live = replica.shoot if is_shoot or replica.managed_seed is None else replica.managed_seed
    make = shoot_of if is_shoot else managed_seed_of
    templates, revision = templates_to_make(seed_set, history, history.update if is_shoot else replica.revisions[0])
    before = kept_templates(history, replica.revisions[0 if is_shoot else 1])
    wanted = updated(
        live,
        None if before is None else make(seed_set, step.name, before),
        make(seed_set, step.name, templates),
        own_labels={REVISION_LABEL: revision},
    )
    try:
        await objects.replace(SHOOTS if is_shoot else MANAGED_SEEDS, wanted)
    except (Invalid, Forbidden) as error:
        raise _UpdateRejected(f"{step.message} was refused: {refusal_of(error)}") from error
