"""Files of a pod: sources of its volumes, and their mount paths."""

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kube.objects import Object, mapping, mappings, string_map, text
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from localprocesses.confined import OutsideError, names_of

Find = Callable[[Resource, str], Object | None]


LARGEST, MOST_FILES = 16 << 20, 500
"""Limits of a pod: bytes of all its files, and their number."""


class MissingSource(Exception):
    """A Secret or ConfigMap of a volume does not exist yet."""


class Refused(Exception):
    """An object requires something unsupported on this computer; the text has the details."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a pod.

    Attributes:
        path: path in the container.
        is_fixed: whether its content cannot change while the pod lives.
    """

    path: str
    content: bytes
    is_fixed: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """Source of a volume, or of a part of it."""

    resource: Resource
    name: str
    items: tuple[tuple[str, str], ...]
    """Key and path; empty for all."""
    is_optional: bool


def mounts(container: Object) -> dict[str, str]:
    """Return the mount path of each volume.

    Raises:
        Refused: a mount is not supported.
    """
    return {text(each.get("name")): _place(each) for each in mappings(container.get("volumeMounts"))}


def _place(mount: Object) -> str:
    path = text(mount.get("mountPath"))
    if mount.get("subPath") or mount.get("subPathExpr"):
        raise Refused(f"mountPath {path!r} has a subPath, which is not supported here: mount the whole volume")
    _demand_plain(path)
    return path


def files(pod: Object, container: Object, find: Find) -> list[File]:
    """Return the files of a container; `pod` is the spec, `find` returns a Secret or ConfigMap by name.

    Raises:
        MissingSource: a Secret or ConfigMap does not exist yet.
        Refused: there are too many or too large files, or a path is not accepted.
    """
    places = mounts(container)
    found, size, taken = list[File](), 0, set[str]()
    for volume in mappings(pod.get("volumes")):
        place = places.get(text(volume.get("name")))
        sources = _sources(volume) if place else ()
        for each in (file for source in sources for file in _files(source, text(place), find)):
            _demand_plain(each.path)
            if each.path.casefold() in taken:
                raise Refused(f"{each.path} is mounted twice: some file systems ignore case")
            taken.add(each.path.casefold())
            size += len(each.content)
            if size > LARGEST or len(found) >= MOST_FILES:
                raise Refused(f"its files are more than {MOST_FILES}, or larger than {LARGEST >> 20} MiB in all")
            found.append(each)
    return found


def _demand_plain(path: str) -> None:
    """Check that a path is below the root of the container, with any interpretation."""
    if not path.startswith("/"):
        raise Refused(f"{path!r} is not accepted as a path of a container: it must begin with '/'")
    try:
        names_of(path[1:])
    except OutsideError as error:
        raise Refused(str(error)) from error


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
        raise MissingSource(f"{source.resource.kind} {source.name} does not exist yet")
    content = content_of(source.resource, obj)
    for key, path in source.items or [(key, key) for key in content]:
        if key in content:
            yield File(f"{place}/{path}", content[key], obj.get("immutable") is True)
        elif not source.is_optional:
            raise MissingSource(f"{source.resource.kind} {source.name} has no {key} yet")


def content_of(resource: Resource, obj: Object) -> dict[str, bytes]:
    """Return the content of a Secret or ConfigMap, by key."""
    if resource == SECRETS:
        return {name: base64.b64decode(value) for name, value in string_map(obj.get("data")).items()}
    binary = {name: base64.b64decode(value) for name, value in string_map(obj.get("binaryData")).items()}
    return binary | {name: value.encode() for name, value in string_map(obj.get("data")).items()}
