"""Tokens of ServiceAccounts during a rotation of the signing key.

Tokens of components in the seed are requested again as soon as the new key signs. ServiceAccounts that list Secrets get
additional ones; the old ones are deleted on completion. Secrets that users create meanwhile are signed by the new key,
and stay.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime

from agent.gardenlet.flow.graph import LONG, ONCE, Task
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import any_of
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.encryption import KEY_NAME
from agent.gardenlet.shoot.main.skipping import asleep
from agent.gardenlet.shoot.main.tasks.control_plane import api_server_is_rolled_out
from agent.gardenlet.shoot.main.tasks.secrets import name_of
from components.control_plane import CLASS_SHOOT
from components.secrets import tables
from components.secrets.labels import checksum_of_authority
from gardener import keys
from gardener.garden.rotations import COMPLETING, PREPARES, SERVICE_ACCOUNT_KEY, phase
from kube.clock import time_or_none
from kube.errors import Conflict, NotFound
from kube.objects import Key, Object, annotations, key, mappings, metadata, text, uid
from kube.paths import at
from kube.resources import SECRETS, SERVICE_ACCOUNTS
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import ReconcileError

_TOKEN = "kubernetes.io/service-account-token"
_ACCOUNT = "kubernetes.io/service-account.name"
_REQUESTS = f"{keys.PURPOSE}={keys.PURPOSE_TOKEN_REQUESTOR},{keys.CLASS}={CLASS_SHOOT}"
_RENEWED_SECONDS = 120.0


def _not_preparing(operation: ShootOperation) -> bool:
    return phase(operation.shoot, SERVICE_ACCOUNT_KEY) not in PREPARES


def _not_completing(operation: ShootOperation) -> bool:
    return not operation.is_in(COMPLETING, SERVICE_ACCOUNT_KEY)


# --- of components in the seed


async def renew(operation: ShootOperation) -> None:
    """Return when all tokens have been requested again. Raises ReconcileError, NotInTimeError, KubeError."""
    await api_server_is_rolled_out(operation)
    client, namespace = operation.seed.client, operation.technical_id
    requests = await client.list(SECRETS, Selection(namespace, label_selector=_REQUESTS), form=Form.METADATA)
    for each in requests:
        with suppress(NotFound, Conflict):
            await client.annotate(SECRETS, key(each), {keys.TOKEN_RENEW_TIMESTAMP: None}, uid=uid(each))
    for each in requests:
        await operation.waiting.until_ready(
            SECRETS, key(each), _not_renewed, seconds=_RENEWED_SECONDS, report=waits_for, or_gone=True
        )


def _not_renewed(secret: Object | None) -> str:
    is_renewed = secret is None or keys.TOKEN_RENEW_TIMESTAMP in annotations(secret)
    return "" if is_renewed else "its new token has not been requested yet"


# --- in Secrets of the Shoot


async def add_secrets(operation: ShootOperation) -> None:
    """Create Secrets for ServiceAccounts that list some. Raises ReconcileError, NoConnectionError, KubeError."""
    key_name = name_of(operation, tables.SERVICE_ACCOUNT_KEY.name)
    async with operation.cluster() as cluster:
        async for account in _accounts(cluster.client, f"{KEY_NAME}!={key_name}"):
            if not mappings(account.get("secrets")):
                continue
            secret = _token_secret(account, _name_of_new(operation, account))
            await cluster.client.create_if_missing(SECRETS, secret)
            others = [each for each in mappings(account.get("secrets")) if each.get("name") != key(secret).name]
            listed = [{"name": key(secret).name}, *others]
            await _write(cluster.client, account, {"labels": {KEY_NAME: key_name}}, listed)


def _name_of_new(operation: ShootOperation, account: Object) -> str:
    """Name of the new Secret; a label can't mark it, since labels of Secrets name their encryption key."""
    digest = checksum_of_authority(operation.keys.get(tables.SERVICE_ACCOUNT_KEY.name).current.data)[:6]
    return f"{key(account).name}-token-{digest}"


def _token_secret(account: Object, name: str) -> Object:
    meta = {
        "name": name,
        "namespace": key(account).namespace,
        "annotations": {_ACCOUNT: key(account).name},
    }
    return {**SECRETS.type_meta, "metadata": meta, "type": _TOKEN}


async def delete_old_secrets(operation: ShootOperation) -> None:
    """Delete Secrets from before the rotation.

    Raises:
        ReconcileError: the time of the rotation is unknown.
        NoConnectionError: there is no connection to the Shoot.
    """
    before = time_or_none(
        at(operation.shoot, "status", "credentials", "rotation", SERVICE_ACCOUNT_KEY, "lastInitiationFinishedTime")
    )
    if before is None:
        raise ReconcileError(
            f"status.credentials.rotation.{SERVICE_ACCOUNT_KEY}.lastInitiationFinishedTime of the Shoot is not set, so "
            "old Secrets with tokens can't be recognized; set it to the time when the rotation was prepared"
        )
    async with operation.cluster() as cluster:
        async for account in _accounts(cluster.client, KEY_NAME):
            new = _name_of_new(operation, account)
            kept = list[Object]()
            for each in mappings(account.get("secrets")):
                name = text(each.get("name"))
                if name == new or not await _delete_old(cluster.client, account, name, before=before):
                    kept.append(each)
            await _write(cluster.client, account, {"labels": {KEY_NAME: None}}, kept)


async def _delete_old(client: Client, account: Object, name: str, *, before: datetime) -> bool:
    """Delete a Secret if it is old; return whether it is gone."""
    namespace = key(account).namespace
    secret = await client.find(SECRETS, Key(namespace, name))
    if secret is None:
        return True
    created = time_or_none(metadata(secret).get("creationTimestamp"))
    is_of_account = secret.get("type") == _TOKEN and annotations(secret).get(_ACCOUNT) == key(account).name
    if not is_of_account or created is None or created >= before:
        return False
    await client.delete_if_exists(SECRETS, Key(namespace, name), uid=uid(secret))
    return True


async def _accounts(client: Client, selector: str) -> AsyncIterator[Object]:
    async for page in client.pages(SERVICE_ACCOUNTS, Selection(label_selector=selector)):
        for each in page:
            yield each


async def _write(client: Client, account: Object, meta: Object, secrets: list[Object]) -> None:
    """Write labels and Secrets of a ServiceAccount.

    Raises:
        Conflict: another writer has changed it; the next attempt reads it again.
    """
    name = key(account)
    body: Object = {"metadata": {**meta, "resourceVersion": metadata(account)["resourceVersion"]}}
    if secrets != mappings(account.get("secrets")):
        body["secrets"] = secrets or None
    await client.patch_if_exists(SERVICE_ACCOUNTS, name, body)


# --- tasks

RENEWAL = Task(
    "renew-tokens",
    "Renewing shoot access secrets after creation of new ServiceAccount signing key",
    renew,
    after=["api-server-ready", "resource-manager-ready"],
    unless=any_of(asleep, _not_preparing),
    retry=ONCE,
)
NEW_SECRETS = Task(
    "new-token-secrets",
    "Creating new ServiceAccount secrets after creation of new signing key",
    add_secrets,
    after=["connection", "controller-manager-ready"],
    unless=any_of(asleep, _not_preparing),
    retry=LONG,
)
OLD_SECRETS = Task(
    "old-token-secrets",
    "Deleting old ServiceAccount secrets after rotation of signing key",
    delete_old_secrets,
    after=["connection", "controller-manager-ready"],
    unless=any_of(asleep, _not_completing),
    retry=LONG,
)
