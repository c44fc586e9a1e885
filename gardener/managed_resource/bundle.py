"""A ManagedResource with its Secret, for programs that leave objects to the resource manager.

    secret, managed = managed_resource("system", "garden", objects, resource_class="seed", labels=...)

The Secret is immutable and named after its content, so readers see either all or nothing of a change, and the garbage
collector removes the old one once nothing refers to it. The order of the objects does not count: equal objects make an
equal Secret.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import brotli
import orjson

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.conditions import ready
from gardener.managed_resource.decode import COMPRESSED_SUFFIX
from gardener.references import inject_annotations, make_unique
from kube.objects import Object, is_deleting, key
from kube.resources import SECRETS

DATA_KEY = f"data.yaml{COMPRESSED_SUFFIX}"
_PREFIX = "managedresource-"
_OWNER = "managed-resource"
"""A label of one Secret among several."""
_QUALITY = 9
"""Compression quality, of 11 at most; the last two take many times as long."""


def managed_resource(
    name: str,
    namespace: str,
    objects: Iterable[Object],
    *,
    resource_class: str = "",
    labels: Mapping[str, str] | None = None,
    inject_labels: Mapping[str, str] | None = None,
    keep_objects: bool = False,
    secret_name: str = "",
    **spec: Any,
) -> list[Object]:
    """The Secret and the ManagedResource, in the order in which they have to be written.

    Args:
        name: of the ManagedResource.
        namespace: of both.
        objects: its objects.
        resource_class: class of the resource manager that is responsible; empty: the default one, of a Shoot.
        labels: of the ManagedResource.
        inject_labels: of all its objects.
        keep_objects: whether they stay when the ManagedResource is deleted.
        secret_name: without the hash; empty: after the ManagedResource.
        spec: further fields.
    """
    secrets = [_secret(secret_name or f"{_PREFIX}{name}", namespace, objects)]
    return [
        *secrets,
        _of_secrets(
            name,
            namespace,
            secrets,
            resource_class=resource_class,
            labels=labels,
            inject_labels=inject_labels,
            keep_objects=keep_objects,
            **spec,
        ),
    ]


def managed_resource_of_parts(
    name: str, namespace: str, parts: Mapping[str, Iterable[Object]], **fields: Any
) -> list[Object]:
    """The same with a Secret for each part, which limits its size. Args: fields: as of `managed_resource`."""
    notes = {_OWNER: name}
    secrets = [_secret(f"{_PREFIX}{name}-{part}", namespace, parts[part], labels=notes) for part in sorted(parts)]
    return [*secrets, _of_secrets(name, namespace, secrets, **fields)]


def _secret(name: str, namespace: str, objects: Iterable[Object], *, labels: Mapping[str, str] | None = None) -> Object:
    meta = {"name": name, "namespace": namespace, **({"labels": dict(labels)} if labels else {})}
    data = {DATA_KEY: base64.b64encode(packed(objects)).decode()}
    return make_unique({**SECRETS.type_meta, "metadata": meta, "type": "Opaque", "data": data})


def _of_secrets(
    name: str,
    namespace: str,
    secrets: Iterable[Object],
    *,
    resource_class: str = "",
    labels: Mapping[str, str] | None = None,
    inject_labels: Mapping[str, str] | None = None,
    keep_objects: bool = False,
    **spec: Any,
) -> Object:
    spec |= {"secretRefs": [{"name": key(each).name} for each in secrets], "keepObjects": keep_objects}
    if resource_class:
        spec["class"] = resource_class
    if inject_labels:
        spec["injectLabels"] = dict(inject_labels)
    own = {"name": name, "namespace": namespace, **({"labels": dict(labels)} if labels else {})}
    return inject_annotations({**MANAGED_RESOURCES.type_meta, "metadata": own, "spec": spec})


def packed(objects: Iterable[Object]) -> bytes:
    """The documents in a stable order, compressed. They are JSON, which every YAML parser reads alike."""
    ordered = sorted(objects, key=lambda obj: (obj["apiVersion"], obj["kind"], *key(obj)))
    documents = b"".join(b"---\n" + orjson.dumps(obj, option=orjson.OPT_SORT_KEYS) + b"\n" for obj in ordered)
    compressed: bytes = brotli.compress(documents, quality=_QUALITY)
    return compressed


def unready(managed_resource: Object | None) -> str:
    """Reason why not all its objects are applied, healthy and rolled out; empty if they are."""
    if managed_resource is None:
        return "it does not exist"
    if is_deleting(managed_resource):
        return "it is being deleted"
    condition = ready(managed_resource)
    if condition is None:
        return "no resource manager has processed it yet"
    return "" if condition.status == "True" else condition.message or condition.reason
