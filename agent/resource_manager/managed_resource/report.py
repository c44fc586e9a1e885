"""Results of a pass, derived from its change set: status, result, log entries, Events, the page of recent changes.

An Event reports a failure that has lasted for a moment, once as long as it stays the same. A successful pass only leads
to Events, each once, about changes that the manifests do not explain, and about warnings of the API server; the rest is
in the conditions, and each Event is a call.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from agent.resource_manager.common.inputs import Inputs
from agent.resource_manager.common.recent_changes import RecentChanges
from agent.resource_manager.managed_resource.history import History
from agent.resource_manager.managed_resource.record import Record
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet, news_text
from gardener.managed_resource import conditions, jobs
from gardener.managed_resource.inventory import PENDING, InventoryDiff
from gardener.managed_resource.plan import Basis, Plan
from gardener.managed_resource.warnings import (
    WARNINGS,
    ObjectWarnings,
    all_warnings_text,
    status_entries,
    stored_warnings,
)
from kube.conditions import Condition, conditions_of
from kube.objects import Key, Object, key, metadata
from kube.repeats import Repeats
from kube.runtime.controller import ReconcileError, RequeueAfter, Result
from kube.runtime.events import EventRecorder
from kube.runtime.limiter import Allowance
from kube.runtime.priorities import RESYNC

APPLIED_WITH_WARNINGS = "AppliedWithWarnings"
"""Reason of an Event; the condition keeps that of success."""
REMOVAL_HELD_BACK = "RemovalHeldBack"
EARLIEST = 0.9
"""Fraction of the sync period after which the next regular pass may come: spreads load after a restart."""
_PENDING_SECONDS = 5.0
_SERVED_SECONDS = 0.3
"""Seconds until another check of kinds whose definitions were just applied, unless their watch comes first."""
_TRANSIENT_SECONDS = 1.0
"""Seconds. Conflicts and kinds that are about to be served disappear with the next attempt."""
_STUCK_SECONDS = 60.0
_LOGGED = 20
"""Number of objects named in one log entry."""
_REPAIR_EVENTS_BURST, _REPAIR_EVENTS_PER_SECOND = 10, 0.2
"""Limit for all ManagedResources: when a user changes hundreds at once, the API server has other things to do."""


@dataclass(slots=True)
class _History:
    """History of the passes over a ManagedResource."""

    failing_since: float | None = None
    tried: tuple[int, Basis] | None = None
    """Generation and basis of the last plan."""
    removing_since: float | None = None
    """Monotonic time since when all objects are being removed."""
    stuck_since: float | None = None
    """Monotonic time since when every remaining removal fails."""
    applied_at: float | None = None
    jobs: Sequence[Object] | None = None
    """Content of `status.jobs` as last written by this process."""
    warned: Mapping[str, ObjectWarnings] | None = None
    """Warnings of the last application, by object key; None if it was by another process."""


class Reporter:
    """Args: versions: history of applied versions. inputs: of the passes."""

    def __init__(
        self,
        record: Record,
        recorder: EventRecorder,
        recent: RecentChanges,
        *,
        versions: History,
        sync_period: float,
        inputs: Inputs,
    ) -> None:
        self._record = record
        self._versions = versions
        self._inputs = inputs
        self._recorder = recorder
        self._recent = recent
        self._sync_period = sync_period
        self._histories: dict[Key, _History] = {}
        self._failures: Repeats[str] = Repeats()
        self._held_back: Repeats[str] = Repeats()
        self._repair_events = Allowance(burst=_REPAIR_EVENTS_BURST, per_second=_REPAIR_EVENTS_PER_SECOND)
        self._log = structlog.get_logger()

    def start(self, name: Key) -> None:
        """Note that a pass is about to read the inputs."""
        self._inputs.begin(name)

    async def close(self) -> None:
        await self._record.flush()
        await self._versions.close()

    def forget(self, name: Key) -> None:
        self._inputs.changed(name)
        self._versions.forget(name)
        self._histories.pop(name, None)
        self._failures.forget(name)
        self._held_back.forget(name)

    def applied_at(self, name: Key) -> float | None:
        """Unix time at which all objects were last as desired; None if unknown."""
        return self._histories[name].applied_at if name in self._histories else None

    def is_retry(self, managed_resource: Object, plan: Plan) -> bool:
        """Whether this plan has failed before, as far as this process knows, and the status reports that.

        Then the status stays unchanged until there is a result: a failure that lasts is no news.
        """
        tried = self._history(key(managed_resource)).tried
        return conditions.is_retried(conditions_of(managed_resource)) and tried in {
            None,
            _trial(managed_resource, plan),
        }

    def change_set(self, name: Key) -> ChangeSet:
        """Return an empty change set."""
        return ChangeSet(owner=name, lists_objects=bool(self._recent.limit))

    def list(self, changes: ChangeSet) -> None:
        """Add the changes to the page of recent changes."""
        self._recent.add(changes.objects)

    async def conclude(
        self,
        managed_resource: Object,
        plan: Plan,
        diff: InventoryDiff,
        changes: ChangeSet,
        reset: Sequence[Condition],
    ) -> Result:
        """End a pass that applied objects; a complete one stores the applied version in the history.

        Args: reset: conditions to set in addition to the outcome.

        Raises:
            ReconcileError: something failed, and is reported.
        """
        self._changed(managed_resource, changes)
        self.held_back(managed_resource, changes)
        self._history(changes.owner).tried = _trial(managed_resource, plan)
        if changes.errors and len(changes.errors) == plan.awaited and self._is_transient(changes.owner):
            self._log.info("Waiting until the kinds of new CustomResourceDefinitions are served", objects=plan.awaited)
            return RequeueAfter(_SERVED_SECONDS)
        warnings = {**self._warnings_to_store(changes), **self._jobs_to_store(managed_resource, changes)}
        if failure := changes.failure():
            await self.fail(managed_resource, failure, reset, **warnings)
            self._warn(managed_resource, changes.warnings)
            doing = "apply all new" if changes.errors else "release orphaned"
            raise ReconcileError(f"could not {doing} resources: {failure.message}")
        if changes.pending:
            outcome = self.pending(changes)
            await self._record.write(managed_resource, [*reset, outcome], **warnings)
            self._warn(managed_resource, changes.warnings)
            self.removal_failed(managed_resource, outcome)
            return self.look_again(changes)
        fields: Mapping[str, object] = {}
        not_kept: ReconcileError | None = None
        if not (plan.decode_errors or changes.restricted):
            try:
                fields = await self._versions.keep(managed_resource, plan)
            except ReconcileError as error:
                not_kept = error
        result = await self._succeed(managed_resource, plan, diff, changes, reset=reset, fields={**warnings, **fields})
        if not_kept is not None:
            raise not_kept
        return result

    async def _succeed(
        self,
        managed_resource: Object,
        plan: Plan,
        diff: InventoryDiff,
        changes: ChangeSet,
        *,
        reset: Sequence[Condition],
        fields: Mapping[str, object],
    ) -> Result:
        """Report that all permitted and valid objects are applied."""
        outcome = changes.success(plan.decode_errors)
        unchecked = conditions.unchecked() if diff.is_changed else []
        await self._record.conclude(
            managed_resource,
            [*reset, *unchecked, outcome],
            resources=diff.final,
            **{PENDING: None},
            secretsDataChecksum=plan.checksum,
            observedGeneration=metadata(managed_resource).get("generation"),
            **fields,
        )
        self._warn(managed_resource, changes.warnings)
        if outcome.status == "True":
            history = self._history(changes.owner)
            self._failures.forget(changes.owner)
            history.failing_since, history.applied_at = None, time.time()
            if not changes.looked_at:
                return self._next_regular(unless=partial(self._is_as_it_was, changes.owner))
        else:
            self.failed(managed_resource, outcome, at_once=True)
        return self._next_regular()

    def _warnings_to_store(self, changes: ChangeSet) -> dict[str, object]:
        """Return the field of the status, unless it is already written."""
        # If the status lacks it afterwards, the CustomResourceDefinition is the original's, without such a field.
        is_stored = changes.warnings in (None, self._history(changes.owner).warned)
        return {} if is_stored else {WARNINGS: status_entries(changes.warnings or {})}

    def _jobs_to_store(self, managed_resource: Object, changes: ChangeSet) -> dict[str, object]:
        """Return the field of the status, if it has to change."""
        status, history = managed_resource.get("status") or {}, self._history(changes.owner)
        # If the status lacks it after the write, the CustomResourceDefinition is the original's.
        is_dropped = jobs.FIELD not in status and history.jobs == changes.jobs
        if changes.jobs is None or is_dropped or changes.jobs == (status.get(jobs.FIELD) or []):
            return {}
        history.jobs = changes.jobs
        return {jobs.FIELD: changes.jobs or None}

    def _warn(self, managed_resource: Object, found: Mapping[str, ObjectWarnings] | None) -> None:
        """Report new warnings of the API server since objects were last applied."""
        if found is None:
            return
        history = self._history(key(managed_resource))
        known = stored_warnings(managed_resource) if history.warned is None else history.warned
        news = {
            name: each for name, each in found.items() if name not in known or set(each.texts) - set(known[name].texts)
        }
        if text := all_warnings_text(news):
            self._log.warning("Objects were applied with warnings", warnings=text)
            self._recorder.event(managed_resource, "Warning", APPLIED_WITH_WARNINGS, text)
        history.warned = found

    async def refuse(self, managed_resource: Object, problem: str, *, reason: str = conditions.APPLY_FAILED) -> Result:
        """Report that nothing may be written until the ManagedResource or the configuration changes."""
        failure = conditions.failed(reason, problem)
        self.failed(managed_resource, failure, at_once=True)
        await self._record.write(managed_resource, [failure])
        return self._next_regular()

    async def wait(self, managed_resource: Object, outcome: Condition) -> Result:
        """Report that others have to act first; their changes are watched."""
        await self._record.write(managed_resource, [outcome])
        return self._next_regular()

    async def fail(
        self, managed_resource: Object, failure: Condition, reset: Sequence[Condition] = (), **fields: object
    ) -> None:
        await self._record.write(managed_resource, [*reset, failure], **fields)
        self.failed(managed_resource, failure)

    def failed(self, managed_resource: Object, failure: Condition, *, at_once: bool = False) -> None:
        """Report a failure that is in the status.

        Args: at_once: whether retries cannot help, and the controller does not log it.
        """
        name = key(managed_resource)
        lasts = not self._is_transient(name)
        if (at_once or lasts) and self._failures.news(name, [failure.message]):
            if at_once:
                self._log.info("The pass was incomplete", reason=failure.reason, error=failure.message)
            self._recorder.event(managed_resource, "Warning", failure.reason, failure.message)

    def removal_failed(self, managed_resource: Object, outcome: Condition) -> None:
        """Report objects that cannot be removed, if the status reports that."""
        if outcome.reason == conditions.DELETION_FAILED:
            self.failed(managed_resource, outcome, at_once=True)

    def pending(self, changes: ChangeSet) -> Condition:
        """Return the condition of pending removals: waiting, or stuck after nothing but errors for some time."""
        message, history = changes.pending_message(), self._history(changes.owner)
        if changes.is_restricted:
            return conditions.failed(conditions.DELETION_FAILED, message)
        if not all(pending.failed for pending in changes.pending):
            history.stuck_since = None
        elif history.stuck_since is None:
            history.stuck_since = time.monotonic()
        is_stuck = self._is_stuck(changes.owner)
        return (
            conditions.failed(conditions.DELETION_FAILED, message) if is_stuck else conditions.deletion_pending(message)
        )

    def held_back(self, managed_resource: Object, changes: ChangeSet) -> None:
        """Report removals that the claims of others hold back, once."""
        if news := self._held_back.news(changes.owner, changes.held_back()):
            text = news_text(news)
            self._log.info("Removals are delayed", reasons=text)
            self._recorder.event(managed_resource, "Warning", REMOVAL_HELD_BACK, text)

    def removal(self, changes: ChangeSet, present: Sequence[Object]) -> Condition:
        """Return the progress of the removal of all objects. Those that do not disappear at once are reported later."""
        history, now = self._history(changes.owner), time.monotonic()
        if history.removing_since is None:
            history.removing_since = now
        has_time = now - history.removing_since < _PENDING_SECONDS
        if changes.waits_only and (has_time or not changes.pending):
            return conditions.deleting(present)
        return self.pending(changes)

    def look_again(self, changes: ChangeSet) -> Result:
        """Return when to check pending objects again; the watch of a kind reports deletions, this is for all else."""
        if changes.is_restricted:
            return self._next_regular()
        if self._is_stuck(changes.owner):
            raise ReconcileError(changes.pending_message())
        due = [pending.due.total_seconds() for pending in changes.pending if pending.due is not None]
        return RequeueAfter(min([_PENDING_SECONDS, *due]))

    def _next_regular(self, *, unless: Callable[[], bool] | None = None) -> Result:
        spread = random.uniform(EARLIEST, 2 - EARLIEST)  # noqa: S311 - spreads load
        return RequeueAfter(self._sync_period * spread, RESYNC, unless)

    def _is_as_it_was(self, name: Key) -> bool:
        """Whether all is unchanged since the last pass found it right, which is as good as another pass."""
        if not self._inputs.are_unchanged(name):
            return False
        self._history(name).applied_at = time.time()
        return True

    def _changed(self, managed_resource: Object, changes: ChangeSet) -> None:
        if str(changes):
            counts = {"created": changes.created, "changed": changes.updated, "removed": changes.removed}
            repairs, taken_over = changes.repairs(), changes.taken_over()
            named = {"repaired": repairs[:_LOGGED], "takenOver": taken_over[:_LOGGED]}
            self._log.info("Objects were changed", **counts, **{name: texts for name, texts in named.items() if texts})
            if repairs and self._repair_events.take():
                self._event(managed_resource, "Reconciled", f"Objects were repaired: {news_text(repairs)}")
            if taken_over:
                text = f"Took over existing objects without an owner: {news_text(taken_over)}"
                self._event(managed_resource, "TakenOver", text)

    def _event(self, managed_resource: Object, reason: str, text: str) -> None:
        self._recorder.event(managed_resource, "Normal", reason, text)

    def _is_transient(self, name: Key) -> bool:
        """Whether a failure is still new."""
        history, now = self._history(name), time.monotonic()
        if history.failing_since is None:
            history.failing_since = now
        return now - history.failing_since < _TRANSIENT_SECONDS

    def _is_stuck(self, name: Key) -> bool:
        since = self._history(name).stuck_since
        return since is not None and time.monotonic() - since >= _STUCK_SECONDS

    def _history(self, name: Key) -> _History:
        return self._histories.setdefault(name, _History())


def _trial(managed_resource: Object, plan: Plan) -> tuple[int, Basis]:
    return metadata(managed_resource).get("generation") or 0, plan.basis
