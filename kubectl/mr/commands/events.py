"""`kubectl mr events`: Events of ManagedResources and of their objects."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import click

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.references import listed_in
from gardener.overview.events import count, in_order, last_seen
from gardener.overview.states import without_false_namespaces
from kube.objects import Object
from kube.resources import EVENTS
from kube.runtime.client import Selection
from kubectl import options, output
from kubectl.mr import managed_resources, parameters
from kubectl.output import Output
from kubectl.session import Session, on_cluster
from kubectl.style import GREEN, YELLOW, Line, Word, age, table


@click.command
@click.argument(
    "name", required=False, help="Only Events of this ManagedResource.", shell_complete=parameters.complete_name
)
@parameters.all_namespaces("all_namespaces")
@click.option("--objects", is_flag=True, help="Also show Events of its objects; requires a NAME.")
@options.output
@on_cluster()
async def command(
    session: Session, *, name: str | None, all_namespaces: bool, objects: bool, form: Output | None
) -> None:
    """API servers delete Events after an hour, unless configured otherwise."""
    if objects and name is None:
        raise click.BadParameter("needs the NAME of a ManagedResource", param_hint="--objects")
    if name is not None:
        managed_resource = await managed_resources.named(session, name)
        found = about(listed_in(managed_resource), await read_events(session, [name]))
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
    """Columns of an Event: age, type, reason, message."""
    seen, times = age(last_seen(event) or None, now), count(event)
    kind = event.get("type") or ""
    return [
        f"{seen} (x{times})" if times > 1 else seen,
        Word(kind, YELLOW if kind == "Warning" else GREEN),
        event.get("reason") or "",
        " ".join((event.get("message") or "").split()),
    ]


async def read_events(session: Session, names: Iterable[str], *, everywhere: bool = False) -> list[Object]:
    """Events about ManagedResources, the newest at the end."""
    chosen = [f"involvedObject.kind={MANAGED_RESOURCES.kind}", *(f"involvedObject.name={name}" for name in names)]
    selection = Selection(namespace="" if everywhere else session.namespace, field_selector=",".join(chosen))
    return in_order(await session.source.client.list(EVENTS, selection))


def about(references: Sequence[Object], events: Iterable[Object]) -> list[Object]:
    """Events of the ManagedResource with these objects; messages name cluster-scoped ones without a namespace."""
    return [{**event, "message": without_false_namespaces(event.get("message") or "", references)} for event in events]


async def _about_objects(session: Session, managed_resource: Object) -> list[Object]:
    """Events about its objects, by one list per namespace."""
    references = listed_in(managed_resource)
    wanted = {(r.get("kind"), r.get("namespace") or "", r.get("name")) for r in references}
    found: list[Object] = []
    # Events about objects without a namespace are in `default`.
    for namespace in sorted({namespace or "default" for _, namespace, _ in wanted}):
        for event in await session.target.client.list(EVENTS, Selection(namespace=namespace)):
            about = event.get("involvedObject") or {}
            if (about.get("kind"), about.get("namespace") or "", about.get("name")) in wanted:
                found.append(event)
    return found
