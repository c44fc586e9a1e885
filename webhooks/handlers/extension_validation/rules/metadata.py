"""Rules for the metadata of all objects, as an API server applies them to its own kinds.

Names are the same in many objects, so the results of their checks are cached.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from kube.names import dns_label_problems, dns_subdomain_problems, label_name_problems, label_value_problems
from kube.validation import FieldError, forbidden, invalid, required, shown, too_long
from webhooks.handlers.extension_validation.rules.typed import Time, Typed, as_json
from webhooks.rules.shapes import Int64

IMMUTABLE = "field is immutable"
_MOST_ANNOTATION_BYTES = 256 << 10
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"


class OwnerReference(Typed):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Typed):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class Resource(Typed):
    """Base of all kinds; each adds its `spec`."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


_IMMUTABLE_FIELDS = (
    ("name", "name"),
    ("namespace", "namespace"),
    ("uid", "uid"),
    ("creation_timestamp", "creationTimestamp"),
    ("deletion_timestamp", "deletionTimestamp"),
    ("deletion_grace_period_seconds", "deletionGracePeriodSeconds"),
)


def object_errors(meta: ObjectMeta, *, namespaced: bool) -> Iterator[FieldError]:
    if prefix := meta.generate_name:
        # The API server appends its generated part to a dash at the end.
        masked = prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        for problem in _subdomain_problems(masked):
            yield invalid("metadata.generateName", prefix, problem)
    if meta.name:
        for problem in _subdomain_problems(meta.name):
            yield invalid("metadata.name", meta.name, problem)
    else:
        yield required("metadata.name", "name or generateName is required")
    yield from _namespace_errors(meta.namespace, namespaced=namespaced)
    if meta.generation < 0:
        yield invalid("metadata.generation", meta.generation, "must be greater than or equal to 0")
    yield from _map_and_owner_errors(meta)
    yield from _finalizer_errors(meta.finalizers or [])


def update_errors(new: ObjectMeta, old: ObjectMeta) -> Iterator[FieldError]:
    if old.deletion_timestamp is not None:
        added = sorted(set(new.finalizers or ()) - set(old.finalizers or ()))
        if added:
            detail = "no new finalizers can be added if the object is being deleted, found new finalizers"
            yield forbidden("metadata.finalizers", f"{detail} []string{{{', '.join(map(shown, added))}}}")
    if not new.resource_version:
        yield invalid("metadata.resourceVersion", "", "must be specified for an update")
    if new.generation < old.generation:
        yield invalid("metadata.generation", new.generation, "must not be decremented")
    for attribute, name in _IMMUTABLE_FIELDS:
        value = getattr(new, attribute)
        if value != getattr(old, attribute):
            yield invalid(f"metadata.{name}", as_json(value), IMMUTABLE)
    yield from _map_and_owner_errors(new)


def _namespace_errors(namespace: str, *, namespaced: bool) -> Iterator[FieldError]:
    path = "metadata.namespace"
    if not namespaced:
        if namespace:
            yield forbidden(path, "not allowed on this type")
    elif not namespace:
        yield required(path)
    else:
        for problem in _label_problems(namespace):
            yield invalid(path, namespace, problem)


def _map_and_owner_errors(meta: ObjectMeta) -> Iterator[FieldError]:
    for name, value in (meta.labels or {}).items():
        for problem in _label_name_problems(name):
            yield invalid("metadata.labels", name, problem)
        for problem in _label_value_problems(value):
            yield invalid("metadata.labels", value, problem)
    annotations = meta.annotations or {}
    for name in annotations:
        for problem in _label_name_problems(name.lower()):
            yield invalid("metadata.annotations", name, problem)
    if _bytes_of(annotations) > _MOST_ANNOTATION_BYTES:
        yield too_long("metadata.annotations", most=_MOST_ANNOTATION_BYTES)
    if meta.owner_references:
        yield from _owner_errors(meta.owner_references)


def _bytes_of(annotations: dict[str, str]) -> int:
    characters = sum(len(name) + len(value) for name, value in annotations.items())
    if characters * 4 <= _MOST_ANNOTATION_BYTES:
        return characters  # no character has more than four bytes
    return sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())


def _owner_errors(references: Sequence[OwnerReference]) -> Iterator[FieldError]:
    path, controller = "metadata.ownerReferences", ""
    for index, reference in enumerate(references):
        where = f"{path}[{index}]"
        group_and_version = reference.api_version.split("/")
        if len(group_and_version) > 2 or not group_and_version[-1]:
            yield invalid(f"{where}.apiVersion", reference.api_version, "version must not be empty")
        for name, value in (("kind", reference.kind), ("name", reference.name), ("uid", reference.uid)):
            if not value:
                yield invalid(f"{where}.{name}", value, "must not be empty")
        if (reference.api_version, reference.kind) == ("v1", "Event"):
            yield invalid(where, as_json(reference), "/v1, Kind=Event is disallowed from being an owner")
        if reference.controller:
            this = f"{reference.kind}/{reference.name}"
            if controller:
                detail = 'Only one reference can have Controller set to true. Found "true" in references for'
                yield invalid(path, as_json(references), f"{detail} {controller} and {this}")
            controller = controller or this


def _finalizer_errors(finalizers: Sequence[str]) -> Iterator[FieldError]:
    path = "metadata.finalizers"
    for finalizer in finalizers:
        for problem in _label_name_problems(finalizer):
            yield invalid(path, finalizer, problem)
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        yield invalid(path, finalizers, f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set")


def _remembered(problems: Callable[[str], list[str]]) -> Callable[[str], tuple[str, ...]]:
    """Cache the problems of values. Those that are too long for any rule are left out, to keep the cache small."""
    known = lru_cache(maxsize=1024)(lambda value: tuple(problems(value)))

    def look_up(value: str) -> tuple[str, ...]:
        return known(value) if len(value) <= 400 else tuple(problems(value))

    return look_up


_subdomain_problems = _remembered(dns_subdomain_problems)
_label_problems = _remembered(dns_label_problems)
_label_name_problems = _remembered(label_name_problems)
_label_value_problems = _remembered(label_value_problems)
