"""The controller `networkpolicy` at work on a real API server: what it writes, when, and what it leaves alone."""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from agent_clusters import at_work, cluster_of, context_of
from lenient_kinds import definition
from prometheus_client import REGISTRY
from served_kinds import kinds_are_served

from agent.network_policy import keys
from agent.network_policy.controller import NetworkPolicyLoop
from agent.network_policy.keys import GATEWAYS, INGRESSES, NETWORK_POLICIES, VIRTUAL_SERVICES
from config.schema_controllers import Controllers, IngressControllerSelector, LabelSelector, NetworkPolicy
from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from devcluster.faults import Delay, Ending, EndWatch, Rule, internal_error
from devcluster.proxy import FaultProxy
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object, labels, uid
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, NAMESPACES, PODS, SERVICES
from kube.watch import Timings

PFX = keys.PREFIX
WAIT_SECONDS = 60.0


class World:
    """Namespaces `a`, `b`, `c` of the test's own, someone who changes things there, and the controller."""

    def __init__(self, admin: "Admin", agent: Client, mark: str) -> None:
        self.admin = admin
        self.agent = agent
        self.mark = mark
        self.loop: NetworkPolicyLoop

    def namespace(self, short: str) -> str:
        return f"netpol-{self.mark}-{short}"

    async def service(self, name: str = "db", *, namespace: str = "a", port: int = 8080, **annotations: Any) -> None:
        marks = {
            f"{PFX}{k.replace('_', '-')}": v if isinstance(v, str) else json.dumps(v) for k, v in annotations.items()
        }
        meta = {"name": name, "namespace": self.namespace(namespace), "annotations": marks}
        spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": port}]}
        await self.admin.create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})

    async def annotate(self, name: str = "db", *, namespace: str = "a", **annotations: str | None) -> None:
        marks = {f"{PFX}{key.replace('_', '-')}": value for key, value in annotations.items()}
        await self.admin.patch(
            SERVICES, name, {"metadata": {"annotations": marks}}, namespace=self.namespace(namespace)
        )

    async def relabel(self, namespace: str, **having: str | None) -> None:
        await self.admin.patch(NAMESPACES, self.namespace(namespace), {"metadata": {"labels": having}})

    async def policies(self) -> dict[str, Object]:
        """All by `<short namespace>/<name>`, names with the short namespaces."""
        found = {}
        for short in ("a", "b", "c"):
            for policy in await self.admin.list_in(NETWORK_POLICIES, self.namespace(short)):
                name = policy["metadata"]["name"].replace(f"netpol-{self.mark}-", "")
                found[f"{short}/{name}"] = policy
        return found

    async def until_policies(self, *expected: str) -> dict[str, Object]:
        await eventually(lambda: self._has(set(expected)))
        return await self.policies()

    async def _has(self, expected: set[str]) -> str:
        found = set(await self.policies())
        return "" if found == expected else f"missing {expected - found}, too many {found - expected}"

    async def events(self, reason: str) -> list[Object]:
        found = await self.admin.list_in(EVENTS, self.namespace("a"))
        return [event for event in found if event["reason"] == reason]

    async def until_event(self, reason: str, *parts: str) -> Object:
        async def told() -> str:
            messages = [event["message"] for event in await self.events(reason)]
            return "" if any(all(part in message for part in parts) for message in messages) else f"events: {messages}"

        await eventually(told)
        return (await self.events(reason))[0]


class Admin(Client):
    async def list_in(self, resource: Any, namespace: str) -> list[Object]:
        page: Object = await self.read(resource.path(namespace=namespace))
        return list(page["items"])


async def eventually(problem: Callable[[], Awaitable[str]]) -> None:
    """Waits until there is no problem any more."""
    deadline = time.monotonic() + WAIT_SECONDS
    while text := await problem():
        assert time.monotonic() < deadline, text
        await asyncio.sleep(0.05)


async def writes_of(audit: Audit, user_agent: str, *, since: int, at_least: int) -> list[Call]:
    """All writes so far, as soon as there are so many: what a write did can be seen before it is in the audit log."""
    found: list[Call] = []

    async def are_logged() -> str:
        found[:] = audit.calls(since=since, user_agent=user_agent, verbs=["create", "patch", "update", "delete"])
        return "" if len(found) >= at_least else f"{len(found)} writes instead of {at_least}"

    await eventually(are_logged)
    return found


@asynccontextmanager
async def world_with(
    cluster: Cluster, *, agent_kubeconfig: Path | None = None, timings: Timings | None = None, **settings: Any
) -> AsyncIterator[World]:
    async with place(cluster, agent_kubeconfig=agent_kubeconfig) as world:
        if "ingress_controller_selector" in settings:
            pods = LabelSelector(match_labels={"role": "ingress"})
            settings["ingress_controller_selector"] = IngressControllerSelector(
                namespace=world.namespace("c"), pod_selector=pods
            )
        async with controller(world, settings, timings):
            yield world


@asynccontextmanager
async def place(cluster: Cluster, *, agent_kubeconfig: Path | None = None) -> AsyncIterator[World]:
    """Without a controller."""
    mark = uuid.uuid4().hex[:8]
    own, agents_own = load_kubeconfig(cluster.kubeconfig), load_kubeconfig(agent_kubeconfig or cluster.kubeconfig)
    async with Transport(own) as admins, Transport(agents_own) as agents:
        admin = Admin(admins, user_agent="netpol-admin")
        world = World(admin, Client(agents, user_agent=f"netpol-{mark}"), mark)
        for short in ("a", "b", "c"):
            meta = {"name": world.namespace(short), "labels": {f"{mark}-is": short}}
            await admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        try:
            yield world
        finally:
            for short in ("a", "b", "c"):
                with suppress(NotFound):  # one that a test has deleted may be gone by now
                    await admin.delete(NAMESPACES, world.namespace(short))


@asynccontextmanager
async def controller(
    world: World, settings: dict[str, Any] | None = None, timings: Timings | None = None
) -> AsyncIterator[None]:
    """The controller, restricted to the namespaces of the test: others share the cluster."""
    namespaces = tuple(world.namespace(short) for short in ("a", "b", "c"))
    controllers = Controllers(network_policy=NetworkPolicy(enabled=True, **(settings or {})))
    context = context_of(cluster_of(world.agent, *namespaces, timings=timings), controllers)
    world.loop = NetworkPolicyLoop(context)
    async with at_work(context, world.loop):
        yield


@pytest.fixture
async def world(cluster: Cluster) -> AsyncIterator[World]:
    async with world_with(cluster) as world:
        yield world


PAIR = ("a/ingress-to-db-tcp-8080", "a/egress-to-db-tcp-8080")
PAIR_WITH_B = ("a/ingress-to-db-tcp-8080-from-b", "b/egress-to-a-db-tcp-8080")


async def test_a_service_gets_its_policies_and_a_second_look_writes_nothing(world: World, audit: Audit) -> None:
    mark = audit.mark()
    await world.service()
    found = await world.until_policies(*PAIR)
    for policy in found.values():
        assert labels(policy) == {f"{PFX}service-name": "db", f"{PFX}service-namespace": world.namespace("a")}
        assert policy["metadata"]["annotations"].keys() == {"gardener.cloud/description"}
        assert "ownerReferences" not in policy["metadata"]

    await world.annotate(unrelated="x")
    await world.annotate(namespace_selectors=json.dumps([{"matchLabels": {f"{world.mark}-is": "b"}}]))
    await world.until_policies(*PAIR, *PAIR_WITH_B)
    calls = await writes_of(audit, f"netpol-{world.mark}", since=mark, at_least=4)
    assert sorted((call.verb, call.status) for call in calls) == [("create", 201)] * 4


async def test_changed_ports_lead_to_other_policies_and_the_rest_stays(world: World) -> None:
    await world.service(from_world_to_ports="[]")
    before = await world.until_policies(*PAIR, "a/ingress-to-db-from-world")
    ports = {"spec": {"ports": [{"port": 80, "targetPort": 9}]}}
    await world.admin.patch(SERVICES, "db", ports, namespace=world.namespace("a"))
    after = await world.until_policies("a/ingress-to-db-tcp-9", "a/egress-to-db-tcp-9", "a/ingress-to-db-from-world")
    assert uid(after["a/ingress-to-db-from-world"]) == uid(before["a/ingress-to-db-from-world"])


async def test_namespaces_come_and_go_by_their_labels(world: World, audit: Audit) -> None:
    await world.service(namespace_selectors=[{"matchLabels": {"friend": world.mark}}])
    await world.until_policies(*PAIR)
    await writes_of(audit, f"netpol-{world.mark}", since=0, at_least=2)
    mark = audit.mark()
    await world.relabel("b", friend=world.mark)
    await world.until_policies(*PAIR, *PAIR_WITH_B)
    await world.relabel("c", foe="x")
    await world.relabel("b", friend=None)
    await world.until_policies(*PAIR)
    writes = await writes_of(audit, f"netpol-{world.mark}", since=mark, at_least=4)
    assert sorted(call.verb for call in writes) == ["create", "create", "delete", "delete"]


async def test_services_are_handled_while_their_namespace_is_selected(cluster: Cluster) -> None:
    selectors = (LabelSelector(match_labels={"handled": "yes"}),)
    async with world_with(cluster, namespace_selectors=selectors) as world:
        await world.service()
        await world.service("other", namespace="b")
        await world.relabel("a", handled="yes")
        await world.until_policies(*PAIR)
        await world.relabel("a", handled="no")
        await world.until_policies()


async def test_what_somebody_else_does_to_policies_is_put_right(world: World) -> None:
    await world.service()
    before = await world.until_policies(*PAIR)
    a = world.namespace("a")
    await world.admin.delete(NETWORK_POLICIES, "egress-to-db-tcp-8080", namespace=a)
    foreign = {
        "metadata": {"labels": {"foreign": "label"}},
        "spec": {"egress": [{}], "policyTypes": ["Ingress", "Egress"], "podSelector": {"matchLabels": {"more": "x"}}},
    }
    await world.admin.patch(NETWORK_POLICIES, "ingress-to-db-tcp-8080", foreign, namespace=a)

    async def right() -> str:
        now = await world.policies()
        for name in PAIR:
            if name not in now or now[name]["spec"] != before[name]["spec"]:
                return f"{name} is not right: {now.get(name)}"
        return ""

    await eventually(right)
    assert labels((await world.policies())["a/ingress-to-db-tcp-8080"])["foreign"] == "label"


async def test_a_policy_that_lost_its_labels_is_taken_back_and_this_is_told(world: World) -> None:
    await world.service()
    await world.until_policies(*PAIR)
    patch = {"metadata": {"labels": {f"{PFX}service-name": None}, "annotations": None}}
    await world.admin.patch(NETWORK_POLICIES, "ingress-to-db-tcp-8080", patch, namespace=world.namespace("a"))

    async def labelled() -> str:
        now = (await world.policies())["a/ingress-to-db-tcp-8080"]
        return "" if f"{PFX}service-name" in labels(now) and "annotations" in now["metadata"] else str(now["metadata"])

    await eventually(labelled)
    event = await world.until_event(keys.TAKEN_OVER, "without labels of this Service")
    assert event["involvedObject"]["name"] == "db"
    assert event["reportingComponent"] == "networkpolicy-controller"


async def test_policies_go_with_their_service_and_those_of_no_service_go_at_once(world: World) -> None:
    await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "b"}}], from_world_to_ports="[]")
    await world.until_policies(*PAIR, *PAIR_WITH_B, "a/ingress-to-db-from-world")
    orphan = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": "any",
            "namespace": world.namespace("c"),
            "labels": {f"{PFX}service-name": "never", f"{PFX}service-namespace": world.namespace("b")},
        },
        "spec": {"podSelector": {}},
    }
    await world.admin.create(NETWORK_POLICIES, orphan)
    await world.admin.delete(SERVICES, "db", namespace=world.namespace("a"))
    await world.until_policies()


async def test_a_service_that_selects_no_pods_has_no_policies(world: World) -> None:
    await world.service()
    await world.until_policies(*PAIR)
    await world.admin.patch(SERVICES, "db", {"spec": {"selector": None}}, namespace=world.namespace("a"))
    await world.until_policies()


async def test_an_annotation_that_cannot_be_read_is_told_and_changes_nothing_else(world: World) -> None:
    await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "b"}}])
    await world.until_policies(*PAIR, *PAIR_WITH_B)
    await world.annotate(namespace_selectors="oops", from_x_allowed_ports='[{"port": 1}]')
    via = ("a/ingress-to-db-tcp-1-via-x", "a/egress-to-db-tcp-1-via-x")
    await world.until_policies(*PAIR, *PAIR_WITH_B, *via)
    event = await world.until_event(keys.INVALID_ANNOTATION, f"{PFX}namespace-selectors", "oops")
    assert event["type"] == "Warning"
    await world.annotate(namespace_selectors=None, from_x_allowed_ports=None)
    await world.until_policies(*PAIR)


async def test_a_name_that_another_service_holds_is_left_to_it_and_taken_when_it_goes(world: World) -> None:
    # Both would have c/egress-to-...: one as `<namespace>-<service>`, the other as a Service that is called so.
    held = f"egress-to-{world.namespace('a')}-db-tcp-8080"
    await world.service(f"{world.namespace('a')}-db", namespace="c")
    await eventually(lambda: _is_owned(world, held, f"{world.namespace('a')}-db"))
    await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "c"}}])
    await world.until_event(keys.NAME_TAKEN, held, "rename one of the two Services")
    assert not await _is_owned(world, held, f"{world.namespace('a')}-db")
    await world.admin.delete(SERVICES, f"{world.namespace('a')}-db", namespace=world.namespace("c"))
    await eventually(lambda: _is_owned(world, held, "db"))


async def _is_owned(world: World, policy: str, service: str) -> str:
    try:
        found = await world.admin.get(NETWORK_POLICIES, policy, namespace=world.namespace("c"))
    except NotFound:
        return f"{policy} does not exist"
    return "" if labels(found)[f"{PFX}service-name"] == service else f"{policy} has {labels(found)}"


async def test_ingresses_open_the_way_for_their_controller(cluster: Cluster) -> None:
    async with world_with(cluster, ingress_controller_selector=True) as world:
        await world.service()
        backend = {"service": {"name": "db", "port": {"number": 80}}}
        paths = [{"path": path, "pathType": "Prefix", "backend": backend} for path in ("/a", "/b")]
        ingress = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "i", "namespace": world.namespace("a")},
            "spec": {"rules": [{"http": {"paths": paths}}]},
        }
        await world.until_policies(*PAIR)
        await world.admin.create(INGRESSES, ingress)
        extra = (
            "a/ingress-to-db-tcp-8080-from-ingress-controller",
            "c/egress-to-a-db-tcp-8080-from-ingress-controller",
        )
        await world.until_policies(*PAIR, *extra)
        await world.admin.delete(INGRESSES, "i", namespace=world.namespace("a"))
        await world.until_policies(*PAIR)


async def test_policies_follow_the_pods_that_ask_for_them_if_so_wanted(cluster: Cluster) -> None:
    async with world_with(cluster, require_matching_pods=True) as world:
        await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "b"}}], from_world_to_ports="[]")
        await world.until_policies("a/ingress-to-db-from-world")
        label = f"{PFX}to-{world.namespace('a')}-db-tcp-8080"
        await _pod(world, "hides", "b", {label: "denied"})
        await _pod(world, "asks", "b", {label: "allowed"})
        await world.until_policies("a/ingress-to-db-from-world", *PAIR_WITH_B)
        await world.admin.delete(PODS, "asks", namespace=world.namespace("b"))
        await world.until_policies("a/ingress-to-db-from-world")


async def _pod(world: World, name: str, namespace: str, having: dict[str, str]) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": world.namespace(namespace), "labels": having},
        "spec": {
            "automountServiceAccountToken": False,
            "serviceAccountName": "",
            "schedulerName": "none",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i"}],
        },
    }

    async def created() -> str:
        try:
            await world.admin.create(PODS, pod)
        except AlreadyExists:
            return ""
        except Exception as error:  # noqa: BLE001 - the namespace's service account may still be missing
            return str(error)
        return ""

    await eventually(created)


@asynccontextmanager
async def istio(world: World) -> AsyncIterator[None]:
    """Its kinds are served."""
    for kind in (VIRTUAL_SERVICES, GATEWAYS):
        await world.admin.create(CUSTOM_RESOURCE_DEFINITIONS, definition(kind))
    try:
        await kinds_are_served(world.admin, VIRTUAL_SERVICES, GATEWAYS)
        yield
    finally:
        for kind in (VIRTUAL_SERVICES, GATEWAYS):
            await world.admin.delete(CUSTOM_RESOURCE_DEFINITIONS, f"{kind.plural}.{kind.group}")


async def test_gateways_of_istio_reach_what_virtual_services_lead_to(
    cluster: Cluster, tmp_path: Path, audit: Audit
) -> None:
    """One test for all: it brings kinds of the whole cluster."""
    extra = ("a/ingress-to-db-tcp-8080-from-b", "b/egress-to-a-db-tcp-8080-from-istio")
    async with place(cluster) as world, AsyncExitStack() as installed:
        async with controller(world):
            await world.service()
            await world.until_policies(*PAIR)
            await installed.enter_async_context(istio(world))
            world.loop.kinds_changed(keys.ISTIO_GROUP)
            await _istio_comes_late(world, extra)
        await _a_new_leader_takes_nothing_away(world, cluster, tmp_path, audit, extra)


async def _istio_comes_late(world: World, extra: Sequence[str]) -> None:
    a, c = world.namespace("a"), world.namespace("c")
    await _virtual_service(world)
    await world.until_event(keys.GATEWAY_NOT_USABLE, f"Gateway {c}/gateway does not exist")
    await _gateway(world)
    await _pod(world, "gateway", "b", {"istio": world.mark})
    await world.until_policies(*PAIR, *extra)
    await world.admin.delete(VIRTUAL_SERVICES, "v", namespace=a)
    await world.until_policies(*PAIR)


async def _a_new_leader_takes_nothing_away(
    world: World, cluster: Cluster, tmp_path: Path, audit: Audit, extra: Sequence[str]
) -> None:
    """It learns late what leads to a Service: whether there is such a thing at all, and from one list after the other."""
    await _virtual_service(world)
    async with controller(world):
        await world.until_policies(*PAIR, *extra)
    lost = (await world.policies())[extra[1]]["metadata"]
    await world.admin.delete(NETWORK_POLICIES, lost["name"], namespace=lost["namespace"])
    mark = audit.mark()
    async with FaultProxy(upstream=cluster.url, upstream_ca=cluster.ca, authority=cluster.authority) as proxy:
        kubeconfig = tmp_path / "kubeconfig"
        proxy.write_kubeconfig(kubeconfig, token=cluster.token)
        lists = [f"{world.namespace(short)}/(virtualservices|pods)$" for short in ("b", "c")] + ["/gateways$"]
        proxy.rules.add(*(Rule(fault=Delay(seconds=1.0), path=path, watch=False) for path in lists))
        proxy.rules.add(Rule(fault=internal_error(), path=f"^/apis/{VIRTUAL_SERVICES.api_version}$", times=1))
        async with Transport(load_kubeconfig(kubeconfig)) as transport:
            world.agent = Client(transport, user_agent=f"netpol-{world.mark}-next")
            async with controller(world):
                await world.until_policies(*PAIR, *extra)
    writes = await writes_of(audit, f"netpol-{world.mark}-next", since=mark, at_least=1)
    assert [(call.verb, call.resource, call.name) for call in writes] == [("create", "networkpolicies", lost["name"])]


async def _virtual_service(world: World) -> None:
    a, c = world.namespace("a"), world.namespace("c")
    destination = {"host": f"db.{a}.svc.cluster.local", "port": {"number": 80}}
    virtual = {
        "apiVersion": VIRTUAL_SERVICES.api_version,
        "kind": "VirtualService",
        "metadata": {"name": "v", "namespace": a},
        "spec": {"gateways": ["mesh", f"{c}/gateway"], "tcp": [{"route": [{"destination": destination}]}]},
    }
    await world.admin.create(VIRTUAL_SERVICES, virtual)


async def _gateway(world: World) -> None:
    gateway = {
        "apiVersion": GATEWAYS.api_version,
        "kind": "Gateway",
        "metadata": {"name": "gateway", "namespace": world.namespace("c")},
        "spec": {"selector": {"istio": world.mark}},
    }
    await world.admin.create(GATEWAYS, gateway)


@asynccontextmanager
async def going(world: World, short: str) -> AsyncIterator[None]:
    """A namespace of the test's is being deleted, and stays so during the block."""
    path = f"/api/v1/namespaces/{world.namespace(short)}/configmaps"
    meta = {"name": "keeper", "finalizers": ["example.com/keep"]}
    await world.admin.request("POST", path, body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    await world.admin.delete(NAMESPACES, world.namespace(short))
    try:
        yield
    finally:
        free = {"metadata": {"finalizers": None}}
        await world.admin.request("PATCH", f"{path}/keeper", body=free, content_type="application/merge-patch+json")


async def test_a_terminating_namespace_is_left_alone(world: World, audit: Audit) -> None:
    await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "b"}}])
    await world.until_policies(*PAIR, *PAIR_WITH_B)
    await writes_of(audit, f"netpol-{world.mark}", since=0, at_least=4)
    mark = audit.mark()
    async with going(world, "b"):
        await world.until_policies(*PAIR)
        writes = await writes_of(audit, f"netpol-{world.mark}", since=mark, at_least=1)
    assert {(call.verb, call.namespace) for call in writes} == {("delete", world.namespace("a"))}


async def test_that_a_namespace_went_before_the_watch_told_is_no_error(cluster: Cluster, tmp_path: Path) -> None:
    def failures() -> float:
        return (
            REGISTRY.get_sample_value("controller_runtime_reconcile_errors_total", {"controller": "networkpolicy"})
            or 0.0
        )

    before = failures()
    async with FaultProxy(upstream=cluster.url, upstream_ca=cluster.ca, authority=cluster.authority) as proxy:
        kubeconfig = tmp_path / "kubeconfig"
        proxy.write_kubeconfig(kubeconfig, token=cluster.token)
        proxy.rules.add(Rule(fault=EndWatch(how=Ending.SILENT), path="/namespaces(/[^/]+)?$"))
        async with world_with(cluster, agent_kubeconfig=kubeconfig, timings=Timings(idle_timeout=1.0)) as world:

            async def refused() -> str:
                path = keys.NETWORK_POLICIES.path(namespace=world.namespace("b"))
                answers = [entry.status for entry in proxy.log if entry.request.path == path]
                return "" if 403 in answers else f"no policy was refused in the namespace that goes: {answers}"

            async with going(world, "b"):
                await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "b"}}])
                await eventually(refused)
                await world.until_policies(*PAIR, PAIR_WITH_B[0])
                proxy.rules.clear()
                await world.until_policies(*PAIR)
    assert failures() == before
