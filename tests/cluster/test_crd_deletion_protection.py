"""Whole collections of protected objects: all are confirmed, or none is deleted."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from config.resource_manager.webhooks import CRDDeletionProtection
from devcluster.cluster import Cluster
from gardener.keys import CONFIRM_DELETION
from kit.eventually import soon
from kit.kinds import custom_resource, definition, serve
from kit.objects import obj
from kit.world import CountingClient
from kube.objects import Key
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport
from webhooks.admission import Allowed, Answer, Denied, Errored, Kind, Request, ResourceName
from webhooks.handlers import crd_deletion_protection
from webhooks.handlers.crd_deletion_protection import Collections

GROUP = "extensions.gardener.cloud"
INFRASTRUCTURES = Resource(GROUP, "v1alpha1", "Infrastructure", "infrastructures", namespaced=True)
BACKUP_BUCKETS = Resource(GROUP, "v1alpha1", "BackupBucket", "backupbuckets", namespaced=False)
PROTECTED = {"gardener.cloud/deletion-protected": "true"}
REFUSAL = f'must have a "{CONFIRM_DELETION}" annotation to delete'


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[CountingClient]:
    serve(cluster, INFRASTRUCTURES)
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        yield CountingClient(transport, user_agent="crd-deletion-protection")


def deletion(resource: Resource, namespace: str = "") -> Request:
    """Request that the API server sends for each object of a collection."""
    return Request(
        uid="1",
        kind=Kind(resource.group, resource.version, resource.kind),
        resource=ResourceName(resource.group, resource.version, resource.plural),
        operation="DELETE",
        name="",
        namespace=namespace,
        old_object={"metadata": {"name": "any", "annotations": {CONFIRM_DELETION: "true"}}},
    )


async def ask(client: Client, resource: Resource, namespace: str = "") -> Answer:
    handle = crd_deletion_protection.handler(CRDDeletionProtection(enabled=True), client)
    return await handle(deletion(resource, namespace))


async def create(client: Client, resource: Resource, name: str, namespace: str = "", *, confirmed: bool) -> None:
    annotations = {CONFIRM_DELETION: "true"} if confirmed else {}
    await client.create(resource, obj(resource, name, namespace=namespace, annotations=annotations))


async def confirm(client: Client, resource: Resource, name: str, namespace: str = "") -> None:
    patch = {"metadata": {"annotations": {CONFIRM_DELETION: "true"}}}
    await client.patch(resource, Key(namespace, name), patch)


async def test_one_object_without_confirmation_keeps_all_of_its_namespace(
    client: CountingClient, namespace: str
) -> None:
    handle = crd_deletion_protection.handler(CRDDeletionProtection(enabled=True), client)
    assert await handle(deletion(INFRASTRUCTURES, namespace)) == Allowed()  # there is none

    await create(client, INFRASTRUCTURES, "a", namespace, confirmed=True)
    await create(client, INFRASTRUCTURES, "b", namespace, confirmed=False)
    expected = Denied(f"{REFUSAL}: Infrastructure {namespace}/b")
    # That all are confirmed may be believed for a second.

    async def is_refused() -> bool:
        return await handle(deletion(INFRASTRUCTURES, namespace)) == expected

    await soon(is_refused, "the refusal")
    assert await handle(deletion(INFRASTRUCTURES, f"{namespace}-other")) == Allowed()

    await confirm(client, INFRASTRUCTURES, "b", namespace)
    # A refusal is never remembered: a client that has just confirmed may go on.
    assert await handle(deletion(INFRASTRUCTURES, namespace)) == Allowed()


async def test_objects_on_later_pages_count(client: CountingClient, namespace: str) -> None:
    for name in ("a", "b", "c"):
        await create(client, INFRASTRUCTURES, name, namespace, confirmed=True)
    await create(client, INFRASTRUCTURES, "d", namespace, confirmed=False)
    collections = Collections(client, page_size=2)
    assert await collections.unconfirmed(deletion(INFRASTRUCTURES, namespace)) == Key(namespace, "d")
    await confirm(client, INFRASTRUCTURES, "d", namespace)
    assert await collections.unconfirmed(deletion(INFRASTRUCTURES, namespace)) is None


async def test_a_list_is_shared_for_a_second(client: CountingClient, namespace: str) -> None:
    now = 1000.0
    collections = Collections(client, clock=lambda: now)
    request = deletion(INFRASTRUCTURES, namespace)
    await create(client, INFRASTRUCTURES, "a", namespace, confirmed=True)

    before = client.requests
    assert await asyncio.gather(*(collections.unconfirmed(request) for _ in range(50))) == [None] * 50
    assert client.requests == before + 1

    await create(client, INFRASTRUCTURES, "b", namespace, confirmed=False)
    assert await collections.unconfirmed(request) is None
    now += 1.0
    assert await collections.unconfirmed(request) == Key(namespace, "b")


async def test_objects_without_namespace_are_all_looked_at(cluster: Cluster, client: CountingClient) -> None:
    serve(cluster, BACKUP_BUCKETS)
    name = f"bucket-{uuid.uuid4().hex[:8]}"
    await create(client, BACKUP_BUCKETS, name, confirmed=False)
    try:
        assert await ask(client, BACKUP_BUCKETS) == Denied(f"{REFUSAL}: BackupBucket {name}")
        await confirm(client, BACKUP_BUCKETS, name)
        assert await ask(client, BACKUP_BUCKETS) == Allowed()
    finally:
        await client.delete(BACKUP_BUCKETS, name)


async def test_of_crds_only_those_that_are_protected_count(client: CountingClient) -> None:
    widgets = custom_resource(f"a{uuid.uuid4().hex[:10]}.example.com", "Widget")
    name = f"widgets.{widgets.group}"
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(widgets))
    refused = f"{REFUSAL}: CustomResourceDefinition "
    try:
        # Other tests may have CRDs that are protected.
        assert await ask(client, CUSTOM_RESOURCE_DEFINITIONS) != Denied(refused + name)
        await client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, {"metadata": {"labels": PROTECTED}})
        answer = await ask(client, CUSTOM_RESOURCE_DEFINITIONS)
        assert isinstance(answer, Denied)
        assert answer.message.startswith(refused)
    finally:
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)


async def test_only_a_kind_that_is_gone_has_no_objects_to_protect(client: CountingClient) -> None:
    gone = replace(INFRASTRUCTURES, kind="ContainerRuntime", plural="containerruntimes")
    assert await ask(client, gone) == Allowed()
    answer = await ask(client, replace(CUSTOM_RESOURCE_DEFINITIONS, version="v1beta1"))
    assert isinstance(answer, Errored)
    assert "defines this kind, so its objects may still exist" in answer.message


async def test_without_an_answer_nothing_is_deleted(cluster: Cluster) -> None:
    nowhere = replace(load_kubeconfig(cluster.kubeconfig), server="https://127.0.0.1:1")
    async with Transport(nowhere) as transport:
        answer = await ask(Client(transport, user_agent="crd-deletion-protection"), INFRASTRUCTURES, "any")
    assert isinstance(answer, Errored)
    assert answer.code == 500
    assert "127.0.0.1:1" in answer.message
