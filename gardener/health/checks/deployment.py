"""A Deployment is healthy when it is available; it is rolled out when nothing but its new pods is left.

Health does not compare replica counts: a rolling update would make each Deployment unhealthy for a while, and
that is what progress is for.

The Deployment's own status does not count pods that are on their way out. They may still hold a lock or serve with
the old configuration, so the pods are counted as well (`pods_wanted`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gardener.health.checks.rule import (
    Malformed,
    Rule,
    condition,
    desired_replicas,
    field,
    integer,
    missing_condition,
    optional_condition,
    optional_integer,
    outdated,
    partly_updated,
    required_condition,
)
from kube import objects
from kube.objects import Key, Object, key, mapping, matches_label_selector, text

NO_DEADLINE = 2**31 - 1
"""The value of `progressDeadlineSeconds` with which a Deployment gets no condition `Progressing`."""

_GONE_REASONS = ("Evicted", "NodeAffinity", "NodeLost", "Preempting")


def health(deployment: Object) -> str | None:
    return (
        outdated(deployment)
        or required_condition(deployment, "Available", "True")
        or optional_condition(deployment, "Progressing", "True")
        or optional_condition(deployment, "ReplicaFailure", "False")
    )


def progress(deployment: Object) -> str | None:
    """By its own status; the pods come on top."""
    if old := outdated(deployment):
        return old
    progressing = condition(deployment, "Progressing")
    if progressing is None:
        if optional_integer(deployment, "spec.progressDeadlineSeconds") == NO_DEADLINE:
            return _progress_by_replicas(deployment)
        return missing_condition("Progressing")
    if progressing.status != "True" or progressing.reason != "NewReplicaSetAvailable":
        return progressing.message
    return None


def _progress_by_replicas(deployment: Object) -> str | None:
    desired = desired_replicas(deployment)
    replicas = integer(deployment, "status.replicas")
    available = integer(deployment, "status.availableReplicas")
    if not_updated := partly_updated(integer(deployment, "status.updatedReplicas"), desired):
        return not_updated
    if replicas > desired:
        return f"there are more replicas than desired ({replicas}/{desired})"
    return f"{available} of {desired} replica(s) are available" if available < desired else None


Bucket = tuple[str, ...]
"""Pods that have something in common: their namespace, or in it also one label."""


def buckets(namespace: str, labels: Mapping[str, str]) -> list[Bucket]:
    """All that a pod is in."""
    return [(namespace,), *((namespace, *label) for label in labels.items())]


@dataclass(frozen=True, slots=True)
class PodsWanted:
    """Which pods a Deployment wants, and how many."""

    deployment: Key
    selector: Object | None
    count: int

    @property
    def namespace(self) -> str:
        return self.deployment.namespace

    @property
    def bucket(self) -> Bucket:
        """One that all selected pods are in, and few others if labels are chosen as is usual."""
        wanted: Mapping[str, str] = (self.selector or {}).get("matchLabels") or {}
        return (self.namespace, *max(wanted.items(), key=self._specificity, default=()))

    def _specificity(self, label: tuple[str, str]) -> tuple[bool, int, tuple[str, str]]:
        """A label that resembles the name of the Deployment is the most specific one."""
        value, name = label[1], self.deployment.name
        return bool(value) and (value in name or name in value), len(value), label

    def select(self, labels: Mapping[str, str]) -> bool:
        return matches_label_selector(self.selector, labels)

    def problem(self, count: int) -> str | None:
        """What the roll-out waits for with so many selected pods that are not over."""
        if count > self.count:
            return "there are still non-terminated old pods"
        return f"there are fewer pods than desired replicas ({count}/{self.count})" if count < self.count else None


def pods_wanted(deployment: Object) -> PodsWanted:
    """Raises ValueError if the Deployment is malformed."""
    selector = field(deployment, "spec.selector")
    for name, value in (field(deployment, "spec.selector.matchLabels") or {}).items():
        if not isinstance(value, str):
            raise Malformed(f"spec.selector.matchLabels.{name}", "a string", value)
    wanted = PodsWanted(key(deployment), selector, desired_replicas(deployment))
    wanted.select({})
    return wanted


def is_over(pod: Object) -> bool:
    """Such a pod runs no more, or is about to be gone without anybody waiting for it."""
    status = mapping(pod.get("status"))
    reason = text(status.get("reason"))
    if reason.startswith("OutOf") or any(gone in reason for gone in _GONE_REASONS):
        return True
    if text(status.get("phase")) in {"Succeeded", "Failed"}:
        return True
    ready, disrupted = objects.condition(pod, "Ready") or {}, objects.condition(pod, "DisruptionTarget") or {}
    completed = ready.get("status") == "False" and ready.get("reason") == "PodCompleted"
    return completed or disrupted.get("status") == "True"


RULE = Rule(group="apps", kind="Deployment", health=health, progress=progress)
