"""`kubectl mr get`: read page by page, so that thousands cost no more memory than one page and their rows."""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated

import typer

from gardener.conditions import RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING
from gardener.kinds import MANAGED_RESOURCES
from gardener.managed_resource.plan import secret_names
from gardener.overview.states import Wanted, brief, message_of, object_count, state_of, status_of
from gardener.responsibility import class_of
from kube.cache import without_managed_fields
from kube.client import Selection
from kube.objects import Key, Object, key, metadata
from kube.watch import Deleted, ListBegins, ListEnds, Present, Watcher
from kubectl_mr import options, output
from kubectl_mr.output import Output
from kubectl_mr.session import PAGE, KindMissing, Session, on_cluster
from kubectl_mr.style import Line, age, cut, table
from kubectl_mr.words import state_word, status_word

_SHORT_MESSAGE = 100


@on_cluster(target=False)
async def command(
    session: Session,
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME...]", help="Only these.", autocompletion=options.complete_name),
    ] = None,
    all_namespaces: options.AllNamespacesFlag = False,
    status: Annotated[
        list[Wanted] | None,
        typer.Option("--status", help="Only those in this state; may be given several times."),
    ] = None,
    selector: Annotated[
        str, typer.Option("--selector", "-l", metavar="LABELS", help="Only those with these labels.")
    ] = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on and show what changes.")] = False,
    form: options.OutputFlag = None,
    headers: Annotated[bool, typer.Option("--headers/--no-headers", help="With a first line of names.")] = True,
) -> int:
    """`failed` are all that are not applied or not healthy."""
    chosen = _Chosen(names or [], status or [], selector)
    view = _View(with_namespace=all_namespaces, wide=form is Output.WIDE, headers=headers)
    where = "" if all_namespaces else session.namespace
    if watch:
        await _watch(session, where, chosen, view)
        return 0
    found = chosen.read(session, where)
    return await (_list(found, view) if form in {None, Output.WIDE} else _print(found, form, chosen))


class _Chosen:
    """Which ManagedResources are asked for."""

    def __init__(self, names: list[str], states: list[Wanted], selector: str) -> None:
        self.names = names
        self._states = states
        self.selector = selector

    def includes(self, managed_resource: Object) -> bool:
        if self.names and key(managed_resource).name not in self.names:
            return False
        return not self._states or any(wanted.includes(state_of(managed_resource)) for wanted in self._states)

    async def read(self, session: Session, namespace: str) -> AsyncIterator[Object]:
        if self.names and namespace:
            for name in self.names:
                found = without_managed_fields(await session.managed_resource(name))
                if self.includes(found):
                    yield found
            return
        async for page in session.pages(namespace, selector=self.selector):
            for item in page:
                if self.includes(item):
                    yield without_managed_fields(item)


class _View:
    def __init__(self, *, with_namespace: bool, wide: bool, headers: bool) -> None:
        self._with_namespace = with_namespace
        self._wide = wide
        self._headers = headers

    def row(self, managed_resource: Object, *, now: datetime) -> Line:
        return row(managed_resource, with_namespace=self._with_namespace, wide=self._wide, now=now)

    def lines(self, rows: list[Line]) -> Iterator[Line]:
        yield from table(
            rows, header=header(with_namespace=self._with_namespace, wide=self._wide) if self._headers else None
        )


def header(*, with_namespace: bool, wide: bool) -> Line:
    first = ["NAMESPACE", "NAME"] if with_namespace else ["NAME"]
    more = ["CLASS", "SECRETS"] if wide else []
    return [
        *first,
        "STATUS",
        "APPLIED",
        "HEALTHY",
        "PROGRESSING",
        "OBJECTS",
        *more,
        "AGE",
        "MESSAGE",
    ]


def row(managed_resource: Object, *, with_namespace: bool, wide: bool, now: datetime) -> Line:
    name = key(managed_resource)
    secrets = secret_names(managed_resource)
    message = message_of(managed_resource)
    return [
        *([name.namespace] if with_namespace else []),
        name.name,
        state_word(state_of(managed_resource)),
        status_word(status_of(managed_resource, RESOURCES_APPLIED), good="True"),
        status_word(status_of(managed_resource, RESOURCES_HEALTHY), good="True"),
        status_word(status_of(managed_resource, RESOURCES_PROGRESSING), good="False"),
        str(object_count(managed_resource)),
        *([class_of(managed_resource) or "-", ",".join(secrets) or "-"] if wide else []),
        age(metadata(managed_resource).get("creationTimestamp"), now),
        " ".join(message.split()) if wide else cut(brief(message), _SHORT_MESSAGE),
    ]


async def _list(found: AsyncIterator[Object], view: _View) -> int:
    now = datetime.now(UTC)
    rows = [view.row(item, now=now) async for item in found]
    if rows:
        output.show(view.lines(rows))
    else:
        output.waiting("no ManagedResources")
    return 0


async def _print(found: AsyncIterator[Object], form: Output | None, chosen: _Chosen) -> int:
    if form is Output.NAME:
        async for item in found:
            output.show([[f"managedresource.{MANAGED_RESOURCES.group}/{key(item).name}"]])
    elif form is Output.YAML:
        async for item in found:
            output.write(f"---\n{output.as_yaml([item])}")
    elif len(chosen.names) == 1:
        async for item in found:
            output.write(output.as_json(item))
    else:
        # One at a time: all of them together may be large.
        output.write('{"apiVersion": "v1", "kind": "List", "items": [')
        separator = "\n"
        async for item in found:
            output.write(separator + output.as_json(item).rstrip())
            separator = ",\n"
        output.write("]}\n")
    return 0


# --- watching


async def _watch(session: Session, namespace: str, chosen: _Chosen, view: _View) -> None:
    """The table, then a line for each change that shows in it."""
    selection = Selection(namespace=namespace, label_selector=chosen.selector)
    watcher = Watcher(session.source.client, MANAGED_RESOURCES, selection, page_size=PAGE)
    shown: dict[Key, Line] = {}
    listed: list[Line] | None = []
    async with aclosing(watcher.events()) as events:
        async for event in events:
            if isinstance(event, ListBegins):
                listed = []
            elif isinstance(event, ListEnds):
                if event.resource_version is None:
                    raise KindMissing
                output.show(view.lines(listed or []))
                listed = None
            elif chosen.includes(event.object):
                line = view.row(event.object, now=datetime.now(UTC))
                if not _is_news(shown, event, line):
                    continue
                if listed is not None:
                    listed.append(line)
                else:
                    output.show(table([line]))


def _is_news(shown: dict[Key, Line], event: Present | Deleted, line: Line) -> bool:
    """Whether a line says something new; that it has become older does not count."""
    name = key(event.object)
    if isinstance(event, Deleted):
        return shown.pop(name, None) is not None
    told = [*line[:-2], line[-1]]
    is_new = shown.get(name) != told
    shown[name] = told
    return is_new
