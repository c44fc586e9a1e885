"""Whether a kind that is not served is gone, so that there are no objects of it.

Discovery can't say. A CustomResourceDefinition may serve none of its versions for a while, an API server that starts
lists its groups before it knows those of CustomResourceDefinitions, and the server behind an APIService may be away; in
all three cases the objects are stored, and come back. So what defines kinds is asked:

- CustomResourceDefinitions: one that exists, be it served or being deleted, has objects;
- APIServices: the kinds of another server are those that it serves itself. The kinds of Kubernetes are read in the same
  way: all its APIServices are stored, so none is overlooked, and each has to answer.

What may not be read is not known, and counts as existing.
"""

from collections.abc import Collection, Iterable
from typing import Any

from kube.errors import Forbidden, KindUnavailable, NoStatus, NotFound, Unreachable
from kube.objects import Object, group_of, metadata, spec
from kube.resources import API_SERVICES, BUILT_IN_GROUPS, CUSTOM_RESOURCE_DEFINITIONS, Resource
from kube.runtime import discovery_documents
from kube.runtime.client import Client, Form, Selection

DefinedKinds = dict[str, str]
"""By kind what defines it, for messages."""


async def require_gone(client: Client, api_version: str, kind: str) -> None:
    """Return if there are no objects of a kind, whatever their version.

    Raises:
        KindUnavailable: there may be some.
        KubeError: that is not known.
    """
    require_not_among(await defined_kinds(client, group_of(api_version)), api_version, kind)


def require_not_among(defined: DefinedKinds, api_version: str, kind: str) -> None:
    """Raises KindUnavailable."""
    if defined_by := defined.get(kind):
        raise KindUnavailable(api_version, kind, defined_by=defined_by)


async def defined_kinds(client: Client, group: str, *, known: Collection[Resource] = ()) -> DefinedKinds:
    """The kinds of a group of which there may be objects.

    Args: known: kinds that are served, whose CustomResourceDefinitions need not be read.

    Raises: KubeError: that is not known; the message says what has to be permitted, if that is why.
    """
    try:
        found: DefinedKinds = {}
        for name, api_version in await _api_services(client, group):
            found |= dict.fromkeys(
                await discovery_documents.require_kinds(client.read, api_version), f"APIService {name}"
            )
        if "." in group:
            found |= await _defined(client, group, {each.plural: each.kind for each in known})
    except Forbidden as error:
        reason = f"whether kinds of {group} are gone is not known, since {error}; permit to list these"
        raise Forbidden(error.status, message=reason, reason=error.reason, details=error.details) from error
    return found


async def _api_services(client: Client, group: str) -> list[tuple[str, str]]:
    """The names and apiVersions of APIServices whose discovery documents list the kinds of a group."""
    path = API_SERVICES.path()
    try:
        answer = await client.read(path)
    except (NoStatus, NotFound) as error:
        if error.status != 404 or await discovery_documents.is_served(client.read, API_SERVICES):
            raise
        return []  # an API server that never passes on to another one
    if answer.get("kind") != "APIServiceList":
        raise Unreachable(f"the answer for {path} is no list of APIServices")
    return [
        (str(metadata(each).get("name")), "/".join(filter(None, (group, str(spec(each).get("version"))))))
        for each in answer.get("items") or ()
        if (spec(each).get("group") or "") == group and (spec(each).get("service") or group in BUILT_IN_GROUPS)
    ]


async def _defined(client: Client, group: str, known: dict[str, str]) -> DefinedKinds:
    found: DefinedKinds = {}
    names: list[str] = []
    async for page in client.pages(CUSTOM_RESOURCE_DEFINITIONS, Selection(), form=Form.METADATA):
        names += [name for each in page if (name := str(metadata(each).get("name"))).partition(".")[2] == group]
    for name in names:
        text = f"CustomResourceDefinition {name}"
        plural = name.partition(".")[0]
        if plural in known:
            found[known[plural]] = text
            continue
        # They may be listed, as for the watch of all; to be got is another permission.
        only = Selection(field_selector=f"metadata.name={name}")
        for definition in await client.list(CUSTOM_RESOURCE_DEFINITIONS, only):
            found |= dict.fromkeys(_kinds_of(definition), text)
    return found


def _kinds_of(definition: Object) -> Iterable[str]:
    """The kind that it asks for, and the one that it has got; they differ while another definition has the name."""
    status: dict[str, Any] = definition.get("status") or {}
    for names in (spec(definition).get("names"), status.get("acceptedNames")):
        if kind := (names or {}).get("kind"):
            yield kind
