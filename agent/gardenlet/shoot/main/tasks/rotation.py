"""Completion of authorities in two steps: clients stop trusting the old ones only when no server uses them any more.

    servers    have certificates of the current authorities, and run with them; clients trust both
    seen       the API server's Deployment is marked, so that a pass after an interruption continues from here
    clients    trust only the current authorities

All clients of servers trust both authorities in between, including backups and requests to etcd.
"""

import asyncio

from agent.gardenlet.common.extension_objects.kinds import ETCD
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.rotation import SERVERS_BY_CURRENT
from agent.gardenlet.shoot.main.tasks import components, control_plane, foundation, shoot_objects
from agent.gardenlet.shoot.main.tasks.etcd import deploy as deploy_etcds
from agent.gardenlet.shoot.main.tasks.secrets import name_of
from components import etcd, kube_apiserver, kube_controller_manager, kube_scheduler
from components.resource_manager import shoot as resource_manager
from components.secrets import tables
from components.vpn import server as vpn_server
from gardener.api.druid import ETCDS
from gardener.garden.rotations import AUTHORITIES, COMPLETING
from kube.objects import Key, Object, integer, spec
from kube.resources import DEPLOYMENTS, Resource

_OTHERS = (
    resource_manager.COMPONENT,
    kube_controller_manager.COMPONENT,
    kube_scheduler.COMPONENT,
    vpn_server.COMPONENT,
)
"""Servers other than the API server."""


def no_completion(operation: ShootOperation) -> bool:
    return not operation.is_in(COMPLETING, AUTHORITIES)


async def see_servers(operation: ShootOperation) -> None:
    """Wait until all running servers are rolled out, even if the Shoot skips waiting, and mark that.

    Hibernated servers start with current certificates.

    Raises: NotInTimeError, ExtensionError, KubeError.
    """
    await asyncio.gather(_see_etcds(operation), _see_deployments(operation))
    authorities = tables.authorities_of_a_shoot(has_workers=not operation.is_workerless)
    names = ",".join(name_of(operation, each.name) for each in authorities)
    await control_plane.mark_api_server(operation, {SERVERS_BY_CURRENT: names})


async def _see_etcds(operation: ShootOperation) -> None:
    for role in etcd.ROLES:
        name = etcd.name(role)
        if await _runs(operation, ETCDS, name):
            await operation.until_answered(ETCD, Key(operation.technical_id, name))


async def _see_deployments(operation: ShootOperation) -> None:
    if await _runs(operation, DEPLOYMENTS, kube_apiserver.NAME):
        await control_plane.api_server_is_rolled_out(operation)
    for each in _OTHERS:
        if await _runs(operation, DEPLOYMENTS, each.name):
            await components.wait(operation, each)


async def _runs(operation: ShootOperation, resource: Resource, name: str) -> bool:
    live: Object | None = await operation.seed.client.find(resource, Key(operation.technical_id, name))
    return live is not None and integer(spec(live).get("replicas")) > 0


async def trust_current(operation: ShootOperation) -> Object | None:
    """Generate Secrets again, with current authorities in bundles, as `foundation.secrets`. Raises as that does."""
    operation.keys.begin_anew()
    shown = await foundation.secrets(operation)
    await foundation.client_authority(operation)
    return shown


async def etcds(operation: ShootOperation) -> None:
    """Deploy the etcds with current bundles, and wait.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        ExtensionError: the extension failed, or did not finish in time.
    """
    await deploy_etcds(operation)
    await _see_etcds(operation)


async def api_server(operation: ShootOperation) -> None:
    """Deploy the API server with current bundles, and wait if it runs.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        NotInTimeError: the wait timed out.
    """
    await control_plane.api_server(operation)
    if await _runs(operation, DEPLOYMENTS, kube_apiserver.NAME):
        await control_plane.api_server_is_rolled_out(operation)


async def others(operation: ShootOperation) -> None:
    """Deploy the other components with current bundles, and wait.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        NotInTimeError: the wait timed out.
    """
    await control_plane.resource_manager(operation)
    await components.deploy(operation, kube_controller_manager.COMPONENT)
    if not operation.is_asleep:
        await shoot_objects.access(operation)
    await _see_deployments(operation)


async def settle(operation: ShootOperation) -> None:
    """Remove the mark after the deletion of the old authorities."""
    if not no_completion(operation):
        await control_plane.mark_api_server(operation, {SERVERS_BY_CURRENT: None})
