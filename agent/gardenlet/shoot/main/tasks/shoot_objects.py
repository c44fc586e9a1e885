"""What is in the cluster of a Shoot: applied by its resource manager, but for what makes that possible."""

from agent.gardenlet.components import gardener_access, shoot_pods, shoot_system
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks import exposure, foundation, infrastructure
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_GOOD
from gardener.garden.shoots import zones_of_workers
from kube.objects import Key, Object, condition, integer, metadata, spec
from kube.paths import at
from kube.resources import SECRETS

_SECONDS = 120.0


async def namespaces(operation: ShootOperation) -> None:
    zones = ",".join(zones_of_workers(spec(operation.shoot)))
    await operation.deploy(shoot_system.NAMESPACES_NAME, shoot_system.namespaces(operation.technical_id, zones=zones))


async def wait_for_namespaces(operation: ShootOperation) -> None:
    """Raises NotInTimeError, KubeError."""
    name = Key(operation.technical_id, shoot_system.NAMESPACES_NAME)
    await operation.waiting.until_ready(MANAGED_RESOURCES, name, unready, seconds=_SECONDS, report=waits_for)


def unready(managed: Object | None) -> str:
    if managed is None:
        return "it does not exist"
    observed, generation = integer(at(managed, "status", "observedGeneration")), metadata(managed)["generation"]
    if observed != generation:
        return f"observed generation outdated ({observed}/{generation})"
    for of_type, status in RESOURCES_GOOD.items():
        found = condition(managed, of_type) or {}
        if found.get("status") != status:
            return f"condition {of_type} is {found.get('status')}: {found.get('message')}"
    return ""


async def access(operation: ShootOperation) -> None:
    """Two kubeconfigs, whose tokens the resource manager keeps. Raises KubeError."""
    namespace = operation.technical_id
    live = {name: await operation.find(SECRETS, name) for name in gardener_access.NAMES}
    host = exposure.url(operation).removeprefix("https://")
    values = gardener_access.Values(
        namespace=namespace,
        servers={
            name: gardener_access.server_of(name, host=host, namespace=namespace) for name in gardener_access.NAMES
        },
        ca_bundle=foundation.ca_bundle(operation),
        tokens={name: gardener_access.token_in(secret) for name, secret in live.items()},
    )
    operation.found.has_token = bool(values.tokens[gardener_access.EXTERNAL])
    await operation.deploy(gardener_access.MANAGED_RESOURCE, gardener_access.objects(values))
    operation.shoots.expect(namespace)


async def connection(operation: ShootOperation) -> None:
    """There is one, to the version that was rolled out. Raises NotInTimeError, NoConnectionError, KubeError."""
    if not operation.found.has_token:
        name = Key(operation.technical_id, gardener_access.EXTERNAL)
        await operation.waiting.until_ready(SECRETS, name, _no_token, seconds=_SECONDS, report=waits_for)
    async with operation.cluster():
        pass


def _no_token(secret: Object | None) -> str:
    return "" if gardener_access.token_in(secret) else "token for shoot kubeconfig was not populated yet"


async def identity(operation: ShootOperation) -> None:
    objects = shoot_system.identity(operation.technical_id, foundation.identity_of(operation))
    await operation.deploy(shoot_system.IDENTITY_NAME, objects)


async def system(operation: ShootOperation) -> None:
    of_pods = None
    if not operation.is_workerless:
        networks = infrastructure.networks(operation)
        of_pods = shoot_pods.objects(operation.shoot, project=operation.project, networks=networks)
    await operation.deploy(shoot_system.SYSTEM_NAME, shoot_system.system(operation.technical_id, of_pods=of_pods))
