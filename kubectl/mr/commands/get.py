"""`kubectl mr get`: read page by page, so that thousands cost no more memory than one page and their rows."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

import click

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING
from gardener.managed_resource.references import secret_names
from gardener.overview.states import StateFilter, brief, message_of, object_count, state_of, status_of
from gardener.responsibility import class_of
from kube.objects import Key, Object, key, metadata
from kube.runtime.client import Selection
from kubectl import options, output
from kubectl.mr import managed_resources, parameters
from kubectl.mr.managed_resources import PAGE, KindMissing, state_word, status_word
from kubectl.output import Output
from kubectl.session import Session, on_cluster
from kubectl.style import Columns, Line, age, shortened

_SHORT_MESSAGE = 120


@click.command
@click.argument(
    "names", nargs=-1, metavar="[NAME]...", help="Only these ManagedResources.", shell_complete=parameters.complete_name
)
@parameters.all_namespaces("all_namespaces")
@click.option(
    "--status",
    type=options.OneOf(StateFilter),
    multiple=True,
    help="Only ManagedResources in this state; repeatable.",
)
@click.option("--selector", "-l", metavar="LABELS", default="", help="Only ManagedResources with these labels.")
@click.option("--watch", "-w", is_flag=True, help="Watch for changes after listing.")
@options.output
@click.option("--headers/--no-headers", default=True, show_default=True, help="Print column headers.")
@on_cluster(target=False)
async def command(
    session: Session,
    *,
    names: Sequence[str],
    all_namespaces: bool,
    status: Sequence[StateFilter],
    selector: str,
    watch: bool,
    form: Output | None,
    headers: bool,
) -> int:
    """The state `failed` includes all ManagedResources that are not applied or not healthy."""
    chosen = _Chosen(names, status, selector)
    view = _View(with_namespace=all_namespaces, wide=form is Output.WIDE, headers=headers)
    where = "" if all_namespaces else session.namespace
    if watch:
        await _watch(session, where, chosen, view)
        return 0
    found = chosen.read(session, where)
    return await (_list(found, view) if form in {None, Output.WIDE} else _print(found, form, chosen))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Selection of ManagedResources by the command line."""

    names: Sequence[str]
    states: Sequence[StateFilter]
    selector: str

    def includes(self, managed_resource: Object) -> bool:
        if self.names and key(managed_resource).name not in self.names:
            return False
        return not self.states or any(wanted.includes(state_of(managed_resource)) for wanted in self.states)

    async def read(self, session: Session, namespace: str) -> AsyncIterator[Object]:
        async for item in self._all(session, namespace):
            if self.includes(item):
                metadata(item).pop("managedFields", None)
                yield item

    async def _all(self, session: Session, namespace: str) -> AsyncIterator[Object]:
        if self.names and namespace:
            for name in self.names:
                yield await managed_resources.named(session, name)
            return
        async for page in managed_resources.pages(session, namespace, selector=self.selector):
            for item in page:
                yield item


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    with_namespace: bool
    wide: bool
    headers: bool

    def header(self) -> list[Line]:
        if not self.headers:
            return []
        first = ["NAMESPACE", "NAME"] if self.with_namespace else ["NAME"]
        more = ["CLASS", "SECRETS"] if self.wide else []
        return [[*first, "STATUS", "APPLIED", "HEALTHY", "PROGRESSING", "OBJECTS", *more, "AGE", "MESSAGE"]]

    def row(self, managed_resource: Object, *, now: datetime) -> Line:
        name = key(managed_resource)
        message = message_of(managed_resource)
        return [
            *([name.namespace] if self.with_namespace else []),
            name.name,
            state_word(state_of(managed_resource)),
            status_word(status_of(managed_resource, RESOURCES_APPLIED), good="True"),
            status_word(status_of(managed_resource, RESOURCES_HEALTHY), good="True"),
            status_word(status_of(managed_resource, RESOURCES_PROGRESSING), good="False"),
            str(object_count(managed_resource)),
            *(
                [class_of(managed_resource) or "-", ",".join(secret_names(managed_resource)) or "-"]
                if self.wide
                else []
            ),
            age(metadata(managed_resource).get("creationTimestamp"), now),
            " ".join(message.split()) if self.wide else shortened(brief(message), _SHORT_MESSAGE),
        ]


async def _list(found: AsyncIterator[Object], view: _View) -> int:
    now = datetime.now(UTC)
    rows = [view.row(item, now=now) async for item in found]
    if rows:
        output.show(Columns().lines([*view.header(), *rows]))
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
    """Show the table, then a line for each visible change."""
    # Late import: with its libraries, this takes a fifth of the time of a start.
    from kube.runtime.watch import Deleted, ListBegins, ListEnds, Watcher

    selection = Selection(namespace=namespace, label_selector=chosen.selector)
    watcher = Watcher(session.source.client, MANAGED_RESOURCES, selection, page_size=PAGE)
    shown: dict[Key, Line] = {}
    columns = Columns()
    listed: list[Line] | None = []
    async with aclosing(watcher.events()) as events:
        async for event in events:
            if isinstance(event, ListBegins):
                listed = []
            elif isinstance(event, ListEnds):
                if event.resource_version is None:
                    raise KindMissing
                output.show(columns.lines([*view.header(), *(listed or [])]))
                listed = None
            elif chosen.includes(event.object):
                line = view.row(event.object, now=datetime.now(UTC))
                if not _is_news(shown, key(event.object), None if isinstance(event, Deleted) else line):
                    continue
                if listed is not None:
                    listed.append(line)
                else:
                    output.show(columns.lines([line]))


def _is_news(shown: dict[Key, Line], name: Key, line: Line | None) -> bool:
    """Whether a line, None for a deleted one, shows a change; a different age does not count."""
    if line is None:
        return shown.pop(name, None) is not None
    compared = [*line[:-2], line[-1]]
    is_new = shown.get(name) != compared
    shown[name] = compared
    return is_new
