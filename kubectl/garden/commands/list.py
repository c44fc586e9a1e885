"""`kubectl gardener list`: Shoots of all Projects that the user may read, those with problems first."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import click

from gardener.api.garden import PROJECTS, SHOOTS
from kube.errors import Forbidden, KindNotServed
from kube.objects import Object, key, metadata, spec, text
from kube.runtime.client import Client, Selection
from kubectl import options, output
from kubectl.garden import selection
from kubectl.garden.overview import HEADER, Rank, State, row, state_of
from kubectl.output import Form, Output
from kubectl.reader import unknown_kind
from kubectl.session import Session, gathered, on_cluster
from kubectl.style import counted, table

_AT_ONCE = 8


@click.command
@selection.project
@selection.selector
@click.option("--problems", is_flag=True, help="Show only Shoots that have failed, wait, or are not healthy.")
@options.output
@on_cluster(target=False, garden=True)
async def command(session: Session, *, project: str, selector: str, problems: bool, form: Output | None) -> None:
    """Lists all Projects that you may read, unless you select a namespace or a Project."""
    namespace = await selection.namespace_of(session, project) if project else session.given_namespace
    found = [each async for each in _found(session, namespace, selector)]
    states = sorted(((state_of(each), each) for each in found), key=_order)
    if problems:
        states = [(state, each) for state, each in states if state.rank <= Rank.WAITING]
    _show([each for _, each in states], states, form)


def _order(found: tuple[State, Object]) -> tuple[Rank, str, str]:
    state, shoot = found
    return state.rank, *key(shoot)


async def _found(session: Session, namespace: str, selector: str) -> AsyncIterator[Object]:
    client = session.source.client
    try:
        async for each in _in(client, Selection(namespace, selector)):
            yield each
        return
    except KindNotServed:
        raise unknown_kind(SHOOTS) from None
    except Forbidden:
        if namespace:
            raise
    for each in await _in_projects(session, selector):
        yield each


async def _in(client: Client, selected: Selection) -> AsyncIterator[Object]:
    async for page in client.pages(SHOOTS, selected):
        for each in page:
            yield each


async def _in_projects(session: Session, selector: str) -> list[Object]:
    """Shoots of Projects that the user may read; of the namespace of the session if Projects are not readable."""
    client = session.source.client
    try:
        projects = [text(spec(each).get("namespace")) for each in await client.list(PROJECTS, Selection())]
    except Forbidden:
        output.warn(f"you may not list Projects; this is the namespace {session.namespace} alone; others: -n NAMESPACE")
        return [each async for each in _in(client, Selection(session.namespace, selector))]

    async def of(namespace: str) -> list[Object] | None:
        try:
            return [each async for each in _in(client, Selection(namespace, selector))]
        except Forbidden:
            return None

    found = await gathered(of, sorted(filter(None, projects)), at_once=_AT_ONCE)
    if hidden := found.count(None):
        output.warn(f"you may not read the Shoots of {counted(hidden, 'Project')}")
    return [shoot for shoots in found for shoot in shoots or []]


def _show(found: Sequence[Object], states: Sequence[tuple[State, Object]], form: Output | None) -> None:
    match form:
        case Output.JSON | Output.YAML:
            for each in found:
                metadata(each).pop("managedFields", None)
            output.show_objects(found, Form(form.value))
        case Output.NAME:
            output.show([f"{key(each).namespace}/{key(each).name}"] for each in found)
        case _ if not states:
            output.waiting("no Shoots")
        case _:
            now = datetime.now(UTC)
            rows = [row(each, state, now=now, wide=form is Output.WIDE) for state, each in states]
            output.show(table(rows, header=HEADER))
            bad = sum(state.rank <= Rank.UNHEALTHY for state, _ in states)
            output.begin(f"{counted(len(states), 'Shoot')}, {bad or 'none'} with problems")
