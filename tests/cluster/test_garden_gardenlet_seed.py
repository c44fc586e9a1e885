"""A seed that is reconciled, kept, and given back."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from functools import partial

import pytest

from agent.gardenlet.flow.graph import Graph, Task
from agent.gardenlet.seed.lease import declare as declare_lease
from agent.gardenlet.seed.main import reconcile
from agent.gardenlet.seed.main.controller import declare
from agent.gardenlet.seed.main.flows import DELETE
from agent.gardenlet.seed.main.operation import SeedOperation
from config.gardenlet.schema import GardenClientConnection, Images, Resources, SecretReference
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.garden import BACKUP_BUCKETS, CONTROLLER_INSTALLATIONS, SEEDS, SHOOTS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.garden.seeds import LEASE_NAMESPACE, namespace_of
from kit.eventually import eventually, soon
from kit.garden import Garden
from kit.gardenlet_controllers import all_but
from kit.gardenlet_seeds import GARDEN, SeedPlace, changing
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object, annotations, condition, finalizers, key, labels, mapping, metadata, uid
from kube.paths import at
from kube.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    SECRETS,
    Resource,
)
from kube.runtime.controller import ReconcileError

pytestmark = pytest.mark.timeout(900)

IDENTITY = "/api/v1/namespaces/kube-system/configmaps/cluster-identity"
MARKER = f"/api/v1/namespaces/{GARDEN}/configmaps/gardenlet-seed-finalised"


@pytest.fixture(scope="module")
def seed_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """Of this file alone: a seed has things that there is one of."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def place(garden: Garden, seed_cluster: Cluster) -> Iterator[SeedPlace]:
    """With a resource manager."""
    place = SeedPlace(garden, seed_cluster)
    with place.resource_manager():
        yield place
        place.remove()


def listed(place: SeedPlace, resource: Resource) -> list[Object]:
    """Of the seed cluster; none of a kind that is not served."""
    with suppress(NotFound):
        return list(place.cluster.api.get(resource.path())["items"])
    return []


async def test_a_fresh_seed_is_reconciled_at_the_first_try(place: SeedPlace) -> None:
    with suppress(AlreadyExists):
        place.garden.create(NAMESPACES, LEASE_NAMESPACE)
    states = set[str]()

    def is_ready() -> bool:
        states.add(str(place.operation.get("state")))
        return place.operation.get("state") == "Succeeded"

    resources = Resources(capacity={"shoots": 200, "things": "5"}, reserved={"shoots": 3})
    async with place.gardenlet(declare, declare_lease, resources=resources):
        await soon(lambda: asyncio.to_thread(is_ready), "the Seed to be reconciled", state=lambda: place.operation)
        await soon(lambda: condition(place.seed, "GardenletReady")["status"] == "True")  # type: ignore[index]
    assert "Error" not in states
    assert place.operation["description"] == "Seed cluster has been successfully reconciled."
    status = mapping(place.seed["status"])
    system = place.cluster.api.get("/api/v1/namespaces/kube-system")
    assert status["observedGeneration"] == metadata(place.seed)["generation"]
    assert status["clusterIdentity"] == uid(system)
    assert status["kubernetesVersion"].startswith("v1.")
    assert (status["capacity"], status["allocatable"]) == (
        {"shoots": "200", "things": "5"},
        {"shoots": "197", "things": "5"},
    )
    assert "gardener" in finalizers(place.seed)
    assert status["phase"] == "NotReady", "is part of each write of a condition"
    assert labels(place.cluster.api.get(f"/api/v1/namespaces/{GARDEN}"))["role"] == "garden"
    assert eventually(lambda: place.find(IDENTITY))["data"]["cluster-identity"] == uid(system)
    bucket = place.garden.get(BACKUP_BUCKETS, uid(place.seed))
    assert bucket["spec"]["seedName"] == place.name
    assert at(metadata(bucket)["ownerReferences"][0], "uid") == uid(place.seed)
    monitoring = place.find(f"/api/v1/namespaces/{GARDEN}/secrets/seed-monitoring")
    assert monitoring is not None
    assert labels(monitoring)["gardener.cloud/purpose"] == "global-monitoring-secret-replica"


async def test_a_second_reconciliation_writes_nothing_but_its_status(place: SeedPlace) -> None:
    with closing(place.cluster.audit()) as seed_audit, closing(place.garden.cluster.audit()) as garden_audit:
        async with place.gardenlet(declare):
            await asyncio.to_thread(place.finished)
        # Another process finds all as it was left.
        async with place.gardenlet(declare):
            await asyncio.to_thread(place.finished, since=place.operation)
            in_seed, in_garden = seed_audit.mark(), garden_audit.mark()
            place.operate("reconcile")
            await asyncio.to_thread(place.finished, generation=metadata(place.seed)["generation"])
            ours = f"gardenlet/garden-of-{place.name}"
            assert _writes(garden_audit.count(since=in_garden, user_agent=ours)) == {
                ("patch", "seeds/status"): 2,
                ("update", "backupbuckets"): 1,
            }
            assert changing(seed_audit.calls(since=in_seed, user_agent=f"gardenlet/seed-of-{place.name}")) == []


def _writes(calls: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    return {(verb, resource): count for (verb, resource), count in calls.items() if verb not in ("get", "list")}


async def test_it_waits_for_the_extensions_that_the_seed_needs(place: SeedPlace) -> None:
    place.report_extensions(Healthy="False")
    async with place.gardenlet(declare):
        waiting = "Waiting until required extensions are ready"
        await soon(lambda: asyncio.to_thread(lambda: place.operation.get("description") == waiting))
        place.report_extensions()
        assert (await asyncio.to_thread(place.finished))["progress"] == 100


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("internal-domain", "need an internal domain secret but found none"),
        ("global-monitoring", "global monitoring secret not found in seed namespace"),
    ],
)
async def test_what_the_garden_lacks_is_reported_and_tried_again(place: SeedPlace, role: str, text: str) -> None:
    name = role.removeprefix("global-")
    place.garden.delete(SECRETS, name, namespace=namespace_of(place.name))
    async with place.gardenlet(declare):
        failed = await asyncio.to_thread(place.finished, "Error")
        assert failed["description"] == f"{text} Operation will be retried."
        assert failed["type"] == "Reconcile"
        place.secret(name, role)
        await asyncio.to_thread(place.finished)


# --- components


@asynccontextmanager
async def _playing_pods(place: SeedPlace, app: str) -> AsyncIterator[None]:
    """Pods of this cluster become ready, though nothing runs them."""

    async def play() -> None:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}
        while True:
            for pod in place.cluster.api.get(f"{PODS.path(namespace=GARDEN)}?labelSelector=app%3D{app}")["items"]:
                if condition(pod, "Ready") is None:
                    path = PODS.path(namespace=GARDEN, name=key(pod).name, subresource="status")
                    place.cluster.api.patch(path, {"status": {"phase": "Running", "conditions": [ready]}})
            await asyncio.sleep(0.2)

    playing = asyncio.create_task(play())
    try:
        yield
    finally:
        playing.cancel()


async def test_a_deployed_resource_manager_is_waited_for_and_removed(place: SeedPlace) -> None:
    name = "gardener-resource-manager"
    path = DEPLOYMENTS.path(namespace=GARDEN, name=name)
    with suppress(AlreadyExists):
        critical = {"metadata": {"name": "gardener-system-critical"}, "value": 999_998_950}
        place.cluster.api.create(PRIORITY_CLASSES.path(), critical)
    fields = {"images": Images(resource_manager="rm"), "omit": all_but(name)}
    async with _playing_pods(place, name), place.gardenlet(declare, **fields):
        await asyncio.to_thread(place.finished)
        deployment = place.cluster.api.get(path)
        assert at(deployment, "spec", "template", "spec", "containers")[0]["image"] == "rm"
        assert condition(deployment, "Available")["status"] == "True"  # type: ignore[index]
        place.garden.delete(CONTROLLER_INSTALLATIONS, place.name)
        place.garden.delete(SEEDS, place.name)
        await soon(partial(_is_gone, place), "the Seed to go", state=lambda: place.operation)
    assert _left(place) == {}
    assert place.find(path) is None


# --- the process


async def test_a_process_that_is_stopped_leaves_its_operation_to_the_next_one(place: SeedPlace) -> None:
    place.report_extensions(Healthy="False")
    waiting = "Waiting until required extensions are ready"
    with place.process() as process:
        await soon(lambda: asyncio.to_thread(lambda: place.operation.get("description") == waiting))
        process.stop()
    assert process.exit_code == 0
    assert place.operation["state"] == "Processing"
    assert place.operation["description"] == waiting
    place.report_extensions()
    with place.process():
        await asyncio.to_thread(place.finished)
    assert place.seed["status"]["clientCertificateExpirationTimestamp"]


# --- what a person requests


def _token_secret(place: SeedPlace, name: str, label: str, annotation: str) -> str:
    """The path of a Secret in the seed whose token is not due."""
    meta: Object = {"name": f"{name}-{place.name}", "namespace": GARDEN}
    meta |= {"labels": dict([label.split("=")]), "annotations": {annotation: "2099-01-01T00:00:00Z"}}
    place.cluster.api.create(SECRETS.path(namespace=GARDEN), {"metadata": meta})
    return SECRETS.path(namespace=GARDEN, name=f"{name}-{place.name}")


@pytest.mark.parametrize(
    ("operation", "label", "annotation"),
    [
        (
            "renew-garden-access-secrets",
            "resources.gardener.cloud/class=garden",
            "serviceaccount.resources.gardener.cloud/token-renew-timestamp",
        ),
        (
            "renew-workload-identity-tokens",
            "security.gardener.cloud/purpose=workload-identity-token-requestor",
            "workloadidentity.security.gardener.cloud/token-renew-timestamp",
        ),
    ],
)
async def test_tokens_are_renewed_when_a_person_requests_it(
    place: SeedPlace, operation: str, label: str, annotation: str
) -> None:
    path = _token_secret(place, "asked", label, annotation)
    other = _token_secret(place, "other", "resources.gardener.cloud/class=shoot", annotation)
    async with place.gardenlet(declare):
        await asyncio.to_thread(place.finished)
        assert annotation in annotations(place.cluster.api.get(path))
        await asyncio.to_thread(place.finished, generation=place.operate(operation))
    assert annotation not in annotations(place.cluster.api.get(path))
    assert annotation in annotations(place.cluster.api.get(other))
    assert "gardener.cloud/operation" not in annotations(place.seed)


async def test_the_kubeconfig_is_renewed_though_all_else_fails(place: SeedPlace) -> None:
    secret = SecretReference(name=f"kubeconfig-{place.name}", namespace=GARDEN)
    path = SECRETS.path(namespace=GARDEN, name=secret.name)
    place.cluster.api.create(SECRETS.path(namespace=GARDEN), {"metadata": {"name": secret.name}})
    place.report_extensions(Healthy="False")
    place.operate("renew-kubeconfig")
    connection = GardenClientConnection(kubeconfig_secret=secret)
    async with place.gardenlet(declare, garden_client_connection=connection):
        await soon(lambda: "gardener.cloud/operation" not in annotations(place.seed), "the request to be carried out")
    assert annotations(place.cluster.api.get(path))["gardener.cloud/operation"] == "renew"


async def test_a_kubeconfig_that_is_not_kept_can_not_be_renewed(place: SeedPlace) -> None:
    generation = place.operate("renew-kubeconfig")
    async with place.gardenlet(declare):
        failed = await asyncio.to_thread(place.finished, "Error", generation=generation)
    assert failed["description"].startswith('1 error occurred:\n\t* task "Renewing garden kubeconfig" failed: ')
    assert "remove the annotation gardener.cloud/operation=renew-kubeconfig" in failed["description"]
    assert failed["description"].endswith("\n\n Operation will be retried.")


# --- deletion


def _left(place: SeedPlace) -> dict[str, list[str]]:
    """What a gardenlet has left in its seed, by kind."""
    ours = "gardenlet.gardener.cloud/managed"
    found = {
        each.plural: sorted(
            str(key(obj))
            for obj in listed(place, each)
            if ours in labels(obj) or labels(obj).get("manager-identity") == "gardenlet"
        )
        for each in (SECRETS, CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS)
    }
    found["managedresources"] = [str(key(obj)) for obj in listed(place, MANAGED_RESOURCES)]
    return {kind: names for kind, names in found.items() if names}


def _is_gone(place: SeedPlace) -> bool:
    try:
        return not place.seed
    except NotFound:
        return True


async def test_a_deleted_seed_leaves_nothing_though_others_write_it_at_the_end(
    place: SeedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed = reconcile.Reconciler._succeed

    async def succeed_and_be_written(self: reconcile.Reconciler, seed: Object, **known: bool) -> Object:
        done = await succeed(self, seed, **known)
        body = {"metadata": {"annotations": {"example.com/written": metadata(done)["resourceVersion"]}}}
        await asyncio.to_thread(place.place.patch, SEEDS, place.name, body)
        return done

    monkeypatch.setattr(reconcile.Reconciler, "_succeed", succeed_and_be_written)
    async with place.gardenlet(declare):
        await asyncio.to_thread(place.finished)
        assert set(_left(place)) == {"secrets", "customresourcedefinitions", "managedresources"}
        own = uid(place.seed)
        place.garden.delete(SEEDS, place.name)
        await soon(lambda: place.operation.get("description") == "Ensuring all ControllerInstallations are gone")
        assert listed(place, MANAGED_RESOURCES), "extensions need them until they are gone"
        with pytest.raises(NotFound):
            place.garden.get(BACKUP_BUCKETS, own)
        place.garden.delete(CONTROLLER_INSTALLATIONS, place.name)
        await soon(partial(_is_gone, place), "the Seed to go", state=lambda: place.operation)
    assert _left(place) == {}
    marker = place.find(MARKER)
    assert marker is not None
    assert marker["data"]["uid"] == own
    assert place.find(IDENTITY) is None


async def test_a_seed_with_shoots_is_not_deleted(place: SeedPlace) -> None:
    async with place.gardenlet(declare):
        await asyncio.to_thread(place.finished)
    place.place.shoot("s")
    place.garden.delete(SEEDS, place.name)
    # Admission has not seen it on the Seed, which it may be leaving.
    place.place.patch(SHOOTS, "s", {"status": {"seedName": place.name}}, status=True)
    async with place.gardenlet(declare):
        event = "Cannot delete Seed, because it is still associated by the following Shoots: "
        await soon(lambda: f"{event}{place.place.namespace}/s" in place.events())
        assert place.operation["description"] == "Deletion of Seed cluster in progress."
        place.garden.get(BACKUP_BUCKETS, uid(place.seed))
        assert listed(place, MANAGED_RESOURCES)


def _says(place: SeedPlace, reported: str) -> bool:
    return reported in place.operation.get("description", "")


class _InterruptedError(ReconcileError):
    pass


def _interrupted_after(name: str) -> Graph[SeedOperation]:
    """The flow of a deletion that ends when one of its tasks has done its work."""

    def interrupted(task: Task[SeedOperation]) -> Task[SeedOperation]:
        async def run(operation: SeedOperation) -> None:
            await task.run(operation)
            raise _InterruptedError(f"interrupted after {task.name}")

        return replace(task, run=run) if task.id == name else task

    return Graph(DELETE.name, list(map(interrupted, DELETE.tasks.values())))


async def test_a_deletion_that_is_interrupted_anywhere_starts_from_the_top(
    place: SeedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with place.gardenlet(declare):
        await asyncio.to_thread(place.finished)
    place.garden.delete(CONTROLLER_INSTALLATIONS, place.name)
    place.garden.delete(SEEDS, place.name)
    for name in DELETE.order:
        monkeypatch.setattr(reconcile, "DELETE", _interrupted_after(name))
        async with place.gardenlet(declare):
            text = f"interrupted after {DELETE.tasks[name].name}"
            await soon(partial(_says, place, text), text)
    monkeypatch.setattr(reconcile, "DELETE", DELETE)
    async with place.gardenlet(declare):
        await soon(partial(_is_gone, place), "the Seed to go", state=lambda: place.operation)
    assert _left(place) == {}
