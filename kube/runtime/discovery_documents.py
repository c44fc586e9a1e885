"""Kinds that an API server serves, according to its discovery documents.

An API server answers a path that it does not serve with the text `404 page not found`. So does any proxy in front of
it, for any path, when it can't find the API server. So this text proves nothing: only the list of all group versions
counts, a JSON document that no proxy has. A group version that is in this list and can't be read is an error.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from kube.errors import NoStatus, NotFound, Unreachable
from kube.objects import metadata
from kube.resources import Resource

ALWAYS = frozenset({"v1", "apps/v1", "batch/v1"})
"""Group versions that every API server serves; an answer that denies it is not believed."""

_AT_ONCE = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
AGGREGATED = ",".join((_AT_ONCE.format("v2"), _AT_ONCE.format("v2beta1"), "application/json"))
"""Media types for one answer with all kinds. Before Kubernetes 1.30 there is only v2beta1, with the same fields;
before 1.27 there is none.
"""

Read = Callable[[str], Awaitable[Mapping[str, Any]]]
"""GET: the JSON object at a path."""


class ReadAs(Protocol):
    """GET: the JSON object at a path, in one of these media types."""

    async def __call__(self, path: str, *, accept: str) -> Mapping[str, Any]: ...


async def kinds(read: Read, api_version: str) -> dict[str, Resource]:
    """Readable kinds of a group version, by name; none if it is not served.

    Raises: KubeError: the API server gave no answer to that.
    """
    return _kinds_in(api_version, await _entries(read, api_version))


async def require_kinds(read: Read, api_version: str) -> dict[str, Resource]:
    """Kinds of a group version that has to be served. Raises KubeError also if it is not."""
    return _kinds_in(api_version, await _document(read, api_version))


def _kinds_in(api_version: str, entries: Iterable[Mapping[str, Any]]) -> dict[str, Resource]:
    group, _, version = api_version.rpartition("/")
    return {
        entry["kind"]: Resource(group, version, entry["kind"], entry["name"], bool(entry["namespaced"]))
        for entry in entries
        if "/" not in entry["name"] and "get" in entry.get("verbs", ())
    }


async def all_kinds(read: ReadAs) -> dict[str, dict[str, Resource] | None]:
    """Kinds of all group versions with a group, by apiVersion, at the cost of one call.

    None for a group version whose kinds the API server does not know at the moment. Empty if the API server does not
    support this form of answer.

    Raises: KubeError: the API server gave no answer to that.
    """
    answer = await read("/apis", accept=AGGREGATED)
    if answer.get("kind") != "APIGroupDiscoveryList":
        return {}
    return {
        f"{metadata(group).get('name')}/{version['version']}": _kinds_of(metadata(group).get("name") or "", version)
        for group in answer.get("items") or []
        for version in group.get("versions") or []
    }


def _kinds_of(group: str, version: Mapping[str, Any]) -> dict[str, Resource] | None:
    entries = version.get("resources") or []
    if version.get("freshness") != "Current" or not all(
        (entry.get("responseKind") or {}).get("kind") for entry in entries
    ):
        return None
    return {
        kind: Resource(group, version["version"], kind, entry["resource"], entry.get("scope") == "Namespaced")
        for entry in entries
        if "get" in entry.get("verbs", ())
        for kind in [entry["responseKind"]["kind"]]
    }


async def versions(read: Read, group: str) -> Sequence[str]:
    """Served versions of a group, preferred ones first, in the form of `apiVersion`.

    Raises: KubeError: the API server gave no answer to that.
    """
    if not group:
        return ("v1",)
    answer = await read("/apis")
    if answer.get("kind") != "APIGroupList" or not answer.get("groups"):
        raise Unreachable("the response for /apis is not a list of groups")
    return [
        str(version["groupVersion"])
        for each in answer["groups"]
        if each.get("name") == group
        for version in each.get("versions") or []
    ]


async def names(read: Read, api_version: str) -> frozenset[str]:
    """Served resources of a group version, subresources included (`pods/status`); none if it is not served.

    Raises: KubeError: the API server gave no answer to that.
    """
    return frozenset(entry["name"] for entry in await _entries(read, api_version))


async def is_served(read: Read, resource: Resource) -> bool:
    """Whether the kind is served. Raises KubeError: the API server gave no answer to that."""
    if not await _is_listed(read, resource.api_version):
        return False
    return resource.plural in await names(read, resource.api_version)


def resources_in(answer: Mapping[str, Any]) -> list[Resource]:
    """Kinds of an answer for `/api` or `/apis` in the form AGGREGATED, preferred versions first; else none."""
    if answer.get("kind") != "APIGroupDiscoveryList":
        return []
    return [
        Resource(
            str((group.get("metadata") or {}).get("name") or ""),
            str(version.get("version") or ""),
            str((entry.get("responseKind") or {}).get("kind") or ""),
            str(entry.get("resource") or ""),
            entry.get("scope") == "Namespaced",
        )
        for group in answer.get("items") or []
        for version in group.get("versions") or []
        for entry in version.get("resources") or []
    ]


async def _entries(read: Read, api_version: str) -> Sequence[Mapping[str, Any]]:
    """Document of a group version; empty if it is not served."""
    try:
        return await _document(read, api_version)
    except (NoStatus, NotFound) as error:
        if error.status != 404 or await _is_listed(read, api_version):
            raise
        return ()


async def _document(read: Read, api_version: str) -> Sequence[Mapping[str, Any]]:
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    answer = await read(path)
    if answer.get("kind") != "APIResourceList" or answer.get("groupVersion") != api_version:
        raise Unreachable(f"the response for {path} is not a list of kinds")
    return answer.get("resources") or ()


async def _is_listed(read: Read, api_version: str) -> bool:
    return api_version in ALWAYS or api_version in await versions(read, api_version.rpartition("/")[0])
