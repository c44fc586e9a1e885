"""The controller `networkpolicy` at work on a real API server: what it writes, when, and what it leaves alone."""

import gc
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from agent.resource_manager.context import Context
from agent.shared.network_policy.controller import declare
from agent.shared.network_policy.reconcile import (
    GATEWAY_NOT_USABLE,
    INVALID_ANNOTATION,
    LIMIT_EXCEEDED,
    NAME_TAKEN,
    TAKEN_OVER,
)
from agent.shared.network_policy.rules.limits import MOST_PORTS, WRITES_AT_ONCE, WRITES_BEFORE_OTHERS
from config.resource_manager.controllers import Controllers
from config.shared import IngressControllerSelector, LabelSelector, NetworkPolicy
from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from devcluster.testing.faults import Delay, EndWatch, Rule, Silence, WatchEnd, internal_error
from gardener import keys
from gardener.api import kinds
from gardener.api.kinds import GATEWAYS, VIRTUAL_SERVICES
from kit.controllers import counted, run_controller
from kit.eventually import no_problem, soon
from kit.kinds import definition, kinds_are_served
from kit.objects import obj, unscheduled_pod
from kit.proxied import proxied, proxy_to
from kit.world import WRITES, World, connected
from kube.errors import AlreadyExists, KubeError
from kube.objects import Object, annotations, labels, uid
from kube.resources import (
    CONFIG_MAPS,
    INGRESSES,
    NETWORK_POLICIES,
    SERVICES,
    Resource,
)
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop
from kube.runtime.watch import Timings

PFX = keys.NETWORKING_PREFIX
DESCRIPTION = keys.GARDENER_DESCRIPTION


class PolicyWorld(World):
    """Namespaces `a`, `b`, `c` of the test's own, someone who changes things there, and the controller."""

    def __init__(self, admin: Client, agent: Client, mark: str) -> None:
        super().__init__(admin, f"netpol-{mark}-a")
        self.agent = agent
        self.mark = mark
        self.loop: ControlLoop

    def full(self, short: str) -> str:
        return f"netpol-{self.mark}-{short}"

    async def service(self, name: str = "db", *, short: str = "a", port: int = 8080, **annotations: Any) -> None:
        marks = {
            f"{PFX}{k.replace('_', '-')}": v if isinstance(v, str) else json.dumps(v) for k, v in annotations.items()
        }
        spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": port}]}
        await self.create(obj(SERVICES, name, namespace=self.full(short), annotations=marks, spec=spec))

    async def annotate(self, **annotations: str | None) -> None:
        marks = {f"{PFX}{key.replace('_', '-')}": value for key, value in annotations.items()}
        await self.patch("Service", "db", {"metadata": {"annotations": marks}})

    async def relabel(self, short: str, **having: str | None) -> None:
        await self.patch("Namespace", self.full(short), {"metadata": {"labels": having}})

    async def policies(self) -> dict[str, Object]:
        """All by `<short namespace>/<name>`, names with the short namespaces."""
        found = {}
        for short in ("a", "b", "c"):
            for policy in await self.list("NetworkPolicy", namespace=self.full(short)):
                name = policy["metadata"]["name"].replace(f"netpol-{self.mark}-", "")
                found[f"{short}/{name}"] = policy
        return found

    async def until_policies(self, *expected: str) -> dict[str, Object]:
        await no_problem(lambda: self._has(set(expected)))
        return await self.policies()

    async def _has(self, expected: set[str]) -> str:
        found = set(await self.policies())
        return "" if found == expected else f"missing {expected - found}, too many {found - expected}"

    async def until_event(self, reason: str, *parts: str) -> Object:
        async def reported() -> str:
            messages = [event["message"] for event in await self.events(reason)]
            return "" if any(all(part in message for part in parts) for message in messages) else f"events: {messages}"

        await no_problem(reported)
        return (await self.events(reason))[0]


async def writes_of(audit: Audit, user_agent: str, *, since: int, at_least: int) -> list[Call]:
    """All writes so far, as soon as there are so many: what a write did can be seen before it is in the audit log."""
    found: list[Call] = []

    async def are_logged() -> str:
        found[:] = audit.calls(since=since, user_agent=user_agent, verbs=WRITES)
        return "" if len(found) >= at_least else f"{len(found)} writes instead of {at_least}"

    await no_problem(are_logged)
    return found


@asynccontextmanager
async def world_with(
    cluster: Cluster, *, agent_kubeconfig: Path | None = None, timings: Timings | None = None, **settings: Any
) -> AsyncIterator[PolicyWorld]:
    async with place(cluster, agent_kubeconfig=agent_kubeconfig) as world:
        if "ingress_controller_selector" in settings:
            pods = LabelSelector(match_labels={"role": "ingress"})
            settings["ingress_controller_selector"] = IngressControllerSelector(
                namespace=world.full("c"), pod_selector=pods
            )
        async with controller(world, settings, timings):
            yield world


@asynccontextmanager
async def place(cluster: Cluster, *, agent_kubeconfig: Path | None = None) -> AsyncIterator[PolicyWorld]:
    """Without a controller."""
    mark = uuid.uuid4().hex[:8]
    async with connected(cluster) as admin, connected(agent_kubeconfig or cluster, f"netpol-{mark}") as agent:
        world = PolicyWorld(admin, agent, mark)
        for short in ("a", "b", "c"):
            await world.create(obj("Namespace", world.full(short), labels={f"{mark}-is": short}))
        try:
            yield world
        finally:
            for short in ("a", "b", "c"):
                await world.remove("Namespace", world.full(short))


@asynccontextmanager
async def controller(
    world: PolicyWorld,
    settings: dict[str, Any] | None = None,
    timings: Timings | None = None,
    behind: Sequence[Resource] = (),
) -> AsyncIterator[None]:
    """The controller, restricted to the namespaces of the test: others share the cluster."""
    namespaces = tuple(world.full(short) for short in ("a", "b", "c"))
    controllers = Controllers(network_policy=NetworkPolicy(enabled=True, **(settings or {})))

    def network_policy(context: Context) -> ControlLoop:
        return declare(
            context.config.controllers.network_policy, cluster=context.target, recorder=context.target_recorder
        )

    async with run_controller(
        network_policy, world.agent, *namespaces, controllers=controllers, timings=timings, behind=behind
    ) as world.loop:
        yield


@pytest.fixture
async def world(cluster: Cluster) -> AsyncIterator[PolicyWorld]:
    async with world_with(cluster) as world:
        yield world


PAIR = ("a/ingress-to-db-tcp-8080", "a/egress-to-db-tcp-8080")
PAIR_WITH_B = ("a/ingress-to-db-tcp-8080-from-b", "b/egress-to-a-db-tcp-8080")


async def test_a_service_gets_its_policies_and_a_second_look_writes_nothing(world: PolicyWorld, audit: Audit) -> None:
    mark = audit.mark()
    await world.service()
    found = await world.until_policies(*PAIR)
    for policy in found.values():
        assert labels(policy) == {f"{PFX}service-name": "db", f"{PFX}service-namespace": world.full("a")}
        assert policy["metadata"]["annotations"].keys() == {"gardener.cloud/description"}
        assert "ownerReferences" not in policy["metadata"]

    await world.annotate(unrelated="x")
    await world.annotate(namespace_selectors=json.dumps([{"matchLabels": {f"{world.mark}-is": "b"}}]))
    await world.until_policies(*PAIR, *PAIR_WITH_B)
    calls = await writes_of(audit, f"netpol-{world.mark}", since=mark, at_least=4)
    assert sorted((call.verb, call.status) for call in calls) == [("create", 201)] * 4


async def test_changed_ports_lead_to_other_policies_and_the_rest_stays(world: PolicyWorld) -> None:
    await world.service(from_world_to_ports="[]")
    before = await world.until_policies(*PAIR, "a/ingress-to-db-from-world")
    ports = {"spec": {"ports": [{"port": 80, "targetPort": 9}]}}
    await world.patch("Service", "db", ports)
    after = await world.until_policies("a/ingress-to-db-tcp-9", "a/egress-to-db-tcp-9", "a/ingress-to-db-from-world")
    assert uid(after["a/ingress-to-db-from-world"]) == uid(before["a/ingress-to-db-from-world"])


async def test_namespaces_come_and_go_by_their_labels(world: PolicyWorld, audit: Audit) -> None:
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
        await world.service("other", short="b")
        await world.relabel("a", handled="yes")
        await world.until_policies(*PAIR)
        await world.relabel("a", handled="no")
        await world.until_policies()


async def test_what_others_do_to_policies_is_repaired(world: PolicyWorld) -> None:
    await world.service()
    before = await world.until_policies(*PAIR)
    await world.delete("NetworkPolicy", "egress-to-db-tcp-8080")
    foreign = {
        "metadata": {"labels": {"foreign": "label"}, "annotations": {"foreign": "annotation"}},
        "spec": {"egress": [{}], "policyTypes": ["Ingress", "Egress"], "podSelector": {"matchLabels": {"more": "x"}}},
    }
    await world.patch("NetworkPolicy", "ingress-to-db-tcp-8080", foreign)

    async def right() -> str:
        now = await world.policies()
        for name in PAIR:
            if name not in now or now[name]["spec"] != before[name]["spec"]:
                return f"{name} is not right: {now.get(name)}"
        return ""

    await no_problem(right)
    ingress = (await world.policies())["a/ingress-to-db-tcp-8080"]
    assert (labels(ingress)["foreign"], annotations(ingress)["foreign"]) == ("label", "annotation")
    words = annotations(before["a/ingress-to-db-tcp-8080"])[DESCRIPTION]
    await world.patch("NetworkPolicy", "ingress-to-db-tcp-8080", {"metadata": {"annotations": {DESCRIPTION: "other"}}})

    async def described() -> str:
        found = annotations((await world.policies())["a/ingress-to-db-tcp-8080"]).get(DESCRIPTION, "")
        return "" if found == words else found

    await no_problem(described)


async def test_a_policy_that_lost_its_labels_is_taken_back_and_reported(world: PolicyWorld) -> None:
    await world.service()
    await world.until_policies(*PAIR)
    patch = {"metadata": {"labels": {f"{PFX}service-name": None}, "annotations": None}}
    await world.patch("NetworkPolicy", "ingress-to-db-tcp-8080", patch)

    async def labelled() -> str:
        now = (await world.policies())["a/ingress-to-db-tcp-8080"]
        return "" if f"{PFX}service-name" in labels(now) and "annotations" in now["metadata"] else str(now["metadata"])

    await no_problem(labelled)
    event = await world.until_event(TAKEN_OVER, "without the labels of this Service")
    assert event["involvedObject"]["name"] == "db"
    assert event["reportingComponent"] == "networkpolicy-controller"


async def test_policies_go_with_their_service_and_those_of_no_service_go_at_once(world: PolicyWorld) -> None:
    await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "b"}}], from_world_to_ports="[]")
    await world.until_policies(*PAIR, *PAIR_WITH_B, "a/ingress-to-db-from-world")
    of = {f"{PFX}service-name": "never", f"{PFX}service-namespace": world.full("b")}
    orphan = obj(NETWORK_POLICIES, "any", namespace=world.full("c"), labels=of, spec={"podSelector": {}})
    await world.create(orphan)
    await world.delete("Service", "db")
    await world.until_policies()


async def test_a_service_that_selects_no_pods_has_no_policies(world: PolicyWorld) -> None:
    await world.service()
    await world.until_policies(*PAIR)
    await world.patch("Service", "db", {"spec": {"selector": None}})
    await world.until_policies()


async def test_an_annotation_that_cannot_be_read_is_reported_and_changes_nothing_else(world: PolicyWorld) -> None:
    await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "b"}}])
    await world.until_policies(*PAIR, *PAIR_WITH_B)
    await world.annotate(namespace_selectors="oops", from_x_allowed_ports='[{"port": 1}]')
    via = ("a/ingress-to-db-tcp-1-via-x", "a/egress-to-db-tcp-1-via-x")
    await world.until_policies(*PAIR, *PAIR_WITH_B, *via)
    event = await world.until_event(INVALID_ANNOTATION, f"{PFX}namespace-selectors", "oops")
    assert event["type"] == "Warning"
    await world.annotate(namespace_selectors=None, from_x_allowed_ports=None)
    await world.until_policies(*PAIR)


async def test_that_a_service_requests_too_much_is_reported_and_the_rest_of_it_counts(world: PolicyWorld) -> None:
    many = [{"port": port} for port in range(1, MOST_PORTS + 1)]
    await world.service(from_x_allowed_ports=many, from_y_allowed_ports=[{"port": 1}])
    await world.until_policies(*PAIR, "a/ingress-to-db-tcp-1-via-y", "a/egress-to-db-tcp-1-via-y")
    await world.until_event(LIMIT_EXCEEDED, f"{PFX}from-x-allowed-ports", "Too many: 250 ports, where 249 are possible")
    assert REGISTRY.get_sample_value("controller_limited_objects", {"controller": "networkpolicy"}) == 1
    await world.annotate(from_x_allowed_ports=None, from_y_allowed_ports=None)
    await world.until_policies(*PAIR)
    assert REGISTRY.get_sample_value("controller_limited_objects", {"controller": "networkpolicy"}) == 0


async def test_a_service_with_much_to_write_lets_others_go_first(cluster: Cluster, audit: Audit) -> None:
    async with place(cluster) as world:
        await world.service(from_x_allowed_ports=[{"port": port} for port in range(1, 100)])
        await world.service("small", short="b")
        since = audit.mark()
        async with controller(world, {"concurrent_syncs": 1}):
            writes = await writes_of(audit, f"netpol-{world.mark}", since=since, at_least=202)
        names = [write.name for write in writes if write.resource == "networkpolicies"]
        small = [index for index, name in enumerate(names) if "small" in name]
        assert len(small) == 2
        assert small[-1] < WRITES_BEFORE_OTHERS + 2


async def test_a_name_that_another_service_holds_is_left_to_it_and_taken_when_it_goes(world: PolicyWorld) -> None:
    # Both would have c/egress-to-...: one as `<namespace>-<service>`, the other as a Service that is called so.
    held = f"egress-to-{world.full('a')}-db-tcp-8080"
    await world.service(f"{world.full('a')}-db", short="c")
    await no_problem(lambda: _is_owned(world, held, f"{world.full('a')}-db"))
    await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "c"}}])
    await world.until_event(NAME_TAKEN, held, "rename one of the two Services")
    assert not await _is_owned(world, held, f"{world.full('a')}-db")
    await world.delete("Service", f"{world.full('a')}-db", namespace=world.full("c"))
    await no_problem(lambda: _is_owned(world, held, "db"))


async def _is_owned(world: PolicyWorld, policy: str, service: str) -> str:
    found = await world.find("NetworkPolicy", policy, namespace=world.full("c"))
    if found is None:
        return f"{policy} does not exist"
    return "" if labels(found)[f"{PFX}service-name"] == service else f"{policy} has {labels(found)}"


async def test_ingresses_open_the_way_for_their_controller(cluster: Cluster) -> None:
    async with world_with(cluster, ingress_controller_selector=True) as world:
        await world.service()
        backend = {"service": {"name": "db", "port": {"number": 80}}}
        paths = [{"path": path, "pathType": "Prefix", "backend": backend} for path in ("/a", "/b")]
        await world.until_policies(*PAIR)
        await world.create(obj(INGRESSES, "i", spec={"rules": [{"http": {"paths": paths}}]}))
        extra = (
            "a/ingress-to-db-tcp-8080-from-ingress-controller",
            "c/egress-to-a-db-tcp-8080-from-ingress-controller",
        )
        await world.until_policies(*PAIR, *extra)
        await world.delete("Ingress", "i")
        await world.until_policies(*PAIR)


async def test_policies_follow_the_pods_that_ask_for_them_if_so_wanted(cluster: Cluster) -> None:
    async with world_with(cluster, require_matching_pods=True) as world:
        await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "b"}}], from_world_to_ports="[]")
        await world.until_policies("a/ingress-to-db-from-world")
        label = f"{PFX}to-{world.full('a')}-db-tcp-8080"
        await _pod(world, "hides", "b", {label: "denied"})
        await _pod(world, "asks", "b", {label: "allowed"})
        await world.until_policies("a/ingress-to-db-from-world", *PAIR_WITH_B)
        await world.delete("Pod", "asks", namespace=world.full("b"))
        await world.until_policies("a/ingress-to-db-from-world")


async def _pod(world: PolicyWorld, name: str, short: str, having: dict[str, str]) -> None:
    obj = unscheduled_pod(name, namespace=world.full(short), labels=having, automountServiceAccountToken=False)

    async def created() -> bool:
        with suppress(AlreadyExists):
            await world.create(obj)
        return True

    await soon(created, "the namespace's service account", passing=(KubeError,))


@asynccontextmanager
async def istio(world: PolicyWorld) -> AsyncIterator[None]:
    """Its kinds are served."""
    for kind in (VIRTUAL_SERVICES, GATEWAYS):
        await world.create(definition(kind))
    try:
        await kinds_are_served(world.client, VIRTUAL_SERVICES, GATEWAYS)
        yield
    finally:
        for kind in (VIRTUAL_SERVICES, GATEWAYS):
            await world.delete("CustomResourceDefinition", f"{kind.plural}.{kind.group}")


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
            world.loop.kinds_changed(kinds.ISTIO_GROUP)
            await _istio_comes_late(world, extra)
            await _labels_of_gateways_do_as_well(world, extra)
        await _virtual_service(world)
        async with controller(world):
            await world.until_policies(*PAIR, *extra)
        async with controller(world, {"istio_routes": False}):
            await world.until_policies(*PAIR)
        async with controller(world, behind=[GATEWAYS]):
            await world.until_policies(*PAIR, *extra)
        await _a_new_leader_takes_nothing_away(world, cluster, tmp_path, audit, extra)


async def _istio_comes_late(world: PolicyWorld, extra: Sequence[str]) -> None:
    c = world.full("c")
    await _virtual_service(world)
    await world.until_event(GATEWAY_NOT_USABLE, f"Gateway {c}/gateway does not exist")
    await world.create(obj(GATEWAYS, "gateway", namespace=c, spec={"selector": {"istio": world.mark}}))
    await _pod(world, "gateway", "b", {"istio": world.mark})
    await world.until_policies(*PAIR, *extra)
    await world.delete("VirtualService", "v")
    await world.until_policies(*PAIR)


async def _labels_of_gateways_do_as_well(world: PolicyWorld, extra: Sequence[str]) -> None:
    """Where all pods of a gateway have them, a route adds nothing."""
    label, b = f"{PFX}to-{world.full('a')}-db-tcp-8080", world.full("b")
    await world.annotate(namespace_selectors=json.dumps([{"matchLabels": {f"{world.mark}-is": "b"}}]))
    await _virtual_service(world)
    await world.until_policies(*PAIR, *PAIR_WITH_B, *extra)
    await world.patch("Pod", "gateway", {"metadata": {"labels": {label: "allowed"}}}, namespace=b)
    await world.until_policies(*PAIR, *PAIR_WITH_B)
    await _pod(world, "without", "b", {"istio": world.mark})
    await world.until_policies(*PAIR, *PAIR_WITH_B, *extra)
    await world.delete("Pod", "without", namespace=b)
    await world.until_policies(*PAIR, *PAIR_WITH_B)
    await world.patch("Pod", "gateway", {"metadata": {"labels": {label: None}}}, namespace=b)
    await world.annotate(namespace_selectors=None)
    await world.until_policies(*PAIR, *extra)
    await world.delete("VirtualService", "v")
    await world.until_policies(*PAIR)


async def _a_new_leader_takes_nothing_away(
    world: PolicyWorld, cluster: Cluster, tmp_path: Path, audit: Audit, extra: Sequence[str]
) -> None:
    """It learns late what leads to a Service: whether there is such a thing at all, and from one list after the other."""
    async with controller(world):
        await world.until_policies(*PAIR, *extra)
    lost = (await world.policies())[extra[1]]["metadata"]
    await world.delete("NetworkPolicy", lost["name"], namespace=lost["namespace"])
    mark = audit.mark()
    async with proxied(cluster, tmp_path) as (proxy, transport):
        lists = [f"{world.full(short)}/(virtualservices|pods)$" for short in ("b", "c")] + ["/gateways$"]
        proxy.rules.add(*(Rule(fault=Delay(seconds=1.0), path=path, watch=False) for path in lists))
        proxy.rules.add(Rule(fault=internal_error(), path=f"^/apis/{VIRTUAL_SERVICES.api_version}$", times=1))
        world.agent = Client(transport, user_agent=f"netpol-{world.mark}-next")
        async with controller(world):
            await world.until_policies(*PAIR, *extra)
    writes = await writes_of(audit, f"netpol-{world.mark}-next", since=mark, at_least=1)
    assert [(call.verb, call.resource, call.name) for call in writes] == [("create", "networkpolicies", lost["name"])]


async def _virtual_service(world: PolicyWorld) -> None:
    destination = {"host": f"db.{world.namespace}.svc.cluster.local", "port": {"number": 80}}
    spec = {"gateways": ["mesh", f"{world.full('c')}/gateway"], "tcp": [{"route": [{"destination": destination}]}]}
    await world.create(obj(VIRTUAL_SERVICES, "v", spec=spec))


@asynccontextmanager
async def going(world: PolicyWorld, short: str) -> AsyncIterator[None]:
    """A namespace of the test's is being deleted, and stays so during the block."""
    namespace = world.full(short)
    await world.create(obj(CONFIG_MAPS, "keeper", namespace=namespace, finalizers=["example.com/keep"]))
    await world.delete("Namespace", namespace)
    try:
        yield
    finally:
        await world.patch("ConfigMap", "keeper", {"metadata": {"finalizers": None}}, namespace=namespace)


async def test_a_terminating_namespace_is_left_alone(world: PolicyWorld, audit: Audit) -> None:
    await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "b"}}])
    await world.until_policies(*PAIR, *PAIR_WITH_B)
    await writes_of(audit, f"netpol-{world.mark}", since=0, at_least=4)
    mark = audit.mark()
    async with going(world, "b"):
        await world.until_policies(*PAIR)
        writes = await writes_of(audit, f"netpol-{world.mark}", since=mark, at_least=1)
    assert {(call.verb, call.namespace) for call in writes} == {("delete", world.full("a"))}


async def test_that_a_namespace_went_before_the_watch_reported_it_is_no_error(cluster: Cluster, tmp_path: Path) -> None:
    def failures() -> float:
        return counted("controller_runtime_reconcile_errors_total", controller="networkpolicy")

    before = failures()
    async with proxy_to(cluster) as proxy:
        kubeconfig = tmp_path / "kubeconfig"
        proxy.write_kubeconfig(kubeconfig, token=cluster.token)
        proxy.rules.add(Rule(fault=EndWatch(how=WatchEnd.SILENT), path="/namespaces(/[^/]+)?$"))
        async with world_with(cluster, agent_kubeconfig=kubeconfig, timings=Timings(idle_timeout=1.0)) as world:

            async def refused() -> str:
                path = NETWORK_POLICIES.path(namespace=world.full("b"))
                answers = [entry.status for entry in proxy.log if entry.request.path == path]
                return "" if 403 in answers else f"no policy was refused in the namespace that goes: {answers}"

            async with going(world, "b"):
                await world.service(namespace_selectors=[{"matchLabels": {f"{world.mark}-is": "b"}}])
                await no_problem(refused)
                await world.until_policies(*PAIR, PAIR_WITH_B[0])
                proxy.rules.clear()
                await world.until_policies(*PAIR)
    assert failures() == before


async def test_writes_that_wait_for_their_turn_when_the_controller_stops_are_given_up(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with proxy_to(cluster) as proxy:
        kubeconfig = tmp_path / "kubeconfig"
        proxy.write_kubeconfig(kubeconfig, token=cluster.token)
        async with world_with(cluster, agent_kubeconfig=kubeconfig) as world:
            ports = [{"name": f"p{port}", "port": port} for port in range(8001, 8013)]
            pairs = [f"a/{way}-to-db-tcp-{port['port']}" for port in ports for way in ("ingress", "egress")]
            spec = {"selector": {"app": "db"}, "ports": ports}
            await world.create(obj(SERVICES, "db", namespace=world.full("a"), spec=spec))
            await world.until_policies(*pairs)
            proxy.rules.add(Rule(fault=Silence(), methods=("DELETE",)))
            await world.remove("Service", "db", namespace=world.full("a"))

            async def requested() -> str:
                deletions = [entry for entry in proxy.log if entry.request.method == "DELETE"]
                return "" if len(deletions) == WRITES_AT_ONCE else f"{len(deletions)} of {WRITES_AT_ONCE} under way"

            await no_problem(requested)
    gc.collect()  # Python warns of a coroutine that is never awaited when it goes, which fails the test
