"""Plan of a ManagedResource: its Secrets decoded, in the order in which objects are applied.

A plan is made once for each version of the Secrets and of the labels to inject. Manifests are held as compressed
JSON, since most passes need no more of them than a digest. Objects that no API server would accept are refused here.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gardener import keys
from gardener.managed_resource.decode import LARGEST_OBJECT, Decoded, DecodeResult, Limits
from gardener.managed_resource.equivalences import GroupKind
from gardener.managed_resource.messages import apply_error_text, restricted_text
from gardener.managed_resource.order import in_stages
from gardener.managed_resource.problems import problem_of, superseded
from gardener.managed_resource.references import (
    in_its_namespace,
    key_of,
    reference_of,
    resource_string,
    secrets_checksum,
    sorted_references,
)
from gardener.managed_resource.stamps import InjectionError, inject_labels
from gardener.responsibility import is_ignored
from kube.errors import KubeError
from kube.objects import Key, Object, annotations, group_of, key, metadata
from kube.packing import compact, compressed, unpacked
from kube.resources import Resource

_DEFINITION = "CustomResourceDefinition"
LIMITS = Limits()
_MOST_PLANNED = 2 * LIMITS.total_bytes
"""Bytes of all manifests of one plan. Labels that are injected may make more of them than was decoded."""


@dataclass(frozen=True, slots=True)
class Basis:
    """Input of a plan; an equal basis gives an equal plan, if all kinds were served."""

    injected_labels: tuple[tuple[str, str], ...]
    secrets: tuple[tuple[str, str, int], ...]
    """Name, uid and resourceVersion, in order."""


@dataclass(frozen=True, slots=True)
class PlannedObject:
    """An object to apply."""

    name: str
    """Its object key."""
    text: str
    """Its resource string."""
    key: Key
    resource: Resource | None
    problem: str
    """Reason why it can't be applied; the resource may be missing then."""
    reference: Object
    size: int
    """Bytes of its JSON."""
    manifest: bytes
    """Packed."""
    digest: bytes
    is_ignored: bool
    secret: str
    """The name of the Secret that it comes from."""

    def object(self) -> Object:
        return unpacked(self.manifest)


@dataclass(frozen=True, slots=True)
class Plan:
    basis: Basis
    stages: tuple[tuple[PlannedObject, ...], ...]
    restricted: Mapping[str, str]
    """Objects that may not be written, by object key, with the text of the error; they are in no stage."""
    references: tuple[Object, ...]
    """References as in `status.resources`: sorted, duplicates included, those without a name left out."""
    released: tuple[Object, ...]
    """References of objects in mode Ignore."""
    checksum: str
    decode_errors: tuple[str, ...]
    unresolved: frozenset[GroupKind]
    """Unknown kinds, which are not served or whose discovery failed. The references of their objects are a guess, since
    their scope is unknown; a new plan is needed to see whether it has become known.
    """
    size: int
    """Estimate of its memory, in bytes; counts only the large parts."""

    @property
    def is_complete(self) -> bool:
        return not self.unresolved

    @property
    def awaited(self) -> int:
        """Number of objects of a kind that is not served yet, but defined by another one of its objects."""
        defined = {w.key.name.partition(".")[2] for w in self.wanted() if w.reference.get("kind") == _DEFINITION}
        return sum(
            w.resource is None and group_of(w.reference.get("apiVersion") or "") in defined for w in self.wanted()
        )

    def wanted(self) -> list[PlannedObject]:
        return [wanted for stage in self.stages for wanted in stage]

    @property
    def resources(self) -> set[Resource]:
        """The kinds of its objects, as far as they were served."""
        return {wanted.resource for wanted in self.wanted() if wanted.resource is not None}


Data = Sequence[tuple[Key, Mapping[str, bytes]]]
Kinds = Mapping[tuple[str, str], Resource | KubeError]
"""Resources by apiVersion and kind, or the error why one is unknown."""
Restriction = Callable[[Resource, Key], str]
"""Returns the reason why an object may not be written or deleted; empty if it may."""


def unrestricted(_resource: Resource, _key: Key) -> str:
    return ""


def data_of(secret: Object) -> tuple[Key, Mapping[str, bytes]]:
    """The data of a Secret. API servers return only valid base64."""
    try:
        return key(secret), {name: base64.b64decode(value) for name, value in (secret.get("data") or {}).items()}
    except binascii.Error as error:
        raise KubeError(f"the API server returned a Secret with invalid base64: {error}") from error


def plan(
    basis: Basis,
    data: Data,
    decoded: DecodeResult,
    found: Kinds,
    *,
    labels: Mapping[str, str],
    only_workloads: bool = False,
    restriction: Restriction = unrestricted,
) -> Plan:
    """Plan of the decoded objects. Invalid content raises nothing: it is in the plan's errors and problems.

    With `only_workloads` the labels are put on the pod templates of known workloads only.
    """
    contents = dict(data)
    named, released = _named(decoded, found, labels=labels)
    wanted = _all_wanted(named, found, labels=labels, only_workloads=only_workloads)
    restricted = {
        each.name: restricted_text(each.text, reason)
        for each in wanted
        if each.resource is not None and (reason := restriction(each.resource, each.key))
    }
    permitted = [each for each in wanted if each.name not in restricted]
    return Plan(
        basis=basis,
        stages=tuple(tuple(stage) for stage in in_stages(permitted, _sort_key)),
        restricted=restricted,
        references=tuple(sorted_references(each.reference for each in named if each.reference.get("name"))),
        released=tuple(released),
        checksum=secrets_checksum([contents[each.item.secret][each.item.data_key] for each in named]),
        decode_errors=tuple(map(str, decoded.errors)),
        unresolved=frozenset(
            (group_of(api_version), kind)
            for (api_version, kind), resource in found.items()
            if not isinstance(resource, Resource)
        ),
        size=sum(len(each.manifest) + _length(each.reference) for each in wanted),
    )


@dataclass(frozen=True, slots=True)
class _Named:
    """A decoded object that is not in mode Ignore."""

    item: Decoded
    name: str
    """Its object key."""
    reference: Object


def _named(decoded: DecodeResult, found: Kinds, *, labels: Mapping[str, str]) -> tuple[list[_Named], list[Object]]:
    """Return the objects, and references of those in mode Ignore."""
    named, released = list[_Named](), list[Object]()
    for item in decoded.objects:
        obj = _object(item, found[item.api_version, item.kind])
        reference = reference_of(obj, injected_labels=labels)
        if annotations(obj).get(keys.MODE) == keys.MODE_IGNORE:
            released.append(reference)
        else:
            named.append(_Named(item, key_of(obj), reference))
    return named, released


def _all_wanted(
    named: Sequence[_Named], found: Kinds, *, labels: Mapping[str, str], only_workloads: bool
) -> list[PlannedObject]:
    """Objects to apply: of several with the same key, one."""
    passed_over = superseded([each.name for each in named])
    wanted, room = list[PlannedObject](), _MOST_PLANNED
    for position, each in enumerate(named):
        if position not in passed_over:
            resource = found[each.item.api_version, each.item.kind]
            made = _wanted(each.reference, each.item, resource, labels=labels, only_workloads=only_workloads, room=room)
            room -= made.size
            wanted.append(made)
    return wanted


def _length(reference: Object) -> int:
    """Length of the labels and annotations in a reference, in characters."""
    maps = (reference.get("labels") or {}, reference.get("annotations") or {})
    return sum(len(name) + len(text) for values in maps for name, text in values.items())


def _sort_key(wanted: PlannedObject) -> Object:
    return {"kind": wanted.reference.get("kind"), "metadata": {"name": wanted.key.name}}


def kinds_of(decoded: DecodeResult) -> set[tuple[str, str]]:
    """The apiVersions and kinds of the objects."""
    return {(item.api_version, item.kind) for item in decoded.objects}


def defined_groups(decoded: DecodeResult) -> frozenset[str]:
    """API groups of the kinds that the objects define."""
    return frozenset(item.name.partition(".")[2] for item in decoded.objects if item.kind == _DEFINITION)


def _object(item: Decoded, resource: Resource | KubeError) -> Object:
    namespaced = resource.namespaced if isinstance(resource, Resource) else None
    return in_its_namespace(item.object, namespaced=namespaced)


def _wanted(
    reference: Object,
    item: Decoded,
    resource: Resource | KubeError,
    *,
    labels: Mapping[str, str],
    only_workloads: bool,
    room: int,
) -> PlannedObject:
    """An object of the plan, with a manifest of at most `room` bytes."""
    obj = _object(item, resource)
    problem = ""
    text = resource_string(obj)
    ignored = is_ignored(obj)
    if known := problem_of(obj):
        problem = apply_error_text(text, known)
    elif isinstance(resource, KubeError):
        problem = apply_error_text(text, str(resource))
    if not ignored:
        try:
            obj = inject_labels(obj, labels, only_workloads=only_workloads, longest=LARGEST_OBJECT)
        except InjectionError as error:
            problem = f'error injecting labels into object "{text}": {error}'
    manifest = compact(obj)
    size = max(len(manifest), item.size)
    if size > min(LARGEST_OBJECT, room):
        problem = apply_error_text(text, _too_large(size, item))
        manifest = compact({})
    meta = metadata(obj)
    return PlannedObject(
        name=key_of(obj),
        text=text,
        key=Key(meta.get("namespace") or "", meta.get("name") or ""),
        resource=resource if isinstance(resource, Resource) else None,
        problem=problem,
        reference=reference,
        size=len(manifest),
        manifest=compressed(manifest),
        digest=hashlib.blake2b(manifest, digest_size=16).digest(),
        is_ignored=ignored,
        secret=item.secret.name,
    )


def _too_large(size: int, item: Decoded) -> str:
    place = f"it is in '{item.data_key}' of secret '{item.secret}'"
    if size > LARGEST_OBJECT:
        return f"the object has {size} bytes, but API servers accept at most {LARGEST_OBJECT}; divide it; {place}"
    return f"the objects have more than {_MOST_PLANNED} bytes together; use several ManagedResources; {place}"
