"""The files of a pod: what its volumes are made of, and where they are mounted."""

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kube.objects import Object, mapping, mappings, string_map, text
from kube.resources import CONFIG_MAPS, SECRETS, Resource

Find = Callable[[Resource, str], Object | None]


class MissingSource(Exception):
    """A Secret or ConfigMap of a volume is not there yet."""


@dataclass(frozen=True, slots=True)
class File:
    """Attributes:
    path: in the container.
    is_fixed: whether its content can't change while the pod lives.
    """

    path: str
    content: bytes
    is_fixed: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """What a volume, or a part of it, is made from."""

    resource: Resource
    name: str
    items: tuple[tuple[str, str], ...]
    """Key and path; empty: all."""
    is_optional: bool


def mounts(container: Object) -> dict[str, str]:
    """Volume -> where it is mounted."""
    return {text(each.get("name")): text(each.get("mountPath")) for each in mappings(container.get("volumeMounts"))}


def files(pod: Object, container: Object, find: Find) -> list[File]:
    """Args: pod: its spec. find: the Secret or ConfigMap of a name. Raises MissingSource."""
    places = mounts(container)
    found = list[File]()
    for volume in mappings(pod.get("volumes")):
        place = places.get(text(volume.get("name")))
        if place:
            found += (each for source in _sources(volume) for each in _files(source, place, find))
    return found


def _sources(volume: Object) -> Iterator[_Source]:
    yield from _source(mapping(volume.get("secret")), mapping(volume.get("configMap")))
    for each in mappings(mapping(volume.get("projected")).get("sources")):
        yield from _source(mapping(each.get("secret")), mapping(each.get("configMap")))


def _source(secret: Object, config_map: Object) -> Iterator[_Source]:
    for resource, given, name in (
        (SECRETS, secret, secret.get("secretName") or secret.get("name")),
        (CONFIG_MAPS, config_map, config_map.get("name")),
    ):
        if name:
            items = tuple((text(each.get("key")), text(each.get("path"))) for each in mappings(given.get("items")))
            yield _Source(resource, text(name), items, given.get("optional") is True)


def _files(source: _Source, place: str, find: Find) -> Iterator[File]:
    obj = find(source.resource, source.name)
    if obj is None:
        if source.is_optional:
            return
        raise MissingSource(f"{source.resource.kind} {source.name} is not there yet")
    content = content_of(source.resource, obj)
    for key, path in source.items or [(key, key) for key in content]:
        if key in content:
            yield File(f"{place}/{path}", content[key], obj.get("immutable") is True)
        elif not source.is_optional:
            raise MissingSource(f"{source.resource.kind} {source.name} has no {key} yet")


def content_of(resource: Resource, obj: Object) -> dict[str, bytes]:
    """Of a Secret or ConfigMap, by key."""
    if resource == SECRETS:
        return {name: base64.b64decode(value) for name, value in string_map(obj.get("data")).items()}
    binary = {name: base64.b64decode(value) for name, value in string_map(obj.get("binaryData")).items()}
    return binary | {name: value.encode() for name, value in string_map(obj.get("data")).items()}
