"""`kubectl mr delete`: the end of ManagedResources, of their objects and of their Secrets.

The Secrets are deleted at once, as the agent removes the objects in the status and needs no manifest for that: so
nothing is left behind if the wait is interrupted.
"""

from collections.abc import Mapping, Sequence

import click

from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.references import secret_names
from gardener.overview.states import object_count
from kube.errors import Forbidden, NotFound
from kube.objects import Key, Object, key, uid
from kube.resources import SECRETS
from kubectl import options, output
from kubectl.mr import managed_resources, parameters
from kubectl.mr.waiting import Goal, wait_for
from kubectl.options import seconds_of
from kubectl.session import Session, on_cluster
from kubectl.style import counted


@click.command
@parameters.names
@click.option("--keep-objects", is_flag=True, help="Leave the objects in the cluster.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until all objects are deleted.")
@options.timeout("5m")
@on_cluster()
async def command(session: Session, *, names: Sequence[str], keep_objects: bool, wait: bool, timeout: str) -> int:
    """Keeps Secrets that another ManagedResource references. Exit code 1: not everything is deleted; the message lists
    the rest.

    Can be repeated for a ManagedResource in deletion.
    """
    patience = seconds_of(timeout)
    if not names:
        raise click.BadParameter("name at least one ManagedResource", param_hint="NAME")
    found = [await managed_resources.named(session, name) for name in names]
    users = await _users_of_secrets(session, leaving={key(obj) for obj in found})
    is_complete = True
    for managed_resource in found:
        await _delete(session, managed_resource, keep_objects=keep_objects)
        is_complete &= await _delete_secrets(session, managed_resource, users)
    if not wait:
        return 0 if is_complete else 1
    code = await wait_for(session, [key(obj) for obj in found], Goal.DELETED, timeout=patience)
    return code if is_complete else 1


async def _users_of_secrets(session: Session, *, leaving: set[Key]) -> Mapping[str, Key]:
    """ManagedResources that stay, by the names of their Secrets."""
    users: dict[str, Key] = {}
    async for page in managed_resources.pages(session, session.namespace):
        for item in page:
            if key(item) not in leaving:
                users |= dict.fromkeys(secret_names(item), key(item))
    return users


async def _delete(session: Session, managed_resource: Object, *, keep_objects: bool) -> None:
    name, client = key(managed_resource), session.source.client
    keeps = keep_objects or bool((managed_resource.get("spec") or {}).get("keepObjects"))
    if keep_objects:
        patch = {"metadata": {"uid": uid(managed_resource)}, "spec": {"keepObjects": True}}
        await client.patch(MANAGED_RESOURCES, name, patch)
    await client.delete(MANAGED_RESOURCES, name, uid=uid(managed_resource))
    objects = counted(object_count(managed_resource), "object")
    output.begin(f"ManagedResource {name} is being deleted, {objects} {'stay' if keeps else 'with it'}")


async def _delete_secrets(session: Session, managed_resource: Object, users: Mapping[str, Key]) -> bool:
    """Delete its Secrets unless others use them; return whether all of these could be deleted."""
    is_complete = True
    for name in secret_names(managed_resource):
        secret = session.key(name)
        if name in users:
            output.waiting(f"Secret {secret} is kept: ManagedResource {users[name]} names it, too")
            continue
        try:
            await session.source.client.delete(SECRETS, Key(session.namespace, name))
        except NotFound:
            continue
        except Forbidden as error:
            output.warn(f"Secret {secret} is kept: {error}; have a user with this right delete it")
            is_complete = False
        else:
            output.done(f"Secret {secret} is deleted")
    return is_complete
