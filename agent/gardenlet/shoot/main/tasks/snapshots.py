"""Snapshot after rewriting objects with a new key: older backups are unreadable without the old key.

The sidecar of the etcd takes it; in the local profile the runner does, requested by an annotation of the Etcd.
"""

import base64

from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.encryption import SNAPSHOTTED, is_marked
from agent.gardenlet.shoot.main.tasks.control_plane import mark_api_server
from agent.gardenlet.shoot.main.tasks.secrets import name_of
from components import etcd, kube_apiserver
from components.secrets import tables
from components.secrets.configs import BUNDLE, CERTIFICATE, KEY
from gardener.api.druid import ETCDS
from kube.clock import format_time
from kube.kubeconfigs import kubeconfig
from kube.objects import Key, Object, annotations
from kube.resources import DEPLOYMENTS
from kube.runtime.client import Client
from kube.runtime.connection import connection_of_kubeconfig
from kube.runtime.transport import Transport

_SECONDS = 300.0
_ASKED = "local.provider/snapshot"
"""Annotation of an Etcd in the local profile, removed once the snapshot exists."""
_NAME = etcd.name(etcd.MAIN)


async def take(operation: ShootOperation) -> None:
    """Take a snapshot once for each key.

    Raises:
        NotInTimeError: the wait timed out.
    """
    client, namespace = operation.seed.client, operation.technical_id
    key_name = name_of(operation, tables.ENCRYPTION_KEY.name)
    live = await client.get(DEPLOYMENTS, Key(namespace, kube_apiserver.NAME))
    if is_marked(annotations(live), SNAPSHOTTED, key_name):
        return
    await (_by_annotation(operation) if operation.is_local else _by_sidecar(operation))
    await mark_api_server(operation, {SNAPSHOTTED: key_name})


async def _by_annotation(operation: ShootOperation) -> None:
    name = Key(operation.technical_id, _NAME)
    await operation.seed.client.annotate(ETCDS, name, {_ASKED: format_time(operation.seed.clock())})
    await operation.waiting.until_ready(ETCDS, name, _no_snapshot, seconds=_SECONDS, report=waits_for)


def _no_snapshot(live: Object | None) -> str:
    return "no snapshot has been taken yet" if live is None or _ASKED in annotations(live) else ""


async def _by_sidecar(operation: ShootOperation) -> None:
    certificate = operation.keys.get("etcd-client").current.data
    bundle = operation.keys.get(tables.CA_ETCD.name).bundle
    assert bundle is not None  # authorities have bundles
    fields = {"client-certificate-data": CERTIFICATE, "client-key-data": KEY}
    config = kubeconfig(
        _NAME,
        server=f"https://{_NAME}-client.{operation.technical_id}.svc:{etcd.BACKUP_PORT}",
        ca_bundle=bundle.data[BUNDLE],
        user={name: base64.b64encode(certificate[field]).decode() for name, field in fields.items()},
    )
    async with Transport(connection_of_kubeconfig(config, origin=f"for backups of {_NAME}")) as transport:
        client = Client(transport, user_agent="gardenlet")
        await client.request("POST", "/snapshot/full", timeout=_SECONDS)
