"""The API server of a Shoot, its controller manager, and its resource manager."""

from collections.abc import Mapping
from dataclasses import replace

from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.encryption import FORMER, MARKS, POPULATED, encrypted, former, is_marked
from agent.gardenlet.shoot.main.rules.rotation import SERVERS_BY_CURRENT
from agent.gardenlet.shoot.main.tasks import tenant_files, token_bootstrap
from agent.gardenlet.shoot.main.tasks.components import deploy, destroy, known, stop, wait, write
from agent.gardenlet.shoot.main.tasks.secrets import encryption_key, health_token, name_of
from components import kube_apiserver, kube_controller_manager
from components.kube_apiserver import Encryption, files
from components.resource_manager import shoot as of_shoot
from components.secrets import tables
from gardener.garden.rotations import AUTHORITIES, COMPLETING, ENCRYPTION_KEY, PREPARING
from gardener.tenant_files import UnusableFile
from kube.objects import (
    Key,
    Object,
    annotations,
    is_deleting,
    key,
    metadata,
)
from kube.paths import at, mappings_at
from kube.resources import (
    DEPLOYMENTS,
    PODS,
)
from kube.runtime.client import Selection
from kube.runtime.threads import KEYS

_ENDED_SECONDS = 120.0


# --- API server


async def api_server(operation: ShootOperation) -> None:
    """Deploy the API server; with a new encryption key twice: all servers must know the key before one uses it.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        NotInTimeError: the wait timed out.
    """
    await write(operation, kube_apiserver.COMPONENT, await _api_server_objects(operation))
    if not operation.is_in(PREPARING, ENCRYPTION_KEY):
        return
    key_name = name_of(operation, tables.ENCRYPTION_KEY.name)
    live = await operation.find(DEPLOYMENTS, kube_apiserver.NAME)
    if not is_marked(annotations(live or {}), POPULATED, key_name):
        await api_server_is_rolled_out(operation)
        await mark_api_server(operation, {POPULATED: key_name})
        await write(operation, kube_apiserver.COMPONENT, await _api_server_objects(operation))


async def mark_api_server(operation: ShootOperation, marks: Mapping[str, str | None]) -> None:
    """Set annotations; None removes one."""
    name = Key(operation.technical_id, kube_apiserver.NAME)
    await operation.seed.client.annotate(DEPLOYMENTS, name, marks)


async def api_server_is_rolled_out(operation: ShootOperation) -> None:
    """Wait until all former pods have terminated, even if the Shoot skips waiting: a terminating pod may still serve.

    Raises: ReconcileError, NotInTimeError, KubeError.
    """
    await wait(operation, kube_apiserver.COMPONENT)
    labels = ",".join(f"{name}={value}" for name, value in kube_apiserver.LABELS.items())
    await operation.waiting.until_none(
        PODS,
        Selection(operation.technical_id, label_selector=labels),
        seconds=_ENDED_SECONDS,
        missing=lambda pod: "it has the previous configuration" if is_deleting(pod) else "",
        report=waits_for,
    )


async def _api_server_objects(operation: ShootOperation) -> list[Object]:
    live = await operation.find(DEPLOYMENTS, kube_apiserver.NAME)
    encryption, tenant = _encryption(operation, live), await tenant_files.read(operation)
    given = kube_apiserver.Given(
        encryption=encryption,
        health_token=health_token(operation),
        settings=tenant.settings,
        audit_policy=tenant.audit_policy,
        authentication=tenant.authentication,
        admission_kubeconfigs=tenant.kubeconfigs,
    )
    try:
        with known():
            objects = kube_apiserver.objects(kube_apiserver.values_of(operation.inputs(), given))
    except UnusableFile as error:
        raise tenant_files.TenantFileError(str(error)) from error
    for each in objects:
        if each["kind"] == DEPLOYMENTS.kind:
            metadata(each)["annotations"] |= _marks(operation, live, encryption)
    return objects


def _marks(operation: ShootOperation, live: Object | None, encryption: Encryption) -> dict[str, str]:
    """Annotations of the live Deployment that record the progress of a change of encryption, or of a rotation."""
    change = encrypted(operation.shoot)
    encrypts_anew = operation.keys.get(tables.ENCRYPTION_KEY.name).old is not None or bool(change.changed)
    kept = {
        SERVERS_BY_CURRENT: operation.is_in(COMPLETING, AUTHORITIES),
        FORMER: bool(encryption.removed) and not change.removed,
    }
    return {
        name: value
        for name, value in annotations(live or {}).items()
        if name.startswith(MARKS) and kept.get(name, encrypts_anew)
    }


def _encryption(operation: ShootOperation, live: Object | None) -> Encryption:
    """Encryption configuration: during a rotation, the new key encrypts once all API servers know it, and stays in use.

    Otherwise a rewritten object would be stored with the old key again, and never be rewritten again.

    Args: live: the Deployment.
    """
    made, resources = operation.keys.get(tables.ENCRYPTION_KEY.name), encrypted(operation.shoot)

    def by(*, current: bool) -> Encryption:
        old = encryption_key(made.old) if made.old else None
        keys = kube_apiserver.encryption_keys(encryption_key(made.current), old, encrypts_by_current=current)
        return Encryption(keys=keys, resources=resources.resources, removed=resources.removed)

    new = by(current=True)
    if made.old is None or not operation.is_in(PREPARING, ENCRYPTION_KEY):
        # That others can still be decrypted is of no use, but no reason for a roll-out.
        as_before = new if new.removed else replace(new, removed=former(annotations(live or {})))
        return as_before if _reads(live, files.encryption(operation.technical_id, as_before)) else new
    is_known = live is None or is_marked(annotations(live), POPULATED, made.current.name)
    return new if is_known or _reads(live, files.encryption(operation.technical_id, new)) else by(current=False)


def _reads(deployment: Object | None, secret: Object) -> bool:
    names = {at(each, "secret", "secretName") for each in mappings_at(deployment or {}, *_VOLUMES)}
    return key(secret).name in names


_VOLUMES = ("spec", "template", "spec", "volumes")


# --- resource manager


async def resource_manager(operation: ShootOperation) -> None:
    """Deploy the resource manager, first with a certificate if it has no token. Raises ReconcileError, KubeError."""
    component = of_shoot.COMPONENT
    if not operation.is_asleep:
        access = await token_bootstrap.access(operation)
        if await token_bootstrap.is_needed(operation, access):
            since = await token_bootstrap.forget_token(operation, access)
            # The Secret goes when it is deployed without.
            secret = await KEYS.compute(token_bootstrap.secret, operation)
            inputs = replace(operation.inputs(), bootstrap_secret=token_bootstrap.SECRET)
            await write(operation, component, [secret, *component.made(inputs)])
            await token_bootstrap.wait_for_token(operation, since=since)
    await deploy(operation, component)


# --- sleep and end


async def scale_down(operation: ShootOperation) -> list[str]:
    """Scale all three Deployments down, and return their names. Raises ReconcileError, KubeError."""
    await stop(operation, of_shoot.COMPONENT)
    await stop(operation, kube_controller_manager.COMPONENT)
    await operation.deploy(kube_apiserver.NAME, await _api_server_objects(operation))
    return [of_shoot.COMPONENT.name, kube_controller_manager.NAME, kube_apiserver.NAME]


async def destroy_api_server(operation: ShootOperation) -> None:
    """Drop the connection to the Shoot, and delete the API server.

    Raises:
        ComponentError: the objects could not be written or removed.
    """
    await operation.shoots.drop(operation.technical_id)
    await destroy(operation, kube_apiserver.COMPONENT)
