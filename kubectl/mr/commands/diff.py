"""`kubectl mr diff`: what the agent would change, now or with other manifests."""

from collections.abc import Sequence
from pathlib import Path

import click

from gardener.overview import hints
from gardener.overview.states import ResourceState, state_of
from kube.objects import Object, key
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.mr import files, managed_resources, packing, parameters
from kubectl.mr.desired import read_contents
from kubectl.mr.live import demand_here
from kubectl.mr.preview import FAILURES, Difference, What, differences, lines, summary
from kubectl.output import Form
from kubectl.session import Session, on_cluster

_DIFFERENT, _FAILED = 1, 2


@click.command
@parameters.name
@parameters.paths
@parameters.kustomizations
@options.form
@on_cluster(error_code=_FAILED)
async def command(
    session: Session,
    *,
    name: str,
    paths: Sequence[Path],
    kustomizations: Sequence[Path],
    form: Form | None,
) -> int:
    """Exit code 0: no differences, 1: differences, 2: an object cannot be applied, or its difference cannot be
    determined.

    With -f or -k, previews the objects that would be created, changed, adopted and deleted if NAME contained exactly
    these manifests. NAME does not have to exist.

    Masks values of Secrets. Requires the permission to create and update the objects: the API server receives these
    writes as dry runs, and changes nothing.
    """
    if paths or kustomizations:
        managed_resource, secrets = await _made_of(session, name, files.read(paths or (), kustomizations or ()))
    else:
        managed_resource, secrets = await _stored(session, name)
    if state_of(managed_resource) is ResourceState.SUSPENDED:
        output.warn(f"it is suspended: differences stay until {hints.command('resume', key(managed_resource))}")
    await demand_here(session, managed_resource)
    return _show(await differences(session, managed_resource, secrets), form)


async def _made_of(session: Session, name: str, texts: list[files.Text]) -> tuple[Object, Sequence[Object]]:
    """ManagedResource, as it is or would be created, and the Secrets that it would have."""
    made = packing.secrets(name, session.namespace, packing.pack(packing.documents_in(texts)), immutable=False)
    new = packing.managed_resource(name, session.namespace, made, resource_class="", keep_objects=False)
    return await managed_resources.find(session, session.key(name)) or new, made


async def _stored(session: Session, name: str) -> tuple[Object, Sequence[Object]]:
    managed_resource = await managed_resources.named(session, name)
    contents = await read_contents(session.source.client, managed_resource)
    if contents.missing:
        raise UserError(f"Secrets are missing: {', '.join(contents.missing)}; nothing is applied without them")
    return managed_resource, contents.secrets


def _show(every: Sequence[Difference], form: output.Form | None) -> int:
    found = [difference for difference in every if difference.what is not What.UNCHANGED]
    if form is not None:
        output.show_data([difference.json() for difference in every], form)
    else:
        output.show(lines(every))
        output.done("no differences") if not found else output.waiting(summary(found))
    if any(difference.what in FAILURES for difference in found):
        return _FAILED
    return _DIFFERENT if found else 0
