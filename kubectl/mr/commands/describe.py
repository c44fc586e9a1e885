"""`kubectl mr describe`: one page about a ManagedResource, with remedies for its problems."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import click

from gardener.conditions import READY, RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING
from gardener.managed_resource.references import listed_in, secret_names
from gardener.overview.hints import hints
from gardener.overview.objects import Live, as_reported
from gardener.overview.states import ResourceState, message_of, state_of, suspension, without_false_namespaces
from gardener.responsibility import DEFAULT_CLASS, class_of
from kube.errors import Forbidden
from kube.objects import Object, condition, is_deleting, key, metadata
from kubectl import options, output
from kubectl.mr import managed_resources, parameters
from kubectl.mr.causes import explained
from kubectl.mr.commands.events import about, line_of, read_events
from kubectl.mr.desired import Contents, read_contents
from kubectl.mr.live import health_word, read_all
from kubectl.mr.managed_resources import state_word, status_word
from kubectl.output import Form
from kubectl.session import Session, on_cluster
from kubectl.style import BOLD, DIM, RED, Line, Word, age, size, table

_EVENTS = 10


@click.command
@parameters.name
@options.form
@on_cluster()
async def command(session: Session, *, name: str, form: Form | None) -> None:
    """Reads the objects to show their current health."""
    managed_resource = await managed_resources.named(session, name)
    contents = await _contents(session, managed_resource)
    manifests = None if contents is None else contents.manifests()
    found = as_reported(managed_resource, await read_all(session.target, listed_in(managed_resource)), manifests)
    found = await explained(session.target, found)
    if form is not None:
        output.show_data(data(managed_resource, found), form)
        return
    events = about([live.reference for live in found], await read_events(session, [name]))
    output.show(page(managed_resource, contents, found, events[-_EVENTS:], now=datetime.now(UTC)))


async def _contents(session: Session, managed_resource: Object) -> Contents | None:
    """Contents of its Secrets; None if they may not be read: much can be shown without them."""
    try:
        return await read_contents(session.source.client, managed_resource)
    except Forbidden:
        return None


def data(managed_resource: Object, found: Iterable[Live]) -> Object:
    meta = {name: value for name, value in metadata(managed_resource).items() if name != "managedFields"}
    return {
        "state": state_of(managed_resource),
        "message": message_of(managed_resource),
        "managedResource": {**managed_resource, "metadata": meta},
        "objects": [{**live.reference, "health": live.status.health, "message": live.status.message} for live in found],
    }


def page(
    managed_resource: Object,
    contents: Contents | None,
    found: Sequence[Live],
    events: Sequence[Object],
    *,
    now: datetime,
) -> Iterator[Line]:
    yield from table(list(_head(managed_resource, now)))
    yield from _section("Secrets", _secrets(managed_resource, contents))
    yield from _section("Conditions", _conditions(managed_resource, found, now))
    yield from _section(f"Objects ({len(found)})", [_object(live) for live in found])
    yield from _section("Events", [line_of(event, now) for event in events])
    advice = hints(managed_resource, found)
    if advice:
        yield []
        yield [Word("What to do:", BOLD)]
        yield from (["  ► ", text] for text in advice)


def _head(managed_resource: Object, now: datetime) -> Iterator[Line]:
    meta, spec = metadata(managed_resource), managed_resource.get("spec") or {}
    state = state_of(managed_resource)
    yield ["Name:", str(key(managed_resource))]
    yield ["Status:", state_word(state)]
    if state is ResourceState.SUSPENDED:
        yield ["Suspended:", suspension(managed_resource)]
    yield ["Class:", class_of(managed_resource) or f"{DEFAULT_CLASS} (the default)"]
    yield ["Created:", f"{age(meta.get('creationTimestamp'), now)} ago"]
    if is_deleting(managed_resource):
        yield ["Deleted:", f"{age(meta.get('deletionTimestamp'), now)} ago"]
    for field in ("keepObjects", "deletePersistentVolumeClaims", "forceOverwriteLabels", "forceOverwriteAnnotations"):
        if spec.get(field):
            yield [f"{field}:", "true"]
    if spec.get("injectLabels"):
        yield ["Labels for objects:", ", ".join(f"{name}={value}" for name, value in spec["injectLabels"].items())]


def _section(title: str, rows: Sequence[Line]) -> Iterator[Line]:
    yield []
    yield [Word(f"{title}:", BOLD)]
    if not rows:
        yield ["  ", Word("none", DIM)]
    yield from (["  ", *line] for line in table(rows))


def _secrets(managed_resource: Object, contents: Contents | None) -> list[Line]:
    if contents is None:
        return [[name, "you may not read it"] for name in secret_names(managed_resource)]
    present = {key(secret).name: _secret(secret) for secret in contents.secrets}
    return [[name, present.get(name) or Word("does not exist", RED)] for name in secret_names(managed_resource)]


def _secret(secret: Object) -> str:
    values = secret.get("data") or {}
    # Base64 has four characters for three bytes.
    length = sum(len(value) * 3 // 4 - value.count("=") for value in values.values())
    text = f"{', '.join(sorted(values)) or 'empty'} ({size(length)})"
    return f"{text}, immutable" if secret.get("immutable") else text


def _conditions(managed_resource: Object, objects: Sequence[Live], now: datetime) -> list[Line]:
    references = [live.reference for live in objects]
    rows: list[Line] = []
    expected = {RESOURCES_APPLIED: "True", RESOURCES_HEALTHY: "True", RESOURCES_PROGRESSING: "False"}
    if condition(managed_resource, READY):
        expected[READY] = "True"
    for kind, good in expected.items():
        found = condition(managed_resource, kind)
        if found is None:
            rows.append([kind, Word("-", DIM), "", "", ""])
            continue
        since = age(found.get("lastTransitionTime"), now)
        message = " ".join(without_false_namespaces(found.get("message") or "", references).split())
        rows.append(
            [kind, status_word(found.get("status") or "", good=good), since, found.get("reason") or "", message]
        )
    return rows


def _object(live: Live) -> Line:
    return [live.name, health_word(live.status), live.status.message]
