"""Policies of a seed's namespaces: which namespaces get them, what restores them, and what belongs to another client."""

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import pytest

from agent.gardenlet.seed.network_policy.controller import declare
from agent.gardenlet.seed.network_policy.reconcile import NOT_MANAGED
from config.gardenlet.controllers import Controllers, NetworkPolicy
from config.shared import LabelSelector
from gardener import keys
from gardener.api.extensions import CLUSTERS
from gardener.network_policies import (
    DENY_ALL,
    NAMES,
    TO_BLOCKED_CIDRS,
    TO_DNS,
    TO_PRIVATE_NETWORKS,
    TO_PUBLIC_NETWORKS,
    TO_RUNTIME_APISERVER,
)
from kit.clock import FakeClock
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import until_idle
from kit.gardenlet_controllers import NETWORKS, SPEC, gardenlet_config, run_gardenlet_controller
from kit.objects import obj
from kit.seed_kinds import install_seed_kinds
from kit.world import World, connected
from kube.objects import Object, annotations, metadata, resource_version, spec, uid
from kube.resources import CONFIG_MAPS, ENDPOINTS, NAMESPACES, NETWORK_POLICIES
from kube.runtime.loop import ControlLoop

pytestmark = pytest.mark.timeout(600)

SHOOT = {keys.ROLE: "shoot"}
FOREIGN: Object = {"podSelector": {}, "policyTypes": ["Ingress"]}
SEED_SPEC: Object = {**SPEC, "networks": {**NETWORKS, "blockCIDRs": ["10.99.0.0/16"]}}


class PolicyWorld(World):
    """Namespaces whose names begin with a mark of the test's own."""

    user_agent: str

    async def namespace_with(self, labels: dict[str, str], name: str = "") -> str:
        name = name or f"np-{uuid.uuid4().hex[:8]}"
        await self.create(obj(NAMESPACES, name, labels=labels))
        return name

    async def policies(self, namespace: str) -> dict[str, Object]:
        found = await self.list(NETWORK_POLICIES, namespace=namespace)
        return {metadata(policy)["name"]: policy for policy in found}

    async def until_policies(self, namespace: str, names: Sequence[str] = NAMES) -> dict[str, Object]:
        async def found() -> bool:
            assert set(await self.policies(namespace)) == set(names)
            return True

        await soon(found, "the policies")
        return await self.policies(namespace)

    async def until_spec(self, namespace: str, name: str, expected: Object) -> None:
        async def found() -> bool:
            policy = (await self.policies(namespace)).get(name) or {}
            assert spec(policy) == expected
            return True

        await soon(found, f"the policy {name}")

    async def until_excepted(self, namespace: str, excepted: list[str]) -> None:
        """From the private networks that begin with 10."""

        async def found() -> bool:
            policy = (await self.policies(namespace)).get(TO_PRIVATE_NETWORKS) or {}
            blocks = [peer["ipBlock"] for rule in spec(policy).get("egress", []) for peer in rule["to"]]
            assert [block.get("except") for block in blocks if block["cidr"] == "10.0.0.0/8"] == [excepted]
            return True

        await soon(found, "the exceptions")

    async def put_policy(self, namespace: str, name: str, **marks: str) -> Object:
        policy = obj(NETWORK_POLICIES, name, namespace=namespace, annotations=marks, spec=FOREIGN)
        return await self.create(policy)

    async def not_managed(self, namespace: str) -> list[tuple[str, str]]:
        """Events about policies that belong to another client: types and names."""
        found = [each for each in await self.list("Event", namespace=namespace) if each["reason"] == NOT_MANAGED]
        return [(each["type"], each["involvedObject"]["name"]) for each in found if each.get("count", 1) == 1]


@pytest.fixture
async def world(garden: Garden) -> AsyncIterator[PolicyWorld]:
    install_seed_kinds(garden.cluster)
    async with connected(garden.cluster) as client:
        world = PolicyWorld(client, "default")
        # The API server of tests does not report where it is.
        await world.remove(ENDPOINTS, "kubernetes", namespace="default")
        await world.create(obj(ENDPOINTS, "kubernetes", namespace="default", subsets=[subset("10.11.12.13", port=443)]))
        yield world


def subset(*addresses: str, port: int) -> Object:
    return {"addresses": [{"ip": address} for address in addresses], "ports": [{"name": "https", "port": port}]}


def controller(
    garden: Garden, *, user_agent: str = "test", seed: Object | None = None, settings: Any = None, **options: Any
) -> AbstractAsyncContextManager[ControlLoop]:
    controllers = Controllers(network_policy=settings or NetworkPolicy())
    config = gardenlet_config("seed", spec=seed or SEED_SPEC, controllers=controllers)

    @asynccontextmanager
    async def running() -> AsyncIterator[ControlLoop]:
        async with (
            connected(garden.cluster, user_agent) as client,
            run_gardenlet_controller(partial(declare, **options), garden=client, seed=client, config=config) as loop,
        ):
            yield loop

    return running()


def selector(**labels: str) -> tuple[LabelSelector, ...]:
    return (LabelSelector(match_labels=labels),)


async def test_labels_of_a_namespace_decide(world: PolicyWorld, garden: Garden) -> None:
    settings = NetworkPolicy(additional_namespace_selectors=selector(mine="yes"))
    early = await world.namespace_with(SHOOT)
    async with controller(garden, settings=settings) as loop:
        found = await world.until_policies(early)

        async def garden_has_policies() -> bool:
            return set(NAMES) <= set(await world.policies("garden"))

        # The seed is the garden as well: its namespaces are not left to others.
        await soon(garden_has_policies, "the policies of namespace garden")
        assert all(annotations(policy)[keys.GARDENER_DESCRIPTION] for policy in found.values())
        istio = await world.namespace_with({keys.ROLE: "istio-ingress"})
        handler = await world.namespace_with({keys.EXPOSURE_CLASS_HANDLER: "x"})
        additional, other = await world.namespace_with({"mine": "yes"}), await world.namespace_with({"mine": "no"})
        await world.until_policies(istio, (DENY_ALL, TO_RUNTIME_APISERVER, TO_DNS))
        await world.until_policies(handler, (DENY_ALL, TO_DNS))
        await world.until_policies(additional)
        # Labels come and go.
        await world.patch(NAMESPACES, other, {"metadata": {"labels": {"mine": "yes"}}})
        await world.until_policies(other)
        await world.patch(NAMESPACES, other, {"metadata": {"labels": {keys.ROLE: "istio-system", "mine": None}}})
        await world.until_policies(other, (DENY_ALL, TO_RUNTIME_APISERVER, TO_DNS))
        await world.patch(NAMESPACES, other, {"metadata": {"labels": {keys.ROLE: "seed"}}})
        await world.until_policies(other, ())
        await until_idle(loop)


async def test_what_a_user_changes_is_restored(world: PolicyWorld, garden: Garden) -> None:
    namespace = await world.namespace_with(SHOOT)
    async with controller(garden):
        made = await world.until_policies(namespace)
        marks: Object = {"labels": {"mine": "x"}, "annotations": {keys.GARDENER_DESCRIPTION: "other", "mine": "y"}}
        changed: Object = {"metadata": marks, "spec": {"podSelector": {"matchLabels": {"a": "b"}}}}
        await world.patch(NETWORK_POLICIES, DENY_ALL, changed, namespace=namespace)
        await world.patch(NETWORK_POLICIES, TO_PUBLIC_NETWORKS, {"spec": {"egress": None}}, namespace=namespace)
        await world.delete(NETWORK_POLICIES, TO_BLOCKED_CIDRS, namespace=namespace)
        for name in (DENY_ALL, TO_PUBLIC_NETWORKS, TO_BLOCKED_CIDRS):
            await world.until_spec(namespace, name, spec(made[name]))
        found = await world.policies(namespace)
        assert metadata(found[DENY_ALL])["labels"] == {"mine": "x"}
        assert annotations(found[DENY_ALL]) == {**annotations(made[DENY_ALL]), "mine": "y"}
        assert uid(found[DENY_ALL]) == uid(made[DENY_ALL])


async def test_policies_of_another_client_are_left_alone(world: PolicyWorld, garden: Garden) -> None:
    plain, shoot = await world.namespace_with({}), await world.namespace_with(SHOOT)
    for namespace in (plain, shoot):
        for name in (DENY_ALL, TO_DNS, "mine"):
            await world.put_policy(namespace, name)
    # One that a gardenlet has made, for a namespace that has been relabelled since.
    await world.put_policy(plain, TO_BLOCKED_CIDRS, **{keys.GARDENER_DESCRIPTION: "d"})
    for _ in range(2):  # another process reports them once more
        async with controller(garden) as loop:
            await world.until_policies(plain, (DENY_ALL, TO_DNS, "mine"))
            await world.until_policies(shoot, (*NAMES, "mine"))
            for namespace in (plain, shoot):
                found = await world.policies(namespace)
                assert all(spec(found[name]) == FOREIGN for name in (DENY_ALL, TO_DNS, "mine"))
                # Another pass reports nothing again.
                await world.patch(NAMESPACES, namespace, {"metadata": {"labels": {"again": uuid.uuid4().hex[:8]}}})
            await until_idle(loop)
    for namespace, type_ in ((plain, "Normal"), (shoot, "Warning")):
        assert set(await world.not_managed(namespace)) == {(type_, DENY_ALL), (type_, TO_DNS)}
    async with controller(garden):
        # It is not in the way any more, and the namespace gets the policy that it lacks.
        await world.delete(NETWORK_POLICIES, DENY_ALL, namespace=shoot)
        await world.until_spec(shoot, DENY_ALL, {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})


async def test_a_terminating_namespace_is_left_alone(world: PolicyWorld, garden: Garden) -> None:
    namespace = await world.namespace_with(SHOOT)
    held: Object = {"metadata": {"finalizers": ["example.com/hold"]}}
    async with controller(garden) as loop:
        await world.until_policies(namespace)
        await world.create(obj(CONFIG_MAPS, "held", namespace=namespace, finalizers=["example.com/hold"]))
        await world.delete(NAMESPACES, namespace)
        await world.until_policies(namespace, ())
        await until_idle(loop)
        assert await world.policies(namespace) == {}
        held["metadata"]["finalizers"] = None
        await world.patch(CONFIG_MAPS, "held", held, namespace=namespace)
        await world.until_gone(NAMESPACES, namespace)


def cluster_of(name: str, **networking: Any) -> Object:
    shoot = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "spec": {"networking": networking}}
    return obj(CLUSTERS, name, spec={"cloudProfile": {}, "seed": {}, "shoot": shoot})


async def test_networks_of_a_shoot_are_excepted(world: PolicyWorld, garden: Garden) -> None:
    name = f"shoot--np--{uuid.uuid4().hex[:8]}"
    async with controller(garden):
        await world.namespace_with(SHOOT, name)
        # Without its Cluster it gets the others.
        await world.until_policies(name, [each for each in NAMES if each != TO_PRIVATE_NETWORKS])
        await world.create(cluster_of(name, services="10.4.0.0/16"), CLUSTERS)
        await world.until_excepted(name, ["10.99.0.0/16", "10.4.0.0/16"])
        networks = {"spec": {"shoot": {"status": {"networking": {"pods": ["10.5.0.0/16"]}}}}}
        await world.patch(CLUSTERS, name, networks)
        await world.until_excepted(name, ["10.99.0.0/16", "10.4.0.0/16", "10.5.0.0/16"])


async def test_the_api_server_of_the_seed_is_reached_where_it_is(world: PolicyWorld, garden: Garden) -> None:
    namespace = await world.namespace_with(SHOOT)

    async def reached(peers: list[str], port: int) -> bool:
        rules = spec((await world.policies(namespace)).get(TO_RUNTIME_APISERVER) or {}).get("egress", [])
        found = [([peer["ipBlock"]["cidr"] for peer in rule["to"]], rule["ports"]) for rule in rules]
        assert found == [(peers, [{"port": port, "protocol": "TCP"}])]
        return True

    async with controller(garden):
        await soon(partial(reached, ["10.11.12.13/32"], 443), "the policy")
        both = {"subsets": [subset("10.11.12.13", "10.11.12.14", port=6443)]}
        await world.patch(ENDPOINTS, "kubernetes", both, namespace="default")
        await soon(partial(reached, ["10.11.12.13/32", "10.11.12.14/32"], 6443), "the policy to follow the Endpoints")


async def test_without_endpoints_the_others_are_written(world: PolicyWorld, garden: Garden) -> None:
    namespace = await world.namespace_with(SHOOT)
    await world.remove(ENDPOINTS, "kubernetes", namespace="default")
    async with controller(garden):
        await world.until_policies(namespace, [each for each in NAMES if each != TO_RUNTIME_APISERVER])
        await world.create(obj(ENDPOINTS, "kubernetes", namespace="default", subsets=[subset("10.0.0.9", port=443)]))
        await world.until_policies(namespace)


async def test_host_names_are_resolved_again(world: PolicyWorld, garden: Garden) -> None:
    namespace = await world.namespace_with(SHOOT)
    clock, answers = FakeClock(), ["10.0.0.2", "fd00::2", "nonsense"]
    requested: list[str] = []

    async def resolve(host: str) -> Sequence[str]:
        requested.append(host)
        if not answers:
            raise OSError("no answer")
        return answers

    async def resolved(expected: list[str]) -> None:
        async def found() -> bool:
            rules = spec((await world.policies(namespace)).get(TO_RUNTIME_APISERVER) or {}).get("egress", [])
            blocks = [
                [peer["ipBlock"]["cidr"] for peer in rule["to"]] for rule in rules if rule["ports"][0]["port"] == 6443
            ]
            assert expected in blocks
            return True

        await soon(found, "the addresses")

    async with controller(garden, server="api.example.com:6443", resolve=resolve, sleep=clock.sleep):
        await resolved(["10.0.0.2/32", "fd00::2/128"])
        answers[:] = ["10.0.0.3"]
        clock.advance(30)
        await resolved(["10.0.0.3/32"])
        # The last addresses stay.
        answers.clear()
        before = (await world.policies(namespace))[TO_RUNTIME_APISERVER]
        for _ in range(2):
            count = len(requested)
            clock.advance(30)
            await soon(lambda count=count: len(requested) > count, "another look-up")  # type: ignore[misc]
        assert (await world.policies(namespace))[TO_RUNTIME_APISERVER] == before
        answers[:] = ["10.0.0.4"]
        clock.advance(30)
        await resolved(["10.0.0.4/32"])
    assert set(requested) == {"api.example.com"}


async def test_before_the_first_answer_a_policy_is_not_touched(world: PolicyWorld, garden: Garden) -> None:
    new, old = await world.namespace_with(SHOOT), await world.namespace_with(SHOOT)
    marked = await world.put_policy(old, TO_RUNTIME_APISERVER, **{keys.GARDENER_DESCRIPTION: "of before"})

    async def resolve(_: str) -> Sequence[str]:
        raise OSError("no answer")

    async with controller(garden, server="api.example.com", resolve=resolve) as loop:
        await world.until_policies(new, [each for each in NAMES if each != TO_RUNTIME_APISERVER])
        await world.until_policies(old)
        await until_idle(loop)
        found = (await world.policies(old))[TO_RUNTIME_APISERVER]
        assert resource_version(found) == resource_version(marked)


async def test_one_policy_that_fails_does_not_hold_up_the_others(world: PolicyWorld, garden: Garden) -> None:
    namespace = await world.namespace_with(SHOOT)
    networks = {name: cidr for name, cidr in NETWORKS.items() if name != "services"}
    async with controller(garden, seed={**SPEC, "networks": networks}):
        await world.until_policies(namespace, [each for each in NAMES if each != TO_DNS])


async def test_namespaces_that_another_program_serves_are_left_alone(world: PolicyWorld, garden: Garden) -> None:
    elsewhere, own = await world.namespace_with(SHOOT | {"served": "there"}), await world.namespace_with(SHOOT)
    await world.put_policy(elsewhere, DENY_ALL, **{keys.GARDENER_DESCRIPTION: "theirs"})
    settings = NetworkPolicy(namespaces_served_elsewhere=selector(served="there"))
    async with controller(garden, settings=settings) as loop:
        await world.until_policies(own)
        await until_idle(loop)
        found = await world.policies(elsewhere)
        assert {name: spec(policy) for name, policy in found.items()} == {DENY_ALL: FOREIGN}
        await world.patch(NAMESPACES, elsewhere, {"metadata": {"labels": {"served": None}}})
        await world.until_policies(elsewhere)


async def test_many_namespaces_of_shoots_cost_no_call_in_steady_state(world: PolicyWorld, garden: Garden) -> None:
    namespaces = [f"shoot--np--{uuid.uuid4().hex[:8]}" for _ in range(50)]
    for name in namespaces:
        await world.create(cluster_of(name, services="10.4.0.0/16"), CLUSTERS)
        await world.namespace_with(SHOOT, name)
    async with controller(garden):
        for name in namespaces:
            await world.until_policies(name)
    audit = garden.cluster.audit()
    agent = f"np-{uuid.uuid4().hex[:8]}"
    since = audit.mark()
    # A start writes nothing, and neither do changes that lead to a pass over each of them.
    async with controller(garden, user_agent=agent) as loop:
        for name in namespaces:
            await world.patch(NAMESPACES, name, {"metadata": {"labels": {"again": "x"}}})
        last = await world.namespace_with(SHOOT)
        await world.until_policies(last)
        await until_idle(loop)
        made = {("create", "networkpolicies"): len(NAMES)}
        calls = audit.count(since=since, user_agent=agent)
        assert {
            call: count for call, count in calls.items() if call[1] == "networkpolicies" and call[0] != "list"
        } == made
        since = audit.mark()
        await world.namespace_with({})
        await until_idle(loop)
        assert audit.count(since=since, user_agent=agent) == {}
    audit.close()
