"""The plan of a maintenance in words: `status.lastMaintenance` of the Shoot, and Events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gardener.garden.maintenance.plan import Plan
from gardener.garden.maintenance.schedule import PROCESSING
from gardener.garden.maintenance.updates import Update
from gardener.garden.shoots import FAILED, SUCCEEDED
from kube.clock import format_time
from kube.objects import Object

KUBERNETES_VERSION, IMAGE_VERSION = "KubernetesVersionMaintenance", "MachineImageVersionMaintenance"
MAINTENANCE_FAILED = "MaintenanceFailed"
_CONTROL_PLANE = "Control Plane"


@dataclass(frozen=True, slots=True)
class Message:
    """An Event."""

    type: Literal["Normal", "Warning"]
    reason: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One update, and the texts for its failure."""

    subject: str
    update: Update
    event: str
    in_description: str
    in_event: str
    in_failure: str

    @property
    def description(self) -> str:
        if self.update.succeeded:
            return f"{self.subject}: {self.update.description}. Reason: {self.update.reason}"
        return f"{self.subject}: {self.in_description} failed. Reason for update: {self.update.reason}"

    @property
    def failure(self) -> str:
        return f"{self.subject}: {self.in_failure}{self.update.description}"

    @property
    def message(self) -> Message:
        if self.update.succeeded:
            return Message("Normal", self.event, f"{self.description}.")
        text = (
            f"{self.subject}: {self.in_event} failed. Reason for update: {self.update.reason}. "
            f"Error: {self.update.description}"
        )
        return Message("Warning", self.event, text)


def _lines(plan: Plan) -> Iterator[_Line]:
    if plan.control_plane is not None:
        yield _kubernetes(_CONTROL_PLANE, plan.control_plane, "Kubernetes version update")
    for name, update in plan.pools:
        yield _kubernetes(_pool(name), update, "Kubernetes version maintenance")
    for name, update in plan.images:
        yield _Line(
            subject=_pool(name),
            update=update,
            event=IMAGE_VERSION,
            in_description="machine image version maintenance",
            in_event="Machine image version maintenance",
            in_failure="",
        )


def _pool(name: str) -> str:
    return f'Worker pool "{name}"'


def _kubernetes(subject: str, update: Update, in_description: str) -> _Line:
    return _Line(
        subject=subject,
        update=update,
        event=KUBERNETES_VERSION,
        in_description=in_description,
        in_event="Kubernetes version maintenance",
        in_failure="Kubernetes maintenance failure due to: ",
    )


def descriptions(plan: Plan) -> list[str]:
    """Description of each update."""
    return [line.description for line in _lines(plan)]


def description(plan: Plan) -> str:
    updates: Sequence[Update] = plan.updates
    succeeded = sum(update.succeeded for update in updates)
    summary = "All" if succeeded == len(updates) else f"({succeeded}/{len(updates)})"
    details = ", ".join([*descriptions(plan), *plan.texts])
    return f"{summary} maintenance operations successful. {details}"


def failure_reason(plan: Plan) -> str:
    """Reasons of all failures; empty if there are none."""
    return ", ".join(line.failure for line in _lines(plan) if not line.update.succeeded)


def messages(plan: Plan) -> list[Message]:
    return [line.message for line in _lines(plan)]


# --- status.lastMaintenance


def begun(plan: Plan, now: datetime) -> Object:
    """Status before the Shoot is changed, by a plan with changes."""
    failure = failure_reason(plan)
    return {
        "description": description(plan),
        "triggeredTime": format_time(now),
        "state": FAILED if failure else PROCESSING,
        **({"failureReason": failure} if failure else {}),
    }


def refused(error: str, now: datetime) -> Object:
    """Status if the API server refuses the changes."""
    return {
        "description": "Maintenance failed",
        "triggeredTime": format_time(now),
        "state": FAILED,
        "failureReason": f"Updates to the Shoot failed to be applied: {error}",
    }


def ended(last: Object, *, changed: bool) -> Object:
    """Status after the Shoot was changed; a failure counts as repaired if the next pass needs no changes."""
    if last.get("state") == PROCESSING:
        return {**last, "state": SUCCEEDED}
    if last.get("state") == FAILED and not changed:
        kept = {field: value for field, value in last.items() if field != "failureReason"}
        return {**kept, "state": SUCCEEDED, "description": "Maintenance succeeded"}
    return last
