"""Deletion of a ManagedSeed, one step per pass: Seed, gardenlet, Secrets, and the namespace of the gardenlet.

The gardenlet cleans up its cluster before the Seed is gone, so it comes second. Objects are found by name and label.
The inputs of the deployment are not needed: the configuration may have become invalid, and its references may be gone.
If the cluster itself is gone, its steps are skipped.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent.gardenlet.common.shoot_clusters import NoConnectionError
from agent.gardenlet.context import Context
from agent.gardenlet.managed_seeds.installation.target import NAMESPACE
from agent.gardenlet.managed_seeds.main.deploy import Deployer, is_owned, namespace_of, no_connection
from agent.gardenlet.managed_seeds.main.rules.gardenlet import backup_reference, template_of
from gardener.api.garden import SEEDS
from kube.errors import KubeError
from kube.objects import Key, Object, is_deleting, key, text, uid
from kube.resources import NAMESPACES, SECRETS
from kube.runtime.controller import ReconcileError
from process.clusters import Cluster

_InCluster = Callable[[Deployer, Object, Cluster], Awaitable["Step | None"]]
"""A step in the cluster of the Shoot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step that has started, and must finish.

    Attributes:
        event: message of the Event.
        message: message of the condition.
        is_followed: whether a watch triggers the next pass.
    """

    event: str
    message: str
    is_followed: bool = False


@dataclass(eq=False, slots=True)
class Remover:
    context: Context
    deployer: Deployer

    async def remove(self, managed_seed: Object, shoot: Object | None) -> Step | None:
        """Do the next step; None if nothing is left. `shoot` is None if it is gone.

        Raises:
            ReconcileError: there is no connection to the cluster.
        """
        if (step := await self._seed(managed_seed, shoot)) is not None:
            return step
        has_gardenlet = template_of(managed_seed) is None
        if shoot is not None and has_gardenlet and (step := await self._in_cluster(shoot, _gardenlet)) is not None:
            return step
        if (step := await self._secrets(managed_seed)) is not None:
            return step
        return None if shoot is None else await self._in_cluster(shoot, _namespace)

    async def _seed(self, managed_seed: Object, shoot: Object | None) -> Step | None:
        garden, name = self.context.garden.client, key(managed_seed).name
        live = await garden.find(SEEDS, name)
        if live is None:
            return None
        message = f'Waiting for seed "{name}" to be deleted'
        if is_deleting(live):
            message += await self._hindrance(shoot) if template_of(managed_seed) is None else ""
            return Step(event=message, message=message, is_followed=True)
        await garden.delete_if_exists(SEEDS, name, uid=uid(live))
        return Step(event=f"Deleting seed {name}", message=message, is_followed=True)

    async def _hindrance(self, shoot: Object | None) -> str:
        """Reason why the Seed can't be deleted; empty if none is known."""
        if shoot is None:
            return (
                ": the cluster with its gardenlet no longer exists, so its objects are not cleaned up; if you don't "
                "need them, remove the finalizers of the Seed"
            )
        try:
            async with self.context.shoot_clusters.use(namespace_of(shoot)) as cluster:
                if await self.deployer.target(shoot, cluster).deployment() is None:
                    return (
                        ": its gardenlet, which must clean up first, no longer exists in its cluster; deploy it again "
                        "(Deployment garden/gardenlet), or, if you don't need the objects of the Seed, remove its "
                        "finalizers"
                    )
        except (NoConnectionError, KubeError):
            pass  # the gardenlet may still be there
        return ""

    async def _in_cluster(self, shoot: Object, step: _InCluster) -> Step | None:
        try:
            async with self.context.shoot_clusters.use(namespace_of(shoot)) as cluster:
                return await step(self.deployer, shoot, cluster)
        except NoConnectionError as error:
            raise ReconcileError(no_connection(shoot, error)) from error

    async def _secrets(self, managed_seed: Object) -> Step | None:
        reference = backup_reference(managed_seed)
        if reference is None:
            return None
        garden = self.context.garden.client
        name, namespace = text(reference.get("name")), text(reference.get("namespace"))
        live = await garden.find(SECRETS, Key(namespace, name)) if name and namespace else None
        if live is None or not is_owned(live, managed_seed):
            return None
        message = "Waiting for seed secrets to be deleted"
        if is_deleting(live):
            return Step(event=message, message=message)
        await garden.delete_if_exists(SECRETS, Key(namespace, name), uid=uid(live))
        return Step(event="Deleting seed secrets", message=message)


async def _gardenlet(deployer: Deployer, shoot: Object, cluster: Cluster) -> Step | None:
    if not await deployer.target(shoot, cluster).remove():
        return None
    message = "Waiting for gardenlet to be deleted from  target cluster"
    return Step(event="Deleting gardenlet from target cluster", message=message)


async def _namespace(_deployer: Deployer, _shoot: Object, cluster: Cluster) -> Step | None:
    client = cluster.client
    live = await client.find(NAMESPACES, NAMESPACE)
    if live is None:
        return None
    message = "Waiting for garden namespace to be deleted from target cluster"
    if is_deleting(live):
        return Step(event=message, message=message)
    await client.delete_if_exists(NAMESPACES, NAMESPACE, uid=uid(live))
    return Step(event="Deleting garden namespace from target cluster", message=message)
