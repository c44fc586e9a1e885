"""The pods of workloads: their desired number, and reasons why pods are not ready.

A pod reports more than its owner: whether it is scheduled, what its containers wait for, and how they ended.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gardener.health.checks.rule import Malformed, desired_replicas, field
from kube import objects
from kube.objects import Key, Object, key, mapping, mappings, matches_label_selector, spec, text
from kube.paths import mappings_at

Bucket = tuple[str, ...]
"""Pods with something in common: their namespace, and optionally one label."""

_GONE_REASONS = ("Evicted", "NodeAffinity", "NodeLost", "Preempting")
_STARTING = frozenset({"ContainerCreating", "PodInitializing"})
_LONGEST = 500
"""Characters of a cause."""


def buckets(namespace: str, labels: Mapping[str, str]) -> list[Bucket]:
    """All buckets of a pod."""
    return [(namespace,), *((namespace, *label) for label in labels.items())]


@dataclass(frozen=True, slots=True)
class PodsWanted:
    """Pods of a workload, and their desired number."""

    workload: Key
    selector: Object | None
    count: int

    @property
    def namespace(self) -> str:
        return self.workload.namespace

    @property
    def bucket(self) -> Bucket:
        """A bucket with all selected pods, and few others if labels are chosen as usual."""
        wanted: Mapping[str, str] = (self.selector or {}).get("matchLabels") or {}
        return (self.namespace, *max(wanted.items(), key=self._specificity, default=()))

    def _specificity(self, label: tuple[str, str]) -> tuple[bool, int, tuple[str, str]]:
        """Sort key: a label that resembles the name of the workload is the most specific one."""
        value, name = label[1], self.workload.name
        return bool(value) and (value in name or name in value), len(value), label

    def select(self, labels: Mapping[str, str]) -> bool:
        return matches_label_selector(self.selector, labels)

    def problem(self, count: int) -> str | None:
        """Reason why the roll-out of a Deployment waits with so many selected pods that are not over."""
        if count > self.count:
            return "there are still non-terminated old pods"
        return f"there are fewer pods than desired replicas ({count}/{self.count})" if count < self.count else None


def pods_wanted(workload: Object) -> PodsWanted:
    """Pods of a workload.

    Raises:
        ValueError: the workload is malformed.
    """
    selector = field(workload, "spec.selector")
    if workload.get("kind") == "ReplicationController":
        selector = {"matchLabels": selector}
    wanted_labels = field(selector or {}, "matchLabels") if isinstance(selector, dict | None) else selector
    if not isinstance(wanted_labels, dict | None):
        raise Malformed("spec.selector", "a selector of labels", selector)
    for name, value in (wanted_labels or {}).items():
        if not isinstance(value, str):
            raise Malformed(f"spec.selector.matchLabels.{name}", "a string", value)
    wanted = PodsWanted(key(workload), selector, desired_replicas(workload))
    wanted.select({})
    return wanted


def is_over(pod: Object) -> bool:
    """Whether a pod has ended, or is about to go without being waited for."""
    status = mapping(pod.get("status"))
    reason = text(status.get("reason"))
    if reason.startswith("OutOf") or any(gone in reason for gone in _GONE_REASONS):
        return True
    if text(status.get("phase")) in {"Succeeded", "Failed"}:
        return True
    ready, disrupted = objects.condition(pod, "Ready") or {}, objects.condition(pod, "DisruptionTarget") or {}
    completed = ready.get("status") == "False" and ready.get("reason") == "PodCompleted"
    return completed or disrupted.get("status") == "True"


# --- why a pod is not ready


def cause_of_pod(pod: Object) -> str:
    """Reason why a pod is not ready; empty if it is, or is about to be."""
    cause = next(_causes(pod), "")
    cause = cause if len(cause) <= _LONGEST else f"{cause[:_LONGEST]}…"
    return f"Pod/{key(pod)}{cause}" if cause else ""


def _causes(pod: Object) -> Iterator[str]:
    """Reasons, as text after its name."""
    if objects.is_deleting(pod):
        return
    scheduled, status = objects.condition(pod, "PodScheduled") or {}, mapping(pod.get("status"))
    if scheduled.get("status") == "False":
        yield f" is not scheduled: {one_line(scheduled.get('message')) or text(scheduled.get('reason'))}"
    probed = {
        text(each.get("name"))
        for each in mappings(spec(pod).get("containers"))
        if each.get("readinessProbe") is not None
    }
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in mappings_at(pod, "status", kind):
            name = text(each.get("name"))
            if cause := _cause_of_container(each, is_probed=name in probed):
                yield f", container {name}: {cause}"
    if status.get("phase") == "Failed" and text(status.get("reason")):
        yield f": {text(status.get('reason'))}: {one_line(status.get('message'))}".removesuffix(": ")


def _cause_of_container(status: Object, *, is_probed: bool) -> str:
    """Cause that is stable while a failing container waits, runs and ends in turn: it is reported only once."""
    state, last = mapping(status.get("state")), mapping(mapping(status.get("lastState")).get("terminated"))
    waiting, ended = mapping(state.get("waiting")), mapping(state.get("terminated"))
    reason = text(waiting.get("reason"))
    if reason == "CrashLoopBackOff" and last:
        return f"{reason}: {_end(last)}"
    if reason and reason not in _STARTING:
        return f"{reason}: {one_line(waiting.get('message'))}".removesuffix(": ")
    is_not_ready = "ready" in status and status["ready"] is False
    ended = ended or (last if waiting or is_not_ready else {})
    if ended.get("exitCode"):
        return f"CrashLoopBackOff: {_end(ended)}" if status.get("restartCount") else _end(ended)
    if "running" in state and is_not_ready and is_probed:
        return "it runs but is not ready: its readinessProbe fails"
    return ""


def _end(terminated: Object) -> str:
    ended = f"ended with {terminated.get('exitCode')} ({text(terminated.get('reason')) or 'Error'})"
    return f"{ended}: {one_line(terminated.get('message'))}".removesuffix(": ")


def one_line(value: object) -> str:
    return " ".join(text(value).split())
