"""The two etcds of a Shoot."""

import asyncio
import base64

from agent.gardenlet.common.extension_objects.kinds import ETCD
from agent.gardenlet.flow.unit import Unit, Wait
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.skipping import asleep_or_no_waiting
from agent.gardenlet.shoot.main.tasks import requests
from agent.gardenlet.shoot.main.tasks.secrets import name_of
from components import etcd, shoot_backup_entry
from components.control_plane import etcd_members
from components.etcd import EVENTS, MAIN, ROLES, Certificates, Store, Values
from components.etcd_schedules import schedules
from components.secrets import tables
from gardener.api.druid import ETCDS
from gardener.garden.maintenance.schedule import time_window
from kube.errors import NotFound
from kube.objects import Key, Object, integer, spec, string_map, text
from kube.paths import at
from kube.resources import SECRETS
from kube.runtime.controller import ReconcileError

_BUCKET = "bucketName"


async def deploy(operation: ShootOperation) -> None:
    """Deploy both etcds.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        ExtensionError: the extension failed, or did not finish in time.
    """
    store = await _store(operation)
    await asyncio.gather(*(_deploy(operation, role, store) for role in ROLES))


async def _deploy(operation: ShootOperation, role: str, store: Store | None) -> None:
    live = await operation.find(ETCDS, etcd.name(role))
    objects = etcd.objects(
        Values(
            namespace=operation.technical_id,
            role=role,
            certificates=Certificates(
                ca=operation.inputs().secrets.bundle(tables.CA_ETCD.name).name,
                server=name_of(operation, f"etcd-server-{role}"),
                client=name_of(operation, "etcd-client"),
            ),
            schedules=schedules(operation.shoot, live=live),
            store=store if role == MAIN else None,
            window=string_map(time_window(operation.shoot)),
            between_members=_between_members(operation, role),
            members=etcd_members(operation.shoot),
            running=operation.running,
            autoscaled=operation.autoscaled,
        )
    )
    manifest = next(each for each in objects if each["kind"] == ETCDS.kind)
    if operation.is_asleep:
        manifest["spec"]["replicas"] = integer(at(live or {}, "spec", "replicas"))  # scaled down later
    await operation.deploy(etcd.name(role), [each for each in objects if each is not manifest])
    await operation.ask(ETCD, manifest, live=live)


def _between_members(operation: ShootOperation, role: str) -> Certificates | None:
    if etcd_members(operation.shoot) == 1:
        return None
    return Certificates(
        ca=operation.inputs().secrets.bundle(tables.CA_ETCD_PEER.name).name,
        server=name_of(operation, tables.name_of_peers(role)),
    )


async def _store(operation: ShootOperation) -> Store | None:
    """Location of the backups; None if there are none. Raises ReconcileError, KubeError."""
    if not operation.has_backup:
        return None
    where = f"{operation.technical_id}/{etcd.BACKUP_SECRET}"
    try:
        secret = await operation.seed.client.get(SECRETS, Key(operation.technical_id, etcd.BACKUP_SECRET))
        bucket = base64.b64decode(string_map(secret.get("data"))[_BUCKET]).decode()
    except NotFound as error:
        if operation.is_going:
            return None  # what is written from now on needs no backups
        raise ReconcileError(
            f"Secret {where}, which the extension of the BackupEntry creates, does not exist: {error}"
        ) from error
    except (KeyError, ValueError) as error:
        raise ReconcileError(f"Secret {where} lacks {_BUCKET}; check the extension of the BackupEntry") from error
    provider = text(at(spec(operation.seed_object), "backup", "provider"))
    return Store(entry=shoot_backup_entry.name(operation.shoot), bucket=bucket, provider=provider)


async def wait(operation: ShootOperation) -> None:
    """Wait until both etcds are ready.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
    """
    await asyncio.gather(*(operation.until_answered(ETCD, each) for each in _names(operation)))


async def scale(operation: ShootOperation, replicas: int) -> None:
    """Scale existing etcds, and wait.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        ExtensionError: the extension failed, or did not finish in time.
    """
    for name in _names(operation):
        live = await operation.seed.client.find(ETCDS, name)
        if live is not None:
            await operation.ask(ETCD, _with_replicas(live, replicas), live=live)
    await wait(operation)


def _with_replicas(live: Object, replicas: int) -> Object:
    meta = {"name": live["metadata"]["name"], "namespace": live["metadata"]["namespace"]}
    return {**ETCDS.type_meta, "metadata": meta, "spec": {**spec(live), "replicas": replicas}}


async def destroy(operation: ShootOperation) -> None:
    """Delete both etcds, and wait until they are gone.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
    """
    await requests.remove_named(operation, ETCD, _names(operation))


def _names(operation: ShootOperation) -> list[Key]:
    return [Key(operation.technical_id, etcd.name(role)) for role in (MAIN, EVENTS)]


UNIT = Unit(
    id="etcd",
    title="main and events etcd",
    deploy=deploy,
    after=["secrets", "credentials", "backup-entry-ready", "copy-gone"],
    wait=Wait("main and event etcd report readiness", wait, unless=asleep_or_no_waiting),
    destroy=destroy,
)
