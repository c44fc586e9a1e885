"""Whether a kind that is not served is gone, so that there are no objects of it.

Discovery can't answer that. A CustomResourceDefinition may serve none of its versions for a while, an API server that
starts lists its groups before it knows those of CustomResourceDefinitions, and the server of an APIService may be away;
in all three cases the objects are stored, and come back. So the definitions of kinds are read:

- CustomResourceDefinitions: an existing one, even if not served or being deleted, may have objects;
- APIServices: the kinds of another server are those that it serves itself. The kinds of Kubernetes are read in the same
  way: all its APIServices are stored, so none is overlooked, and each has to answer.

Definitions that may not be read are unknown, and their kinds count as existing.
"""

from collections.abc import Collection, Iterable
from typing import Any

from kube.errors import Forbidden, KindUnavailable, NoStatus, NotFound, Unreachable
from kube.objects import Object, group_of, metadata, spec
from kube.resources import API_SERVICES, BUILT_IN_GROUPS, CUSTOM_RESOURCE_DEFINITIONS, Resource
from kube.runtime import discovery_documents
from kube.runtime.client import Client, Form, Selection

DefinedKinds = dict[str, str]
"""Definition of each kind, for messages."""


async def require_gone(client: Client, api_version: str, kind: str) -> None:
    """Return if there are no objects of a kind, in any version.

    Raises:
        KindUnavailable: there may be some.
        KubeError: unknown.
    """
    require_not_among(await defined_kinds(client, group_of(api_version)), api_version, kind)


def require_not_among(defined: DefinedKinds, api_version: str, kind: str) -> None:
    """Return if the kind is not defined; raise KindUnavailable if it is."""
    if defined_by := defined.get(kind):
        raise KindUnavailable(api_version, kind, defined_by=defined_by)


async def defined_kinds(client: Client, group: str, *, known: Collection[Resource] = ()) -> DefinedKinds:
    """Kinds of a group that may have objects.

    Args: known: served kinds, whose CustomResourceDefinitions need not be read.

    Raises: KubeError: unknown; if rights are missing, the message names them.
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
        reason = f"cannot determine whether kinds of {group} still exist, since {error}; grant the right to list these"
        raise Forbidden(error.status, message=reason, reason=error.reason, details=error.details) from error
    return found


async def _api_services(client: Client, group: str) -> list[tuple[str, str]]:
    """Names and apiVersions of APIServices whose discovery documents list the kinds of a group."""
    path = API_SERVICES.path()
    try:
        answer = await client.read(path)
    except (NoStatus, NotFound) as error:
        if error.status != 404 or await discovery_documents.is_served(client.read, API_SERVICES):
            raise
        return []  # an API server that never delegates to another one
    if answer.get("kind") != "APIServiceList":
        raise Unreachable(f"the response for {path} is not a list of APIServices")
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
        # They may be listed, as for the watch of all; the right to get them is another one.
        only = Selection(field_selector=f"metadata.name={name}")
        for definition in await client.list(CUSTOM_RESOURCE_DEFINITIONS, only):
            found |= dict.fromkeys(_kinds_of(definition), text)
    return found


def _kinds_of(definition: Object) -> Iterable[str]:
    """Requested kind and accepted kind; they differ while another definition has the name."""
    status: dict[str, Any] = definition.get("status") or {}
    for names in (spec(definition).get("names"), status.get("acceptedNames")):
        if kind := (names or {}).get("kind"):
            yield kind
