"""`kubectl mr create`: a ManagedResource out of manifests, with its Secrets."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import click

from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.adoption import is_unowned
from gardener.managed_resource.plan import Plan
from gardener.managed_resource.references import key_of_reference, listed_in, secret_names
from kube.errors import AlreadyExists, KubeError
from kube.objects import Key, Object, key
from kube.resources import SECRETS
from kube.runtime.client import JSON_PATCH
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.mr import files, managed_resources, packing, parameters, preview
from kubectl.mr.desired import plan_of
from kubectl.mr.live import read_all
from kubectl.mr.waiting import Goal, wait_for
from kubectl.options import seconds_of
from kubectl.session import Session, on_cluster
from kubectl.style import counted, size

_NAMED = 5


class DryRun(StrEnum):
    CLIENT = "client"
    SERVER = "server"


@click.command
@click.argument("name", help="Name of the ManagedResource and its Secret.")
@parameters.paths
@parameters.kustomizations
@click.option(
    "--class",
    "resource_class",
    metavar="NAME",
    default="",
    help="Class of the ManagedResource, which selects the agent; default: none.",
)
@click.option("--keep-objects", is_flag=True, help="Keep the objects when the ManagedResource is deleted.")
@click.option("--immutable", is_flag=True, help="Make the Secret immutable, with a hash of the content in its name.")
@click.option("--update", is_flag=True, help="Update the ManagedResource if it exists.")
@click.option(
    "--dry-run",
    type=options.OneOf(DryRun),
    help="Only print the objects that would be created (client), or the changes (server).",
)
@click.option("--wait", is_flag=True, help="Wait until the ManagedResource is ready.")
@options.timeout("5m")
@on_cluster()
async def command(
    session: Session,
    *,
    name: str,
    paths: Sequence[Path],
    kustomizations: Sequence[Path],
    resource_class: str,
    keep_objects: bool,
    immutable: bool,
    update: bool,
    dry_run: DryRun | None,
    wait: bool,
    timeout: str,
) -> int:
    """Builds a directory with a kustomization by kustomize or kubectl; uses all files *.yaml, *.yml and *.json of other
    directories.

    With --dry-run client, prints the manifests of Secret and ManagedResource; with --dry-run server, prints the changes
    to the objects like kubectl mr diff.
    """
    patience = seconds_of(timeout)
    if not paths and not kustomizations:
        raise click.BadParameter("name manifests by -f or -k", param_hint="-f")
    texts = files.read(paths or (), kustomizations or ())
    objects = files.objects_in(texts)
    files.demand_applicable(objects)
    packed = packing.pack(packing.documents_in(texts))
    made = packing.secrets(name, session.namespace, packed, immutable=immutable)
    managed = packing.managed_resource(
        name, session.namespace, made, resource_class=resource_class, keep_objects=keep_objects
    )
    if immutable:
        managed = packing.protected(managed, made)
    if dry_run is DryRun.CLIENT:
        output.show_objects([*made, managed], output.Form.YAML)
        return 0
    before = await managed_resources.find(session, key(managed))
    if before is not None and not update:
        raise UserError(f"ManagedResource {key(managed)} exists already", hint="--update changes it")
    if dry_run is DryRun.SERVER:
        return 1 if await _preview(session, before, managed, made) else 0
    plan = await _plan(session, managed, made)
    if plan is not None:
        await _warn_of_adoption(session, before, plan)
    await _store(session, before, made, managed, update=update)
    sizes = f"{size(sum(p.unpacked_bytes for p in packed))} are {size(sum(len(p.value) for p in packed))} compressed"
    output.done(f"ManagedResource {key(managed)} with {counted(len(objects), 'object')}; {sizes}")
    if not wait:
        return 0
    checksum = plan.checksum if plan is not None else ""
    return await wait_for(session, [key(managed)], Goal.READY, timeout=patience, checksum=checksum)


async def _preview(session: Session, before: Object | None, managed: Object, made: list[Object]) -> bool:
    """Show what the agent would do; return whether something could not be done."""
    found = await preview.differences(session, {**(before or managed), "spec": managed["spec"]}, made)
    output.show(preview.lines(found))
    output.waiting(preview.summary(found))
    return any(difference.what in preview.FAILURES for difference in found)


async def _plan(session: Session, managed: Object, made: Sequence[Object]) -> Plan | None:
    """Plan of the agent; None if it can't be determined."""
    try:
        return await plan_of(managed, made, session.target.discovery)
    except KubeError:
        return None


async def _warn_of_adoption(session: Session, before: Object | None, plan: Plan) -> None:
    """Warn of existing objects without an owner."""
    listed = {key_of_reference(reference) for reference in listed_in(before or {})}
    new = [wanted.reference for wanted in plan.wanted() if wanted.name not in listed and not wanted.problem]
    found = [live for live in await read_all(session.target, new) if live.object and is_unowned(live.object)]
    if found:
        names = ", ".join(live.name for live in found[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        output.warn(
            f"{counted(len(found), 'object')} existed without an owner: {names}{more}; "
            f"taken over, unless annotated {keys.ADOPT}: {keys.ADOPT_NEVER}"
        )


async def _store(session: Session, before: Object | None, made: list[Object], managed: Object, *, update: bool) -> None:
    """Write Secrets first: an agent that observes the ManagedResource finds them."""
    for secret in made:
        try:
            await session.source.client.create(SECRETS, secret)
        except AlreadyExists:
            if secret.get("immutable"):
                continue  # the hash in its name proves that it has this content
            if not update:
                raise UserError(f"Secret {key(secret)} exists already", hint="--update changes it") from None
            # JSON Patch: other keys of the data have to be removed.
            patch = [{"op": "add", "path": "/data", "value": secret["data"]}]
            await session.source.client.patch(
                SECRETS, Key(session.namespace, key(secret).name), patch, content_type=JSON_PATCH
            )
    if before is not None:
        for name in sorted(set(secret_names(before)) - set(secret_names(managed))):
            output.warn(f"Secret {session.key(name)} is not named any more; delete it when nothing else needs it")
    try:
        await session.source.client.create(MANAGED_RESOURCES, managed)
    except AlreadyExists:
        await session.source.client.patch(MANAGED_RESOURCES, Key(session.namespace, key(managed).name), _patch(managed))


def _patch(managed: Object) -> Object:
    return {"spec": managed["spec"], "metadata": {"annotations": managed["metadata"].get("annotations") or {}}}
