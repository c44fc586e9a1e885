"""The page of one ManagedResource."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from agent.resource_manager.status_page.lister import Lister, SeenObject
from agent.resource_manager.status_page.rendering import render
from gardener.managed_resource.conditions import is_observed
from gardener.managed_resource.references import secret_names
from gardener.overview.hints import hints
from gardener.overview.objects import Health, Live, listed_in
from gardener.overview.states import ResourceState, message_of, state_of
from gardener.responsibility import DEFAULT_CLASS, class_of
from kube.objects import Key, Object, finalizers, is_truthy, key, metadata

_OBJECTS = 1000
"""Shown at most, and so many Secrets."""
_SWITCHES = ("keepObjects", "forceOverwriteLabels", "forceOverwriteAnnotations", "deletePersistentVolumeClaims")


class Property(NamedTuple):
    """A text, or since when."""

    name: str
    text: str = ""
    at: str = ""


class Branch(NamedTuple):
    """A Secret, or others by their label, and the objects that come from it."""

    identity: str
    objects: Sequence[SeenObject]
    is_counted: bool
    secret: str = ""
    is_missing: bool = False
    label: str = ""


def one_page(lister: Lister, managed_resource: Object, *, now: datetime) -> str:
    name, state = key(managed_resource), state_of(managed_resource)
    seen = lister.objects_of(managed_resource, limit=_OBJECTS)
    conditions: Sequence[Object] = (managed_resource.get("status") or {}).get("conditions") or []
    return render(
        "managed_resource.html",
        lister,
        now=now,
        title=f"{name.namespace}/{name.name}",
        name=name,
        is_ours=lister.is_ours(managed_resource),
        state=state,
        message=message_of(managed_resource) if state in {ResourceState.SUSPENDED, ResourceState.PENDING} else "",
        properties=list(_properties(lister, managed_resource)),
        advice=_advice(managed_resource, seen),
        conditions=sorted(conditions, key=lambda found: found.get("type") or ""),
        branches=list(_branches(lister, managed_resource, seen)),
        not_shown=len(listed_in(managed_resource)) - len(seen),
        what_is_shown=_what_is_shown(lister, managed_resource),
        changes=list(lister.changes.newest_first(owner=name)),
    )


def _properties(lister: Lister, managed_resource: Object) -> Iterator[Property]:
    meta, status = metadata(managed_resource), managed_resource.get("status") or {}
    spec = managed_resource.get("spec") or {}
    class_name = class_of(managed_resource) or DEFAULT_CLASS
    yield Property("Class", class_name if lister.is_ours(managed_resource) else f"{class_name} (of another agent)")
    yield Property("Created", at=meta.get("creationTimestamp") or "")
    if meta.get("deletionTimestamp"):
        yield Property("Deletion asked for", at=meta["deletionTimestamp"])
    generation = f"{meta.get('generation') or 0}"
    if not is_observed(managed_resource):
        generation += f", applied is {status.get('observedGeneration') or 0}"
    yield Property("Generation", generation)
    yield Property("Objects", f"{len(listed_in(managed_resource)):,}")
    yield Property("Finalizers", ", ".join(finalizers(managed_resource)) or "none")
    if switches := [name for name in _SWITCHES if is_truthy(str(spec.get(name)))]:
        yield Property("Switched on", ", ".join(switches))


def _advice(managed_resource: Object, seen: Sequence[SeenObject]) -> Sequence[str]:
    # What is missing here is not in another cluster, as it may be for who asks with a kubeconfig.
    there = [
        Live(each.reference, None, each.status)
        for each in seen
        if each.status is not None and each.status.health is not Health.MISSING
    ]
    return hints(managed_resource, there)


def _branches(lister: Lister, managed_resource: Object, seen: Sequence[SeenObject]) -> Iterator[Branch]:
    namespace = key(managed_resource).namespace
    knows_secrets = lister.knows_secrets(managed_resource)
    by_secret: dict[str, list[SeenObject]] = {}
    for each in seen:
        by_secret.setdefault(each.secret, []).append(each)
    for position, name in enumerate(list(dict.fromkeys(secret_names(managed_resource)))[:_OBJECTS]):
        is_missing = not lister.has_secret(Key(namespace, name))
        yield Branch(f"secret-{position}", by_secret.pop(name, []), knows_secrets, secret=name, is_missing=is_missing)
    if left := [each for some in by_secret.values() for each in some]:
        label = "In no Secret any more" if knows_secrets else "Objects"
        yield Branch("others", left, is_counted=True, label=label)


def _what_is_shown(lister: Lister, managed_resource: Object) -> str:
    if not lister.is_ours(managed_resource):
        return "It is of another class, so how its objects fare is not known here."
    if not lister.leads:
        return "How objects fare, and which Secret they come from, the leader knows."
    return (
        "As the watches of the agent show. It counts the pods of Deployments; what else objects have made is not "
        "watched, and shown by kubectl mr tree."
    )
