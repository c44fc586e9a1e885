"""`kubectl mr suspend`: the annotation that stops the agent, with user, reason and time."""

import getpass
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.keys import IGNORE, IGNORE_REASON, IGNORED_BY, IGNORED_SINCE
from gardener.overview import hints
from gardener.overview.states import suspension
from gardener.responsibility import is_ignored
from kube.clock import format_time
from kube.errors import KubeError
from kube.objects import key
from kube.resources import SELF_SUBJECT_REVIEWS
from kube.runtime.client import Client
from kubectl import output
from kubectl.mr import managed_resources, parameters
from kubectl.session import Session, on_cluster


@click.command
@parameters.names
@parameters.all_here
@parameters.all_namespaces("everywhere")
@click.option("--reason", "-r", default="", metavar="TEXT", help="Reason, shown to other users.")
@on_cluster(target=False)
async def command(session: Session, *, names: Sequence[str], all_here: bool, everywhere: bool, reason: str) -> None:
    """The agent leaves the objects unchanged, even if others modify them. Deleting a suspended ManagedResource deletes
    its objects.
    """
    found = await managed_resources.selected(session, names, all_here=all_here, everywhere=everywhere)
    notes = {
        IGNORE: "true",
        IGNORE_REASON: reason or None,
        IGNORED_BY: await _own_name(session.source.client),
        IGNORED_SINCE: format_time(datetime.now(UTC)),
    }
    for managed_resource in found:
        name = key(managed_resource)
        if not names and is_ignored(managed_resource):
            output.waiting(f"ManagedResource {name} is suspended already, {suspension(managed_resource)}")
            continue
        await session.source.client.annotate(MANAGED_RESOURCES, name, notes)
        output.done(f"ManagedResource {name} is suspended; when you are done: {hints.command('resume', name)}")


async def _own_name(client: Client) -> str:
    """Name of the user according to the API server; else of the local user."""
    try:
        body = SELF_SUBJECT_REVIEWS.type_meta
        review = await client.create(SELF_SUBJECT_REVIEWS, body)
        name = ((review.get("status") or {}).get("userInfo") or {}).get("username")
    except KubeError:
        name = None
    return name or getpass.getuser()
