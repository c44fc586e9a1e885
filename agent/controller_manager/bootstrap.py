"""Objects missing in a new garden, created once by the leader: other programs of Gardener need them to start or work.

Secret with the role `global-monitoring`    users of the monitoring of seeds; gardenlets get it by the copies of
                                            `seed.secrets`. The original's controller manager finds its own by
                                            these labels, and replaces it after a hand-over.
ConfigMap `kube-system/cluster-identity`    only in a garden of our definitions: the original's API server makes its own

No controller here needs either, so a garden that refuses them is reported, and served.
"""

import base64
import hashlib
from datetime import datetime

from gardenapi.api import GardenApi
from gardener import keys
from gardener.basic_auth import PASSWORD_LENGTH, line_of, new_password
from gardener.garden.domains import NAMESPACE
from kube.errors import KubeError
from kube.objects import Key, Object, uid
from kube.resources import CONFIG_MAPS, NAMESPACES, SECRETS
from kube.runtime.client import Client, Selection
from process.logging import get_logger

ROLE_GLOBAL_MONITORING = "global-monitoring"
_MONITORING = "observability-ingress"
_USER = "admin"
_IDENTITY = "cluster-identity"
_SYSTEM_NAMESPACE = "kube-system"


async def prepare(client: Client, api: GardenApi, *, now: datetime) -> None:
    """Create missing objects; existing ones are not changed."""
    log = get_logger()
    try:
        if not await _has_monitoring_secret(client):
            await client.create_if_missing(SECRETS, monitoring_secret(now=now))
    except KubeError as error:
        log.error(
            f"Cannot create the Secret of the role {ROLE_GLOBAL_MONITORING}, which gardenlets require", error=str(error)
        )
    if not api.has_own_fields:
        return
    try:
        if await client.find(CONFIG_MAPS, Key(_SYSTEM_NAMESPACE, _IDENTITY)) is None:
            system = await client.get(NAMESPACES, _SYSTEM_NAMESPACE)
            await client.create_if_missing(CONFIG_MAPS, cluster_identity(uid(system)))
    except KubeError as error:
        log.error(
            f"Cannot create the ConfigMap {_SYSTEM_NAMESPACE}/{_IDENTITY}, which gardenlets require", error=str(error)
        )


async def _has_monitoring_secret(client: Client) -> bool:
    selection = Selection(label_selector=f"{keys.ROLE}={ROLE_GLOBAL_MONITORING}", namespace=NAMESPACE)
    async for page in client.pages(SECRETS, selection):
        if page:
            return True
    return False


def monitoring_secret(*, now: datetime) -> Object:
    password = new_password()
    checksum = hashlib.sha256(f"{_MONITORING} {_USER} {PASSWORD_LENGTH}".encode()).hexdigest()
    data = {"username": _USER, "password": password, "auth": line_of(_USER, password)}
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {
            "name": f"{_MONITORING}-{checksum[:8]}",
            "namespace": NAMESPACE,
            "labels": {
                keys.ROLE: ROLE_GLOBAL_MONITORING,
                "name": _MONITORING,
                "managed-by": "secrets-manager",
                "manager-identity": "controller-manager",
                "checksum-of-config": str(int(checksum[:16], 16)),
                "issued-at-time": str(int(now.timestamp())),
                "last-rotation-initiation-time": "",
            },
        },
        "type": "Opaque",
        "immutable": True,
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in data.items()},
    }


def cluster_identity(identity: str) -> Object:
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {"name": _IDENTITY, "namespace": _SYSTEM_NAMESPACE},
        "immutable": True,
        "data": {_IDENTITY: identity, "origin": "gardener-apiserver"},
    }
