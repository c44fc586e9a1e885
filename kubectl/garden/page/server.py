"""Paths of the page: `/TOKEN/` is the list, `/TOKEN/KIND/CLUSTER/NAMESPACE/NAME` one object, `-` an empty part.

Links are relative, so no page contains the token.
"""

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from aiohttp import web

from gardener import flow_pictures
from gardener.api.garden import SEEDS, SHOOTS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_PROGRESSING
from gardener.flow_reports import FlowReport
from gardener.overview.hints import hints
from gardener.overview.states import LOOKS, ResourceState
from kube.errors import KubeError
from kube.objects import Key, Object, mapping, text
from kube.paths import at
from kube.resources import Resource
from kube.runtime.client import Client
from kubectl.errors import UserError
from kubectl.garden.gardenlet import NoFlow, gardenlet_at, gardenlet_in, local_url
from kubectl.garden.page.reading import Overview
from kubectl.garden.page.rows import KINDS, Query, Row, listing_of, row_of
from kubectl.garden.reading import explained
from kubectl.garden.why.finding import Finding, Level, conditions, ordered
from kubectl.kinds import plural
from kubectl.reader import Reader
from process.pages import answers, templates
from process.pages.paging import span_of

_LEVELS: Mapping[Level, tuple[str, str]] = {
    Level.BLOCKED: ("‖", "warn"),
    Level.PROBLEM: ("✕", "bad"),
    Level.NEXT: ("↻", "busy"),
    Level.INFO: ("–", "dim"),
}
_EMPTY = "-"


def _path_of(row: Row) -> str:
    parts = (row.resource.plural, row.cluster, row.key.namespace, row.key.name)
    return "/".join(quote(each or _EMPTY, safe="") for each in parts)


_environment = templates.environment(
    Path(__file__).parent / "templates", flow_pictures.TEMPLATES, server="Garden", files="static"
)
_environment.globals |= {**flow_pictures.GLOBALS, "state_looks": LOOKS, "level_looks": _LEVELS, "path_of": _path_of}


class Chip(NamedTuple):
    """Number of objects of a kind or in a state, and a link to them."""

    name: str
    state: ResourceState | None
    total: int
    link: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Page:
    """The handler.

    Attributes:
        token: first part of each path.
        overview: the clusters, and the list of their objects.
    """

    token: str
    overview: Overview

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        static = request.path.removeprefix(f"/{self.token}/static")
        if (first := templates.answer_first(request, static, on_loopback=True)) is not None:
            return first
        _, token, *parts = request.rel_url.raw_path.split("/")
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return answers.fresh(403, "open the complete address that the command has printed\n", "text/plain")
        now = datetime.now(UTC)
        match [unquote(each) for each in parts]:
            case [""]:
                return await self._list(Query.of(request.query), now)
            case [plural_name, cluster, namespace, name]:
                resource = next((each for each in KINDS if each.plural == plural_name), None)
                client = self.overview.clusters.get("" if cluster == _EMPTY else cluster)
                if resource is not None and client is not None:
                    own = Key("" if namespace == _EMPTY else namespace, name)
                    return await self._one(resource, client, own, now)
        return _render(404, "problem.html", parts, now=now, title="Not found", problem="There is no such page.")

    async def _list(self, query: Query, now: datetime) -> web.Response:
        found = await self.overview.snapshot()
        listing = listing_of(found.rows, query)
        return _render(
            200,
            "list.html",
            [""],
            now=now,
            title="Overview",
            query=query,
            listing=listing,
            caption=span_of(listing.page, "object") if listing.page.total else "No object matches.",
            chips=[
                [
                    Chip("All states", None, sum(listing.states.values()), query.link(state=""), not query.state),
                    *(
                        Chip(state, state, listing.states[state], query.link(state=state), query.state == state)
                        for state in ResourceState
                        if listing.states.get(state) or query.state == state
                    ),
                ],
                [
                    Chip("All kinds", None, sum(listing.kinds.values()), query.link(kind=""), not query.kind),
                    *(
                        Chip(
                            plural(each.kind),
                            None,
                            listing.kinds.get(each.kind, 0),
                            query.link(kind=each.kind),
                            query.kind == each.kind,
                        )
                        for each in KINDS
                    ),
                ],
            ],
            notes=found.notes,
        )

    async def _one(self, resource: Resource, client: Client, own: Key, now: datetime) -> web.Response:
        parts = ["", "", "", ""]
        title = f"{resource.kind} {own}"
        reader = Reader(client)
        try:
            obj = await reader.demand(resource, own)
            if resource == MANAGED_RESOURCES:
                findings = list(_of_managed_resource(obj, now))
            else:
                findings = ordered(await explained(reader, resource, own, now))
            flows, problem = await self._flows(resource, obj, own)
        except UserError as error:
            return _render(404, "problem.html", parts, now=now, title=title, problem=str(error))
        except KubeError as error:
            return _render(502, "problem.html", parts, now=now, title=title, problem=str(error))
        return _render(
            200,
            "object.html",
            parts,
            now=now,
            title=title,
            row=row_of("", resource, obj),
            findings=findings,
            flows=flows,
            notes=[*(f"You may not read {each}; findings that depend on it are missing." for each in reader.unread)],
            flow_problem=problem,
        )

    async def _flows(self, resource: Resource, obj: Object, own: Key) -> tuple[dict[str, FlowReport], str]:
        """Reports by their headings; and the reason if there is none, empty for objects without flows."""
        if resource not in {SHOOTS, SEEDS}:
            return {}, ""
        seed = own.name if resource == SEEDS else text(at(obj, "status", "seedName"))
        clusters = self.overview.clusters
        try:
            if url := await local_url(clusters[""], resource, own):
                async with gardenlet_at(url) as gardenlet:
                    found = await gardenlet.flows(resource, own)
            elif seed in clusters:
                found = await (await gardenlet_in(clusters[seed])).flows(resource, own)
            else:
                return {}, f"To see its flow, name the kubeconfig of its seed: --seed-kubeconfig {seed or 'SEED'}=FILE"
        except NoFlow:
            return {}, "Its gardenlet has started no flow of it since its own start."
        except (UserError, KubeError) as error:
            return {}, f"Its flow can't be read: {error}"
        headings = {"running": "Running flow", "last": "Last flow"}
        return {heading: FlowReport.of(mapping(found[name])) for name, heading in headings.items() if name in found}, ""


def _of_managed_resource(obj: Object, now: datetime) -> Iterable[Finding]:
    yield from conditions(obj, "conditions", now=now, good_if_false={RESOURCES_PROGRESSING: Level.NEXT})
    for hint in hints(obj, ()):
        yield Finding(level=Level.INFO, about="remedy", text=hint)


def _render(status: int, template: str, parts: Sequence[str], *, now: datetime, **shown: Any) -> web.Response:
    """Args: parts: of the path below the token, for links to the list."""
    root = "../" * (len(parts) - 1) or "./"
    return answers.fresh(status, _environment.get_template(template).render(root=root, now=now, **shown))
