"""Removal of an object that is no longer wanted, decided by the live object."""

from collections.abc import Callable
from datetime import datetime
from enum import Enum, auto

from gardener import keys
from gardener.managed_resource.stamps import is_written
from kube.clock import parse_duration, parse_time
from kube.objects import Object, annotations, finalizers, group_of, is_truthy, labels, metadata

_OWNING_GROUPS = frozenset({"apps", "extensions", "batch"})


class Disposition(Enum):
    DELETE = auto()
    KEEP = auto()
    """It stays, and is no longer managed."""
    HANDED_OVER = auto()
    """Another ManagedResource owns it now."""
    COLLECTED = auto()
    """The garbage collector deletes it when nothing refers to it any more."""
    FOREIGN = auto()
    """It existed before, and could not be adopted."""


def disposition(
    live: Object, *, origin: str, held_by_other: Callable[[str], bool], garbage_collector: bool, is_ours_unstamped: bool
) -> Disposition:
    """Decide whether the object is deleted.

    Args:
        live: as read from the target just now.
        origin: of the ManagedResource that lists the object.
        held_by_other: whether the ManagedResource of another origin exists and wants the object.
        garbage_collector: whether there is one in this process.
        is_ours_unstamped: whether it is ours although it has no origin, or an origin that does not want it. Ignored
            objects are listed and not stamped; and objects that a complete pass has listed may have lost their stamp.
            But objects that were only about to be created are written with a stamp or not at all.
    """
    if is_truthy(annotations(live).get(keys.KEEP_OBJECT)):
        return Disposition.KEEP
    if garbage_collector and _is_garbage_collectable(live):
        return Disposition.COLLECTED
    stamped = annotations(live).get(keys.ORIGIN)
    if not stamped and not is_ours_unstamped:
        return Disposition.FOREIGN
    if stamped and stamped != origin:
        if held_by_other(stamped):
            return Disposition.HANDED_OVER
        if not (is_ours_unstamped or is_written(live)):
            return Disposition.FOREIGN
    return Disposition.DELETE


def _is_garbage_collectable(live: Object) -> bool:
    return (
        live.get("apiVersion") == "v1"
        and live.get("kind") in {"ConfigMap", "Secret"}
        and is_truthy(labels(live).get(keys.GARBAGE_COLLECTABLE))
    )


def propagation_policy(live: Object) -> str | None:
    """Propagation policy: workloads are deleted after their pods; all others have the API server's default."""
    return "Foreground" if group_of(live.get("apiVersion") or "") in _OWNING_GROUPS else None


def must_be_finalized(live: Object, *, now: datetime) -> bool:
    """Whether the object has been waiting for its finalizers longer than its annotation permits.

    Raises:
        ValueError: the annotation is not a duration.
    """
    text = annotations(live).get(keys.FINALIZE_DELETION_AFTER)
    if not text:
        return False
    try:
        patience = parse_duration(text)
    except ValueError as error:
        raise ValueError(f"failed parsing duration of {keys.FINALIZE_DELETION_AFTER} annotation: {error}") from error
    since = metadata(live).get("deletionTimestamp")
    if not since or patience <= 0 or not (finalizers(live) or _namespace_finalizers(live)):
        return False
    return (now - parse_time(since)).total_seconds() >= patience


def is_namespace(live: Object) -> bool:
    return live.get("apiVersion") == "v1" and live.get("kind") == "Namespace"


def _namespace_finalizers(live: Object) -> list[str]:
    return (live.get("spec") or {}).get("finalizers") or [] if is_namespace(live) else []


def without_finalizers(namespace: Object) -> Object:
    """The body for the `finalize` subresource, the only way to remove a Namespace's own finalizer."""
    meta = {name: value for name, value in metadata(namespace).items() if name != "finalizers"}
    return {**namespace, "metadata": meta, "spec": {**(namespace.get("spec") or {}), "finalizers": []}}
