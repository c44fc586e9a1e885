"""Provider resources of a Shoot with workers: credentials, infrastructure, provider control plane, and network."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from agent.gardenlet.common.extension_objects import kinds
from agent.gardenlet.flow.graph import ONCE, Task
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import Unit, any_of
from agent.gardenlet.shoot.main import bastions
from agent.gardenlet.shoot.main.operation import LEAVING_CONTROL_PLANE, ShootOperation
from agent.gardenlet.shoot.main.skipping import uses_ssh, workerless
from agent.gardenlet.shoot.main.tasks.requests import Requests, deploy, remove, remove_stale
from components import container_runtimes, identity_credentials, results, shoot_infrastructure
from components.results import Results
from components.secrets import tables
from components.secrets.configs import RSA_PUBLIC_KEY
from gardener import operations
from gardener.api.extensions import INFRASTRUCTURES
from gardener.api.garden import CREDENTIALS_BINDINGS, SECRET_BINDINGS, WORKLOAD_IDENTITIES
from gardener.garden.shoots import has_ssh, last_operation
from kube.apply.shared_objects import ensure
from kube.errors import Forbidden, NotFound
from kube.objects import Key, Object, key, mapping, spec, string_map, text
from kube.resources import SECRETS, Resource
from kube.runtime.client import Client

_TOKEN_SECONDS = 120.0


# --- credentials


async def credentials(operation: ShootOperation) -> None:
    """Deploy the provider credentials; a Shoot that is being deleted keeps those in the seed if it has no others.

    Raises:
        NotInTimeError: the wait timed out.
        ComponentError: the objects could not be written or removed.
    """
    try:
        found = await _credentials(operation)
    except (Forbidden, NotFound):
        if operation.is_going:
            return  # an extension that needs what is missing reports that
        raise
    if found is not None and found.get("kind") == WORKLOAD_IDENTITIES.kind:
        await _credentials_by_tokens(operation, found)
        return
    wanted = shoot_infrastructure.credentials(operation.technical_id, string_map((found or {}).get("data")))
    await operation.deploy(shoot_infrastructure.SECRET, [wanted])


async def _credentials_by_tokens(operation: ShootOperation, identity: Object) -> None:
    """Deploy a WorkloadIdentity's credentials, and wait for the token. Raises NotInTimeError, KubeError."""
    client, name = operation.seed.client, Key(operation.technical_id, shoot_infrastructure.SECRET)
    wanted = identity_credentials.secret(name.namespace, identity, shoot=operation.shoot)
    live = await ensure(client, SECRETS, wanted, patch=identity_credentials.patch)
    if identity_credentials.lacks_token(live):
        await operation.waiting.until_ready(
            SECRETS, name, identity_credentials.lacks_token, seconds=_TOKEN_SECONDS, report=waits_for
        )


async def _credentials(operation: ShootOperation) -> Object | None:
    """The Secret or WorkloadIdentity in the binding of the Shoot; None if it has no binding."""
    found = await credentials_of(operation.garden.client, operation.shoot)
    return await operation.garden.client.get(*found) if found is not None else None


async def credentials_of(garden: Client, shoot: Object) -> tuple[Resource, Key] | None:
    """Kind and name of the credentials in the binding of a Shoot; None if it has no binding."""
    namespace = key(shoot).namespace
    if name := text(spec(shoot).get("credentialsBindingName")):
        binding = await garden.get(CREDENTIALS_BINDINGS, Key(namespace, name))
        reference = mapping(binding.get("credentialsRef"))
    elif name := text(spec(shoot).get("secretBindingName")):
        binding = await garden.get(SECRET_BINDINGS, Key(namespace, name))
        reference = mapping(binding.get("secretRef"))
    else:
        return None
    resource = WORKLOAD_IDENTITIES if reference.get("kind") == WORKLOAD_IDENTITIES.kind else SECRETS
    return resource, Key(text(reference.get("namespace")) or namespace, text(reference.get("name")))


# --- networks


def ssh_key(operation: ShootOperation) -> str:
    """The public SSH key, base64; empty if SSH is disabled."""
    return "".join(base64.b64encode(each).decode() for each in ssh_keys(operation)[:1])


def ssh_keys(operation: ShootOperation) -> list[bytes]:
    """Public SSH keys, the newest first, two of them during a rotation; empty if SSH is disabled."""
    if not has_ssh(spec(operation.shoot)):
        return []
    made = operation.keys.get(tables.SSH_KEY.name)
    return [each.data[RSA_PUBLIC_KEY] for each in (made.current, made.old) if each is not None]


async def remove_bastions(operation: ShootOperation) -> None:
    """Delete the Bastions without waiting; their controller waits for the extension."""
    garden = operation.garden.client
    await bastions.delete(garden, await bastions.of(garden, operation.shoot))


def _has_failed(operation: ShootOperation) -> bool:
    return last_operation(operation.shoot).get("state") == operations.FAILED


def _infrastructure(operation: ShootOperation) -> list[Object]:
    return [shoot_infrastructure.infrastructure(operation.inputs(), ssh_key=ssh_key(operation))]


def _runtimes(operation: ShootOperation) -> Iterator[Object]:
    return container_runtimes.objects(operation.shoot, operation.technical_id)


async def destroy_control_plane(operation: ShootOperation) -> None:
    """Delete the ControlPlane, and wait until it is gone. Later attempts do not create it again.

    Raises: ExtensionError, KubeError.
    """
    await operation.record_leaving(LEAVING_CONTROL_PLANE)
    await remove(operation, CONTROL_PLANE)


async def control_plane(operation: ShootOperation) -> None:
    """Write the ControlPlane, with the live Infrastructure if none was reconciled. Raises ReconcileError, KubeError."""
    if not operation.results[results.INFRASTRUCTURE]:
        name = Key(operation.technical_id, operation.name.name)
        live = await operation.seed.client.find(INFRASTRUCTURES, name)
        operation = replace(operation, results=Results({results.INFRASTRUCTURE: live or {}}))
    await deploy(operation, CONTROL_PLANE)


# --- units

CREDENTIALS = Unit(
    id="credentials",
    title="cloud provider account secret",
    deploy=credentials,
    after=["namespace"],
    skips=workerless,
)
INFRASTRUCTURE = Requests(
    kind=kinds.INFRASTRUCTURE,
    task="infrastructure",
    title="Shoot infrastructure",
    awaited="shoot infrastructure has been reconciled",
    after=["credentials", "secrets", "referenced"],
    manifests=_infrastructure,
    provides=results.INFRASTRUCTURE,
    carries_out="deployInfrastructure",
    is_demanded=_has_failed,
    is_needed=True,
    destroyed="shoot infrastructure",
)
CONTROL_PLANE = Requests(
    kind=kinds.CONTROL_PLANE,
    task="control-plane",
    title="shoot control plane components",
    awaited="shoot control plane has been reconciled",
    after=["infrastructure-ready", "api-server-ready", "resource-manager-ready"],
    manifests=lambda operation: [shoot_infrastructure.control_plane(operation.inputs())],
    reads=[results.INFRASTRUCTURE],
    destroyed="shoot control plane",
    deploys=control_plane,
    removes=destroy_control_plane,
)
NETWORK = Requests(
    kind=kinds.NETWORK,
    task="network",
    title="shoot network plugin",
    awaited="shoot network plugin has been reconciled",
    after=["referenced", "resource-manager-ready", "systems-ready", "scheduler", "namespaces-ready"],
    manifests=lambda operation: [shoot_infrastructure.network(operation.inputs())],
)
CONTAINER_RUNTIMES = Requests(
    kind=kinds.CONTAINER_RUNTIME,
    task="runtimes",
    title="container runtime resources",
    awaited="container runtime resources are ready",
    after=["referenced", "connection"],
    manifests=_runtimes,
    names=lambda operation: [key(each).name for each in _runtimes(operation)],
)
STALE_RUNTIMES = Task(
    "stale-runtimes",
    "Deleting stale container runtime resources",
    partial(remove_stale, requests=CONTAINER_RUNTIMES),
    after=["connection"],
    unless=workerless,
    retry=ONCE,
)
BASTIONS = Task(
    "bastions",
    "Deleting Bastions",
    remove_bastions,
    after=["referenced", "infrastructure-ready", "control-plane-ready"],
    unless=any_of(workerless, uses_ssh),
    retry=ONCE,
)
