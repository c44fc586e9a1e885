"""Access to the cluster of a Shoot; other objects in it are applied by its resource manager."""

from agent.gardenlet.flow.graph import Retry, Task
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import Unit
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import HAS_TOKEN
from agent.gardenlet.shoot.main.skipping import asleep
from components import gardener_access
from components.results import ADDRESS
from kube.objects import Key, Object
from kube.resources import SECRETS

_SECONDS = 120.0


async def access(operation: ShootOperation) -> bool:
    """Deploy two kubeconfigs, whose tokens the resource manager renews; return whether there is one already."""
    namespace = operation.technical_id
    live = {name: await operation.find(SECRETS, name) for name in gardener_access.NAMES}
    inputs = operation.inputs()
    host = inputs.url.removeprefix("https://")
    values = gardener_access.Values(
        namespace=namespace,
        servers={
            name: gardener_access.server_of(name, host=host, namespace=namespace) for name in gardener_access.NAMES
        },
        ca_bundle=inputs.ca_bundle,
        tokens={name: gardener_access.token_in(secret) for name, secret in live.items()},
    )
    await operation.deploy(gardener_access.MANAGED_RESOURCE, gardener_access.objects(values))
    operation.shoots.expect(namespace)
    return bool(values.tokens[gardener_access.EXTERNAL])


async def connection(operation: ShootOperation) -> None:
    """Wait for a connection to the rolled-out version. Raises NotInTimeError, NoConnectionError, KubeError."""
    if not operation.results[HAS_TOKEN]:
        name = Key(operation.technical_id, gardener_access.EXTERNAL)
        await operation.waiting.until_ready(SECRETS, name, _no_token, seconds=_SECONDS, report=waits_for)
    async with operation.cluster():
        pass


def _no_token(secret: Object | None) -> str:
    return "" if gardener_access.token_in(secret) else "token for shoot kubeconfig was not populated yet"


ACCESS = Unit(
    id="access",
    title="Gardener shoot access resources",
    deploy=access,
    after=["secrets", "resource-manager-ready", "address", "renew-tokens"],
    unless=asleep,
    provides=HAS_TOKEN,
    reads=[ADDRESS],
)
CONNECTION = Task(
    "connection",
    "Initializing connection to Shoot",
    connection,
    after=["api-server-ready", "access", "internal-name", "names-at-gateway"],
    unless=asleep,
    retry=Retry(within=120.0),
    reads=[HAS_TOKEN],
)
