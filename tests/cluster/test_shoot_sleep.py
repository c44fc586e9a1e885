"""How a Shoot goes to sleep and wakes, whatever happens in between: with objects only, and a seed that is simulated.

What connects to the Shoot reaches the API server of the place, which reports the version of the Shoot.
"""

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.gardenlet.context import Context
from agent.gardenlet.flow.record import Subject
from agent.gardenlet.shoot.main.controller import declare
from components.gardener_access import NAMES
from devcluster.cluster import Cluster
from devcluster.testing.faults import Foreign, Overtake, Rule, internal_error
from devcluster.testing.proxy import FaultProxy
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.api.extensions import CLUSTERS
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import last_errors
from kit.eventually import soon
from kit.garden import Garden
from kit.played_shoots import NAMESPACE, SEED, PlayedPlace, Player
from kit.proxied import proxy_to
from kube.clock import format_time, utc_now
from kube.errors import AlreadyExists, Forbidden, NotFound
from kube.objects import Key, Object, annotations, key, labels, metadata
from kube.resources import DEPLOYMENTS, EVENTS, PODS, RESOURCE_QUOTAS, SECRETS, SERVICES, Resource
from kube.runtime.connection import Connection, load_kubeconfig
from localprocesses.components import Shape

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("shoot-sleep")]

VERSION = Foreign(name="version", code=200, content_type="application/json", text='{"gitVersion": "v1.30.14"}')
ACCESS = "shoot-access-gardener-resource-manager"
DEPLOYED = ("gardener-resource-manager", "kube-apiserver", "kube-controller-manager")
SECONDS = 90.0
LONG_AGO = "2026-01-01T00:00:00Z"
TASKS = "shoot.gardener.cloud/tasks"
BOOTSTRAP = f"{ACCESS}-bootstrap"


@pytest.fixture(scope="module")
def place(devcluster_run: object) -> Iterator[PlayedPlace]:
    # Deployments are simulated alone.
    with Cluster(shape=Shape(played=("deployment",))) as own:
        yield PlayedPlace(own)


@pytest.fixture
async def proxy(place: PlayedPlace) -> AsyncIterator[FaultProxy]:
    """The API server of all Shoots."""
    own = place.cluster
    async with FaultProxy(upstream=own.url, upstream_ca=own.ca, authority=own.authority) as proxy:
        proxy.rules.add(Rule(fault=VERSION, path="^/version$"))
        yield proxy


@pytest.fixture
def connection(place: PlayedPlace, proxy: FaultProxy) -> Connection:
    """To it."""
    proxy.write_kubeconfig(path := place.cluster.state / "shoot.kubeconfig", token=place.cluster.token)
    return load_kubeconfig(path)


class Bed:
    """A Shoot of its own."""

    def __init__(self, place: PlayedPlace, player: Player, connection: Connection, name: str) -> None:
        self.place, self.player, self.name = place, player, name
        self.technical_id = f"shoot--local--{name}"
        self._connection = connection
        self.context: Context | None = None

    @asynccontextmanager
    async def gardenlet(self) -> AsyncIterator[None]:
        """A process that begins, and in the end is ended in the middle of what it does."""
        async with self.place.gardenlet(declare, shoots=self._connection) as context:
            self.context = context
            yield

    # --- the Shoot

    def create(self, *, asleep: bool) -> None:
        wanted = {
            "cloudProfile": {"kind": "CloudProfile", "name": "local"},
            "seedName": SEED,
            "region": "local",
            "purpose": "evaluation",
            "kubernetes": {"version": "1.30.14"},
            "networking": {"services": "10.4.0.0/16"},
            "provider": {"type": "local"},
            "dns": {"domain": f"{self.name}.local.external.example.com"},
            "hibernation": {"enabled": asleep},
            "maintenance": {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}},
        }
        self.place.create_shoot(self.name, wanted, labels={f"seed.gardener.cloud/{SEED}": "true"})

    def hibernate(self, *, enabled: bool) -> None:
        patch = {"spec": {"hibernation": {"enabled": enabled}}}
        self.place.garden.patch(SHOOTS, self.name, patch, namespace=NAMESPACE)

    def ask(self, sequence: int, **annotations: str) -> None:
        """Has an operation begin. Args: annotations: of the Shoot."""
        patch: Object = {"operation": {"sequence": sequence}, "metadata": {"annotations": annotations}}
        self.place.garden.patch(SHOOTS, self.name, patch, namespace=NAMESPACE)

    def published(self, suffix: str) -> dict[str, str] | None:
        """What its users find."""
        try:
            found = self.place.garden.get(SECRETS, f"{self.name}.{suffix}", namespace=NAMESPACE)["data"]
        except NotFound:
            return None
        return {name: base64.b64decode(value).decode() for name, value in found.items()}

    def shoot(self) -> Object:
        return self.place.garden.get(SHOOTS, self.name, namespace=NAMESPACE)

    def status(self) -> Object:
        found: Object = self.shoot().get("status") or {}
        return found

    async def ended(self, state: str = "Succeeded", *, seconds: float = SECONDS) -> Object:
        """The status, once an operation with what is requested now has ended so."""

        def is_ended() -> bool:
            self.grant()
            shoot = self.shoot()
            status = shoot.get("status") or {}
            is_current = status.get("observedGeneration") == metadata(shoot)["generation"]
            return bool(is_current and status.get("lastOperation", {}).get("state") == state)

        await soon(is_ended, f"the operation to be {state}", state=self.explain, seconds=seconds)
        return self.status()

    async def waits(self, task: str, reason: str) -> None:
        """Until a task of the flow waits for this."""

        def is_waiting() -> bool:
            self.grant()
            return reason in self.reason(task)

        await soon(is_waiting, f"{task} to wait for {reason!r}", state=self.explain, seconds=SECONDS)

    def reason(self, task: str) -> str:
        assert self.context is not None
        flows = self.context.flows.find(Subject(SHOOTS.kind, Key(NAMESPACE, self.name)))
        if flows is None or flows.running is None:
            return ""
        report = flows.running.report()
        return next((f"{each.reason} {each.error}" for each in report.tasks if each.id == task), "")

    def explain(self) -> str:
        flows = self.context.flows.find(Subject(SHOOTS.kind, Key(NAMESPACE, self.name))) if self.context else None
        tasks = flows.newest.report().tasks if flows and flows.newest else ()
        return f"{self.status().get('lastOperation')}; {[(each.id, each.why) for each in tasks if each.why]}"

    # --- the seed

    def find(self, resource: Resource, name: str) -> Object | None:
        try:
            return self.place.garden.get(resource, name, namespace=self.technical_id)
        except NotFound:
            return None

    def patch(self, resource: Resource, name: str, body: Object, **options: Any) -> None:
        self.place.garden.patch(resource, name, body, namespace=self.technical_id, **options)

    def replicas(self) -> list[int]:
        """As the specs state."""
        named = [(DEPLOYMENTS, each) for each in DEPLOYED] + [(ETCDS, f"etcd-{role}") for role in ("main", "events")]
        found = [self.find(*each) for each in named]
        return [each["spec"]["replicas"] if each else -1 for each in found]

    def generated(self) -> dict[str, str]:
        """Uids of the Secrets of the secrets manager, by name."""
        path = SECRETS.path(namespace=self.technical_id)
        listed = self.place.cluster.api.get(f"{path}?labelSelector=managed-by%3Dsecrets-manager")["items"]
        return {metadata(each)["name"]: metadata(each)["uid"] for each in listed}

    def has_unused(self, name: str) -> None:
        """A Secret that looks like one of them, and that no task requests."""
        labels = {"managed-by": "secrets-manager", "manager-identity": "gardenlet", "name": "unused"}
        self.place.garden.create(SECRETS, name, namespace=self.technical_id, metadata={"labels": labels})

    def grant(self) -> None:
        """What others make: where backups go, and tokens, if a resource manager runs."""
        with suppress(NotFound, AlreadyExists, Forbidden):  # there is no namespace yet, or it is there and full
            bucket = {"bucketName": "bucket"}
            self.place.garden.create(SECRETS, "etcd-backup", namespace=self.technical_id, stringData=bucket)
        if not ((self.find(DEPLOYMENTS, DEPLOYED[0]) or {}).get("spec") or {}).get("replicas"):
            return
        renewal = format_time(utc_now().replace(year=2099))
        notes = {"metadata": {"annotations": {keys.TOKEN_RENEW_TIMESTAMP: renewal}}}
        for name in (ACCESS, *NAMES):
            secret = self.find(SECRETS, name)
            if secret is None or keys.TOKEN_RENEW_TIMESTAMP in (metadata(secret).get("annotations") or {}):
                continue
            data = {} if name not in NAMES else {"data": {"kubeconfig": self._with_token(secret)}}
            self.patch(SECRETS, name, notes | data)

    def _with_token(self, secret: Object) -> str:
        config = yaml.safe_load(base64.b64decode(secret["data"]["kubeconfig"]))
        config["users"][0]["user"] = {"token": "token"}
        return base64.b64encode(json.dumps(config).encode()).decode()


@pytest.fixture
async def bed(place: PlayedPlace, connection: Connection) -> AsyncIterator[Bed]:
    """The same Shoot for all tests, which are in the order of its life."""
    async with place.player() as player:
        yield Bed(place, player, connection, "sleeper")


async def test_one_that_is_created_asleep_gets_no_token_before_it_wakes(bed: Bed) -> None:
    async with bed.gardenlet():
        bed.create(asleep=True)
        assert (await bed.ended())["hibernated"] is True
        assert bed.replicas() == [0] * 5
        assert bed.find(SECRETS, BOOTSTRAP) is None
        bed.hibernate(enabled=False)
        await soon(lambda: bed.find(SECRETS, BOOTSTRAP), "a certificate", state=bed.explain, seconds=SECONDS)
        assert (await bed.ended())["hibernated"] is False
        assert all(bed.replicas())
        await soon(lambda: bed.find(SECRETS, BOOTSTRAP) is None, "the certificate to go")


async def test_one_that_has_slept_long_waits_for_a_new_token_when_it_wakes(bed: Bed) -> None:
    """The one that its resource manager had has expired: it keeps its certificate until there is another one."""
    async with bed.gardenlet():
        bed.hibernate(enabled=True)
        await bed.ended()
        expired = {keys.TOKEN_RENEW_TIMESTAMP: LONG_AGO}
        bed.patch(SECRETS, ACCESS, {"metadata": {"annotations": expired}})
        bed.hibernate(enabled=False)
        await soon(
            lambda: "token not yet generated" in bed.reason("resource-manager"),
            "a wait for a token",
            state=bed.explain,
            seconds=SECONDS,
        )
        assert bed.find(SECRETS, BOOTSTRAP)
        assert (await bed.ended())["hibernated"] is False
        await soon(lambda: bed.find(SECRETS, BOOTSTRAP) is None, "the certificate to go")


@pytest.mark.parametrize("enabled", [True, False], ids=["goes on", "is taken back"])
async def test_a_sleep_that_ended_half_way(bed: Bed, enabled: bool) -> None:
    """Nothing is left as it was then: what runs follows from the spec.

    Secrets that it did not use stay until an operation succeeds; those of tasks that are left out are in use.
    """
    unused = f"unused-{enabled}".lower()
    async with bed.gardenlet():
        bed.hibernate(enabled=False)
        await bed.ended()
        used = bed.generated()
        bed.has_unused(unused)
        bed.player.ignored.update({("Etcd", "etcd-main"), ("Etcd", "etcd-events")})
        bed.hibernate(enabled=True)
        await bed.waits("sleep", "is not yet picked up")
    assert (bed.replicas()[:3], bed.status()["hibernated"]) == ([0, 0, 0], False)
    assert bed.generated().keys() == {*used, unused}
    bed.hibernate(enabled=enabled)
    bed.player.ignored.clear()
    async with bed.gardenlet():
        assert (await bed.ended())["hibernated"] is enabled
        await soon(lambda: bed.generated() == used, "what is not used to go, and nothing else", state=bed.generated)
    assert [bool(each) for each in bed.replicas()] == [not enabled] * 5


async def test_what_is_needed_and_still_goes_is_recreated(bed: Bed) -> None:
    service = SERVICES, "kube-apiserver"
    bed.patch(*service, {"metadata": {"finalizers": ["example.com/load-balancer"]}})
    before = metadata(bed.find(*service) or {})["uid"]
    bed.place.garden.delete(*service, namespace=bed.technical_id)
    async with bed.gardenlet():
        bed.hibernate(enabled=False)
        await bed.waits("service", "is being deleted")
        bed.patch(*service, {"metadata": {"finalizers": None}})
        assert (await bed.ended())["hibernated"] is False
    assert metadata(bed.find(*service) or {})["uid"] != before


@pytest.mark.parametrize("times", [2, 6], ids=["now and then", "again and again"])
async def test_what_others_scale_up_meanwhile_is_scaled_down_again(bed: Bed, times: int) -> None:
    """Who does not stop is left to people; as long as an operation does not succeed, Secrets stay that it does not use."""
    manager, unused = (DEPLOYMENTS, "kube-controller-manager"), (SECRETS, f"unused-{times}")
    async with bed.gardenlet():
        bed.hibernate(enabled=False)
        await bed.ended()
        bed.has_unused(unused[1])
        bed.player.ignored.add((DEPLOYMENTS.kind, manager[1]))
        bed.hibernate(enabled=True)
        for time in range(times):
            await soon(lambda: bed.replicas()[:3] == [0, 0, 0], "scaled down", state=bed.explain, seconds=SECONDS)
            await bed.waits("sleep", f"{bed.technical_id}/{manager[1]} (")
            bed.patch(*manager, {"spec": {"replicas": 1}})
            assert (
                time < 5
                or "find the client that scales them up" in (await bed.ended("Error"))["lastErrors"][0]["description"]
            )
        assert bed.find(*unused)
        bed.player.ignored.clear()
        assert (await bed.ended())["hibernated"] is True
        await soon(lambda: bed.find(*unused) is None, "what is not used to go")
    assert bed.replicas() == [0] * 5


async def test_what_annotations_ask_for_is_done_once(bed: Bed) -> None:
    """Pods are restarted that report that they may be, and what is deployed is not waited for."""
    container = {"name": "a", "image": "a"}
    for name, restarts in (("restarted", "true"), ("kept", "false")):
        meta = {"labels": {"maintenance.gardener.cloud/restart": restarts}}
        bed.place.garden.create(PODS, name, namespace=bed.technical_id, metadata=meta, spec={"containers": [container]})
    tasks = "restartControlPlanePods,deployInfrastructure"
    requested = {"metadata": {"annotations": {TASKS: tasks, keys.SHOOT_SKIP_READINESS: "true"}}}
    async with bed.gardenlet():
        bed.place.garden.patch(SHOOTS, bed.name, requested, namespace=NAMESPACE)
        bed.hibernate(enabled=False)
        await bed.ended()
        await soon(lambda: annotations(bed.shoot()) == {TASKS: "deployInfrastructure"}, "what was requested to go")
        await soon(lambda: bed.find(PODS, "restarted") is None, "the pod to go")
    assert bed.find(PODS, "kept")


async def test_extensions_see_the_status_of_a_retry(bed: Bed) -> None:
    """Not the one before, that it failed: they leave alone what has."""

    def seen() -> tuple[str, str]:
        shoot = bed.place.garden.get(CLUSTERS, bed.technical_id)["spec"]["shoot"]
        return shoot["status"]["lastOperation"]["type"], shoot["status"]["lastOperation"]["state"]

    async with bed.gardenlet():
        bed.hibernate(enabled=True)  # so that there is something to ask when it wakes
        await bed.ended()
    failed = {"type": "Reconcile", "state": "Failed", "progress": 50, "description": "failed"}
    bed.hibernate(enabled=False)
    status = {
        "lastOperation": {**failed, "lastUpdateTime": format_time(utc_now())},
        "observedGeneration": metadata(bed.shoot())["generation"],
    }
    bed.place.garden.patch(SHOOTS, bed.name, {"status": status}, namespace=NAMESPACE, status=True)
    bed.player.ignored.add(("DNSRecord", f"{bed.name}-internal"))
    async with bed.gardenlet():
        await soon(lambda: seen() == ("Reconcile", "Failed"), "extensions to see that", state=seen)
        # As the webhook leaves it when it is annotated to be tried again.
        bed.place.garden.patch(SHOOTS, bed.name, {"operation": {"sequence": 1}}, namespace=NAMESPACE)
        await bed.waits("internal-name", "DNSRecord")
        assert seen() == ("Reconcile", "Processing")
        bed.player.ignored.clear()
        await bed.ended()


async def test_no_new_keys_are_made_for_one_that_had_some(bed: Bed) -> None:
    """As in a seed that was recreated in place of a lost one: users trust the old ones."""
    garden, before = bed.place.garden, bed.generated()
    (lost,) = (each for each in map(partial(bed.find, SECRETS), before) if each and labels(each)["name"] == "ca")
    garden.delete(SECRETS, key(lost).name, namespace=bed.technical_id)
    async with bed.gardenlet():
        garden.patch(SHOOTS, bed.name, {"operation": {"sequence": 2}}, namespace=NAMESPACE)
        await bed.waits("secrets", "restore the Shoot")
    assert bed.generated().keys() == before.keys() - {key(lost).name}
    meta = {"labels": labels(lost)}
    garden.create(SECRETS, key(lost).name, namespace=bed.technical_id, metadata=meta, data=lost["data"])


async def test_a_quota_that_is_used_up_stops_nothing_that_needs_nothing_new(bed: Bed) -> None:
    garden = bed.place.garden
    requested = {"operation": {"sequence": 3}}, {"operation": {"sequence": 4}}
    async with bed.gardenlet():
        garden.patch(SHOOTS, bed.name, requested[0], namespace=NAMESPACE)
        await bed.ended()
        for namespace in (NAMESPACE, bed.technical_id):
            hard = {f"count/{each}": "0" for each in ("secrets", "configmaps", "services", "deployments.apps")}
            garden.create(RESOURCE_QUOTAS, "used-up", namespace=namespace, spec={"hard": hard})
            await soon(partial(_is_full, garden, namespace), f"{namespace} to be full")
        garden.patch(SHOOTS, bed.name, requested[1], namespace=NAMESPACE)
        await bed.ended()


async def test_who_observes_it_gets_another_password_when_it_is_rotated(bed: Bed) -> None:
    """Where nothing is to be observed, there is none. What is published is restored in each operation."""
    for each in (NAMESPACE, bed.technical_id):
        bed.place.garden.delete(RESOURCE_QUOTAS, "used-up", namespace=each)
    async with bed.gardenlet():
        bed.hibernate(enabled=False)
        await bed.ended()
        before, authority = bed.published("monitoring"), bed.published("ca-cluster")
        other = {"data": {"ca.crt": base64.b64encode(b"of others").decode()}}
        bed.place.garden.patch(SECRETS, f"{bed.name}.ca-cluster", other, namespace=NAMESPACE)
        bed.ask(5, **{keys.OPERATION: "rotate-observability-credentials"})
        rotation = (await bed.ended())["credentials"]["rotation"]["observability"]
        after = bed.published("monitoring")
        assert bed.published("ca-cluster") == authority
        assert rotation["lastCompletionTime"] >= rotation["lastInitiationTime"]
        assert before
        assert after
        assert before["username"] == after["username"] == "admin"
        assert before["password"] != after["password"]
        assert after["auth"].startswith("admin:")
        bed.place.garden.patch(SHOOTS, bed.name, {"spec": {"purpose": "testing"}}, namespace=NAMESPACE)
        await bed.ended()
        assert bed.published("monitoring") is None


async def test_what_an_api_server_can_not_report_of_what_is_encrypted_is_named(bed: Bed, proxy: FaultProxy) -> None:
    """What it can't report of other kinds is of no account."""
    apps, batch = (Rule(fault=internal_error(), path=f"^/apis/{group}/v1$") for group in ("apps", "batch"))
    proxy.rules.add(apps, batch)
    encrypted = {"kubeAPIServer": {"encryptionConfig": {"resources": ["deployments.apps"]}}}
    async with bed.gardenlet():
        bed.place.garden.patch(SHOOTS, bed.name, {"spec": {"kubernetes": encrypted}}, namespace=NAMESPACE)
        await bed.waits("label-encrypted", "deployments.apps can't be rewritten")
        proxy.rules.remove(apps)
        await bed.waits("snapshot", "etcd-main-client")  # which nothing serves here


def _is_full(garden: Garden, namespace: str) -> bool:
    """The API server hears of a quota a moment later."""
    try:
        garden.create(SECRETS, f"one-more-{uuid.uuid4()}", namespace=namespace)
    except Forbidden:
        return True
    return False


async def test_others_who_write_all_the_time_make_no_operation_fail(
    place: PlayedPlace, connection: Connection, tmp_path: Path
) -> None:
    """Four are created at once, and do tasks; each object is annotated just before the gardenlet writes it."""
    asked = "restartControlPlanePods,deployDNSRecordExternal,deployDNSRecordInternal,deployInfrastructure"
    async with proxy_to(place.cluster) as road, place.player() as player:
        road.write_kubeconfig(tmp_path / "road", token=place.cluster.token)
        road.rules.add(Rule(fault=Overtake(), methods=("PUT", "PATCH"), path="^/api"))
        beds = [Bed(place, player, connection, name) for name in ("aster", "birch", "clover", "dahlia")]
        async with place.gardenlet(declare, shoots=connection, road=tmp_path / "road") as context:
            for each in beds:
                each.context = context
                each.create(asleep=False)
            await asyncio.gather(*(each.ended(seconds=4 * SECONDS) for each in beds))
            for each in beds:
                each.ask(1, **{TASKS: asked})
            await asyncio.gather(*(each.ended(seconds=4 * SECONDS) for each in beds))
            left = ["deployInfrastructure"] * len(beds)  # there is none
            await soon(lambda: [annotations(each.shoot()).get(TASKS) for each in beds] == left, "the tasks to be done")
        assert not [last_errors(each.shoot()) for each in beds if last_errors(each.shoot())]
        events = place.cluster.api.get(EVENTS.path(namespace=NAMESPACE))["items"]
        names = {each.name for each in beds}
        of_beds = [each for each in events if each["involvedObject"]["name"] in names]
        assert not [each["message"] for each in of_beds if each["type"] == "Warning"]
        assert {each["involvedObject"]["name"] for each in of_beds if each["reason"] == "Reconciled"} == names
        assert road.injected[Overtake.name] > len(beds) * 10, "few writes were overtaken: this shows little"
