"""Provider resources of a Shoot with workers: credentials, infrastructure, provider control plane, and network."""

import base64
from collections.abc import Awaitable, Callable

from agent.gardenlet.extension_objects.kinds import CONTROL_PLANE, INFRASTRUCTURE, NETWORK, Kind
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.shoot.main import bastions
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks.components import known
from components import identity_credentials, shoot_infrastructure
from components.secrets import tables
from components.secrets.configs import RSA_PUBLIC_KEY
from gardener import operations
from gardener.api.extensions import INFRASTRUCTURES
from gardener.api.garden import CREDENTIALS_BINDINGS, SECRET_BINDINGS, WORKLOAD_IDENTITIES
from gardener.garden.shoots import has_ssh, last_operation
from kube.apply.shared_objects import ensure
from kube.objects import Key, Object, mapping, spec, string_map, text
from kube.resources import SECRETS

INFRASTRUCTURE_TASK = "deployInfrastructure"
_TOKEN_SECONDS = 120.0

Run = Callable[[ShootOperation], Awaitable[None]]


def _name(operation: ShootOperation) -> Key:
    return Key(operation.technical_id, operation.name.name)


# --- credentials


async def credentials(operation: ShootOperation) -> None:
    """Deploy the provider credentials.

    Raises:
        NotInTimeError: the wait timed out.
        ComponentError: the objects could not be written or removed.
    """
    found = await _credentials(operation)
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
    client, namespace = operation.garden.client, operation.name.namespace
    if name := text(spec(operation.shoot).get("credentialsBindingName")):
        binding = await client.get(CREDENTIALS_BINDINGS, Key(namespace, name))
        reference = mapping(binding.get("credentialsRef"))
    elif name := text(spec(operation.shoot).get("secretBindingName")):
        binding = await client.get(SECRET_BINDINGS, Key(namespace, name))
        reference = mapping(binding.get("secretRef"))
    else:
        return None
    resource = WORKLOAD_IDENTITIES if reference.get("kind") == WORKLOAD_IDENTITIES.kind else SECRETS
    place = text(reference.get("namespace")) or namespace
    return await client.get(resource, Key(place, text(reference.get("name"))))


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


async def infrastructure(operation: ShootOperation) -> None:
    """Write the Infrastructure; reconcile it if changed, requested, or the Shoot has failed.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        ExtensionError: the extension failed, or did not finish in time.
    """
    wanted = shoot_infrastructure.infrastructure(operation.inputs(), ssh_key=ssh_key(operation))
    has_failed = last_operation(operation.shoot).get("state") == operations.FAILED
    await operation.ask(INFRASTRUCTURE, wanted, is_demanded=has_failed or operation.is_asked(INFRASTRUCTURE_TASK))


async def wait_for_infrastructure(operation: ShootOperation) -> None:
    """Wait for the Infrastructure, and note it.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
    """
    operation.found.infrastructure = await operation.until_answered(INFRASTRUCTURE, _name(operation))
    await operation.task_done(INFRASTRUCTURE_TASK)


async def control_plane(operation: ShootOperation) -> None:
    """Write the ControlPlane, with the live Infrastructure if none was reconciled. Raises ReconcileError, KubeError."""
    if not operation.found.infrastructure:
        name = _name(operation)
        live = await operation.seed.client.find(INFRASTRUCTURES, name)
        operation.found.infrastructure = live or {}
    await operation.ask(CONTROL_PLANE, shoot_infrastructure.control_plane(operation.inputs()))


async def network(operation: ShootOperation) -> None:
    """Write the Network.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        ExtensionError: the extension failed, or did not finish in time.
    """
    with known():
        wanted = shoot_infrastructure.network(operation.inputs())
    await operation.ask(NETWORK, wanted)


# --- kinds with one object per Shoot


def is_answered(kind: Kind) -> Run:
    """Return a task that waits for the extension. It raises ExtensionError, KubeError."""

    async def run(operation: ShootOperation) -> None:
        await operation.until_answered(kind, _name(operation))

    return run


def is_removed(kind: Kind) -> Run:
    """Return a task that deletes the object, and waits until it is gone. It raises ExtensionError, KubeError."""

    async def run(operation: ShootOperation) -> None:
        expected_uid = await operation.extensions.delete(kind, _name(operation))
        if expected_uid:
            await operation.extensions.wait_until_gone(kind, _name(operation), expected_uid=expected_uid)

    return run
