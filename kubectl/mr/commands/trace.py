"""`kubectl mr trace`: from an object back to the ManagedResource and the Secret that it comes from."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import click

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_APPLIED
from gardener.keys import ORIGIN
from gardener.managed_resource.references import key_of
from gardener.overview.objects import health_status, name_of
from gardener.overview.states import message_of, state_of
from gardener.responsibility import DEFAULT_CLASS, Origin, class_of, parse_origin
from kube.errors import Forbidden, KubeError, NotFound
from kube.objects import Key, Object, annotations, condition, controller_of, key
from kube.resources import Resource
from kube.runtime.client import Client
from kube.runtime.discovery_documents import AGGREGATED
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.mr.commands.tree import sources_of
from kubectl.mr.desired import read_contents
from kubectl.mr.live import health_word, read_object
from kubectl.mr.managed_resources import state_word
from kubectl.output import Form
from kubectl.session import Cluster, Session, on_cluster
from kubectl.style import Line, age, table

_DEPTH = 10


@click.command
@click.argument("what", metavar="KIND/NAME", help="Object, such as deploy/storefront.")
@options.form
@on_cluster()
async def command(session: Session, *, what: str, form: Form | None) -> int:
    """Follows owners upwards, so that KIND/NAME can be a Pod as well. The namespace is the namespace of the object."""
    kind, slash, name = what.partition("/")
    if not (kind and slash and name) or "/" in name:
        raise click.BadParameter("must be KIND/NAME, such as deploy/storefront", param_hint="KIND/NAME")
    trace = await _trace(session, kind, name)
    if form is not None:
        output.show_data(data(trace), form)
    else:
        output.show(lines(trace, now=datetime.now(UTC)))
    return 0 if trace.managed_resource is not None else 1


@dataclass(frozen=True, slots=True)
class Trace:
    chain: Sequence[Object]
    """The object, its owner, the owner of that, and so on."""
    origin: Origin | None
    managed_resource: Object | None
    secret: str
    """Place of the manifest; empty if unknown."""


async def _trace(session: Session, kind: str, name: str) -> Trace:
    resource = await find_kind(session.target.client, kind)
    namespace = session.namespace if resource.namespaced else ""
    try:
        obj = await session.target.client.get(resource, Key(namespace, name))
    except NotFound:
        place = f" in namespace {namespace}" if namespace else ""
        raise UserError(f"{resource.kind} {name} not found{place}", hint="name another namespace by -n") from None
    chain = [obj]
    while len(chain) < _DEPTH and (owner := await _owner(session.target, chain[-1])):
        chain.append(owner)
    # A ReplicaSet has the annotations of its Deployment: only the uppermost object was applied.
    applied = next((i for i in reversed(range(len(chain))) if _origin(chain[i])), None)
    if applied is None:
        return Trace(chain, None, None, "")
    chain = chain[: applied + 1]
    origin = _origin(chain[-1])
    assert origin is not None
    try:
        found = await session.source.client.get(MANAGED_RESOURCES, origin.key)
    except NotFound:
        return Trace(chain, origin, None, "")
    return Trace(chain, origin, found, await _secret(session, found, chain[-1]))


async def _owner(cluster: Cluster, obj: Object) -> Object | None:
    reference = controller_of(obj)
    return await read_object(cluster, {"namespace": key(obj).namespace, **reference}) if reference else None


def _origin(obj: Object) -> Origin | None:
    try:
        return parse_origin(annotations(obj).get(ORIGIN) or "")
    except ValueError:
        return None


async def _secret(session: Session, managed_resource: Object, obj: Object) -> str:
    try:
        contents = await read_contents(session.source.client, managed_resource)
        decoded = contents.decoded()
        sources = await sources_of(decoded, session.target.discovery)
    except Forbidden:
        return "you may not read its Secrets"
    except KubeError as error:
        return str(error)
    source = sources.get(key_of(obj))
    return f"{source.secret}, {source.place}" if source else "none of its Secrets has the object any more"


def lines(trace: Trace, *, now: datetime) -> Iterator[Line]:
    rows: list[Line] = []
    for position, obj in enumerate(trace.chain):
        status = health_status(obj)
        message = f": {status.message}" if status.message else ""
        rows.append(["Owned by:" if position else "Object:", f"{name_of(obj)} {health_word(status)}{message}"])
    rows += _managed_by(trace)
    if trace.managed_resource is not None:
        found = condition(trace.managed_resource, RESOURCES_APPLIED) or {}
        rows += [
            ["Status:", _status(trace.managed_resource)],
            ["Class:", class_of(trace.managed_resource) or f"{DEFAULT_CLASS} (the default)"],
            ["Secret:", trace.secret],
            ["Applied:", f"{found.get('status') or 'not yet'}, since {age(found.get('lastTransitionTime'), now)}"],
        ]
    yield from table(rows)


def _managed_by(trace: Trace) -> list[Line]:
    if trace.origin is None:
        return [["Managed by:", "no ManagedResource"]]
    text = f"ManagedResource/{trace.origin.key}"
    if trace.origin.cluster_id:
        text += f" of cluster {trace.origin.cluster_id}"
    return [["Managed by:", text if trace.managed_resource else f"{text}, which does not exist here"]]


def _status(managed_resource: Object) -> str:
    message = " ".join(message_of(managed_resource).split())
    return f"{state_word(state_of(managed_resource))}{': ' if message else ''}{message}"


def data(trace: Trace) -> Object:
    found = trace.managed_resource
    return {
        "objects": [
            {"name": name_of(obj), "health": health_status(obj).health, "message": health_status(obj).message}
            for obj in trace.chain
        ],
        "managedResource": str(trace.origin.key) if trace.origin else None,
        "state": state_of(found) if found else None,
        "secret": trace.secret or None,
    }


# --- names of a kind: `deploy`, `deployments.apps`, `Deployment`


async def find_kind(client: Client, name: str) -> Resource:
    """Find the kind of this name, in its preferred version.

    Raises:
        UserError: there is none, or the API server is too old.
    """
    groups: list[Object] = []
    for path in ("/api", "/apis"):
        answer = await client.read(path, accept=AGGREGATED)
        if answer.get("kind") != "APIGroupDiscoveryList":
            raise UserError(
                "the API server is too old to list all its kinds at once: it needs Kubernetes 1.27 or newer"
            )
        groups += answer.get("items") or []
    found = matching_kind(name, groups)
    if found is None:
        raise UserError(f"the cluster knows no kind {name!r}", hint="see all of them: kubectl api-resources")
    return found


def matching_kind(name: str, groups: Iterable[Object]) -> Resource | None:
    """First kind with this name; the core group comes first."""
    wanted, _, group = name.lower().partition(".")
    for resource, names in _served(groups):
        if wanted in names and (not group or f"{resource.group}.".startswith(f"{group}.")):
            return resource
    return None


def _served(groups: Iterable[Object]) -> Iterator[tuple[Resource, set[str]]]:
    for group in groups:
        name = (group.get("metadata") or {}).get("name") or ""
        for version in (group.get("versions") or [])[:1]:
            for entry in version.get("resources") or []:
                kind = (entry.get("responseKind") or {}).get("kind") or ""
                plural = entry.get("resource") or ""
                names = {plural, entry.get("singularResource") or "", kind.lower(), *(entry.get("shortNames") or [])}
                yield (
                    Resource(name, version.get("version") or "", kind, plural, entry.get("scope") == "Namespaced"),
                    names,
                )
