"""ManagedResources selected by a command."""

from collections.abc import AsyncIterator, Sequence

import click

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.overview.states import ResourceState
from kube.errors import KindNotServed
from kube.objects import Key, Object, key
from kube.runtime.client import Form, Selection
from kubectl.errors import UserError, not_found
from kubectl.session import Session
from kubectl.style import BLUE, DIM, GREEN, RED, YELLOW, Word

PAGE = 250
"""Page size of lists."""


class KindMissing(UserError):
    def __init__(self) -> None:
        super().__init__(
            "this cluster does not know ManagedResources",
            hint="is it the right --context? If so, install the CustomResourceDefinition; see kubectl mr check",
        )


async def named(session: Session, name: str) -> Object:
    """ManagedResource of this name in the session's namespace. Raises UserError with similar names."""
    return await demand(session, session.key(name))


async def demand(session: Session, wanted: Key) -> Object:
    """ManagedResource with this key. Raises UserError with similar names."""
    return await find(session, wanted) or await _missing(session, wanted)


async def find(session: Session, wanted: Key) -> Object | None:
    try:
        return await session.source.client.find(MANAGED_RESOURCES, wanted)
    except KindNotServed:
        raise KindMissing from None


async def selected(session: Session, names: Sequence[str], *, all_here: bool, everywhere: bool) -> list[Object]:
    """ManagedResources of these names, or all of the namespace, or of all namespaces.

    Raises: click.BadParameter: both names and all are requested, or neither is.
    """
    demand_selection(names, all_here=all_here, everywhere=everywhere)
    if names:
        return [await named(session, name) for name in names]
    found = pages(session, "" if everywhere else session.namespace)
    return [item async for page in found for item in page]


async def pages(session: Session, namespace: str, *, selector: str = "") -> AsyncIterator[list[Object]]:
    """List page by page, so that thousands cost no more memory than a page. Raises KindMissing."""
    selection = Selection(namespace=namespace, label_selector=selector)
    try:
        async for page in session.source.client.pages(MANAGED_RESOURCES, selection, limit=PAGE):
            yield page
    except KindNotServed:
        raise KindMissing from None


def demand_selection(names: Sequence[str], *, all_here: bool, everywhere: bool) -> None:
    """Check that either names or all are requested. Raises click.BadParameter: both are, or neither is."""
    if bool(names) == (all_here or everywhere):
        raise click.BadParameter("either names, or --all, or -A for all namespaces", param_hint="NAME")


async def _missing(session: Session, wanted: Key) -> Object:
    selection = Selection(namespace=wanted.namespace)
    known = await session.source.client.list(MANAGED_RESOURCES, selection, form=Form.METADATA)
    names = [key(obj).name for obj in known]
    remedy = "look at all of them: kubectl mr get -A"
    raise not_found("ManagedResource", wanted.name, names, where=f"{wanted.namespace}/", remedy=remedy)


# --- states and conditions as words in colour


_STATES = {
    ResourceState.READY: GREEN,
    ResourceState.PROGRESSING: BLUE,
    ResourceState.UNHEALTHY: RED,
    ResourceState.FAILED: RED,
    ResourceState.SUSPENDED: YELLOW,
    ResourceState.DELETING: YELLOW,
    ResourceState.PENDING: DIM,
}


def state_word(state: ResourceState) -> Word:
    return Word(state.value, _STATES[state])


def status_word(status: str, *, good: str) -> Word:
    """Status of a condition, coloured."""
    if not status:
        return Word("-", DIM)
    return Word(status, GREEN if status == good else RED if status in {"True", "False"} else YELLOW)
