"""`kubectl mr diff`: what the agent would change, found out by a dry run of its own writes.

Each object is merged as the agent would merge it, and the API server tells what it would become, defaults and webhooks
included. So there are no differences where there is nothing to do.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from gardener.keys import FIELD_MANAGER
from gardener.managed_resource.merge import MergeError
from gardener.managed_resource.plan import Wanted
from gardener.managed_resource.references import key_of_reference
from gardener.overview.objects import short_name
from gardener.overview.states import State, state_of
from kube.client import Client
from kube.errors import Forbidden, KubeError
from kube.objects import Object, is_deleting
from kube.resources import Resource
from kubectl_mr import options, output
from kubectl_mr.changes import Change, changes, described
from kubectl_mr.desired import Merging, autoscaled, plan_of, read_contents
from kubectl_mr.errors import UserError
from kubectl_mr.live import read_object
from kubectl_mr.session import Cluster, Session, gathered, on_cluster
from kubectl_mr.style import BLUE, DIM, GREEN, RED, Line, Word, counted

_AT_ONCE = 8
_DIFFERENT, _FAILED = 1, 2


@on_cluster(error_code=_FAILED)
async def command(session: Session, *, name: options.Name, form: options.FormFlag = None) -> int:
    """Exit code 0: no difference, 1: differences, 2: it could not be found out.

    Values of Secrets are masked. You need the permission to update the objects: the API server is asked what it would
    do, and does nothing.
    """
    managed_resource = await session.managed_resource(name)
    if state_of(managed_resource) is State.SUSPENDED:
        output.warn("it is suspended: differences stay until kubectl mr resume")
    found = await _differences(session, managed_resource)
    if form is not None:
        output.show_data([difference.json() for difference in found], form)
    else:
        output.show(lines(found))
        output.done("no differences") if not found else output.waiting(summary(found))
    if any(difference.problem for difference in found):
        return _FAILED
    return _DIFFERENT if found else 0


@dataclass(frozen=True, slots=True)
class Difference:
    name: str
    what: str
    """`changed`, `created`, `removed`, or `unknown` if there is a problem."""
    changes: Sequence[Change] = ()
    problem: str = ""

    def json(self) -> Object:
        told: Object = {"name": self.name, "what": self.what}
        if self.changes:
            told["changes"] = [change.json() for change in self.changes]
        return told | ({"problem": self.problem} if self.problem else {})


async def _differences(session: Session, managed_resource: Object) -> list[Difference]:
    if is_deleting(managed_resource):
        raise UserError("it is being deleted", hint="what is left of it: kubectl mr describe")
    contents = await read_contents(session.source.client, managed_resource)
    if contents.missing:
        raise UserError(f"Secrets are missing: {', '.join(contents.missing)}; nothing is applied without them")
    plan = await plan_of(managed_resource, contents.secrets, session.target.discovery)
    merging = Merging(managed_resource, await autoscaled(session.target))
    compare = partial(_difference, session.target, merging)
    found = await gathered(compare, plan.wanted(), at_once=_AT_ONCE)
    problems = [Difference("document", "unknown", problem=error) for error in plan.decode_errors]
    kept = {key_of_reference(reference) for reference in plan.released}
    # While some documents can't be read, the agent removes nothing.
    leftovers = [] if problems else [r for r in merging.inventory.unwanted() if key_of_reference(r) not in kept]
    removed = [Difference(short_name(reference), "removed") for reference in leftovers]
    return [*problems, *(difference for difference in found if difference), *removed]


async def _difference(cluster: Cluster, merging: Merging, wanted: Wanted) -> Difference | None:
    name = short_name(wanted.reference)
    merging.inventory.find(wanted.reference)
    if wanted.resource is None or wanted.problem:
        return Difference(name, "unknown", problem=wanted.problem)
    try:
        live = await read_object(cluster, wanted.reference)
        if live is None:
            return Difference(name, "created")
        if wanted.is_ignored:
            return None
        merged = merging.merged(wanted, live)
        would_be = await _dry_run(cluster.client, wanted.resource, merged)
    except Forbidden as error:
        return Difference(name, "unknown", problem=f"{error}; diff needs the permission to update, for a dry run")
    except (KubeError, MergeError) as error:
        return Difference(name, "unknown", problem=str(error))
    found = changes(live, would_be)
    return Difference(name, "changed", found) if found else None


async def _dry_run(client: Client, resource: Resource, merged: Object) -> Object:
    """What a write of the agent would make of it."""
    meta: dict[str, Any] = merged["metadata"]
    path = resource.path(namespace=meta.get("namespace") or "", name=meta["name"])
    parameters = {"dryRun": "All", "fieldManager": FIELD_MANAGER}
    would_be: Object = orjson.loads(await client.request("PUT", path, params=parameters, body=merged))
    return would_be


_WORDS = {
    "changed": Word("would be changed", BLUE),
    "created": Word("would be created", GREEN),
    "removed": Word("would be removed", RED),
    "unknown": Word("cannot be compared", RED),
}


def lines(found: Iterable[Difference]) -> Iterator[Line]:
    for difference in found:
        yield [Word("► ", BLUE), f"{difference.name} ", _WORDS[difference.what]]
        if difference.problem:
            yield ["  ", Word(difference.problem, DIM)]
        for change in difference.changes:
            yield from described(change)


def summary(found: Sequence[Difference]) -> str:
    counts = {what: sum(difference.what == what for difference in found) for what in _WORDS}
    told = ", ".join(f"{count} {_WORDS[what]}" for what, count in counts.items() if count)
    return f"{counted(len(found), 'object')}: {told}"
