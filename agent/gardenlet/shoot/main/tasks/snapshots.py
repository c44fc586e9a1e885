"""Snapshots of etcd that the flow requests from its backup sidecar.

After objects were rewritten with a new key, older backups are unreadable without the old key. The last snapshot before
a Shoot leaves has all its data.
"""

import base64

from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.encryption import SNAPSHOTTED, is_marked
from agent.gardenlet.shoot.main.rules.load_balancers import published
from agent.gardenlet.shoot.main.tasks.control_plane import mark_api_server
from agent.gardenlet.shoot.main.tasks.secrets import name_of
from components import etcd, kube_apiserver
from components.secrets import tables
from components.secrets.configs import BUNDLE, CERTIFICATE, KEY
from components.secrets.stored import stored
from gardener.api.druid import ETCDS
from kube.kubeconfigs import kubeconfig
from kube.objects import Key, Object, annotations, integer, is_deleting, spec
from kube.resources import DEPLOYMENTS, SECRETS, SERVICES
from kube.runtime.client import Client
from kube.runtime.connection import connection_of_kubeconfig
from kube.runtime.controller import ReconcileError
from kube.runtime.transport import Transport

_SECONDS = 300.0
_NAME = etcd.name(etcd.MAIN)
_SERVICE = f"{_NAME}-client"


async def with_new_key(operation: ShootOperation) -> None:
    """Take a snapshot once for each key. Raises KubeError."""
    client, namespace = operation.seed.client, operation.technical_id
    key_name = name_of(operation, tables.ENCRYPTION_KEY.name)
    live = await client.get(DEPLOYMENTS, Key(namespace, kube_apiserver.NAME))
    if not is_marked(annotations(live), SNAPSHOTTED, key_name):
        await _take(operation, await client.get(ETCDS, Key(namespace, _NAME)))
        await mark_api_server(operation, {SNAPSHOTTED: key_name})


async def last(operation: ShootOperation) -> None:
    """Take the final snapshot of etcd, which is not written to any more. Raises ReconcileError, KubeError."""
    name = Key(operation.technical_id, _NAME)
    live = await operation.waiting.find(ETCDS, name)
    if live is None or is_deleting(live):
        return
    if not integer(spec(live).get("replicas")):
        raise ReconcileError(f"Etcd {name} does not run, so no snapshot of it can be made; set its spec.replicas to 1")
    await _take(operation, live)


async def _take(operation: ShootOperation, live: Object) -> None:
    """Take a snapshot of the Etcd. Raises KubeError."""
    # Its own Secrets: a move that begins again generates no keys.
    names = (Key(operation.technical_id, each) for each in etcd.client_secrets(live))
    authority, certificate = [stored(await operation.seed.client.get(SECRETS, each)).data for each in names]
    fields = {"client-certificate-data": CERTIFICATE, "client-key-data": KEY}
    host = f"{_SERVICE}.{operation.technical_id}.svc"
    service = await operation.seed.client.find(SERVICES, Key(operation.technical_id, _SERVICE))
    address, port = published(service, etcd.BACKUP_PORT)
    config = kubeconfig(
        _NAME,
        server=f"https://{address or host}:{port}",
        server_name=host,
        ca_bundle=authority[BUNDLE],
        user={name: base64.b64encode(certificate[field]).decode() for name, field in fields.items()},
    )
    async with Transport(connection_of_kubeconfig(config, origin=f"for backups of {_NAME}")) as transport:
        client = Client(transport, user_agent="gardenlet")
        await client.request("POST", "/snapshot/full", timeout=_SECONDS)
