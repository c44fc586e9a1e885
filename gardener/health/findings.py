"""Problems of an object that a ManagedResource lists, in the words of the condition.

A controller collects the findings about all `references(managed_resource)` in their order. The first one decides the
condition; all of them are logged and count in the metrics.
"""

from dataclasses import dataclass, replace
from typing import Self

from gardener import keys
from gardener.health.checks import deployment, workload_pods
from gardener.health.checks.registry import BUILT_IN, Rules
from gardener.health.checks.rule import CAUSE, CheckError, quoted
from gardener.health.checks.workload_pods import PodsWanted
from kube.objects import Object, annotations, group_of

_WORKLOADS = frozenset(
    {
        *(("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
        *(("batch", "Job"), ("", "ReplicationController")),
    }
)
"""Groups and kinds of workloads, whose pods may report the cause of a problem."""
NO_LOAD_BALANCER = "it has no load balancer; check whether the cluster has a controller for load balancers"


@dataclass(frozen=True, slots=True)
class Reference:
    """An entry of `status.resources`; the namespace of a cluster-scoped object is empty."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, entry: Object) -> Self:
        namespace, name = entry.get("namespace") or "", entry.get("name") or ""
        return cls(entry.get("apiVersion") or "", entry.get("kind") or "", namespace, name)

    def __str__(self) -> str:
        """Quoted `namespace/name`; the slash stays if the namespace is empty."""
        return quoted(f"{self.namespace}/{self.name}")


@dataclass(frozen=True, slots=True)
class Finding:
    reference: Reference
    reason: str
    message: str


def references(managed_resource: Object, *, with_pending: bool = False) -> list[Reference]:
    """All objects of the ManagedResource, in stored order; `with_pending` also those that are about to be created."""
    status = managed_resource.get("status") or {}
    found = [Reference.of(entry) for entry in status.get("resources") or []]
    if not with_pending:
        return found
    return list(dict.fromkeys([*found, *map(Reference.of, status.get("pendingResources") or [])]))


def is_skipped(obj: Object) -> bool:
    """Whether checks are skipped: only the exact value `true` of the live object counts, not that of the manifest."""
    return annotations(obj).get(keys.SKIP_HEALTH_CHECK) == "true"


def missing(reference: Reference, *, unknown_kind: str = "") -> Finding:
    """Finding for a missing object; `unknown_kind` is the error if its whole kind is not served."""
    message = (
        f"Required {reference.kind} {quoted(reference.name)} in namespace {quoted(reference.namespace)} is missing"
    )
    return Finding(reference, f"{reference.kind}Missing", f"{message}: {unknown_kind}" if unknown_kind else message)


def health_finding(reference: Reference, obj: Object, *, rules: Rules = BUILT_IN) -> Finding | None:
    """Finding if the live object is not healthy. Kinds without a rule are healthy."""
    rule = rules.health(reference.api_version, reference.kind)
    if rule is None or is_skipped(obj):
        return None
    try:
        wrong = rule.health(obj)
    except CheckError as error:
        message = f"Error executing health check for {reference.kind} {reference}: {error}"
        return Finding(reference, "HealthCheckError", message)
    if wrong is None:
        return None
    message = f"{reference.kind} {reference} is unhealthy: {wrong}"
    return Finding(reference, f"{reference.kind}Unhealthy", message)


def may_have_events(finding: Finding) -> bool:
    """Whether the warnings about the object are part of the message: for an unhealthy Service."""
    return finding.reference.api_version == "v1" and finding.reason == "ServiceUnhealthy"


def with_events(finding: Finding, events_text: str) -> Finding:
    if not events_text:
        return with_cause(finding, NO_LOAD_BALANCER if may_have_events(finding) else "")
    return replace(finding, message=f"{finding.message}\n\n{events_text}")


def with_cause(finding: Finding, cause: str) -> Finding:
    """The finding with its cause. Args: cause: in the words of others; empty: unknown."""
    return replace(finding, message=f"{finding.message}{CAUSE}{cause}") if cause else finding


def progress_api_version(reference: Reference, *, rules: Rules = BUILT_IN) -> str | None:
    """The version in which to read the object for its progress; None if its kind is never progressing."""
    rule = rules.progress(reference.api_version, reference.kind)
    return rule.api_version(reference.api_version) if rule else None


def progress_finding(reference: Reference, obj: Object, *, rules: Rules = BUILT_IN) -> Finding | None:
    """Finding if the roll-out of the live object waits, by the object itself.

    An object that can't be checked is not progressing: its health reports the error.
    """
    rule = rules.progress(reference.api_version, reference.kind)
    if rule is None or rule.progress is None or is_skipped(obj):
        return None
    try:
        waits_for = rule.progress(obj)
    except CheckError:
        return None
    return None if waits_for is None else _progressing(reference, waits_for)


def manual_step(reference: Reference, obj: Object, *, rules: Rules = BUILT_IN) -> str:
    """Manual step that the roll-out of the live object requires, with its name; empty if there is none."""
    rule = rules.progress(reference.api_version, reference.kind)
    if rule is None or rule.manual is None or is_skipped(obj):
        return ""
    try:
        step = rule.manual(obj)
    except CheckError:
        return ""
    return f"{reference.kind} {reference}: {step}" if step else ""


def pods_wanted(reference: Reference, obj: Object) -> PodsWanted | None:
    """Pods that decide the progress of a Deployment without a `progress_finding`."""
    rule = BUILT_IN.progress(reference.api_version, reference.kind)
    if rule is not deployment.RULE or is_skipped(obj):
        return None
    try:
        return None if deployment.is_paused(obj) else workload_pods.pods_wanted(obj)
    except ValueError:
        return None


def pods_of(reference: Reference, obj: Object) -> PodsWanted | None:
    """The pods of a workload; None if it has none, or is malformed."""
    if (group_of(reference.api_version), reference.kind) not in _WORKLOADS:
        return None
    try:
        return workload_pods.pods_wanted(obj)
    except ValueError:
        return None


def pods_finding(reference: Reference, wanted: PodsWanted, count: int) -> Finding | None:
    """Finding if the roll-out of the Deployment waits for some of its pods."""
    waits_for = wanted.problem(count)
    return None if waits_for is None else _progressing(reference, waits_for)


def _progressing(reference: Reference, waits_for: str) -> Finding:
    message = f"{reference.kind} {reference} is progressing: {waits_for}"
    return Finding(reference, f"{reference.kind}Progressing", message)
