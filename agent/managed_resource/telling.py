"""What is told of a pass beside the conditions: in the log and by Events.

Failures are told by an Event when they have lasted for a moment, and once as long as they stay the same. Of success
only what nobody asked for makes one, since all else is told by the conditions and each Event is a call.
"""

import time
from dataclasses import dataclass, field

import structlog

from agent.managed_resource.conditions import Condition
from agent.managed_resource.messages import pending_message
from agent.managed_resource.plans import Memory
from agent.managed_resource.remove import Pending
from kube.events import EventRecorder
from kube.limiter import Allowance
from kube.objects import Object

_TRANSIENT_SECONDS = 1.0
"""Conflicts and kinds that are about to be served go away with the next attempt."""
_NEWS_BURST, _NEWS_PER_SECOND = 10, 0.2
"""Of events that tell of repairs, for all ManagedResources: when hundreds are changed by hand at once, the API server
has other things to do.
"""


@dataclass(slots=True)
class Tally:
    """What a pass did."""

    created: int = 0
    updated: int = 0
    removed: int = 0
    is_repair: bool = False
    """Nothing else was asked for than before: somebody else changed the objects."""
    errors: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """Of what may not be written or removed, which lasts; all else may have been done."""
    release_errors: list[str] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)

    @property
    def is_refused(self) -> bool:
        """Whether all that is not gone yet may not be removed."""
        return bool(self.pending) and all(pending.is_refused for pending in self.pending)

    def pending_message(self) -> str:
        """Of what is not gone yet; what may not be written is told with it."""
        waiting = [(pending.name, pending.text) for pending in self.pending]
        return pending_message([*waiting, *(("~", text) for text in self.refusals)])

    def __str__(self) -> str:
        done = (("created", self.created), ("changed", self.updated), ("removed", self.removed))
        return ", ".join(f"{count} {what}" for what, count in done if count)


class Telling:
    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._news = Allowance(burst=_NEWS_BURST, per_second=_NEWS_PER_SECOND)
        self._log = structlog.get_logger()

    def changes(self, managed_resource: Object, tally: Tally) -> None:
        if text := str(tally):
            self._log.info("Objects were changed", created=tally.created, changed=tally.updated, removed=tally.removed)
            if tally.is_repair and self._news.take():
                self._recorder.event(managed_resource, "Normal", "Reconciled", f"Objects were put right: {text}.")

    def failure(self, memory: Memory, managed_resource: Object, failure: Condition, *, at_once: bool = False) -> None:
        lasts = not self.is_transient(memory)
        if memory.complaint != failure.message and (at_once or lasts):
            memory.complaint = failure.message
            if at_once:
                # All else is logged by the controller, time and again.
                self._log.info("Not everything was done", reason=failure.reason, error=failure.message)
            self._recorder.event(managed_resource, "Warning", failure.reason, failure.message)

    def is_transient(self, memory: Memory) -> bool:
        """Whether a failure is still new."""
        now = time.monotonic()
        if memory.failing_since is None:
            memory.failing_since = now
        return now - memory.failing_since < _TRANSIENT_SECONDS
