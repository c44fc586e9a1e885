"""Objects that an actuator writes, in the seed, and in the cluster of a Shoot.

Each function writes only differences, and accepts that an object is already deleted.
"""

import base64
import contextlib
from collections.abc import Mapping

import yaml

from gardener.api.kinds import MANAGED_RESOURCES
from kube.errors import KindNotServed, NotFound
from kube.objects import Key, Object, mapping, uid
from kube.resources import SECRETS, Resource
from kube.runtime.client import Client


async def put(
    client: Client, resource: Resource, name: Key, wanted: Mapping[str, Object], *, merges: bool = False
) -> None:
    """Create or update an object with these fields, keeping its others.

    With `merges`, other data stay as well, and other writers may write theirs at the same time.
    """
    live = await client.find(resource, name)
    place = {"name": name.name, "namespace": name.namespace}
    if live is None:
        meta = {**mapping(wanted.get("metadata")), **place}
        await client.create(resource, {**resource.type_meta, **wanted, "metadata": meta})
        return
    changed: Object = {}
    for field, value in wanted.items():
        having = mapping(live.get(field))
        gone = {} if merges or field != "data" else dict.fromkeys(having.keys() - value.keys())
        if gone or any(having.get(inner) != content for inner, content in value.items()):
            changed[field] = {**value, **gone}
    if changed:
        # Not an object that was recreated meanwhile.
        meta = {**mapping(changed.get("metadata")), "uid": uid(live)}
        await client.patch(resource, name, {**changed, "metadata": meta})


async def delete(client: Client, resource: Resource, name: Key, *, expected_uid: str = "") -> None:
    try:
        await client.delete(resource, name, uid=expected_uid)
    except (NotFound, KindNotServed):
        return


async def deploy_into_shoot(client: Client, name: Key, *objects: Object) -> None:
    """Deploy objects by the resource manager of the Shoot; `name` is that of the ManagedResource."""
    written = yaml.safe_dump_all(objects)
    stored = {"objects.yaml": base64.b64encode(written.encode()).decode()}
    await put(client, SECRETS, name, {"data": stored})
    # A migration that did not complete may have set the other field.
    await put(client, MANAGED_RESOURCES, name, {"spec": {"secretRefs": [{"name": name.name}], "keepObjects": False}})


async def delete_from_shoot(client: Client, name: Key) -> None:
    """Delete the ManagedResource of this name; the resource manager deletes its objects."""
    await delete(client, MANAGED_RESOURCES, name)
    await delete(client, SECRETS, name)


async def leave_in_shoot(client: Client, name: Key) -> None:
    """Delete the ManagedResource of this name, but none of its objects: for a migration."""
    with contextlib.suppress(KindNotServed):
        await client.patch_if_exists(MANAGED_RESOURCES, name, {"spec": {"keepObjects": True}})
    await delete_from_shoot(client, name)
