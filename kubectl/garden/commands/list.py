"""`kubectl gardener list`: Shoots of all Projects that the user may read, those with problems first."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import click

from gardener.api.garden import SHOOTS
from kube.errors import KindNotServed
from kube.objects import Object, key, metadata
from kube.runtime.client import Selection
from kubectl import options, output
from kubectl.garden import readable, selection
from kubectl.garden.overview import HEADER, Rank, State, row, state_of
from kubectl.output import Form, Output
from kubectl.reader import unknown_kind
from kubectl.session import Session, on_cluster
from kubectl.style import counted, table


@click.command
@selection.project
@selection.selector
@click.option("--problems", is_flag=True, help="Show only Shoots that have failed, wait, or are not healthy.")
@options.output
@on_cluster(target=False, garden=True)
async def command(session: Session, *, project: str, selector: str, problems: bool, form: Output | None) -> None:
    """Lists all Projects that you may read, unless you select a namespace or a Project."""
    namespace = await selection.namespace_of(session, project) if project else session.where.namespace or ""
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
    if namespace:
        pages = client.pages(SHOOTS, Selection(namespace, selector))
    else:
        pages = readable.pages(
            client, SHOOTS, lambda shoot: shoot, here=session.namespace, note=output.warn, selector=selector
        )
    try:
        async for page in pages:
            for each in page:
                yield each
    except KindNotServed:
        raise unknown_kind(SHOOTS) from None


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
