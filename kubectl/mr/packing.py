"""Pack manifests into Secrets, as small as possible: one Brotli stream per Secret, as many Secrets as needed.

A Secret holds 1 MiB. Larger content is split between documents. Immutable Secrets have the hash of their content in
their names: new content is a new Secret, so no reader ever sees half of a change.
"""

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import brotli

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.decode import COMPRESSED_SUFFIX, LARGEST_SECRET, split
from gardener.references import make_unique, stamp
from kube.objects import Object
from kube.yaml import DialectError
from kubectl.errors import UserError
from kubectl.mr.files import Text, objects_in

DATA_KEY = f"objects.yaml{COMPRESSED_SUFFIX}"
_SEPARATOR = b"---\n"
_QUALITY = 9
"""Brotli's quality, of at most 11; the last two take many times as long."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Value for one Secret."""

    value: bytes
    unpacked_bytes: int
    documents: int


def documents_in(texts: Iterable[Text]) -> list[bytes]:
    """Documents as they were written, comments included; without those that contain only comments.

    Raises: UserError: some can't be read.
    """
    found: list[bytes] = []
    for text in texts:
        objects_in([text])
        if text.content.lstrip()[:1] == b"{":
            found.append(text.content.rstrip() + b"\n")  # several JSON documents need no separators
            continue
        chunks = [chunk for _, chunk in split(text.content) if not isinstance(chunk, DialectError)]
        found += [_without_first_separator(chunk).rstrip() + b"\n" for chunk in chunks if _is_manifest(chunk)]
    if not found:
        raise UserError("the files hold no objects")
    return found


def _without_first_separator(chunk: bytes) -> bytes:
    first, _, rest = chunk.partition(b"\n")
    return rest if first.startswith(b"---") else chunk


def _is_manifest(chunk: bytes) -> bool:
    lines = (line.strip() for line in chunk.splitlines())
    return any(line and not line.startswith((b"#", b"---")) for line in lines)


def pack(documents: Sequence[bytes], *, limit: int = LARGEST_SECRET) -> list[Packed]:
    """Compress the documents. Raises UserError if a single document is too long."""
    return list(_pack(documents, limit))


def _pack(documents: Sequence[bytes], limit: int) -> Iterator[Packed]:
    content = _SEPARATOR.join(documents)
    value = brotli.compress(content, quality=_QUALITY)
    if len(value) <= limit:
        yield Packed(value, len(content), len(documents))
    elif len(documents) == 1:
        raise UserError(
            f"one document has {len(value)} bytes when compressed, but a Secret holds {limit}: "
            f"it begins with {documents[0][:60]!r}",
            hint="divide the object, if it can be",
        )
    else:
        middle = len(documents) // 2
        yield from _pack(documents[:middle], limit)
        yield from _pack(documents[middle:], limit)


def secrets(name: str, namespace: str, packed: Sequence[Packed], *, immutable: bool) -> list[Object]:
    """Secrets with the packed content; several have numbers in their names."""
    names = [name] if len(packed) == 1 else [f"{name}-{number}" for number in range(1, len(packed) + 1)]
    made = [_secret(own, namespace, content.value) for own, content in zip(names, packed, strict=True)]
    return [make_unique(secret) for secret in made] if immutable else made


def _secret(name: str, namespace: str, value: bytes) -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    data = {DATA_KEY: base64.b64encode(value).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": data}


def managed_resource(
    name: str, namespace: str, made: Sequence[Object], *, resource_class: str, keep_objects: bool
) -> Object:
    """ManagedResource that names these Secrets."""
    spec: Object = {"secretRefs": [{"name": secret["metadata"]["name"]} for secret in made]}
    if resource_class:
        spec["class"] = resource_class
    if keep_objects:
        spec["keepObjects"] = True
    return {
        **MANAGED_RESOURCES.type_meta,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def protected(managed: Object, made: Sequence[Object]) -> Object:
    """ManagedResource with annotations that protect its immutable Secrets from the garbage collector."""
    return stamp([*made, managed])[-1]
