"""The objects that a ManagedResource lists, and their health by the rules of the health controllers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gardener.health.checks.registry import health_rule, progress_rule
from gardener.health.checks.rule import Malformed
from gardener.health.findings import is_skipped
from gardener.managed_resource.references import key_of_reference
from kube.objects import Object, condition, finalizers, is_deleting, metadata


class Health(StrEnum):
    HEALTHY = "Healthy"
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
    """An object that a ManagedResource lists; None: it does not exist, or could not be read."""

    reference: Object
    object: Object | None
    status: HealthStatus

    @property
    def name(self) -> str:
        return short_name(self.reference)


def short_name(reference: Mapping[str, Any]) -> str:
    """`Deployment/shop/storefront`; the group stands for nothing that people mix up."""
    parts = (reference.get("kind"), reference.get("namespace"), reference.get("name"))
    return "/".join(part for part in parts if part)


def name_of(obj: Object) -> str:
    return short_name({"kind": obj.get("kind"), **metadata(obj)})


def listed_in(managed_resource: Object) -> list[Object]:
    """The references of what it manages, those of an unfinished pass at the end."""
    status = managed_resource.get("status") or {}
    references = {key_of_reference(found): found for found in status.get("resources") or []}
    for found in status.get("pendingResources") or []:
        references.setdefault(key_of_reference(found), found)
    return list(references.values())


def health_status(obj: Object) -> HealthStatus:
    if is_deleting(obj):
        return HealthStatus(Health.DELETING, _held_by(obj))
    if is_skipped(obj):
        return HealthStatus(Health.HEALTHY, "not checked: skip-health-check is set")
    api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
    try:
        progress = progress_rule(api_version, kind)
        if progress is not None and progress.progress is not None and (waits_for := progress.progress(obj)):
            return HealthStatus(Health.PROGRESSING, waits_for)
        rule = health_rule(api_version, kind)
        wrong = rule.health(obj) if rule is not None else None
    except Malformed as error:
        return HealthStatus(Health.UNKNOWN, str(error))
    return HealthStatus(Health.UNHEALTHY, wrong) if wrong else HealthStatus(Health.HEALTHY)


_REMAINING = ("NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionDiscoveryFailure")


def _held_by(obj: Object) -> str:
    names = finalizers(obj)
    if obj.get("kind") == "Namespace":
        remaining = [
            found.get("message") or ""
            for kind in _REMAINING
            if (found := condition(obj, kind)) and found.get("status") == "True"
        ]
        return " ".join(remaining) or "waits until all in it is gone"
    return f"waits for {', '.join(names)}" if names else "waits for its own end"
