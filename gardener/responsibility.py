"""Responsibility for ManagedResources, and the origin of objects: the same for all controllers.

A ManagedResource carries the finalizer of the class whose instance manages it. When its class changes, the former
instance cleans up in its own target cluster first; the new one waits until the finalizer is gone.
"""

from dataclasses import dataclass

from gardener.keys import FINALIZER, IGNORE
from kube.objects import Key, Object, annotations, finalizers, is_truthy

DEFAULT_CLASS = "resources"
EVERY_CLASS = "*"


# --- ManagedResources


def is_ignored(obj: Object) -> bool:
    """Whether a ManagedResource is ignored by all controllers, or a manifest is created and then left alone."""
    return is_truthy(annotations(obj).get(IGNORE))


def class_of(managed_resource: Object) -> str | None:
    found: str | None = (managed_resource.get("spec") or {}).get("class")
    return found


def finalizer_of(resource_class: str) -> str:
    """The finalizer that an instance of this class puts on its ManagedResources."""
    if resource_class in {"", DEFAULT_CLASS, EVERY_CLASS}:
        return FINALIZER
    return f"{FINALIZER}-{resource_class}"


def is_responsible(managed_resource: Object, *, resource_class: str) -> bool:
    """Whether an instance of this class manages it."""
    return handles(resource_class, class_of(managed_resource))


def handles(resource_class: str, wanted: str | None) -> bool:
    """Whether an instance of this class manages ManagedResources of the wanted class."""
    return (resource_class or DEFAULT_CLASS) in {EVERY_CLASS, wanted or DEFAULT_CLASS}


def belongs_to_class(managed_resource: Object, *, resource_class: str) -> bool:
    """Whether the class or the finalizer of a ManagedResource is ours."""
    if finalizer_of(resource_class) in finalizers(managed_resource):
        return True
    return is_responsible(managed_resource, resource_class=resource_class)


def must_wait(managed_resource: Object, *, resource_class: str) -> bool:
    """Whether another instance has to clean up before this one takes over.

    Only the first finalizer of this family counts, as in the original: there is never more than one unless a user adds
    it by hand.
    """
    first = next((name for name in finalizers(managed_resource) if name.startswith(FINALIZER)), None)
    if first is None or first == finalizer_of(resource_class):
        return False
    return is_responsible(managed_resource, resource_class=resource_class)


# --- objects


@dataclass(frozen=True, slots=True)
class Origin:
    """The ManagedResource that an object comes from, and the id of its cluster if there is one."""

    key: Key
    cluster_id: str = ""

    def __str__(self) -> str:
        name = f"{self.key.namespace}/{self.key.name}"
        return f"{self.cluster_id}:{name}" if self.cluster_id else name


def parse_origin(text: str) -> Origin:
    """Origin from an annotation.

    Raises:
        ValueError: the text is neither `<namespace>/<name>` nor `<cluster id>:<namespace>/<name>`.
    """
    cluster_id, colon, name = text.partition(":")
    if not colon:
        cluster_id, name = "", text
    parts = name.split("/")
    if len(parts) != 2:
        raise unexpected_origin(text)
    return Origin(Key(*parts), cluster_id)


def unexpected_origin(text: str) -> ValueError:
    return ValueError(f"unexpected origin format: {text!r}, it must be [<cluster id>:]<namespace>/<name>")
