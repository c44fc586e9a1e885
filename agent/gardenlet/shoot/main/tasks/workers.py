"""Worker pools of a Shoot: configuration of machines, the machines, and whether nodes run the desired configuration."""

from collections.abc import Iterator
from functools import partial

from agent.gardenlet.common.extension_objects import kinds
from agent.gardenlet.flow.graph import ONCE, Task
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import Unit, Wait, any_of
from agent.gardenlet.shoot.main import results
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.skipping import asleep, asleep_or_no_waiting, no_waiting, workerless
from agent.gardenlet.shoot.main.tasks import infrastructure, requests
from agent.gardenlet.shoot.main.tasks.components import known
from agent.gardenlet.shoot.main.tasks.requests import Requests
from components.namespaces import KUBE_SYSTEM
from components.parts import managed_resource_unready
from components.results import ADDRESS, INFRASTRUCTURE
from components.results import WORKER as WORKER_ANSWERED
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
from gardener.api.kinds import MANAGED_RESOURCES
from kube.objects import Key, Object, annotations, key, labels, spec, text, uid
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


def _systems(operation: ShootOperation) -> Iterator[Object]:
    for pool in pools(operation):
        yield from operating_system.objects(_system(operation, pool))


def _names(operation: ShootOperation) -> list[str]:
    return [operating_system.name_of(pool, purpose) for pool in pools(operation) for purpose in (PROVISION, RECONCILE)]


async def systems(operation: ShootOperation) -> None:
    """Write the OperatingSystemConfigs of all pools. Raises ReconcileError, ExtensionError, KubeError."""
    await operation.deploy(HASHES, [hashes(operation.technical_id, pools(operation))])
    await requests.deploy(operation, SYSTEMS)


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


async def wait_for_systems(operation: ShootOperation) -> dict[str, Object]:
    """Wait for the OperatingSystemConfigs, and return them by name.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
        ReconcileError: a status has no cloud config.
    """
    answered = await requests.wait(operation, SYSTEMS)
    for each in answered:
        if not at(each, "status", "cloudConfig", "secretRef", "name"):
            raise ReconcileError(
                f"Error while waiting for OperatingSystemConfig {key(each)} to become ready: no cloud config"
                " information provided in status"
            )
    return {key(each).name: each for each in answered}


SYSTEMS = Requests(
    kind=kinds.OPERATING_SYSTEM_CONFIG,
    task="systems",
    title="operating system specific configuration for shoot workers",
    awaited="operating system configurations for worker nodes have been reconciled",
    after=["referenced", "infrastructure-ready", "control-plane-ready", "extensions-after-ready"],
    manifests=_systems,
    names=_names,
    reads=[ADDRESS],
    provides=results.SYSTEMS,
    is_needed=True,
    destroyed="operating system config resources",
    deploys=systems,
    waits=wait_for_systems,
)
STALE_SYSTEMS = Unit(
    id="stale-systems",
    verb="Delete",
    title="stale operating system config resources",
    deploy=partial(requests.delete_stale, requests=SYSTEMS),
    after=["systems-ready"],
    skips=workerless,
    provides=results.STALE_SYSTEMS,
    wait=Wait(
        "stale operating system config resources are deleted",
        partial(requests.wait_for, kind=SYSTEMS.kind, result=results.STALE_SYSTEMS),
        id="stale-systems-gone",
        unless=asleep_or_no_waiting,
        reads=[results.STALE_SYSTEMS],
    ),
)


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
    if (found := operation.results[results.SYSTEMS].get(name)) is None:
        raise ReconcileError(f"OperatingSystemConfig {operation.technical_id}/{name} has no result yet")
    return found


NODE_AGENTS = Unit(
    id="node-agents",
    title="managed resources for the gardener-node-agent",
    deploy=node_agents,
    after=["resource-manager-ready", "identity", "systems-ready"],
    skips=workerless,
    unless=asleep,
    reads=[results.SYSTEMS],
)


# --- machines


def _worker(operation: ShootOperation) -> list[Object]:
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
    return [worker.worker(values)]


def _user_data(system: Object) -> Object:
    return {"name": at(system, "status", "cloudConfig", "secretRef", "name"), "key": "cloud_config"}


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


async def wait_for_machines(operation: ShootOperation) -> None:
    """Wait for the Worker; then remove the saved machines of a restoration from its status, since they get outdated.

    Raises: ExtensionError, KubeError.
    """
    live = await requests.wait_for_one(operation, WORKER)
    if operation.is_restored and at(live, "status", "state") is not None:
        body = {"metadata": {"uid": uid(live)}, "status": {"state": None}}
        await operation.seed.client.patch(WORKER.kind.resource, key(live), body, subresource="status")


# --- units of machines

WORKER = Requests(
    kind=kinds.WORKER,
    task="worker",
    title="shoot worker pools",
    awaited="worker resource status is updated with latest machine deployments",
    after=["machine-controller-manager", "node-agents"],
    manifests=_worker,
    reads=[INFRASTRUCTURE, results.SYSTEMS],
    provides=WORKER_ANSWERED,
    is_needed=True,
)
MACHINES = Unit(
    id=WORKER.task,
    verb="Configuring",
    title=WORKER.title,
    deploy=partial(requests.deploy, requests=WORKER),
    after=WORKER.after,
    skips=workerless,
    reads=WORKER.reads,
    wait=Wait(
        WORKER.awaited,
        partial(requests.wait_for_one, requests=WORKER),
        id="machine-deployments",
        unless=asleep,
        provides=WORKER.provides,
    ),
)
READY = Task(
    "worker-ready",
    "Waiting until shoot worker nodes have been reconciled",
    wait_for_machines,
    after=["worker", "machine-deployments", "node-agents"],
    unless=any_of(workerless, no_waiting),
    retry=ONCE,
)
CONFIGURED = Task(
    "nodes-configured",
    "Waiting until all shoot worker nodes have updated the operating system config",
    demand_configured_nodes,
    after=["worker-ready", "tunnel"],
    unless=any_of(workerless, asleep_or_no_waiting),
    reads=[results.SYSTEMS],
)
MACHINES_GO = Unit(
    id=WORKER.task,
    verb="Destroying",
    title="shoot workers",
    deploy=partial(requests.delete_all, requests=WORKER),
    after=["network-gone", "machine-controller-manager", "autoscaler-gone"],
    skips=workerless,
    retry=ONCE,
    provides=results.WORKER_GOING,
    wait=Wait(
        "shoot worker nodes have been terminated",
        partial(requests.wait_for, kind=WORKER.kind, result=results.WORKER_GOING),
        id="worker-gone",
        reads=[results.WORKER_GOING],
    ),
)
