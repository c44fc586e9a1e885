"""A certificate that gets the resource manager of a Shoot its first token, or the next one if that has expired."""

import base64
from datetime import timedelta

from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules import token_bootstrap as rules
from components import kube_apiserver
from components.control_plane import access_secret_name
from components.parts import made
from components.resource_manager import NAME
from components.resource_manager import shoot as resource_manager
from components.secrets import tables
from components.secrets.configs import authority_in
from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from kube.kubeconfigs import kubeconfig
from kube.objects import Key, Object, resource_version, uid
from kube.resources import SECRETS
from kube.runtime.controller import ReconcileError
from kube.x509 import make_client

_ACCESS = access_secret_name(NAME)
SECRET = f"{_ACCESS}-bootstrap"
_TOKEN_SECONDS = 120.0
_LIFE = timedelta(minutes=10)
_SERVER = f"https://{kube_apiserver.NAME}"
"""Address for pods of the namespace."""


async def access(operation: ShootOperation) -> Object | None:
    """The Secret with the token."""
    return await operation.find(SECRETS, _ACCESS)


async def is_needed(operation: ShootOperation, live: Object | None) -> bool:
    """Whether a certificate is needed. Args: live: result of `access`."""
    if live is None:
        return True
    name, namespace = resource_manager.MANAGED_RESOURCE, operation.technical_id
    managed = await operation.seed.client.find(MANAGED_RESOURCES, Key(namespace, name))
    return rules.is_needed(live, managed, now=operation.seed.clock())


async def forget_token(operation: ShootOperation, live: Object | None) -> int:
    """Request a new token, so that an expired or refused one is not taken for it.

    Args: live: as for `is_needed`. Returns the resourceVersion of the written object; 0 if unchanged. Raises KubeError.
    """
    if live is None or rules.no_token(live):
        return 0
    name, renew = Key(operation.technical_id, _ACCESS), {keys.TOKEN_RENEW_TIMESTAMP: None}
    return resource_version(await operation.seed.client.annotate(SECRETS, name, renew, uid=uid(live)))


async def wait_for_token(operation: ShootOperation, *, since: int) -> None:
    """Wait for the token. Args: since: result of `forget_token`. Raises NotInTimeError, KubeError."""
    name = Key(operation.technical_id, _ACCESS)
    await operation.waiting.until_ready(
        SECRETS, name, rules.no_token, seconds=_TOKEN_SECONDS, since=since, report=waits_for
    )


def secret(operation: ShootOperation) -> Object:
    """Secret with a new certificate, which is valid for minutes. Raises ReconcileError."""
    authority = authority_in(operation.keys.get(tables.CA_CLIENT.name).current.data)
    if authority is None:
        raise ReconcileError("The client CA of the Shoot can't be read")
    now = operation.seed.clock()
    pair = make_client(authority, rules.USER, [rules.GROUP], now=now, lifetime=_LIFE)
    user = {"client-certificate-data": _encoded(pair.certificate_pem), "client-key-data": _encoded(pair.key_pem)}
    name = operation.technical_id
    content = kubeconfig(name, server=_SERVER, ca_bundle=operation.inputs().ca_bundle, user=user)
    return made(SECRETS, SECRET, namespace=name, type="Opaque", data={"kubeconfig": _encoded(content)})


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
