"""Objects of all namespaces that a user may list: of the whole cluster, else Project by Project."""

from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from gardener.api.garden import PROJECTS
from kube.errors import Forbidden, KindNotServed
from kube.objects import Object, spec, text
from kube.resources import Resource
from kube.runtime.client import Client, Selection
from kubectl.kinds import plural
from kubectl.session import gathered
from kubectl.style import counted

R = TypeVar("R")

_AT_ONCE = 8
_PAGE_OF_PROJECT = 20
"""Small, since several are read at once and objects may be large."""


async def pages(
    client: Client,
    resource: Resource,
    keep: Callable[[Object], R],
    *,
    here: str,
    note: Callable[[str], None],
    selector: str = "",
) -> AsyncIterator[list[R]]:
    """Results of `keep` for all objects, page by page.

    Args:
        client: of the cluster.
        resource: their kind.
        keep: called with each object, so that no more of it needs memory.
        here: namespace that is read if Projects may not be listed either.
        note: is called with a sentence about objects that the user may not list.
        selector: of labels.
    """
    try:
        async for page in client.pages(resource, Selection("", selector)):
            yield [keep(each) for each in page]
        return
    except Forbidden:
        kind = plural(resource.kind)
    if not resource.namespaced:
        note(f"you may not list {kind}")
        return
    namespaces = await _of_projects(client)
    if namespaces is None:
        namespaces = [here]
        note(f"you may not list Projects, so {kind} of the namespace {here} alone are read; others: -n NAMESPACE")

    async def of(namespace: str) -> list[R] | None:
        read = client.pages(resource, Selection(namespace, selector), limit=_PAGE_OF_PROJECT)
        try:
            return [keep(each) async for page in read for each in page]
        except Forbidden:
            return None

    found = await gathered(of, namespaces, at_once=_AT_ONCE)
    if hidden := found.count(None):
        note(f"you may not list {kind} of {counted(hidden, 'namespace')}")
    for kept in found:
        yield kept or []


async def _of_projects(client: Client) -> list[str] | None:
    """Namespaces of Projects; None if the user may not list these."""
    try:
        projects = await client.list(PROJECTS, Selection())
    except (Forbidden, KindNotServed):
        return None
    return sorted(filter(None, (text(spec(each).get("namespace")) for each in projects)))
