"""The label of what may be collected, and the annotations that refer to it.

    reference…/configmap-4ed34879: test-5678

protects the ConfigMap `test-5678` in the namespace of the object that has the annotation. What follows the hyphen only
keeps the keys apart.
"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from gardener.keys import REFERENCE_PREFIX
from kube.objects import Object, annotations, key

CONFIG_MAP = "configmap"
SECRET = "secret"

_HASH_DIGITS = 8


class Name(NamedTuple):
    """One ConfigMap or Secret."""

    kind: str
    """As it is written in annotations."""
    namespace: str
    name: str


def annotation_key(kind: str, name: str) -> str:
    return f"{REFERENCE_PREFIX}{kind}-{hashlib.sha256(name.encode()).hexdigest()[:_HASH_DIGITS]}"


def kind_from_annotation_key(annotation: str) -> str:
    """The kind that an annotation refers to; empty if it is no reference."""
    if not annotation.startswith(REFERENCE_PREFIX):
        return ""
    kind, hyphen, rest = annotation.removeprefix(REFERENCE_PREFIX).partition("-")
    return kind if hyphen and "-" not in rest else ""


def references(obj: Object) -> Iterator[Name]:
    """What the annotations of an object refer to; its own alone, not those of templates in it."""
    namespace = key(obj).namespace
    for annotation, name in annotations(obj).items():
        kind = kind_from_annotation_key(annotation)
        if kind and name:
            yield Name(kind, namespace, name)
