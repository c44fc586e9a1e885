"""The extension controllers of the local provider, called as by the gardenlet: the contract from both sides."""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.gardenlet.common.extension_objects import kinds
from agent.gardenlet.common.extension_objects.kinds import Kind
from agent.gardenlet.common.extension_objects.objects import Asked, ExtensionError, ExtensionObjects
from agent.gardenlet.common.shoot_states.rules.contents import Left
from devcluster.cluster import Cluster
from extension.controller import declare
from extension.errors import Pending
from gardener.api.extensions import BACKUP_BUCKETS, BASTIONS, CLUSTERS
from gardener.keys import OPERATION
from kit.controllers import cluster_of, loops_at_work
from kit.eventually import soon
from kit.processes.agent import PROJECT, AgentProcess
from kit.seed_kinds import install_seed_kinds
from kit.world import connected
from kube.clock import utc_now
from kube.errors import AlreadyExists
from kube.objects import Key, Object, annotations, finalizers, key
from kube.paths import at
from kube.resources import CONFIG_MAPS, NAMESPACES, SECRETS
from kube.runtime.cache import Caches
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery
from kube.runtime.events import EventRecorder
from kube.runtime.waiting import Waiting
from localprovider.extensions.actuators import ACTUATORS, DNS, GARDEN, Infrastructure
from localprovider.extensions.state import State

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module", autouse=True)
def seed_kinds(cluster: Cluster) -> None:
    install_seed_kinds(cluster)


@pytest.fixture
async def place(admin: Client) -> str:
    """A namespace as that of a Shoot: named by its technical ID."""
    name = f"shoot--p--{uuid.uuid4().hex[:6]}"
    for made in (name, GARDEN):
        try:
            await admin.create(NAMESPACES, {**NAMESPACES.type_meta, "metadata": {"name": made}})
        except AlreadyExists:
            continue
    return name


@pytest.fixture
async def objects(client: Client) -> AsyncIterator[ExtensionObjects]:
    caches = Caches(client)
    waiting = Waiting(client=client, caches=caches, discovery=Discovery(client))
    yield ExtensionObjects(client=client, waiting=waiting, clock=utc_now)
    await caches.close()


@asynccontextmanager
async def provider(cluster: Cluster, directory: Path) -> AsyncIterator[None]:
    """All that it had in memory ends with the block."""
    async with connected(cluster, "local-provider") as client:
        seed, state = cluster_of(client), State(directory)
        loops = [declare(seed, actuator(client, state), workers=2) for actuator in ACTUATORS]
        async with loops_at_work(EventRecorder(client, component="test"), {seed.caches}, *loops):
            yield


def manifest(namespace: str, name: str = "a", *, labels: Object | None = None, **spec: Any) -> Object:
    place = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, **place, "labels": labels or {}}, "spec": {"type": "local", **spec}}


def infrastructure(namespace: str, **simulate: Any) -> Object:
    made = manifest(namespace, region="r", secretRef={"name": "s", "namespace": namespace})
    if simulate:
        made["spec"]["providerConfig"] = {"simulate": simulate}
    return made


def of_a_shoot(place: str) -> list[tuple[Kind, Object]]:
    """An object of each kind in its namespace."""
    secret = {"name": "s", "namespace": place}
    return [
        (kinds.INFRASTRUCTURE, infrastructure(place)),
        (kinds.CONTROL_PLANE, manifest(place, region="r", secretRef=secret)),
        (kinds.NETWORK, manifest(place, podCIDR="10.1.0.0/16", serviceCIDR="10.2.0.0/16")),
        (kinds.CONTAINER_RUNTIME, manifest(place, binaryPath="/bin", workerPool={"name": "w", "selector": {}})),
        (kinds.EXTENSION, manifest(place)),
        (kinds.DNS_RECORD, dns_record(place, f"{place}.example.com")),
        (kinds.OPERATING_SYSTEM_CONFIG, manifest(place, purpose="provision", units=[{"name": "x.service"}])),
        (kinds.WORKER, manifest(place, region="r", secretRef=secret, pools=[pool("w", 1, 3)])),
        (Kind(resource=BASTIONS), manifest(place, userData="", ingress=[{"ipBlock": {"cidr": "1.2.3.4/32"}}])),
    ]


def of_a_seed(place: str) -> list[tuple[Kind, Object]]:
    """A bucket and an entry, with the Secret of the Shoot."""
    secret = {"name": "s", "namespace": place}
    return [
        (Kind(resource=BACKUP_BUCKETS), manifest("", f"b-{place}", region="r", secretRef=secret)),
        (kinds.BACKUP_ENTRY, manifest("", f"{place}--u", region="r", bucketName=f"b-{place}", secretRef=secret)),
    ]


async def test_every_kind_of_a_shoot_is_answered_and_leaves_nothing(
    objects: ExtensionObjects, client: Client, cluster: Cluster, place: str, tmp_path: Path
) -> None:
    record, requested = f"{place}.example.com", of_a_shoot(place)
    async with provider(cluster, tmp_path):
        found = {}
        for kind, each in requested:
            found[kind.resource.kind] = await objects.wait(await objects.deploy(kind, each))
        assert at(found["Infrastructure"], "status", "nodesCIDR") == "10.64.0.0/16"
        assert at(found["Worker"], "status", "machineDeployments") == [
            {"name": f"{place}-w-z1", "minimum": 1, "maximum": 3}
        ]
        config = at(found["OperatingSystemConfig"], "status", "cloudConfig", "secretRef")
        assert (await client.get(SECRETS, Key(place, config["name"])))["data"].keys() == {"cloud_config"}
        assert (await client.get(CONFIG_MAPS, Key(GARDEN, DNS)))["data"][record] == "127.0.0.1"
        for kind, each in requested:
            await objects.delete(kind, key(each))
        for kind, each in requested:
            await objects.wait_until_gone(kind, key(each))
    assert list((tmp_path / "networks").iterdir()) == []
    assert record not in (await client.get(CONFIG_MAPS, Key(GARDEN, DNS))).get("data", {})
    left = [key(each).name for page in [await client.list(SECRETS)] for each in page if key(each).namespace == place]
    assert left == []


def dns_record(namespace: str, name: str) -> Object:
    record = manifest(namespace, secretRef={"name": "s", "namespace": namespace}, recordType="A", values=["127.0.0.1"])
    record["spec"]["name"] = name
    return record


def pool(name: str, minimum: int, maximum: int) -> Object:
    sizes = {"minimum": minimum, "maximum": maximum, "maxSurge": 1, "maxUnavailable": 0}
    return {"name": name, "machineType": "m", "machineImage": {"name": "i", "version": "1"}, **sizes}


async def test_simulated_errors_come_as_often_as_requested(
    objects: ExtensionObjects, client: Client, cluster: Cluster, place: str, tmp_path: Path
) -> None:
    async with provider(cluster, tmp_path):
        requested = await objects.deploy(
            kinds.INFRASTRUCTURE, infrastructure(place, errorText="no quota left", errorCode="ERR_X", times=2)
        )
        assert at(await objects.wait(requested), "status", "lastError") is None
        severe = Kind(resource=kinds.INFRASTRUCTURE.resource, severe=0.2)
        requested = await objects.deploy(severe, infrastructure(place, errorText="no quota left", errorCode="ERR_X"))
        with pytest.raises(ExtensionError, match="error during reconciliation: no quota left$") as raised:
            await objects.wait(requested)
        assert raised.value.codes == ("ERR_X",)
        await objects.delete(severe, requested.name)
        with pytest.raises(ExtensionError, match="Failed to delete .*: no quota left$"):
            await objects.wait_until_gone(severe, requested.name)
        # Without the fault it goes.
        body = {"spec": {"providerConfig": None}}
        await client.patch(severe.resource, requested.name, body)
        await objects.wait_until_gone(kinds.INFRASTRUCTURE, requested.name)


@pytest.mark.parametrize("waits_for_nodes", [False, True])
async def test_what_takes_long_holds_no_worker(
    waits_for_nodes: bool, objects: ExtensionObjects, client: Client, cluster: Cluster, place: str, tmp_path: Path
) -> None:
    class Slow(Infrastructure):
        async def reconcile(self, obj: Object, /) -> Object:
            if key(obj).name.startswith("slow"):
                raise Pending("Nodes are not ready", seconds=0.5, longest=120)
            return {}

    slow: dict[str, Any] = {} if waits_for_nodes else {"delay": "1h"}
    async with connected(cluster, "local-provider") as own:
        seed = cluster_of(own)
        loop = declare(seed, Slow(own, State(tmp_path)), workers=1)
        async with loops_at_work(EventRecorder(own, component="test"), {seed.caches}, loop):
            for number in range(3):
                made = infrastructure(place, **slow)
                made["metadata"]["name"] = f"slow-{number}"
                await objects.deploy(kinds.INFRASTRUCTURE, made)
            await objects.wait(await objects.deploy(kinds.INFRASTRUCTURE, infrastructure(place)))
            for number in range(3):
                found = await client.get(kinds.INFRASTRUCTURE.resource, Key(place, f"slow-{number}"))
                assert at(found, "status", "lastOperation", "state") == "Processing"
                await objects.delete(kinds.INFRASTRUCTURE, key(found))


async def test_every_kind_has_every_fault(
    objects: ExtensionObjects, client: Client, cluster: Cluster, place: str, tmp_path: Path
) -> None:
    await client.create(SECRETS, {**SECRETS.type_meta, "metadata": {"name": "s", "namespace": place}})
    bucket, (of_entries, entry) = of_a_seed(place)
    # All go through their faults at the same time: the bucket of the entry is another, which stays.
    entry["spec"]["bucketName"] = f"e-{place}"
    (tmp_path / "buckets" / f"e-{place}").mkdir(parents=True)
    faulty = [*of_a_shoot(place), bucket, (of_entries, entry)]
    assert {kind.resource for kind, _ in faulty} == {each.resource for each in ACTUATORS}
    fails = {"errorText": "no", "errorCode": "ERR_X"}

    async def has_faults(kind: Kind, obj: Object) -> None:
        name = key(obj)

        async def requested(kind: Kind, **simulate: Any) -> Asked:
            wanted = {**obj["spec"], "providerConfig": {"simulate": simulate}}
            return await objects.deploy(kind, {**obj, "spec": wanted})

        async def state() -> Any:
            live = await client.get(kind.resource, name)
            return at(live, "status", "lastOperation", "state")

        async def is_begun() -> bool:
            return bool(await state() == "Processing")

        stuck = await requested(replace(kind, longest=0.5), stuck=True)
        await soon(is_begun, f"{stuck} to be begun")
        with pytest.raises(ExtensionError, match="to become ready: .*, still after 500ms"):
            await objects.wait(stuck)
        assert await is_begun()
        failing = await requested(replace(kind, severe=0.1), **fails)
        with pytest.raises(ExtensionError, match=f"{kind.resource.kind} .* error during reconciliation: no$") as raised:
            await objects.wait(failing)
        assert raised.value.codes == ("ERR_X",)
        answered = await objects.wait(await requested(kind, delay="100ms", times=1, **fails))
        assert at(answered, "status", "lastError") is None
        await objects.delete(kind, name)
        await objects.wait_until_gone(kind, name)

    async with provider(cluster, tmp_path), asyncio.TaskGroup() as group:
        for kind, obj in faulty:
            group.create_task(has_faults(kind, obj))


async def test_a_shoot_that_has_failed_is_left_alone_until_it_is_tried_again(
    objects: ExtensionObjects, client: Client, cluster: Cluster, place: str, tmp_path: Path
) -> None:
    shoot: Object = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "s", "generation": 1},
        "status": {"observedGeneration": 1, "lastOperation": {"state": "Failed"}},
    }
    empty: Object = {"apiVersion": "v1", "kind": "List"}
    made = {**CLUSTERS.type_meta, "metadata": {"name": place}}
    await client.create(CLUSTERS, {**made, "spec": {"shoot": shoot, "seed": empty, "cloudProfile": empty}})
    async with provider(cluster, tmp_path):
        requested = await objects.deploy(kinds.EXTENSION, manifest(place))
        other = await objects.deploy(kinds.EXTENSION, manifest("default", f"other-{place}"))
        await objects.wait(other)
        live = await client.get(kinds.EXTENSION.resource, Key(place, "a"))
        assert annotations(live)[OPERATION] == "reconcile"
        tried = {"spec": {"shoot": {"status": {"lastOperation": {"state": "Processing"}}}}}
        await client.patch(CLUSTERS, place, tried)
        await objects.wait(requested)


async def test_state_and_backups_move_with_a_shoot(
    objects: ExtensionObjects, client: Client, cluster: Cluster, place: str, tmp_path: Path
) -> None:
    entry = f"{place}--uid"
    secret = {"name": f"entry-{entry}", "namespace": GARDEN}
    await client.create(
        SECRETS, {**SECRETS.type_meta, "metadata": secret, "stringData": {"credential": "c"}, "type": "Opaque"}
    )
    backup = manifest("", entry, region="r", bucketName=f"b-{place}", secretRef=secret)
    (tmp_path / "buckets" / f"b-{place}").mkdir(parents=True)
    async with provider(cluster, tmp_path):
        first = await objects.wait(await objects.deploy(kinds.INFRASTRUCTURE, infrastructure(place)))
        await objects.wait(await objects.deploy(kinds.BACKUP_ENTRY, backup))
        etcd = await client.get(SECRETS, Key(place, "etcd-backup"))
        assert etcd["data"].keys() == {"credential", "bucketName", "hostPath"}
        state = at(first, "status", "state")
        leaving = await objects.migrate(kinds.INFRASTRUCTURE, key(first))
        assert leaving is not None
        await objects.wait_until_migrated(leaving)
        assert finalizers(await client.get(kinds.INFRASTRUCTURE.resource, Key(place, "a"))) == []
        await objects.delete(kinds.INFRASTRUCTURE, key(first))
        await objects.wait_until_gone(kinds.INFRASTRUCTURE, key(first))
        second = await objects.wait(
            await objects.restore(kinds.INFRASTRUCTURE, infrastructure(place), Left({"state": state}))
        )
        assert at(second, "status", "state") == state
        # Another Shoot of the same name has come: its Secret stays.
        own = {"metadata": {"annotations": {"backup.gardener.cloud/created-by": f"{place}--other"}}}
        await client.patch(SECRETS, Key(place, "etcd-backup"), own)
        await objects.delete(kinds.BACKUP_ENTRY, Key("", entry))
        await objects.wait_until_gone(kinds.BACKUP_ENTRY, Key("", entry))
        await client.get(SECRETS, Key(place, "etcd-backup"))


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_ends_in_between_each_question_gets_its_answer(
    seed: int, client: Client, cluster: Cluster, place: str, tmp_path: Path
) -> None:
    """Both sides end at random times and begin from the top; specs change meanwhile."""
    dice = Random(seed)

    async def flow(cidr: str) -> Object:
        caches = Caches(client)
        waiting = Waiting(client=client, caches=caches, discovery=Discovery(client))
        objects = ExtensionObjects(client=client, waiting=waiting, clock=utc_now)
        try:
            wanted = manifest(place, podCIDR="10.1.0.0/16", serviceCIDR="10.2.0.0/16", providerConfig={"cidr": cidr})
            return await objects.wait(await objects.deploy(kinds.NETWORK, wanted))
        finally:
            await caches.close()

    async def interrupted(work: Any) -> Any:
        """What came of it, or None: it was ended before."""
        task = asyncio.ensure_future(work)
        await asyncio.wait([task], timeout=dice.uniform(0.01, 0.4))
        if not task.done():
            task.cancel()
        await asyncio.wait([task])
        return None if task.cancelled() else task.result()

    async def provided(seconds: float) -> None:
        async with provider(cluster, tmp_path):
            await asyncio.sleep(seconds)

    for step in range(4):
        await asyncio.gather(interrupted(flow(str(step))), provided(dice.uniform(0.05, 0.5)))
    async with provider(cluster, tmp_path):
        answered = await flow("last")
    assert at(answered, "spec", "providerConfig", "cidr") == "last"
    assert at(answered, "status", "observedGeneration") == at(answered, "metadata", "generation")


class LocalProviderProcess(AgentProcess):
    program = "localprovider"


async def test_the_program_answers_with_the_configuration_of_its_page(
    objects: ExtensionObjects, cluster: Cluster, place: str, tmp_path: Path
) -> None:
    page = (PROJECT / "docs/local-provider.md").read_text()
    config = next(block for block in re.findall("```yaml\n(.*?)```", page, re.DOTALL) if "stateDir" in block)
    config = config.replace(".local-provider", str(tmp_path))
    with LocalProviderProcess(config, kubeconfig=cluster.kubeconfig) as provider_process:
        requested = await objects.deploy(kinds.INFRASTRUCTURE, infrastructure(place))
        await objects.wait(requested)
        await objects.delete(kinds.INFRASTRUCTURE, requested.name)
        await objects.wait_until_gone(kinds.INFRASTRUCTURE, requested.name)
    assert provider_process.exit_code == 0
