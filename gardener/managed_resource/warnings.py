"""Warnings of the API server when an object was written, and fields that it did not store.

Reported once, and kept in `status.warnings` as long as the object is written like this: the condition names them, and a
later process neither reports them again nor writes the object again because of a dropped field.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import orjson

from gardener import keys
from gardener.managed_resource.history_limit import limit_of
from gardener.managed_resource.ignored_fields import IgnoredFields
from gardener.managed_resource.merge.not_written import NOT_CHANGED
from gardener.managed_resource.messages import warnings_text
from gardener.managed_resource.references import key_of_reference, resource_string_of_reference
from kube.differences import Difference, is_reportable
from kube.objects import Object, annotations, mappings
from kube.packing import digest
from kube.validation import not_supported
from kube.write_mode import FieldValidation

WARNINGS = "warnings"
"""Field of the status."""
MOST_STORED = 64 << 10
"""Bytes of JSON in the status. The next process reports the others again."""
_MOST_TEXTS = 16
_MOST_FIELDS = 64
"""Fields of one object."""
_UNKNOWN = ("unknown field ", "duplicate field ")
"""Prefixes of errors of API servers in strict field validation."""
_CLOSED = frozenset({"data", "stringData"})
"""Fields of a Secret whose names are hidden, too."""


def field_validation(managed_resource: Object) -> FieldValidation:
    """Field validation from its annotation.

    Raises:
        FieldValidationError: the value is unknown.
    """
    requested = annotations(managed_resource).get(keys.FIELD_VALIDATION)
    if requested is None:
        return FieldValidation.WARN
    if requested in tuple(FieldValidation):
        return FieldValidation(requested)
    path = f"metadata.annotations[{keys.FIELD_VALIDATION}]"
    raise FieldValidationError(str(not_supported(path, requested, list(FieldValidation))))


class FieldValidationError(ValueError):
    """The annotation has an unknown value; the message has details."""


@dataclass(frozen=True, slots=True)
class ObjectWarnings:
    reference: Mapping[str, str]
    """apiVersion, kind, namespace and name."""
    texts: tuple[str, ...]
    dropped: tuple[str, ...]
    """Paths of the fields that were not stored, including those that are not reported."""
    basis: str
    """Digest of the manifest, and of the schema if a field was dropped; the warnings do not apply to others."""

    @property
    def is_refused_if_strict(self) -> bool:
        return any(text.startswith(_UNKNOWN) for text in self.texts)

    def json(self) -> Object:
        fields = {"messages": list(self.texts), "droppedFields": list(self.dropped), "basis": self.basis}
        return {**self.reference, **{name: value for name, value in fields.items() if value}}

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Self:
        reference = {name: str(entry[name]) for name in ("apiVersion", "kind", "namespace", "name") if entry.get(name)}
        texts, dropped = (tuple(map(str, entry.get(name) or ())) for name in ("messages", "droppedFields"))
        return cls(reference, texts, dropped, str(entry.get("basis") or ""))


def object_warnings(
    reference: Mapping[str, Any], warned: Sequence[str], dropped: Sequence[Difference], *, basis: str
) -> ObjectWarnings | None:
    """Warnings of one write; None if there is nothing to remember.

    Args:
        reference: of the object.
        warned: by the API server.
        dropped: fields that are missing in its answer.
        basis: see the function of this name.
    """
    if not warned and not dropped:
        return None
    named = {name: str(reference[name]) for name in ("apiVersion", "kind", "namespace", "name") if reference.get(name)}
    texts = [*warned, *dropped_texts(named, warned, dropped)]
    paths = tuple(map(str, dropped)) if len(dropped) <= _MOST_FIELDS else ()
    return ObjectWarnings(named, tuple(texts[:_MOST_TEXTS]), paths, basis)


def with_not_written(
    reported: ObjectWarnings | None, reference: Mapping[str, Any], texts: Sequence[str], *, basis: str
) -> ObjectWarnings | None:
    """The warnings of the last write, with the fields of the manifest that are not written now.

    Args: texts: see `merge.not_written`; basis: if nothing was reported.
    """
    before = reported.texts if reported is not None else ()
    shown = (*(text for text in before if NOT_CHANGED not in text), *texts)[:_MOST_TEXTS]
    if reported is not None:
        return replace(reported, texts=shown) if shown or reported.dropped else None
    return object_warnings(reference, shown, (), basis=basis)


def basis(manifest: bytes, schema: str) -> str:
    """Basis of warnings. Args: manifest: its digest; schema: identifies it, if a field was dropped."""
    return digest([manifest.hex(), schema])[:8].hex()


def dropped_texts(reference: Mapping[str, str], warned: Sequence[str], dropped: Iterable[Difference]) -> list[str]:
    """Texts about fields that the API server dropped without a warning."""
    is_secret = reference.get("kind") == "Secret"
    return [
        f'field "{found}" was not stored, by the API server or by admission'
        for found in dropped
        if is_reportable(found)
        and not (is_secret and found.path[0] in _CLOSED)
        and not any(f'"{found}"' in text for text in warned)
    ]


def stored_warnings(managed_resource: Object) -> dict[str, ObjectWarnings]:
    """Warnings in the status, by object key."""
    entries = mappings((managed_resource.get("status") or {}).get(WARNINGS))
    return {key_of_reference(found.reference): found for found in map(ObjectWarnings.of, entries)}


def status_entries(found: Mapping[str, ObjectWarnings]) -> list[Object]:
    """Entries for the status, sorted by object key, up to the maximum size."""
    entries, room = [], MOST_STORED
    for _, each in sorted(found.items()):
        entry = each.json()
        room -= len(orjson.dumps(entry))
        if room < 0:
            break
        entries.append(entry)
    return entries


def all_warnings_text(found: Mapping[str, ObjectWarnings], remarks: Sequence[str] = ()) -> str:
    """Text for the condition; empty if there are no warnings.

    Args: remarks: about the ManagedResource itself; see `annotation_warnings`.
    """
    with_texts = [each for _, each in sorted(found.items()) if each.texts]
    return warnings_text(
        [*remarks, *(f"{resource_string_of_reference(each.reference)}: {', '.join(each.texts)}" for each in with_texts)]
    )


def annotation_warnings(managed_resource: Object, references: Sequence[Object]) -> list[str]:
    """Problems of its annotations that do not prevent its objects from being applied.

    Args: references: of its objects.
    """
    ignored = IgnoredFields.of(managed_resource)
    found = [
        f"metadata.annotations[{keys.IGNORE_DIFFERENCES}][{number}]: no object is a {rule}"
        for number, rule in enumerate(ignored.rules)
        if not any(map(rule.fits, references))
    ]
    _, problem = limit_of(managed_resource, default=0)
    return [*found, str(problem)] if problem else found
