"""The objects that a ManagedResource lists, and their health by the rules of the health controllers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from gardener.conditions import RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING
from gardener.health.checks.registry import BUILT_IN
from gardener.health.checks.rule import Malformed
from gardener.health.findings import Reference, is_skipped
from gardener.managed_resource import jobs
from gardener.managed_resource.conditions import DELETION_FAILED, DELETION_PENDING
from gardener.managed_resource.messages import pending_text
from gardener.managed_resource.references import key_of_reference, resource_string_of_reference
from gardener.responsibility import is_ignored
from kube.objects import Object, condition, group_of, held_by, is_deleting, metadata


class Health(StrEnum):
    HEALTHY = "Healthy"
    COMPLETED = "Completed"
    """A Job that has completed, and was removed for that reason."""
    PROGRESSING = "Progressing"
    UNHEALTHY = "Unhealthy"
    MISSING = "Missing"
    DELETING = "Deleting"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class HealthStatus:
    health: Health
    message: str = ""


@dataclass(frozen=True, slots=True)
class Live:
    """An object that a ManagedResource lists; None if it does not exist, or could not be read."""

    reference: Object
    object: Object | None
    status: HealthStatus

    @property
    def name(self) -> str:
        return short_name(self.reference)


def short_name(reference: Mapping[str, Any]) -> str:
    """Short name, such as `Deployment/shop/storefront`; the group is rarely needed to distinguish objects."""
    parts = (reference.get("kind"), reference.get("namespace"), reference.get("name"))
    return "/".join(part for part in parts if part)


def name_of(obj: Object) -> str:
    return short_name({"kind": obj.get("kind"), **metadata(obj)})


def health_status(obj: Object) -> HealthStatus:
    if is_deleting(obj):
        return HealthStatus(Health.DELETING, held_by(obj))
    if is_skipped(obj):
        return HealthStatus(Health.HEALTHY, "not checked: skip-health-check is set")
    api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
    try:
        progress = BUILT_IN.progress(api_version, kind)
        if progress is not None and progress.progress is not None and (waits_for := progress.progress(obj)):
            return HealthStatus(Health.PROGRESSING, waits_for)
        rule = BUILT_IN.health(api_version, kind)
        wrong = rule.health(obj) if rule is not None else None
    except Malformed as error:
        return HealthStatus(Health.UNKNOWN, str(error))
    if wrong:
        return HealthStatus(Health.UNHEALTHY, wrong)
    return HealthStatus(Health.HEALTHY, (progress.manual(obj) if progress and progress.manual else "") or "")


_KEPT = ("kept ", "waiting for at most ")
_NEXT = f", {pending_text('').partition(chr(34))[0]}"
"""Separator between the reports of two objects."""
FINISHED = HealthStatus(Health.COMPLETED, "it has finished, and its time to live has expired")


def as_reported(
    managed_resource: Object, found: Sequence[Live], manifests: Mapping[str, Object] | None = None
) -> list[Live]:
    """The objects, with health from the conditions where their kind has no rule here.

    The agent may be configured to check such kinds. Conditions name only the first object.

    Args: manifests: by object key, if known: they show which Jobs are removed when finished.
    """
    return [replace(live, status=_status(managed_resource, live, manifests)) for live in found]


def _status(managed_resource: Object, live: Live, manifests: Mapping[str, Object] | None) -> HealthStatus:
    if live.status.health is Health.MISSING and _has_finished(managed_resource, live.reference, manifests):
        return _reported_as(managed_resource, Reference.of(live.reference)) or FINISHED
    return _reported(managed_resource, live) or live.status


def _has_finished(managed_resource: Object, reference: Object, manifests: Mapping[str, Object] | None) -> bool:
    """Whether it is a Job that was removed after it finished: the agent would have recreated any other one."""
    if (group_of(reference.get("apiVersion") or ""), reference.get("kind")) != ("batch", "Job"):
        return False
    if is_deleting(managed_resource):
        return False
    if key_of_reference(reference) in jobs.digests(managed_resource):
        return True
    applied, healthy = (condition(managed_resource, kind) or {} for kind in (RESOURCES_APPLIED, RESOURCES_HEALTHY))
    if applied.get("status") != "True" or is_ignored(managed_resource):
        return False
    if manifests is None:
        return healthy.get("status") == "True"
    return jobs.is_removed_when_finished(manifests.get(key_of_reference(reference)) or {})


def waiting_for_others(managed_resource: Object, reference: Object) -> HealthStatus | None:
    """Status of an object whose deletion is postponed, as reported by the agent."""
    applied = condition(managed_resource, RESOURCES_APPLIED) or {}
    if applied.get("reason") not in {DELETION_PENDING, DELETION_FAILED}:
        return None
    _, _, rest = (applied.get("message") or "").partition(f"{pending_text(resource_string_of_reference(reference))}: ")
    reason, _, _ = rest.partition(_NEXT)
    return HealthStatus(Health.DELETING, reason.removesuffix("]")) if reason.startswith(_KEPT) else None


def _reported(managed_resource: Object, live: Live) -> HealthStatus | None:
    if live.object is not None and not is_deleting(live.object):
        kept = waiting_for_others(managed_resource, live.reference)
        if kept is not None:
            return kept
    reference = Reference.of(live.reference)
    if live.status.health is not Health.HEALTHY or BUILT_IN.health(reference.api_version, reference.kind):
        return None
    return _reported_as(managed_resource, reference)


def _reported_as(managed_resource: Object, reference: Reference) -> HealthStatus | None:
    """Health of this object as reported in the conditions."""
    for condition_type, status, health, words in (
        (RESOURCES_HEALTHY, "False", Health.UNHEALTHY, "is unhealthy: "),
        (RESOURCES_PROGRESSING, "True", Health.PROGRESSING, "is progressing: "),
    ):
        reported = condition(managed_resource, condition_type) or {}
        message, start = reported.get("message") or "", f"{reference.kind} {reference} {words}"
        if reported.get("status") == status and message.startswith(start):
            return HealthStatus(health, message.removeprefix(start))
    return None
