"""`kubectl mr events`: what the agent has told about ManagedResources, and others about their objects."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

import typer

from gardener.kinds import MANAGED_RESOURCES
from gardener.overview.objects import listed_in
from kube.client import Selection
from kube.objects import Object
from kube.resources import EVENTS
from kubectl_mr import options, output
from kubectl_mr.output import Output
from kubectl_mr.session import Session, on_cluster
from kubectl_mr.style import GREEN, YELLOW, Line, Word, age, table

_NEVER = "0000"


@on_cluster()
async def command(
    session: Session,
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Only of this one.", autocompletion=options.complete_name)
    ] = None,
    all_namespaces: options.AllNamespacesFlag = False,
    objects: Annotated[
        bool, typer.Option("--objects", help="Also what was told about its objects; needs a NAME.")
    ] = False,
    form: options.OutputFlag = None,
) -> None:
    """Events are forgotten by the API server after an hour, unless it was set up otherwise."""
    if objects and name is None:
        raise typer.BadParameter("needs the NAME of a ManagedResource", param_hint="--objects")
    if name is not None:
        managed_resource = await session.managed_resource(name)
        found = await read_events(session, [name])
        if objects:
            found = in_order([*found, *await _about_objects(session, managed_resource)])
    else:
        found = await read_events(session, (), everywhere=all_namespaces)
    _show(found, form, with_namespace=all_namespaces or objects)


def _show(found: list[Object], form: Output | None, *, with_namespace: bool) -> None:
    if form is Output.NAME:
        output.show([f"event/{event['metadata']['name']}"] for event in found)
    elif form in {Output.JSON, Output.YAML}:
        output.show_data({"apiVersion": "v1", "kind": "List", "items": found}, form)
    elif not found:
        output.waiting("no events")
    else:
        now = datetime.now(UTC)
        rows = [[*_place(event, with_namespace=with_namespace), *line_of(event, now)] for event in found]
        head = [*(["NAMESPACE"] if with_namespace else []), "OBJECT", "LAST SEEN", "TYPE", "REASON", "MESSAGE"]
        output.show(table(rows, header=head))


def _place(event: Object, *, with_namespace: bool) -> Line:
    about = event.get("involvedObject") or {}
    name = f"{about.get('kind')}/{about.get('name')}"
    return [about.get("namespace") or "-", name] if with_namespace else [name]


def line_of(event: Object, now: datetime) -> Line:
    """When, of what type, why, what."""
    seen = age(_time(event) or None, now)
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    kind = event.get("type") or ""
    return [
        f"{seen} (x{count})" if count > 1 else seen,
        Word(kind, YELLOW if kind == "Warning" else GREEN),
        event.get("reason") or "",
        " ".join((event.get("message") or "").split()),
    ]


async def read_events(session: Session, names: Iterable[str], *, everywhere: bool = False) -> list[Object]:
    """Those about ManagedResources, the newest at the end."""
    chosen = [f"involvedObject.kind={MANAGED_RESOURCES.kind}", *(f"involvedObject.name={name}" for name in names)]
    selection = Selection(namespace="" if everywhere else session.namespace, field_selector=",".join(chosen))
    return in_order(await session.source.client.list(EVENTS, selection))


async def _about_objects(session: Session, managed_resource: Object) -> list[Object]:
    """One list for each namespace that it has objects in."""
    references = listed_in(managed_resource)
    wanted = {(r.get("kind"), r.get("namespace") or "", r.get("name")) for r in references}
    found: list[Object] = []
    # Events about objects of no namespace are in `default`.
    for namespace in sorted({namespace or "default" for _, namespace, _ in wanted}):
        for event in await session.target.client.list(EVENTS, Selection(namespace=namespace)):
            about = event.get("involvedObject") or {}
            if (about.get("kind"), about.get("namespace") or "", about.get("name")) in wanted:
                found.append(event)
    return found


def in_order(events: Iterable[Object]) -> list[Object]:
    return sorted(events, key=lambda event: _time(event) or _NEVER)


def _time(event: Object) -> str:
    last = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp")
    found: str = last or event.get("eventTime") or event.get("firstTimestamp") or ""
    return found
