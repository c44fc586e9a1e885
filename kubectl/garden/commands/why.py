"""`kubectl gardener why`: objects that wait for each other."""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from gardener.api.garden import SEEDS, SHOOTS
from gardener.flow_reports import FlowReport
from kube.errors import KubeError
from kube.objects import Key, is_deleting, mapping, text
from kube.paths import at
from kube.resources import NAMESPACES, Resource
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.garden import kinds
from kubectl.garden.commands import asking
from kubectl.garden.gardenlet import NoFlow, gardenlet_of, local_url
from kubectl.garden.reading import explained
from kubectl.garden.why import flow, held
from kubectl.garden.why.finding import Finding, Level, ordered
from kubectl.output import Form
from kubectl.reader import Reader
from kubectl.session import Session, on_cluster
from kubectl.style import BLUE, BOLD, DIM, GREEN, RED, YELLOW, Line, Word, table

_COLORS = {Level.BLOCKED: YELLOW, Level.PROBLEM: RED, Level.NEXT: BLUE, Level.INFO: DIM}


def _complete_kind(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in kinds.singulars() if name.startswith(incomplete)]


def _complete_name(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from kubectl.completion import names_of

    resource = kinds.find(ctx.params.get("kind") or "")
    return [] if resource is None else names_of(resource, ctx, incomplete)


@click.command
@click.argument(
    "kind", metavar="KIND", help="Kind of the object, such as shoot, seed, project.", shell_complete=_complete_kind
)
@click.argument("name", metavar="[NAME]", required=False, default="", shell_complete=_complete_name)
@asking.seed
@asking.gardenlet
@options.form
@on_cluster(target=False, garden=True)
async def command(session: Session, *, kind: str, name: str, url: str | None, form: Form | None) -> None:
    """Accepts KIND/NAME as one argument or two. Lists the most important findings first: what is blocked, problems,
    next steps; after an arrow, the remedy. Writes nothing. Lists objects that you may not read on stderr.

    For a Shoot or Seed, the gardenlet reports the object that each task of the operation waits for, if it runs on this
    computer, or you specify it or its cluster. For a Shoot in deletion, the seed cluster shows the remaining objects
    and their finalizers.
    """
    resource, own = _asked_for(session, kind, name)
    reader, now = Reader(session.source.client), datetime.now(UTC)
    of_flow = await _of_flow(session, resource, own, url)
    of_seed = Reader(session.target.client)
    held_in_seed = await _held(session, of_seed, resource, own, now)
    findings = ordered([*of_flow, *await explained(reader, resource, own, now), *held_in_seed])
    if form is None:
        output.show(lines(resource, own, findings))
    else:
        output.show_data(data(resource, own, findings, reader.unread), form)
    for what in [*reader.unread, *of_seed.unread]:
        output.warn(f"you may not read {what}, so findings that depend on that are missing")


async def _held(session: Session, seed: Reader, resource: Resource, own: Key, now: datetime) -> list[Finding]:
    """Findings about objects that hold the deletion of a Shoot, if the cluster of its seed is named."""
    if resource != SHOOTS or session.target is session.source:
        return []
    try:
        shoot = await session.source.client.find(SHOOTS, own)
        namespace = text(at(shoot or {}, "status", "technicalID"))
        if shoot is None or not is_deleting(shoot) or not namespace:
            return []
        return list(held.findings([each async for each in _going(seed, namespace)], now))
    except KubeError as error:
        output.warn(f"objects that delay the deletion in the seed are unknown: {error}")
        return []


async def _going(seed: Reader, namespace: str) -> AsyncIterator[held.Held]:
    """Objects of a Shoot that are being deleted. Args: namespace: its own in the seed."""
    for resource in held.KINDS:
        for each in await seed.those(resource, is_deleting, namespace=namespace):
            yield resource, each
    own = await seed.find(NAMESPACES, Key("", namespace))
    if own is not None and is_deleting(own):
        yield NAMESPACES, own


async def _of_flow(session: Session, resource: Resource, own: Key, url: str | None) -> list[Finding]:
    """Findings of the gardenlet, if requested or on this computer; empty if it has none, or does not answer."""
    if resource not in {SHOOTS, SEEDS}:
        return []
    try:
        if not url and session.target is session.source:
            url = await local_url(session.source.client, resource, own)
        if not url and session.target is session.source:
            return []
        async with gardenlet_of(session, url, resource, own) as gardenlet:
            found = await gardenlet.flows(resource, own)
    except NoFlow:
        return []
    except (UserError, KubeError) as error:
        output.warn(f"the state of its tasks is unknown: {error}")
        return []
    return list(flow.findings(FlowReport.of(mapping(found.get("running") or found.get("last")))))


def _asked_for(session: Session, kind: str, name: str) -> tuple[Resource, Key]:
    """Resource and key of the requested object. Raises UserError."""
    called, slash, rest = kind.partition("/")
    if bool(rest) == bool(name):
        problem = "names two objects" if rest else "names no object"
        raise UserError(f"the command line {problem}", hint="for example: kubectl gardener why shoot NAME -n NAMESPACE")
    resource = kinds.demand(called)
    return resource, Key(session.namespace if resource.namespaced else "", rest if slash else name)


def lines(resource: Resource, own: Key, findings: Sequence[Finding]) -> Iterator[Line]:
    yield [Word(f"{resource.kind} {own}", BOLD)]
    if not findings:
        yield [Word("no problems, and no pending work", GREEN)]
    yield from table([[Word(each.level, _COLORS[each.level]), each.about, _text(each)] for each in findings])


def _text(finding: Finding) -> str:
    return f"{finding.text} → {finding.remedy}" if finding.remedy else finding.text


def data(resource: Resource, own: Key, findings: Sequence[Finding], unread: Sequence[str]) -> dict[str, Any]:
    return {
        **resource.type_meta,
        **({"namespace": own.namespace} if own.namespace else {}),
        "name": own.name,
        "findings": [each.data() for each in findings],
        "unread": list(unread),
    }
