"""`kubectl gardener delete`: the end of Shoots, with the confirmation that the garden requires."""

import click

from gardenapi.api import GardenApi
from gardener import keys
from gardener.api.garden import SHOOTS
from kube.errors import Forbidden
from kube.objects import Object, is_deleting, key, metadata, uid
from kubectl.garden import obstacles
from kubectl.garden.changing import Change, changing_shoots
from kubectl.garden.waiting import deleted
from kubectl.session import Session


@click.command
@changing_shoots(confirms=True)
async def command(session: Session) -> Change:
    """Deletes clusters with their data and backups; this can't be undone. Confirms deletions that wait for a
    confirmation, too.
    """

    async def delete(garden: GardenApi, shoot: Object) -> None:
        client, own = garden.client, key(shoot)
        version = str(metadata(shoot)["resourceVersion"])
        await client.annotate(SHOOTS, own, {keys.CONFIRM_DELETION: "true"}, uid=uid(shoot), resource_version=version)
        if is_deleting(shoot):
            return
        try:
            await client.delete(SHOOTS, own, uid=uid(shoot))
        except Forbidden as error:
            # The confirmation of a dry run is not stored, so the deletion lacks it; further reasons are errors.
            if client is session.source.client or f': must have a "{keys.CONFIRM_DELETION}"' not in str(error):
                raise

    return Change(
        text="requested the deletion",
        obstacle=obstacles.deletion,
        write=delete,
        question="This deletes for ever, with all data and backups,",
        goal=deleted,
    )
