"""An object moves between ManagedResources of two agents, and is the same object afterwards.

The agents have a class each, or a namespace each, and in one case may not read each other's ManagedResources.
"""

from collections.abc import Callable, Iterator

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.kinds import custom_resource, definition, wait_until_served
from kit.managed_resources import install_crd
from kit.objects import config_map, obj, rule
from kit.rbac import grant, revoke
from kit.rig import Agent, Rig
from kit.shards import MASTERS, Shard, ShardAgent, agents_by_class, agents_by_namespace, sharing
from kit.world import WRITES
from kube.objects import Object, annotations, uid
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, RBAC_GROUP

_CLAIMED_BY = "resources.gardener.cloud/claimed-by"
_ORIGIN = "resources.gardener.cloud/origin"
_GROUPS = ("", "apps", "apiextensions.k8s.io", "autoscaling", "coordination.k8s.io", "events.k8s.io")


class Pair:
    """An agent that gives and one that takes; objects are in the namespace of the first."""

    def __init__(self, giver: Shard, taker: Shard) -> None:
        self.giver = giver.rig
        self.taker = taker.rig
        self.users = giver.user, taker.user
        self.place = giver.rig.namespace

    def obj(self, name: str, version: str = "1") -> Object:
        return config_map(name, {"version": version}, namespace=self.place)

    def live(self, name: str) -> Object | None:
        return self.giver.find("ConfigMap", name)

    def uid(self, name: str) -> str:
        return uid(self.live(name) or {})

    def origin(self, name: str) -> str:
        return annotations(self.live(name) or {}).get(_ORIGIN, "")

    def claimant(self, name: str) -> str:
        return annotations(self.live(name) or {}).get(_CLAIMED_BY, "")

    def begin(self) -> str:
        """The giver has `moving`, and the taker waits for it; the uid of it."""
        self.giver.apply("from", self.obj("moving"), self.obj("a"))
        before = self.uid("moving")
        self.taker.write("to", self.obj("moving", "2"), self.obj("b"))
        self.taker.until_failed("to", f"is held by ManagedResource {self.place}/from")
        assert self.claimant("moving") == f"{self.taker.namespace}/to"
        return before

    def until_moved(self, before: str) -> None:
        self.taker.until(lambda: (self.live("moving") or {}).get("data") == {"version": "2"}, "it to be taken over")
        self.taker.until_applied("to")
        live = self.live("moving") or {}
        assert uid(live) == before
        assert annotations(live)[_ORIGIN] == f"{self.taker.namespace}/to"
        assert _CLAIMED_BY not in annotations(live)
        assert self.taker.listed("to") == {"moving", "b"}


def by_class(cluster: Cluster, namespace: str, other: str) -> list[tuple[ShardAgent, str]]:
    return agents_by_class(cluster, namespace, leader_election=False)


def by_namespace(
    cluster: Cluster, namespace: str, other: str, *, groups: tuple[str, ...] = MASTERS
) -> list[tuple[ShardAgent, str]]:
    return agents_by_namespace(cluster, namespace, other, groups=groups, leader_election=False)


def by_namespace_blindly(cluster: Cluster, namespace: str, other: str) -> list[tuple[ShardAgent, str]]:
    """Each may read and write the ManagedResources of its own namespace only, and all else."""
    agents = by_namespace(cluster, namespace, other, groups=(namespace,))
    everything = [rule(group, "*") for group in _GROUPS]
    grant(cluster, namespace, *everything, subject={"apiGroup": RBAC_GROUP, "kind": "Group", "name": namespace})
    for agent, place in agents:
        grant(cluster, agent.user, rule("resources.gardener.cloud", "*"), namespace=place)
    return agents


_WAYS = {each.__name__: each for each in (by_class, by_namespace, by_namespace_blindly)}


@pytest.fixture(params=_WAYS)
def pair(request: pytest.FixtureRequest, cluster: Cluster, namespace: str) -> Iterator[Pair]:
    other = f"{namespace}-b"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": other}})
    with sharing(cluster, _WAYS[request.param](cluster, namespace, other)) as shards:
        yield Pair(*shards)
    cluster.api.delete(f"/api/v1/namespaces/{other}")
    if request.param == by_namespace_blindly.__name__:
        revoke(cluster, namespace)


def writes(pair: Pair, audit: Audit, *, since: int, name: str) -> list[tuple[str, str]]:
    """By whom, and how, an object was written."""
    calls = audit.calls(since=since, namespace=pair.place, verbs=WRITES)
    done = [call for call in calls if (call.resource, call.name) == ("configmaps", name) and call.status < 300]
    return [(call.user, call.verb) for call in done]


def drops_it(pair: Pair) -> None:
    pair.giver.write_secret("from", pair.obj("a"))
    pair.giver.until(lambda: pair.giver.listed("from") == {"a"}, "the giver to forget it")


def is_deleted(pair: Pair) -> None:
    pair.giver.delete_managed_resource("from")
    assert pair.live("a") is None


@pytest.mark.parametrize("leave", [drops_it, is_deleted])
def test_an_object_goes_to_who_waits_for_it(leave: Callable[[Pair], None], pair: Pair, audit: Audit) -> None:
    before = pair.begin()
    mark = audit.mark()
    leave(pair)
    pair.until_moved(before)
    giver, taker = pair.users
    # From a holder that is being deleted it may be taken before that one lets go.
    enough = ([(giver, "patch"), (taker, "update")], [(taker, "update")])
    pair.giver.until(lambda: writes(pair, audit, since=mark, name="moving") in enough, "the writes in the audit log")


def test_who_waits_may_go_without_touching_it_and_leaves_no_claim(pair: Pair) -> None:
    before = pair.begin()
    pair.taker.write_secret("to", pair.obj("b"))
    pair.taker.until_applied("to")
    pair.taker.until(lambda: not pair.claimant("moving"), "the claim to go")
    assert pair.uid("moving") == before
    assert pair.origin("moving") == f"{pair.place}/from"
    pair.taker.write_secret("to", pair.obj("moving", "2"), pair.obj("b"))
    pair.taker.until(lambda: pair.claimant("moving"), "another claim")
    pair.taker.delete_managed_resource("to")
    assert not pair.claimant("moving")
    pair.giver.write_secret("from", pair.obj("a"))
    pair.giver.until(lambda: pair.live("moving") is None, "it to be deleted")


def test_a_claim_that_no_agent_stands_behind_keeps_nothing(rig: Rig) -> None:
    claims = {
        "gone": f"{rig.namespace}/gone",
        "not-listed": f"{rig.namespace}/other",
        "of-another-cluster": f"elsewhere:{rig.namespace}/other",
        "own": f"{rig.namespace}/mr",
        "broken": "a/b/c",
        "path": "../..",
        "empty": "",
    }
    rig.write("other", config_map("of-other"))
    rig.write("mr", config_map("a"), *map(config_map, claims))
    for name in ("other", "mr"):
        rig.until_applied(name)
    for name, claimant in claims.items():
        rig.patch("ConfigMap", name, {"metadata": {"annotations": {_CLAIMED_BY: claimant}}})
    rig.write_secret("mr", config_map("a"))
    for name in claims:
        rig.until_gone("ConfigMap", name)
    rig.until_applied("mr")


def test_what_its_claimant_has_not_taken_is_not_forgotten(pair: Pair) -> None:
    before = pair.begin()
    pair.taker.process.kill()
    drops = f"ManagedResource {pair.taker.namespace}/to is its new owner; unless that takes it over within 2m0s, it is"
    pair.giver.write_secret("from", pair.obj("a"))
    pair.giver.until_failed("from", "moving", drops, reason="DeletionPending")
    pair.giver.until(lambda: pair.giver.events("from"), "an Event")
    assert pair.giver.listed("from") == {"moving", "a"}
    pair.taker.process.start()
    pair.until_moved(before)
    pair.giver.until(lambda: pair.giver.listed("from") == {"a"}, "the giver to forget it")
    pair.giver.until_applied("from")


@pytest.mark.parametrize("pair", ["by_class"], indirect=True)
def test_who_may_not_write_it_holds_up_no_removal_of_another_agent(pair: Pair) -> None:
    pair.giver.apply("from", pair.obj("moving"), pair.obj("a"))
    account = {"resources.gardener.cloud/service-account-name": "unused"}
    pair.taker.write("to", pair.obj("moving", "2"), pair.obj("b"), annotated=account)
    pair.taker.until_failed("to", "moving", "is forbidden")
    pair.giver.write_secret("from", pair.obj("a"))
    pair.giver.until(lambda: pair.live("moving") is None, "it to be deleted")
    pair.giver.until_applied("from")


@pytest.mark.parametrize("pair", ["by_class"], indirect=True)
@pytest.mark.parametrize("waits", ["from", "to"])
def test_an_object_moves_though_one_waits_for_the_other(waits: str, pair: Pair) -> None:
    """What the other one needs is given before waiting for it, and claimed before, too."""
    depends = {"resources.gardener.cloud/depends-on": "to" if waits == "from" else "from"}
    pair.taker.apply("to", pair.obj("b"))
    pair.giver.apply("from", pair.obj("moving"), pair.obj("a"))
    before = pair.uid("moving")
    rigs = {"from": pair.giver, "to": pair.taker}
    rigs[waits].write_managed_resource(waits, annotated=depends)
    pair.taker.write_secret("to", pair.obj("moving", "2"), pair.obj("b"))
    pair.taker.until_failed("to", f"is held by ManagedResource {pair.place}/from")
    drops_it(pair)
    pair.until_moved(before)
    pair.giver.until_applied("from")


def test_two_agents_of_two_source_clusters_do_not_fight_for_an_object(cluster: Cluster, namespace: str) -> None:
    agents = [
        Agent(cluster, resource_class=f"c{name}-{namespace[-8:]}", managed_by="gardener", clusterID=name)
        for name in ("one", "two")
    ]
    install_crd(cluster)
    with agents[0].start() as first_process, agents[1].start() as second_process:
        first = Rig(cluster, namespace, agents[0], first_process)
        second = Rig(cluster, namespace, agents[1], second_process)
        first.apply("a", config_map("c", {"of": "a"}))
        before = first.uid("ConfigMap", "c")
        second.write("b", config_map("c", {"of": "b"}))
        second.until_failed("b", f"is held by ManagedResource one:{namespace}/a, which has taken it back")
        first.until_data("c", {"of": "a"})
        first.until_applied("a")
        assert second.until(lambda: second.events("b"), "an Event")[0]["reason"] == "ApplyFailed"
        # The next process knows it by the condition.
        with first.asleep():
            version = first.get("ConfigMap", "c")["metadata"]["resourceVersion"]
            second_process.kill()
            second_process.start().wait_until_ready()
            second.write("other", config_map("d"))
            second.until_applied("other")
            second.patch(
                "ManagedResource", "b", {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}}
            )
            second.until(lambda: not annotations(second.get("ManagedResource", "b")), "a pass")
            assert first.get("ConfigMap", "c")["metadata"]["resourceVersion"] == version
        first.delete_managed_resource("a")
        second.until_data("c", {"of": "b"})
        assert second.uid("ConfigMap", "c") != before
        for name in ("b", "other"):
            second.delete_managed_resource(name)


def test_a_definition_keeps_its_custom_resources(cluster: Cluster, namespace: str) -> None:
    resource = custom_resource(f"{namespace}.example.com", "Widget")
    crd = definition(resource)
    path = CUSTOM_RESOURCE_DEFINITIONS.path(name=crd["metadata"]["name"])
    widget = obj(resource, "w", namespace=namespace)
    with sharing(cluster, by_class(cluster, namespace, namespace)) as shards:
        giver, taker = (shard.rig for shard in shards)
        giver.apply("from", crd, config_map("a"))
        wait_until_served(cluster, resource.path(namespace=namespace))
        before = uid(cluster.api.get(path)), uid(cluster.api.create(resource.path(namespace=namespace), widget))
        taker.write("to", crd, config_map("b"))
        taker.until_failed("to", f"is held by ManagedResource {namespace}/from")
        giver.write_secret("from", config_map("a"))
        taker.until_applied("to")
        giver.until(lambda: giver.listed("from") == {"a"}, "the giver to forget it")
        after = uid(cluster.api.get(path)), uid(cluster.api.get(resource.path(namespace=namespace, name="w")))
        assert after == before
        assert annotations(cluster.api.get(path))[_ORIGIN] == f"{namespace}/to"
        for rig, name in ((giver, "from"), (taker, "to")):
            rig.delete_managed_resource(name)


LOOKING = pytest.mark.parametrize("pair", [by_class.__name__, by_namespace.__name__], indirect=True)
"""Where the giver may see what others are about to claim."""


@LOOKING
@pytest.mark.parametrize("order", [("to", "from"), ("from", "to")])
def test_the_taker_does_not_even_run_when_it_moves(order: tuple[str, str], pair: Pair) -> None:
    pair.giver.write("from", pair.obj("moving"), pair.obj("a"))
    pair.taker.write("to", pair.obj("b"))
    pair.giver.until_applied("from")
    pair.taker.until_applied("to")
    before = pair.uid("moving")
    contents = {"from": [pair.obj("a")], "to": [pair.obj("moving", "2"), pair.obj("b")]}
    rigs = {"from": pair.giver, "to": pair.taker}
    pair.taker.process.kill()
    with pair.giver.asleep():
        for name in order:
            rigs[name].write_secret(name, *contents[name])
    pair.giver.until_failed(
        "from",
        "moving",
        f"ManagedResource {pair.taker.namespace}/to is about to take it over",
        reason="DeletionPending",
    )
    pair.taker.process.start()
    pair.until_moved(before)
    pair.giver.until(lambda: pair.giver.listed("from") == {"a"}, "the giver to forget it")


@LOOKING
def test_an_object_that_is_no_longer_about_to_be_claimed_is_deleted(pair: Pair) -> None:
    pair.giver.apply("from", pair.obj("moving"), pair.obj("a"))
    pair.taker.process.kill()
    pair.taker.write("to", pair.obj("moving", "2"))
    pair.giver.write_secret("from", pair.obj("a"))
    pair.giver.until_failed("from", "is about to take it over", reason="DeletionPending")
    pair.taker.write_secret("to", pair.obj("b"))
    pair.giver.until(lambda: pair.live("moving") is None, "it to be deleted")
    pair.giver.until_applied("from")


def looks(pair: Pair, audit: Audit, *, since: int) -> list[tuple[str, int]]:
    """The lists of all namespaces by which the giver looks at ManagedResources and Secrets that it does not watch.

    Without further pages, of which there are as many as other tests have made objects.
    """
    return [
        (call.resource, call.status)
        for call in audit.calls(since=since, namespace="", verbs=("list",))
        if call.user == pair.users[0]
        and call.resource in {"managedresources", "secrets"}
        and "continue=" not in call.uri
    ]


_LOOK = {("managedresources", 200), ("secrets", 200)}
_REFUSED = {("managedresources", 403)}


@pytest.mark.parametrize(
    ("pair", "expected", "most"),
    [
        (by_class.__name__, set(), 0),
        # One for each of both passes, and more while ManagedResources of other tests are at work.
        (by_namespace.__name__, _LOOK, 18),
        (by_namespace_blindly.__name__, _REFUSED, 1),
    ],
    indirect=["pair"],
)
def test_a_look_at_others_serves_all_that_is_removed(
    pair: Pair, expected: set[tuple[str, int]], most: int, audit: Audit
) -> None:
    names = [f"a-{number}" for number in range(20)]
    pair.giver.apply("from", *map(pair.obj, names))
    mark = audit.mark()
    for left in (names[:10], names[:1]):
        pair.giver.write_secret("from", *map(pair.obj, left))
        pair.giver.until(lambda left=left: pair.giver.listed("from") == set(left), "the others to go")  # type: ignore[misc]
    found = looks(pair, audit, since=mark)
    assert set(found) == expected
    assert len(found) <= most
