"""Time of the next reconciliation of a Shoot: now, in its maintenance window, or only on request.

The first matching rule applies:

    failed for good, or ignored     nothing; its Cluster object is kept up to date
    waits for its window            in its window, also after failures: see `_waits_for_window`
    another operation               now
    due work                        now
    not confined                    now, and again after each sync period
    confined, in its window         now, once an occurrence; at the start of a process spread over its rest
    confined                        at a random time of the next occurrence

A Shoot is confined if the configuration of the gardenlet, or its own spec, limits changes to the maintenance window.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from config.gardenlet.controllers import Shoot as Settings
from gardener import keys, operations
from gardener.garden.maintenance.schedule import Uniform, current, seconds_left, seconds_until_next
from gardener.garden.shoots import has_failed, is_confined, is_current, last_errors, last_operation, operation_of
from kube.clock import parse_duration, time_or_none
from kube.objects import Object, annotations, is_truthy, key, spec, text
from kube.paths import at

_GARDEN = "garden"
_REMEMBERED = timedelta(hours=6)
"""Maximum length of a maintenance window: an older operation belongs to an earlier occurrence."""


class Due(Enum):
    NOW = "now"
    LATER = "later"
    CLUSTER_ONLY = "cluster only"
    """Only the Cluster object is updated for extensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Attributes:
    version: of this gardenlet; failures of another version are retried.
    is_asked: whether there is work that does not wait for the maintenance window.
    """

    settings: Settings
    version: str
    is_asked: Callable[[Object], bool]
    uniform: Uniform = random.uniform

    def due(self, shoot: Object, now: datetime) -> Due:
        if self._has_failed(shoot) or self._is_ignored(shoot):
            return Due.CLUSTER_ONLY
        if self._waits_for_window(shoot):
            return Due.NOW if current(shoot, now) is not None else Due.LATER
        if not self._is_up_to_date(shoot) or not self._is_confined(shoot):
            return Due.NOW
        return Due.NOW if self._is_due_in_window(shoot, now) else Due.LATER

    def first_delay(self, shoot: Object, now: datetime) -> float:
        """Seconds until the first reconciliation of a Shoot that was just listed."""
        due = self.due(shoot, now)
        if due is Due.LATER:
            return seconds_until_next(shoot, now, self.uniform)
        if due is Due.CLUSTER_ONLY or not self._is_up_to_date(shoot) or not self._is_confined(shoot):
            return 0.0
        if self._is_due_in_window(shoot, now):
            return seconds_left(shoot, now, self.uniform)
        return seconds_until_next(shoot, now, self.uniform)

    def next_delay(self, shoot: Object, now: datetime) -> float | None:
        """Seconds until the next reconciliation of an up-to-date Shoot; None if there is none without an event."""
        if self._has_failed(shoot) or self._is_ignored(shoot):
            return None
        if self._is_confined(shoot):
            return seconds_until_next(shoot, now, self.uniform)
        return self._sync_period(shoot)

    def is_repetition(self, shoot: Object) -> bool:
        """Whether the Shoot has no new request, so that a reconciliation or a failed attempt is repeated."""
        was_given_up = last_operation(shoot).get("state") == operations.FAILED and not self.is_asked(shoot)
        return was_given_up or self._is_up_to_date(shoot)

    def can_wait(self, shoot: Object) -> bool:
        """Whether it comes last when many are due at a time: it is hibernated, or its operation may well fail again."""
        if self._is_ignored(shoot):
            return True
        is_asleep = at(spec(shoot), "hibernation", "enabled") is True and at(shoot, "status", "hibernated") is True
        return self.is_repetition(shoot) and (is_asleep or not self._is_up_to_date(shoot))

    def awaits_correction(self, shoot: Object) -> bool:
        """Whether the last attempt of an operation failed, and a correction of its input starts another one."""
        state = last_operation(shoot).get("state")
        is_repeated = state == operations.PROCESSING and bool(last_errors(shoot))
        return (is_repeated or state in {operations.ERROR, operations.FAILED}) and not self._is_ignored(shoot)

    def _has_failed(self, shoot: Object) -> bool:
        return has_failed(shoot) and at(shoot, "status", "gardener", "version") == self.version

    def _is_ignored(self, shoot: Object) -> bool:
        return self._may_overwrite(shoot) and is_truthy(annotations(shoot).get(keys.SHOOT_IGNORE))

    def _may_overwrite(self, shoot: Object) -> bool:
        """Whether annotations of the Shoot affect its reconciliation."""
        return self.settings.respect_sync_period_overwrite or key(shoot).namespace == _GARDEN

    def _is_up_to_date(self, shoot: Object) -> bool:
        has_succeeded = last_operation(shoot).get("state") == operations.SUCCEEDED
        return has_succeeded and operation_of(shoot) == operations.RECONCILE and not self.is_asked(shoot)

    def _waits_for_window(self, shoot: Object) -> bool:
        """Whether the spec was changed after an operation that has not succeeded, and confines its changes.

        An attempt to complete that operation would apply the change, too.
        """
        if operation_of(shoot) != operations.RECONCILE or not is_confined(shoot) or self._is_up_to_date(shoot):
            return False
        return not is_current(shoot) and not self.is_asked(shoot)

    def _is_confined(self, shoot: Object) -> bool:
        return self.settings.reconcile_in_maintenance_only or is_confined(shoot)

    def _is_due_in_window(self, shoot: Object, now: datetime) -> bool:
        occurrence = current(shoot, now)
        if occurrence is None:
            return False
        done = time_or_none(last_operation(shoot).get("lastUpdateTime"))
        return done is None or not occurrence.contains(done) or done < now - _REMEMBERED

    def _sync_period(self, shoot: Object) -> float:
        period = self.settings.sync_period
        if not self._may_overwrite(shoot):
            return period
        try:
            return max(period, parse_duration(text(annotations(shoot).get(keys.SHOOT_SYNC_PERIOD))))
        except ValueError:
            return period
