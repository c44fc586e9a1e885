"""`kubectl mr tree`: Secrets, the objects in them, the objects that these own, and the health of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from gardener import keys
from gardener.managed_resource.decode import DecodeResult
from gardener.managed_resource.references import in_its_namespace, key_of_reference, listed_in, reference_of
from gardener.overview.objects import Health, HealthStatus, Live, as_reported
from gardener.overview.states import ResourceState, message_of, state_of
from kube.errors import KubeError
from kube.objects import Object, annotations, key, uid
from kube.runtime.discovery import Discovery
from kubectl import options, output
from kubectl.mr import managed_resources, parameters
from kubectl.mr.desired import Contents, read_contents
from kubectl.mr.live import OWNERS, Owned, by_key, demand_here, health_word, owned_objects, read_all
from kubectl.mr.managed_resources import state_word
from kubectl.output import Form
from kubectl.session import Session, on_cluster
from kubectl.style import DIM, RED, Branch, Line, Word, tree

_DEPTH = 4


@click.command
@parameters.name
@options.form
@on_cluster()
async def command(session: Session, *, name: str, form: Form | None) -> None:
    """Omits old ReplicaSets without pods."""
    managed_resource = await managed_resources.named(session, name)
    await demand_here(session, managed_resource)
    contents = await read_contents(session.source.client, managed_resource)
    sources = await sources_of(contents.decoded(), session.target.discovery)
    found = await read_all(session.target, everything(managed_resource, sources))
    found = as_reported(managed_resource, found, contents.manifests())
    owners = [live for live in found if live.reference.get("kind") in OWNERS and live.object is not None]
    owned = await owned_objects(session.target, {live.reference.get("namespace") or "" for live in owners})
    root = build(managed_resource, contents, sources, by_key(found), owned)
    if form is not None:
        output.show_data(as_data(root), form)
    else:
        output.show(tree(root))


@dataclass(frozen=True, slots=True)
class Source:
    """An object in a Secret."""

    reference: Object
    secret: str
    place: str
    """Data key and index of the document, as in the conditions."""
    is_released: bool


async def sources_of(decoded: DecodeResult, discovery: Discovery) -> dict[str, Source]:
    """Sources by object key; if an object occurs twice, the last."""
    found: dict[str, Source] = {}
    for item in decoded.objects:
        try:
            kind = await discovery.find(item.object.get("apiVersion") or "", item.object.get("kind") or "")
            namespaced: bool | None = kind.namespaced
        except KubeError:
            namespaced = None
        obj = in_its_namespace(item.object, namespaced=namespaced)
        reference = reference_of(obj, injected_labels={})
        place = f"{item.data_key}, index {item.index}"
        released = annotations(obj).get(keys.MODE) == keys.MODE_IGNORE
        found[key_of_reference(reference)] = Source(reference, item.secret.name, place, released)
    return found


def everything(managed_resource: Object, sources: Mapping[str, Source]) -> list[Object]:
    """References of listed objects, and of those that are only in the Secrets."""
    references = {key_of_reference(reference): reference for reference in listed_in(managed_resource)}
    return [*references.values(), *(s.reference for name, s in sources.items() if name not in references)]


def build(
    managed_resource: Object,
    contents: Contents,
    sources: Mapping[str, Source],
    live: Mapping[str, Live],
    owned: Mapping[str, Sequence[Owned]],
) -> Branch:
    root = Branch(_root_line(managed_resource), {"kind": "ManagedResource", "name": str(key(managed_resource))})
    root.data |= {"state": state_of(managed_resource), "message": message_of(managed_resource)}
    for secret in contents.secrets:
        name, data_keys = key(secret).name, ", ".join(sorted(secret.get("data") or {}))
        branch = Branch([f"Secret/{name}", Word(f" ({data_keys})", DIM)], {"kind": "Secret", "name": name})
        branch.children = [
            _object(live[found], owned, released=source.is_released)
            for found, source in sources.items()
            if source.secret == name and found in live
        ]
        root.children.append(branch)
    for name in contents.missing:
        lost = {"kind": "Secret", "name": name, "health": Health.MISSING}
        root.children.append(Branch([f"Secret/{name} ", Word("does not exist", RED)], lost))
    if leftovers := [_object(found, owned) for name, found in live.items() if name not in sources]:
        root.children.append(Branch([Word("in no Secret any more", DIM)], {"kind": "", "name": ""}, leftovers))
    return root


def _root_line(managed_resource: Object) -> Line:
    state = state_of(managed_resource)
    line = [f"ManagedResource/{key(managed_resource)} ", state_word(state)]
    message = " ".join(message_of(managed_resource).split())
    return line if state is ResourceState.READY or not message else [*line, f": {message}"]


def _object(live: Live, owned: Mapping[str, Sequence[Owned]], *, released: bool = False) -> Branch:
    note = Word(" (mode Ignore: not managed)", DIM) if released else ""
    branch = _branch(live.name, live.status, note)
    branch.children = _below(uid(live.object or {}), owned, _DEPTH)
    return branch


def _below(owner: str, owned: Mapping[str, Sequence[Owned]], depth: int) -> list[Branch]:
    if not owner or not depth:
        return []
    branches = []
    for found in sorted(owned.get(owner, ()), key=lambda found: found.name):
        if not found.is_idle:
            branch = _branch(found.name, found.status)
            branch.children = _below(found.uid, owned, depth - 1)
            branches.append(branch)
    return branches


def _branch(name: str, status: HealthStatus, note: str = "") -> Branch:
    message = f": {status.message}" if status.message else ""
    data = {"name": name, "health": status.health, "message": status.message}
    return Branch([f"{name} ", health_word(status), message, note], data)


def as_data(root: Branch) -> Object:
    return {**root.data, **({"children": [as_data(child) for child in root.children]} if root.children else {})}
