"""Removal of an extension's objects in seed and garden, one after the other: each depends on the next ones."""

from agent.gardenlet.context import Context
from agent.gardenlet.extensions.controller_installation.install.rules import access
from agent.gardenlet.extensions.controller_installation.install.rules.manifests import NAMESPACE
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.garden.extensions import namespace_of_installation
from gardener.garden.seeds import namespace_of
from kube.errors import KubeError
from kube.objects import Key, is_deleting, text, uid
from kube.paths import mappings_at
from kube.resources import NAMESPACES, SECRETS, SERVICE_ACCOUNTS, Resource
from process.clusters import Cluster


class DeletionPending(Exception):
    """An object that is being deleted still exists."""


class DeletionError(KubeError):
    """An object can't be deleted."""


async def remove(name: str, *, context: Context, secrets: set[Key]) -> None:
    """Remove all objects of the installation `name`; return when they are gone.

    `secrets` collects those of its ManagedResource, which are deleted after it; the garbage collector deletes the ones
    that are forgotten by a restart.

    Raises:
        DeletionPending: an object still exists.
        DeletionError: an object can't be deleted.
    """
    managed = await context.seed.discovery.find_if_served(MANAGED_RESOURCES, Key(NAMESPACE, name))
    referred = [text(each.get("name")) for each in mappings_at(managed or {}, "spec", "secretRefs")]
    secrets |= {Key(NAMESPACE, each) for each in referred if each.startswith(f"{name}-")}
    await _gone(context.seed, MANAGED_RESOURCES, name, namespace=NAMESPACE)
    for secret in secrets:
        await context.seed.client.delete_if_exists(SECRETS, secret)
    await _gone(context.seed, NAMESPACES, namespace_of_installation(name))
    # The access Secret is gone with its namespace, so the token requestor does not recreate the ServiceAccount.
    account, namespace = access.service_account(name), namespace_of(context.seed_name)
    await _gone(context.garden, SERVICE_ACCOUNTS, account, namespace=namespace)


async def _gone(cluster: Cluster, resource: Resource, name: str, *, namespace: str = "") -> None:
    try:
        if await _is_left(cluster, resource, Key(namespace, name)):
            raise DeletionPending(f'Deletion of {resource.kind} "{name}" is still pending.')
    except KubeError as error:
        raise DeletionError(f'Deletion of {resource.kind} "{name}" failed: {error}') from error


async def _is_left(cluster: Cluster, resource: Resource, name: Key) -> bool:
    live = await cluster.discovery.find_if_served(resource, name)
    if live is None:
        return False
    if not is_deleting(live) and not await cluster.client.delete_if_exists(resource, name, uid=uid(live)):
        return False
    return await cluster.client.find(resource, name) is not None
