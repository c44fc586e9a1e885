"""`kubectl mr create`: a ManagedResource out of manifests, with its Secrets."""

from pathlib import Path
from typing import Annotated

import typer

from gardener.kinds import MANAGED_RESOURCES
from gardener.managed_resource.plan import secret_names
from kube.client import JSON_PATCH
from kube.errors import AlreadyExists
from kube.objects import Object, key
from kube.resources import SECRETS
from kubectl_mr import files, options, output, packing
from kubectl_mr.errors import UserError
from kubectl_mr.session import Session, on_cluster
from kubectl_mr.style import counted, size
from kubectl_mr.waiting import Goal, seconds_of, wait_for


@on_cluster()
async def command(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is to be called, and its Secret.")],
    paths: Annotated[
        list[Path],
        typer.Option(
            "--filename", "-f", metavar="DIR|FILE", help="Manifests; may be given several times, - is standard input."
        ),
    ],
    resource_class: Annotated[
        str, typer.Option("--class", metavar="NAME", help="Which agent is to look after it; default: the usual one.")
    ] = "",
    keep_objects: Annotated[bool, typer.Option("--keep-objects", help="Keep the objects when it is deleted.")] = False,
    immutable: Annotated[
        bool, typer.Option("--immutable", help="Make the Secret immutable, with the hash of its content in its name.")
    ] = False,
    update: Annotated[bool, typer.Option("--update", help="Change it if it exists.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be created, as YAML.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is ready.")] = False,
    timeout: options.TimeoutFlag = "5m",
) -> int:
    """A directory with a kustomization is built by kustomize or kubectl, of any other all files *.yaml, *.yml, *.json
    are taken.
    """
    patience = seconds_of(timeout)
    texts = files.read(paths)
    files.demand_applicable(files.objects_in(texts))
    packed = packing.pack(packing.documents_in(texts))
    made = packing.secrets(name, session.namespace, packed, immutable=immutable)
    managed = packing.managed_resource(
        name, session.namespace, made, resource_class=resource_class, keep_objects=keep_objects
    )
    if immutable:
        managed = packing.protected(managed, made)
    if dry_run:
        output.show_objects([*made, managed], output.Form.YAML)
        return 0
    await _store(session, made, managed, update=update)
    sizes = f"{size(sum(p.unpacked_bytes for p in packed))} are {size(sum(len(p.value) for p in packed))} compressed"
    output.done(f"ManagedResource {key(managed)} with {counted(sum(p.documents for p in packed), 'object')}; {sizes}")
    return await wait_for(session, [name], Goal.READY, timeout=patience) if wait else 0


async def _store(session: Session, made: list[Object], managed: Object, *, update: bool) -> None:
    """Secrets first: an agent that sees the ManagedResource finds them."""
    before = await session.find(key(managed).name)
    if before is not None and not update:
        raise UserError(f"ManagedResource {key(managed)} exists already", hint="--update changes it")
    for secret in made:
        try:
            await session.source.client.create(SECRETS, secret)
        except AlreadyExists:
            if secret.get("immutable"):
                continue  # the hash in its name says that it has this content
            if not update:
                raise UserError(f"Secret {key(secret)} exists already", hint="--update changes it") from None
            # JSON Patch: other keys of the data must go, too.
            patch = [{"op": "add", "path": "/data", "value": secret["data"]}]
            await session.source.client.patch(
                SECRETS, key(secret).name, patch, namespace=session.namespace, content_type=JSON_PATCH
            )
    if before is not None:
        for name in sorted(set(secret_names(before)) - set(secret_names(managed))):
            output.warn(f"Secret {session.key(name)} is not named any more; delete it when nothing else needs it")
    try:
        await session.source.client.create(MANAGED_RESOURCES, managed)
    except AlreadyExists:
        await session.source.client.patch(
            MANAGED_RESOURCES, key(managed).name, _patch(managed), namespace=session.namespace
        )


def _patch(managed: Object) -> Object:
    return {"spec": managed["spec"], "metadata": {"annotations": managed["metadata"].get("annotations") or {}}}
