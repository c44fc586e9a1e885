"""Rewriting of objects in the Shoot after a change of the encrypted resources, or of the key.

See `rules.encryption`.

Objects get a label, and lose it again: any write makes the API server store them as configured. Lists select objects
without the label, so that a pass continues after an interruption.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from functools import partial

from agent.gardenlet.flow.graph import LONG, Task
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import any_of
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.encryption import (
    FORMER,
    KEY_NAME,
    LABELED,
    POPULATED,
    SNAPSHOTTED,
    encrypted,
    is_marked,
    listed,
)
from agent.gardenlet.shoot.main.skipping import asleep, no_backup
from agent.gardenlet.shoot.main.tasks import snapshots
from agent.gardenlet.shoot.main.tasks.control_plane import api_server_is_rolled_out, mark_api_server
from agent.gardenlet.shoot.main.tasks.secrets import name_of
from components import kube_apiserver
from components.secrets import tables
from gardener.garden.rotations import COMPLETED, COMPLETING, ENCRYPTION_KEY, PREPARING, phase
from kube.apply.application import for_each
from kube.errors import Conflict, KubeError, NotFound
from kube.objects import Key, Object, annotations, key, metadata
from kube.resources import DEPLOYMENTS, Resource
from kube.runtime import discovery_documents
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import ReconcileError
from kube.runtime.limiter import TokenBucket

_WRITES_A_SECOND = 100


def _nothing_to_write(operation: ShootOperation) -> bool:
    return not encrypted(operation.shoot).changed and not operation.is_in(PREPARING, ENCRYPTION_KEY)


def _nothing_written(operation: ShootOperation) -> bool:
    """Whether no label has to be removed: during a rotation, labels stay until its completion."""
    return not encrypted(operation.shoot).changed and not operation.is_in(COMPLETING, ENCRYPTION_KEY)


async def label(operation: ShootOperation) -> None:
    """Rewrite objects by adding the label.

    Raises:
        ReconcileError: a kind could not be discovered.
        NotInTimeError: the wait timed out.
        NoConnectionError: there is no connection to the Shoot.
    """
    name, key_name = kube_apiserver.NAME, name_of(operation, tables.ENCRYPTION_KEY.name)
    live = await operation.seed.client.get(DEPLOYMENTS, Key(operation.technical_id, name))
    if is_marked(annotations(live), LABELED, key_name):
        return
    await api_server_is_rolled_out(operation)
    await _write(operation, f"{KEY_NAME}!={key_name}", key_name)
    await mark_api_server(operation, {LABELED: key_name})


async def remove_label(operation: ShootOperation) -> None:
    """Remove the labels and marks, and report the encrypted resources.

    Raises: ReconcileError, NoConnectionError, KubeError.
    """
    await _write(operation, KEY_NAME, None)
    removed = {FORMER: ",".join(found)} if (found := encrypted(operation.shoot).removed) else {}
    await mark_api_server(operation, {**dict.fromkeys((POPULATED, LABELED, SNAPSHOTTED)), **removed})
    now = listed(operation.shoot)
    await operation.statuses.update(operation.shoot, lambda status: {**status, "encryptedResources": now or None})


async def _write(operation: ShootOperation, selector: str, value: str | None) -> None:
    limit = TokenBucket(qps=_WRITES_A_SECOND, burst=_WRITES_A_SECOND)
    async with operation.cluster() as cluster:
        async for resource in _served(cluster.client, _rewritten(operation)):
            waits_for(f"{resource.plural} are rewritten")
            async for page in cluster.client.pages(resource, Selection(label_selector=selector), form=Form.METADATA):
                await for_each(partial(_write_one, cluster.client, resource, limit, value), page)


def _rewritten(operation: ShootOperation) -> Sequence[str]:
    """Resources to rewrite: changed ones, or all encrypted ones during a rotation of the key."""
    found = encrypted(operation.shoot)
    return found.changed if phase(operation.shoot, ENCRYPTION_KEY) in ("", COMPLETED) else found.resources


async def _write_one(client: Client, resource: Resource, limit: TokenBucket, value: str | None, obj: Object) -> None:
    await limit.acquire()
    name = key(obj)
    body = {"metadata": {"uid": metadata(obj)["uid"], "labels": {KEY_NAME: value}}}
    with suppress(NotFound, Conflict):  # deleted, or recreated and thereby stored as configured
        await client.patch(resource, name, body)


async def _served(client: Client, names: Iterable[str]) -> AsyncIterator[Resource]:
    """Find the kinds by discovery of only their groups, so that failures of others don't matter; skip unserved ones."""
    for name in names:
        plural, _, group = name.partition(".")
        try:
            for version in await discovery_documents.versions(client.read, group):
                kinds = await discovery_documents.kinds(client.read, version)
                if found := next((each for each in kinds.values() if each.plural == plural), None):
                    yield found
                    break
        except KubeError as error:
            raise ReconcileError(f"{name} can't be rewritten: its current state is unknown: {error}") from error


TASKS = (
    Task(
        "label-encrypted",
        "Labeling resources after modification of encryption config or to encrypt them with new ETCD encryption key",
        label,
        after=["connection"],
        unless=any_of(asleep, _nothing_to_write),
        retry=LONG,
    ),
    Task(
        "snapshot",
        "Snapshotting ETCD after modification of encryption config or resources are re-encrypted with new ETCD"
        " encryption key",
        snapshots.with_new_key,
        after=["label-encrypted"],
        unless=any_of(asleep, no_backup, _nothing_to_write),
        retry=LONG,
    ),
    Task(
        "unlabel-encrypted",
        "Removing label from resources after modification of encryption config or rotation of ETCD encryption key",
        remove_label,
        after=["connection", "label-encrypted", "snapshot", "old-token-secrets"],
        unless=any_of(asleep, _nothing_written),
        retry=LONG,
    ),
)
