"""Worker pools of a Shoot: configuration of machines, the machines, and whether nodes run the desired configuration."""

import asyncio

from agent.gardenlet.extension_objects.kinds import OPERATING_SYSTEM_CONFIG, WORKER
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks import infrastructure
from agent.gardenlet.shoot.main.tasks.components import known
from components.namespaces import KUBE_SYSTEM
from components.parts import managed_resource_unready
from components.secrets import tables
from components.secrets.configs import BUNDLE
from components.shoot_infrastructure import SECRET
from components.vpn import client as vpn_client
from components.worker_pools import node_agent, operating_system, worker
from components.worker_pools.operating_system import PROVISION, RECONCILE
from components.worker_pools.pools import (
    HASHES,
    NODE_AGENT,
    POOL,
    SECRET_NAME,
    Pool,
    hashes,
    pools_of,
)
from gardener.api.extensions import OPERATING_SYSTEM_CONFIGS
from gardener.api.kinds import MANAGED_RESOURCES
from kube.objects import Key, Object, annotations, key, labels, spec, text
from kube.paths import at
from kube.resources import NODES, PODS, SECRETS
from kube.runtime.client import Form, Selection
from kube.runtime.controller import ReconcileError

_APPLIED_SECONDS = 120.0
_UNKNOWN_SERVER = "https://kubernetes.default.svc"
"""Server in the configuration for nodes of a hibernated Shoot, which has none."""


def pools(operation: ShootOperation) -> list[Pool]:
    """Pools of the Shoot.

    Raises:
        ReconcileError: a pool is invalid.
    """
    with known():
        return pools_of(operation.shoot, operation.profile)


# --- configuration of machines


async def systems(operation: ShootOperation) -> None:
    """Write the OperatingSystemConfigs of all pools.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        ExtensionError: the extension failed, or did not finish in time.
    """
    await operation.deploy(HASHES, [hashes(operation.technical_id, pools(operation))])
    with known():
        wanted = [each for pool in pools(operation) for each in operating_system.objects(_system(operation, pool))]
    await asyncio.gather(*(operation.ask(OPERATING_SYSTEM_CONFIG, each) for each in wanted))


def _system(operation: ShootOperation, pool: Pool) -> operating_system.Values:
    inputs = operation.inputs()
    authorities = (text(spec(operation.profile).get("caBundle")), text(pool.requested.get("caBundle")))
    return operating_system.Values(
        namespace=operation.technical_id,
        pool=pool,
        type=pool.image_name,
        server=inputs.url if inputs.address else _UNKNOWN_SERVER,
        ca_bundle=inputs.ca_bundle,
        trusted=b"\n".join([*(each.encode() for each in authorities if each), inputs.ca_bundle]),
        kubelet_ca=inputs.secrets.bundle(tables.CA_KUBELET.name).data[BUNDLE],
        dns=inputs.dns_address,
        images=operating_system.Images(
            pause=inputs.image("pause"),
            agent=inputs.image(NODE_AGENT),
            kubelet=f"{inputs.image('hyperkube')}:v{pool.version}",
        ),
        public_keys=infrastructure.ssh_keys(operation),
    )


async def wait_for_systems(operation: ShootOperation) -> None:
    """Wait for the OperatingSystemConfigs, and note them.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
        ReconcileError: a status has no cloud config.
    """
    names = [operating_system.name_of(pool, purpose) for pool in pools(operation) for purpose in (PROVISION, RECONCILE)]
    answered = await asyncio.gather(
        *(operation.until_answered(OPERATING_SYSTEM_CONFIG, Key(operation.technical_id, each)) for each in names)
    )
    for each in answered:
        if not at(each, "status", "cloudConfig", "secretRef", "name"):
            raise ReconcileError(
                f"Error while waiting for OperatingSystemConfig {key(each)} to become ready: no cloud config"
                " information provided in status"
            )
        operation.found.systems[key(each).name] = each


async def delete_stale_systems(operation: ShootOperation) -> None:
    """Delete OperatingSystemConfigs of former pools."""
    keeps = {operating_system.name_of(pool, purpose) for pool in pools(operation) for purpose in (PROVISION, RECONCILE)}
    operation.found.stale_systems = [each for each in await _systems(operation) if each.name not in keeps]
    await _delete_systems(operation)


async def wait_until_stale_systems_are_gone(operation: ShootOperation) -> None:
    """Wait until the stale OperatingSystemConfigs are gone.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
    """
    names = operation.found.stale_systems
    await asyncio.gather(*(operation.extensions.wait_until_gone(OPERATING_SYSTEM_CONFIG, each) for each in names))


async def _systems(operation: ShootOperation) -> list[Key]:
    selection = Selection(namespace=operation.technical_id)
    found = await operation.seed.client.list(OPERATING_SYSTEM_CONFIGS, selection, form=Form.METADATA)
    return [key(each) for each in found]


async def _delete_systems(operation: ShootOperation) -> None:
    names = operation.found.stale_systems
    await asyncio.gather(*(operation.extensions.delete(OPERATING_SYSTEM_CONFIG, each) for each in names))


async def remove_systems(operation: ShootOperation) -> None:
    """Delete all OperatingSystemConfigs, and wait. Raises ExtensionError, KubeError."""
    operation.found.stale_systems = await _systems(operation)
    await _delete_systems(operation)
    await wait_until_stale_systems_are_gone(operation)


# --- node agents


async def node_agents(operation: ShootOperation) -> None:
    """Deploy the node agents' configuration in the Shoot, before machines read it. Raises ReconcileError, KubeError."""
    configs = [(pool, _answered(operation, pool, RECONCILE)) for pool in pools(operation)]
    old = await _of_old_nodes(operation)
    await operation.deploy(node_agent.NAME, node_agent.objects(operation.technical_id, configs, old))
    name = Key(operation.technical_id, node_agent.NAME)
    await operation.waiting.until_ready(
        MANAGED_RESOURCES, name, managed_resource_unready, seconds=_APPLIED_SECONDS, report=waits_for
    )


async def _of_old_nodes(operation: ShootOperation) -> list[Object]:
    """Secrets of agents on nodes that are about to be replaced, or whose pool is removed."""
    async with operation.cluster() as cluster:
        nodes = await cluster.client.list(NODES, Selection(label_selector=SECRET_NAME), form=Form.METADATA)
        names = node_agent.former(
            (labels(each)[SECRET_NAME] for each in nodes), {each.key for each in pools(operation)}
        )
        found = [await cluster.client.find(SECRETS, Key(KUBE_SYSTEM, each)) for each in names]
    return [each for each in found if each is not None and node_agent.is_secret(each)]


def _answered(operation: ShootOperation, pool: Pool, purpose: str) -> Object:
    name = operating_system.name_of(pool, purpose)
    if (found := operation.found.systems.get(name)) is None:
        raise ReconcileError(f"OperatingSystemConfig {operation.technical_id}/{name} has no result yet")
    return found


# --- machines


async def deploy(operation: ShootOperation) -> None:
    """Write the Worker.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        ExtensionError: the extension failed, or did not finish in time.
    """
    values = worker.Values(
        namespace=operation.technical_id,
        name=operation.name.name,
        type=text(at(spec(operation.shoot), "provider", "type")),
        region=text(spec(operation.shoot).get("region")),
        secret=SECRET,
        ssh_key=infrastructure.ssh_key(operation),
        status=operation.inputs().provider_status,
        pools=[(pool, _user_data(_answered(operation, pool, PROVISION))) for pool in pools(operation)],
    )
    await operation.ask(WORKER, worker.worker(values))


def _user_data(system: Object) -> Object:
    return {"name": at(system, "status", "cloudConfig", "secretRef", "name"), "key": "cloud_config"}


def _name(operation: ShootOperation) -> Key:
    return Key(operation.technical_id, operation.name.name)


async def wait_for_machine_deployments(operation: ShootOperation) -> None:
    """Wait until the Worker reports its MachineDeployments. Raises ExtensionError, KubeError."""
    operation.found.worker = await operation.until_answered(WORKER, _name(operation))


async def remove(operation: ShootOperation) -> None:
    """Delete the Worker without waiting."""
    await operation.extensions.delete(WORKER, _name(operation))


async def wait_until_gone(operation: ShootOperation) -> None:
    """Wait until the Worker is gone.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
    """
    await operation.extensions.wait_until_gone(WORKER, _name(operation))


async def demand_configured_nodes(operation: ShootOperation) -> None:
    """Check that all nodes have applied their configuration.

    Raises:
        ReconcileError: a node has not.
    """
    async with operation.cluster() as cluster:
        nodes = await cluster.client.list(NODES, Selection(label_selector=POOL), form=Form.METADATA)
    for pool in pools(operation):
        wanted = node_agent.checksum_of(_answered(operation, pool, RECONCILE))
        if problem := unconfigured(pool, nodes, wanted):
            raise ReconcileError(problem)


def unconfigured(pool: Pool, nodes: list[Object], checksum: str) -> str:
    """Reason why not all nodes of a pool have applied a configuration; empty if they have."""
    own = sorted((each for each in nodes if labels(each).get(POOL) == pool.name), key=key)
    if len(own) < pool.minimum:
        return f"worker pool {pool.name} has {len(own)} nodes, expected at least {pool.minimum}"
    outdated = [key(each).name for each in own if annotations(each).get(node_agent.APPLIED) != checksum]
    if not outdated:
        return ""
    return f"these nodes have not applied the operating system config of worker pool {pool.name}: {', '.join(outdated)}"


async def demand_tunnel(operation: ShootOperation) -> None:
    """Check the tunnel by reading a pod's log from its kubelet. Raises ReconcileError, KubeError."""
    async with operation.cluster() as cluster:
        pods = await cluster.client.list(PODS, Selection(KUBE_SYSTEM, label_selector="type=tunnel"))
        running = [each for each in pods if at(each, "status", "phase") == "Running"]
        if not running:
            raise ReconcileError(f"no tunnel to the nodes: no pod of Deployment {KUBE_SYSTEM}/{vpn_client.NAME} runs")
        path = PODS.path(namespace=KUBE_SYSTEM, name=key(running[0]).name)
        await cluster.client.request("GET", f"{path}/log", params={"tailLines": "1"})
