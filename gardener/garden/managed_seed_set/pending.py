"""The replica that a ManagedSeedSet waits for, as its status says."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from kube.clock import format_time, parse_time
from kube.objects import Object, integer, mapping, text


class Reason(StrEnum):
    """What it waits for."""

    SHOOT_RECONCILING = "ShootReconciling"
    SHOOT_DELETING = "ShootDeleting"
    SHOOT_RECONCILE_FAILED = "ShootReconcileFailed"
    SHOOT_DELETE_FAILED = "ShootDeleteFailed"
    MANAGED_SEED_PREPARING = "ManagedSeedPreparing"
    MANAGED_SEED_DELETING = "ManagedSeedDeleting"
    SEED_NOT_READY = "SeedNotReady"
    SHOOT_NOT_HEALTHY = "ShootNotHealthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    name: str
    reason: str
    since: datetime
    retries: int = 0
    """How often the failed operation of its Shoot was tried again."""

    @classmethod
    def of(cls, status: Object) -> "Pending | None":
        said = mapping(status.get("pendingReplica"))
        if not text(said.get("name")):
            return None
        try:
            since = parse_time(text(said.get("since")))
        except ValueError:
            since = datetime.min.replace(tzinfo=UTC)
        return cls(
            name=text(said["name"]),
            reason=text(said.get("reason")),
            since=since,
            retries=integer(said.get("retries")),
        )

    def following(self, before: "Pending | None") -> "Pending":
        """The same since when it was, if nothing else differs."""
        same = before is not None and replace(before, since=self.since) == self
        return before if same and before is not None else self

    def as_json(self) -> Object:
        retries = {"retries": self.retries} if self.retries else {}
        return {"name": self.name, "reason": str(self.reason), "since": format_time(self.since), **retries}
