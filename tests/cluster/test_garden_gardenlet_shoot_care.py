"""Conditions of Shoots, and their saved state. The API server of the tests is garden, seed and the cluster of the Shoot.

The Deployments of its control plane have no pods, and are available without any.
"""

import base64
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from agent.gardenlet.common.shoot_clusters import ShootClusters
from agent.gardenlet.shoot.care import controller as care
from agent.gardenlet.shoot.care.rules.remediation import MOST_REVERSALS
from agent.gardenlet.shoot.state import controller as saver
from config.gardenlet.controllers import Controllers, ShootCare
from devcluster.testing.faults import Rule, Silence, internal_error
from devcluster.testing.proxy import FaultProxy
from gardener.api.druid import ETCDS
from gardener.api.extensions import CLUSTERS, NETWORKS
from gardener.api.garden import SHOOT_STATES, SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.gardenlet_controllers import Declare
from kit.gardenlet_mirrors import MirrorPlace
from kit.kubelet import kubelet
from kit.proxied import proxy_to
from kit.world import WRITES, connected
from kube.clock import format_time, utc_now
from kube.objects import Object, annotations, condition, mappings, metadata
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, EVENTS, PODS, SECRETS, VALIDATING_WEBHOOKS, Resource
from localprocesses.pki import Authority
from process.clusters import Clusters
from process.configuration.blocks import ClientConnection

pytestmark = pytest.mark.timeout(600)

PARTS = ("gardener-resource-manager", "kube-apiserver", "kube-controller-manager")
ROLE = {"gardener.cloud/role": "controlplane"}
WEBHOOKS = VALIDATING_WEBHOOKS.path()
_PERIOD = 0.2
RARELY = 3600.0
"""Seconds: no check comes but for what changes."""


class CarePlace(MirrorPlace):
    def __init__(self, garden: Garden, *, shared: "CarePlace | None" = None) -> None:
        super().__init__(garden, shared=shared)
        if shared is not None:
            return
        self.operation: Object = {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "done"}
        self.operation["lastUpdateTime"] = format_time(utc_now())
        shoot = self.place.shoot("s", seedName=self.name)
        status = {"technicalID": self.technical_id, "seedName": self.name, "lastOperation": self.operation}
        status["observedGeneration"] = metadata(shoot)["generation"]
        shoot = self.place.patch(SHOOTS, "s", {"status": status}, status=True)
        # What is rolled out has no workers, so less is to be simulated.
        rolled_out = {**shoot, "spec": {"provider": {"type": self.place.name}}}
        self.create(CLUSTERS, self.technical_id, spec={"cloudProfile": {}, "seed": {}, "shoot": rolled_out})
        for name in PARTS:
            labels = {"app": name}
            pod = {"containers": [{"name": "a", "image": "i"}]}
            template = {"metadata": {"labels": labels}, "spec": pod}
            self.part(DEPLOYMENTS, name, selector={"matchLabels": labels}, template=template, strategy=strategy("100%"))
        for name in ("etcd-main", "etcd-events"):
            etcd = {
                "backup": {},
                "etcd": {},
                "labels": {"a": "b"},
                "selector": {"matchLabels": {"a": "b"}},
                "replicas": 1,
            }
            made = self.part(ETCDS, name, **etcd)
            self.says(ETCDS, name, observedGeneration=metadata(made)["generation"], ready=True)

    def part(self, resource: Resource, name: str, **spec: Any) -> Object:
        meta = {"labels": ROLE}
        return self.create(resource, name, namespace=self.technical_id, metadata=meta, spec=spec)

    def says(self, resource: Resource, name: str, **status: Any) -> None:
        self.garden.patch(resource, name, {"status": status}, namespace=self.technical_id, status=True)

    def needs_pods(self, name: str, *, needs: bool) -> None:
        """Whether a Deployment is available without any: there are no Nodes here."""
        body = {"spec": {"strategy": strategy("0%" if needs else "100%")}}
        self.garden.patch(DEPLOYMENTS, name, body, namespace=self.technical_id)

    def kubeconfig(self, path: Path) -> None:
        """That of the Shoot's cluster."""
        data = {"kubeconfig": base64.b64encode(path.read_bytes()).decode()}
        if self.find(SECRETS, "gardener", namespace=self.technical_id) is None:
            self.create(SECRETS, "gardener", namespace=self.technical_id, data=data)
        else:
            self.garden.patch(SECRETS, "gardener", {"data": data}, namespace=self.technical_id)

    def again(self) -> None:
        """An operation that has just succeeded leads to a check."""
        operation = self.operation | {"progress": 99}
        self.place.patch(SHOOTS, "s", {"status": {"lastOperation": operation}}, status=True)

    def shoot(self) -> Object:
        return self.garden.get(SHOOTS, "s", namespace=self.place.namespace)

    async def until(self, of_type: str, status: str, reason: str) -> Object:
        def found() -> Object | None:
            shoot = self.shoot()
            listed = mappings(shoot["status"].get("constraints"))
            reported = condition(shoot, of_type) or next((each for each in listed if each["type"] == of_type), {})
            return reported if (reported.get("status"), reported.get("reason")) == (status, reason) else None

        return await soon(found, f"{of_type} to be {status}: {reason}", state=self.shoot)  # type: ignore[no-any-return]

    async def healthy(self) -> None:
        await self.until("APIServerAvailable", "True", "HealthzRequestSucceeded")
        await self.until("ControlPlaneHealthy", "True", "ControlPlaneRunning")
        await self.until("SystemComponentsHealthy", "True", "SystemComponentsRunning")

    @asynccontextmanager
    async def checked(
        self, *others: Declare, every: float, seed: Path | None = None, **settings: Any
    ) -> AsyncIterator[None]:
        """Args: others: controllers that run, too. seed: see `gardenlet`."""
        controllers = Controllers(shoot_care=ShootCare(sync_period=every, **settings))
        async with self.gardenlet(care.declare, *others, controllers=controllers, seed=seed):
            yield


def strategy(unavailable: str) -> Object:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": 1}}


@pytest.fixture
def place(garden: Garden) -> Iterator[CarePlace]:
    place = CarePlace(garden)
    yield place
    place.remove()
    # Before each Seed that it may be on.
    place.place.remove_one(SHOOTS, "s")
    place.place.remove()


async def test_what_changes_in_the_seed_is_reported_at_once(place: CarePlace) -> None:
    place.kubeconfig(place.garden.cluster.kubeconfig)
    async with place.checked(every=RARELY):
        place.again()
        await place.healthy()
        place.needs_pods("kube-controller-manager", needs=True)
        wrong = await place.until("ControlPlaneHealthy", "False", "DeploymentUnhealthy")
        assert '"kube-controller-manager" is unhealthy' in wrong["message"]
        place.needs_pods("kube-controller-manager", needs=False)
        await place.healthy()
        place.garden.patch(DEPLOYMENTS, "kube-apiserver", {"spec": {"replicas": 0}}, namespace=place.technical_id)
        await place.until("APIServerAvailable", "False", "APIServerDown")
        await place.until("HibernationPossible", "False", "ConstraintNotChecked")


async def test_in_steady_state_each_check_is_one_request(place: CarePlace) -> None:
    async with proxy_to(place.garden.cluster) as proxy:
        place.kubeconfig(place.garden.cluster.kubeconfig_through(proxy.url))
        async with place.checked(every=_PERIOD):
            await place.healthy()
            await soon(lambda: requested(proxy, "/healthz") > 2, "checks")
            audit = place.garden.cluster.audit()
            mark, before, lists = audit.mark(), requested(proxy, "/healthz"), requested(proxy, WEBHOOKS)
            began = time.monotonic()
            await soon(lambda: requested(proxy, "/healthz") > before + 20, "checks")
            # Lists are five periods apart at least.
            assert requested(proxy, WEBHOOKS) - lists <= 1 + (time.monotonic() - began) / (5 * _PERIOD)
            assert place.calls(audit, mark) == []
            audit.close()


def requested(proxy: FaultProxy, path: str) -> int:
    return sum(each.request.path == path for each in proxy.log)


async def test_an_api_server_that_goes_and_comes_back(place: CarePlace) -> None:
    async with place.checked(every=0.5):
        await place.until("APIServerAvailable", "False", "APIServerDown")  # there is no kubeconfig
        await place.until("SystemComponentsHealthy", "Unknown", "ConditionCheckError")
        async with proxy_to(place.garden.cluster) as proxy:
            place.kubeconfig(place.garden.cluster.kubeconfig_through(proxy.url))
            await place.healthy()
        await place.until("APIServerAvailable", "False", "HealthzRequestError")
        # Another address in its kubeconfig: it is read again.
        place.kubeconfig(place.garden.cluster.kubeconfig)
        await place.healthy()


async def test_an_api_server_that_is_silent_does_not_keep_what_is_known_from_being_written(place: CarePlace) -> None:
    async with proxy_to(place.garden.cluster) as proxy:
        place.kubeconfig(place.garden.cluster.kubeconfig_through(proxy.url))
        async with place.checked(every=0.5):
            await place.healthy()
            proxy.rules.add(Rule(fault=Silence()))
            place.needs_pods("kube-controller-manager", needs=True)
            await place.until("APIServerAvailable", "False", "HealthzRequestError")
            await place.until("ControlPlaneHealthy", "False", "DeploymentUnhealthy")


async def test_webhooks_are_corrected_until_a_user_sets_them_back_again_and_again(place: CarePlace) -> None:
    """It fails open, and is about what the tests don't write."""
    rule = {"apiGroups": ["scheduling.k8s.io"], "apiVersions": ["v1"], "resources": ["priorityclasses"]}
    webhook: Object = {
        "name": "slow.example.com",
        "rules": [{**rule, "operations": ["UPDATE"]}],
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "failurePolicy": "Ignore",
        "timeoutSeconds": 30,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    place.create(VALIDATING_WEBHOOKS, place.name, webhooks=[webhook])

    def seconds() -> int:
        return int(place.garden.get(VALIDATING_WEBHOOKS, place.name)["webhooks"][0]["timeoutSeconds"])

    def events(reason: str) -> list[str]:
        listed = place.garden.cluster.api.get(EVENTS.path(namespace=place.place.namespace))["items"]
        return [each["message"] for each in listed if each["reason"] == reason]

    place.kubeconfig(place.garden.cluster.kubeconfig)
    async with place.checked(every=RARELY, webhook_remediator_enabled=True):
        place.again()
        announced = await soon(lambda: events("WebhookRemediationAnnounced"), "an Event")
        assert announced[0].endswith('will be corrected: timeoutSeconds of webhook "slow.example.com" was set to 15')
        assert seconds() == 30
    async with place.checked(every=_PERIOD, webhook_remediator_enabled=True):
        for _ in range(MOST_REVERSALS):
            await soon(lambda: seconds() == 15, "the webhook to be corrected")
            place.garden.patch(VALIDATING_WEBHOOKS, place.name, {"webhooks": [webhook]})
        reported = await place.until("HibernationPossible", "False", "ProblematicWebhooks")
        assert f"has reverted {MOST_REVERSALS} times: timeoutSeconds" in reported["message"]
        assert seconds() == 30
        await soon(lambda: events("WebhookRemediationReverted"), "an Event")


async def test_who_trusts_an_old_authority_alone_is_named_until_the_rotation_is_completed(place: CarePlace) -> None:
    of_type, old, new = "OldCACertificateUnused", *(Authority.create(name).bundle for name in ("old", "new"))
    for issued, ca in enumerate((old, new), start=1):
        labels = {"managed-by": "secrets-manager", "name": "ca", "issued-at-time": str(issued)}
        data = {"ca.crt": ca.decode()}
        place.create(
            SECRETS, f"ca-{issued}", namespace=place.technical_id, metadata={"labels": labels}, stringData=data
        )
    place.create(SECRETS, "copy", namespace=place.technical_id, stringData={"a": old.decode()})
    rule = {"apiGroups": ["scheduling.k8s.io"], "apiVersions": ["v1"], "resources": ["priorityclasses"]}
    webhook: Object = {
        "name": "old.example.com",
        "rules": [{**rule, "operations": ["UPDATE"]}],
        "clientConfig": {"url": "https://127.0.0.1:1/", "caBundle": base64.b64encode(old).decode()},
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    place.create(VALIDATING_WEBHOOKS, place.name, webhooks=[webhook])

    def be(phase: str) -> None:
        rotation = {"certificateAuthorities": {"phase": phase}}
        place.place.patch(SHOOTS, "s", {"status": {"credentials": {"rotation": rotation}}}, status=True)

    be("Prepared")
    place.kubeconfig(place.garden.cluster.kubeconfig)
    async with place.checked(every=_PERIOD):
        reported = await place.until(of_type, "False", "UsersOfOldCACertificate")
        assert (
            f": Secret copy in the seed, ValidatingWebhookConfiguration {place.name} in the Shoot."
            in reported["message"]
        )
        webhook["clientConfig"]["caBundle"] = base64.b64encode(new + old).decode()
        place.garden.patch(VALIDATING_WEBHOOKS, place.name, {"webhooks": [webhook]})
        place.garden.patch(SECRETS, "copy", {"stringData": {"a": new.decode()}}, namespace=place.technical_id)
        await place.until(of_type, "True", "NoUsersOfOldCACertificate")
        be("Completed")
        await soon(
            lambda: of_type not in {each["type"] for each in place.shoot()["status"]["constraints"]},
            "the constraint to go",
        )


async def test_a_shoot_that_sleeps(place: CarePlace) -> None:
    async with place.checked(every=0.5):
        await place.until("ControlPlaneHealthy", "True", "ControlPlaneRunning")
        place.place.patch(SHOOTS, "s", {"status": {"hibernated": True}}, status=True)
        await place.until("APIServerAvailable", "True", "ConditionNotChecked")
        await place.until("HibernationPossible", "True", "ConstraintNotChecked")
        # It is not all well while something runs.
        await place.until("ControlPlaneHealthy", "False", "HibernatedControlPlaneScaled")
        for name in PARTS:
            place.garden.patch(DEPLOYMENTS, name, {"spec": {"replicas": 0}}, namespace=place.technical_id)
        for name in ("etcd-main", "etcd-events"):
            place.garden.patch(ETCDS, name, {"spec": {"replicas": 0}}, namespace=place.technical_id)
        await place.until("ControlPlaneHealthy", "True", "ConditionNotChecked")


async def test_pods_of_no_use_go(place: CarePlace) -> None:
    pod: Object = {
        "automountServiceAccountToken": False,
        "containers": [{"name": "a", "image": "i"}],
        "nodeName": "none",
    }
    for name, reason in (("evicted", "Evicted"), ("failed", "Error")):
        place.create(PODS, name, namespace=place.technical_id, spec=pod)
        place.says(PODS, name, phase="Failed", reason=reason)
    async with proxy_to(place.garden.cluster) as proxy:
        # That they are not listed in the Shoot keeps nothing else from being checked there.
        proxy.rules.add(Rule(fault=internal_error(), path="/pods"))
        place.kubeconfig(place.garden.cluster.kubeconfig_through(proxy.url))
        async with place.checked(every=0.5):
            await soon(lambda: place.find(PODS, "evicted", namespace=place.technical_id) is None, "a pod to go")
            await place.until("HibernationPossible", "True", "NoProblematicWebhooks")
            await soon(lambda: proxy.rules.hits, "pods to be requested")
            await place.healthy()
    assert place.find(PODS, "failed", namespace=place.technical_id) is not None


async def test_a_tunnel_is_tried(place: CarePlace) -> None:
    """The pod that is its end runs on a Node whose kubelet the API server reaches, or not."""
    shoot = place.garden.get(CLUSTERS, place.technical_id)["spec"]["shoot"]
    workers = [{"name": "w", "minimum": 0, "maximum": 0}]
    rolled_out = {**shoot, "spec": {**shoot["spec"], "provider": {"type": place.place.name, "workers": workers}}}
    place.garden.patch(CLUSTERS, place.technical_id, {"spec": {"shoot": rolled_out}})
    place.kubeconfig(place.garden.cluster.kubeconfig)
    pod = {"automountServiceAccountToken": False, "containers": [{"name": "a", "image": "i"}]}
    async with place.checked(every=_PERIOD):
        await place.until("SystemComponentsHealthy", "False", "NoTunnelDeployed")
        with kubelet(place.garden.cluster, {"a": "connected"}) as node:
            meta = {"labels": {"type": "tunnel"}}
            place.create(PODS, place.name, namespace="kube-system", metadata=meta, spec={**pod, "nodeName": node})
            reported = await place.until("SystemComponentsHealthy", "False", "TunnelConnectionBroken")
            assert "none of its pods is running" in reported["message"]
            place.garden.patch(PODS, place.name, {"status": {"phase": "Running"}}, namespace="kube-system", status=True)
            await place.until("SystemComponentsHealthy", "True", "SystemComponentsRunning")
        await place.until("SystemComponentsHealthy", "False", "TunnelConnectionBroken")


async def test_connections_to_shoots_are_closed_when_nothing_uses_them(place: CarePlace) -> None:
    place.kubeconfig(place.garden.cluster.kubeconfig)
    clusters = Clusters(user_agent="test", component="gardenlet")
    async with connected(place.garden.cluster, "test") as seed:
        shoots = ShootClusters(seed, clusters, ClientConnection(), idle=0.1)
        for _ in range(2):
            async with shoots.use(place.technical_id) as cluster:
                await cluster.client.request("GET", "/healthz")
                assert list(clusters) == [place.technical_id]
            await soon(lambda: not clusters, "the connection to be closed")


# --- what is not seen


async def test_a_start_changes_no_condition_before_all_is_listed(place: CarePlace) -> None:
    place.kubeconfig(place.garden.cluster.kubeconfig)
    async with place.checked(every=0.5):
        await place.healthy()
    before = place.shoot()["status"]
    async with proxy_to(place.garden.cluster) as proxy:
        silence = Rule(fault=Silence(), path=ETCDS.path(), watch=False)
        proxy.rules.add(silence)
        seed = place.garden.cluster.kubeconfig_through(proxy.url)
        async with place.checked(every=_PERIOD, seed=seed):
            place.again()
            await soon(lambda: proxy.rules.hits > 1, "Etcds to be requested again")
            assert place.shoot()["status"]["conditions"] == before["conditions"]
            proxy.rules.remove(silence)
            place.needs_pods("kube-controller-manager", needs=True)
            await place.until("ControlPlaneHealthy", "False", "DeploymentUnhealthy")


async def test_what_extensions_see_of_a_shoot_is_missing(place: CarePlace) -> None:
    place.kubeconfig(place.garden.cluster.kubeconfig)
    async with place.checked(every=RARELY):
        place.again()
        await place.healthy()
        cluster = place.garden.get(CLUSTERS, place.technical_id)
        place.garden.delete(CLUSTERS, place.technical_id)
        reported = await place.until("APIServerAvailable", "Unknown", "ConditionCheckError")
        assert "could not be initialized" in reported["message"]
        place.garden.create(CLUSTERS, place.technical_id, spec=cluster["spec"])
        await place.healthy()


async def test_while_it_is_to_move_only_the_seed_that_has_it_reports(place: CarePlace) -> None:
    other = CarePlace(place.garden, shared=place)
    place.kubeconfig(place.garden.cluster.kubeconfig)
    place.place.patch(SHOOTS, "s", {"status": {"lastOperation": place.operation | {"type": "Reconcile"}}}, status=True)
    place.place.patch(SHOOTS, "s", {"spec": {"seedName": other.name}})
    audit = place.garden.cluster.audit()
    mark = audit.mark()
    async with other.checked(saver.declare, every=_PERIOD), place.checked(saver.declare, every=_PERIOD):
        await place.healthy()
        place.needs_pods("kube-controller-manager", needs=True)
        await place.until("ControlPlaneHealthy", "False", "DeploymentUnhealthy")
        assert other.calls(audit, mark, *WRITES) == []
        assert place.find(SHOOT_STATES, "s", namespace=place.place.namespace) is None
        # It has arrived, and is reconciled there.
        since = audit.mark()
        place.place.patch(SHOOTS, "s", {"status": {"seedName": other.name}}, status=True)
        await soon(lambda: place.find(SHOOT_STATES, "s", namespace=place.place.namespace), "a saved state")
        place.needs_pods("kube-controller-manager", needs=False)
        await place.healthy()
        # The name of the other one begins alike.
        assert {each.user_agent for each in place.calls(audit, since, *WRITES)} == {other.agent}
    audit.close()


# --- the saved state


async def test_the_state_of_a_shoot_is_saved_in_the_garden(place: CarePlace) -> None:
    secrets = {"managed-by": "secrets-manager", "manager-identity": "gardenlet", "persist": "true"}
    namespace = place.technical_id
    place.create(SECRETS, "ca", namespace=namespace, metadata={"labels": secrets}, stringData={"k": "v"})
    place.create(CONFIG_MAPS, "of-network", namespace=namespace, data={"a": "b"})
    network = {"type": place.name, "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"}
    place.create(NETWORKS, "n", namespace=namespace, spec=network)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "of-network"}
    place.says(NETWORKS, "n", state={"n": 1}, resources=[{"name": "x", "resourceRef": reference}])

    async def saved() -> Object:
        def found() -> Object | None:
            return place.find(SHOOT_STATES, "s", namespace=place.place.namespace)

        return await soon(found, "a saved state")  # type: ignore[no-any-return]

    async with place.gardenlet(saver.declare):
        state = await saved()
    assert annotations(state)["gardener.cloud/timestamp"]
    assert [(each["name"], each["type"]) for each in state["spec"]["gardener"]] == [("ca", "secret")]
    assert state["spec"]["extensions"][0]["state"] == {"n": 1}
    assert state["spec"]["resources"][0]["data"]["data"] == {"a": "b"}


async def test_what_is_saved_stays_where_its_keys_are_gone(place: CarePlace) -> None:
    """As in a cluster that was recreated in place of a lost one."""
    entry = {"name": "ca", "type": "secret", "labels": {"persist": "true"}, "data": {"k": "dg=="}}
    namespace = place.place.namespace
    saved = place.garden.create(SHOOT_STATES, "s", namespace=namespace, spec={"gardener": [entry]})
    with structlog.testing.capture_logs() as logged:
        async with place.gardenlet(saver.declare) as (loop,):
            await soon(lambda: loop.queue.is_idle, "the state to be looked at")
    assert "has none; the state is not saved" in str(logged)
    assert place.find(SHOOT_STATES, "s", namespace=namespace) == saved
