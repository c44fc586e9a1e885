"""What is not wanted any more goes: only that, and as its annotations state."""

import contextlib
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import pytest

from devcluster.audit import Audit, Call
from kit.objects import (
    GIBIBYTE,
    config_map,
    deployment,
    obj,
    role,
    role_binding,
    secret,
    service,
    service_warning,
    stateful_set,
)
from kit.rig import Agent, Rig
from kit.world import Place
from kube.clock import format_duration, format_time
from kube.errors import NotFound
from kube.objects import Object, annotations, is_deleting
from kube.resources import VOLUME_CLAIMS

_KEEP = "resources.gardener.cloud/keep-object"
_FINALIZE_AFTER = "resources.gardener.cloud/finalize-deletion-after"
_DESCRIPTION = "resources.gardener.cloud/description"
_HOLD = "example.com/hold"


def describes_the_agent(obj: Object) -> bool:
    """Whether it reports that changes of it are undone."""
    return _DESCRIPTION in annotations(obj)


def without_description(obj: Object) -> Object:
    notes = {name: value for name, value in annotations(obj).items() if name != _DESCRIPTION}
    changed = {"annotations": notes, "resourceVersion": "", "managedFields": []}
    return {**obj, "metadata": {**obj["metadata"], **changed}}


def held(obj: Object) -> Object:
    """Another client's finalizer keeps it from going."""
    return {**obj, "metadata": {**obj["metadata"], "finalizers": [_HOLD]}}


def let_go(rig: Place, kind: str, name: str) -> None:
    rig.patch(kind, name, {"metadata": {"finalizers": None}})


def deletions(rig: Rig, audit: Audit, *, since: int) -> list[Call]:
    calls = audit.calls(since=since, namespace=rig.namespace, verbs=("delete",))
    return [call for call in calls if call.user == rig.agent.user]


def test_everything_goes_with_the_managed_resource(rig: Rig) -> None:
    objects = [config_map("c"), service("s"), deployment("d"), stateful_set("f"), role("r")]
    rig.apply("mr", *objects)
    rig.delete_managed_resource("mr")
    for each in objects:
        assert rig.find(each["kind"], each["metadata"]["name"]) is None


def test_it_goes_without_its_secret_too(rig: Rig) -> None:
    rig.apply("mr", config_map("c"))
    rig.delete("Secret", "mr")
    rig.delete_managed_resource("mr")
    assert rig.find("ConfigMap", "c") is None


def test_each_object_is_deleted_by_one_call(rig: Rig, audit: Audit) -> None:
    rig.apply("mr", config_map("a"), config_map("b"))
    mark = audit.mark()
    rig.delete_managed_resource("mr")
    assert sorted((call.name, call.status) for call in deletions(rig, audit, since=mark)) == [("a", 200), ("b", 200)]


def test_an_object_that_was_recreated_meanwhile_survives_in_other_hands(rig: Rig, audit: Audit) -> None:
    """The agent knows the former object and believes it to be its own."""
    rig.write("mr", config_map("c"), config_map("rest"))
    rig.write("heir", config_map("other"))
    for name in ("mr", "heir"):
        rig.until_applied(name)
    mark = audit.mark()
    with rig.asleep():
        rig.delete("ConfigMap", "c")
        recreated = rig.put(config_map("c", {"k": "anew"}))
        rig.write_secret("mr", config_map("rest"))
        rig.write_secret("heir", config_map("other"), config_map("c", {"k": "anew"}))
    rig.until(lambda: rig.origin("ConfigMap", "c") == "heir", "the heir to take it")
    rig.until(lambda: rig.listed("mr") == {"rest"}, "the list to be right")
    assert rig.uid("ConfigMap", "c") == recreated["metadata"]["uid"]
    assert [call for call in deletions(rig, audit, since=mark) if call.status < 300] == []


def test_an_object_that_waits_for_others_is_pending_and_holds_up_nothing_else(rig: Rig) -> None:
    rig.apply("mr", held(config_map("slow")), config_map("quick"), config_map("stays", {"k": "1"}))
    rig.write_secret("mr", config_map("stays", {"k": "2"}), config_map("new"))
    rig.until_data("stays", {"k": "2"})
    rig.until(lambda: rig.find("ConfigMap", "new"), "the new object")
    rig.until_gone("ConfigMap", "quick")
    text = f'deletion of old resource "v1/ConfigMap/{rig.namespace}/slow" is still pending'
    message = f"Could not clean all old resources: 1 error occurred: {text}"
    rig.until_failed("mr", message, reason="DeletionPending")
    let_go(rig, "ConfigMap", "slow")
    rig.until_applied("mr")
    assert rig.find("ConfigMap", "slow") is None


@pytest.mark.parametrize("dropped", [True, False])
def test_the_finalizer_that_holds_an_object_is_named(dropped: bool, rig: Rig) -> None:
    rig.apply("mr", held(config_map("c")))
    if dropped:
        rig.write_secret("mr")
    else:
        rig.delete("ManagedResource", "mr")
    text = f'"v1/ConfigMap/{rig.namespace}/c" is still pending: waits for example.com/hold'
    rig.until_failed("mr", text, reason="DeletionPending")
    let_go(rig, "ConfigMap", "c")
    rig.until_gone("ConfigMap", "c")


def test_what_is_pending_is_reported_when_it_has_lasted(rig: Rig, audit: Audit) -> None:
    rig.apply("mr", config_map("goes-at-once"), held(config_map("c")))
    mark = audit.mark()
    rig.delete("ManagedResource", "mr")
    rig.until_failed("mr", "waits for example.com/hold", reason="DeletionPending")
    writes = audit.calls(since=mark, namespace=rig.namespace, verbs=("patch",))
    reported = [call for call in writes if call.resource == "managedresources/status" and call.user == rig.agent.user]
    assert len(reported) == 2  # that it is removed, and what keeps it
    let_go(rig, "ConfigMap", "c")


def test_an_object_that_is_wanted_again_while_it_goes_is_recreated(rig: Rig) -> None:
    rig.apply("mr", held(config_map("c", {"k": "1"})))
    before = rig.uid("ConfigMap", "c")
    rig.write_secret("mr")
    rig.until(lambda: "deletionTimestamp" in rig.get("ConfigMap", "c")["metadata"], "the deletion")
    rig.write_secret("mr", config_map("c", {"k": "2"}))
    time.sleep(0.5)  # it is applied while it goes
    let_go(rig, "ConfigMap", "c")
    rig.until(lambda: rig.find("ConfigMap", "c") and rig.uid("ConfigMap", "c") != before, "it to be back")
    rig.until_data("c", {"k": "2"})
    rig.until_applied("mr")


@pytest.mark.parametrize(("value", "stays"), [("true", True), ("1", True), ("false", False), ("yes", False)])
@pytest.mark.parametrize("dropped", [True, False])
def test_an_object_is_kept_if_it_states_so_itself(value: str, stays: bool, dropped: bool, rig: Rig) -> None:
    rig.apply("mr", config_map("c", annotations={_KEEP: value}), config_map("d"))
    if dropped:
        rig.write_secret("mr")
        rig.until(lambda: rig.listed("mr") == set(), "the list to be empty")
        rig.until_applied("mr")
    else:
        rig.delete_managed_resource("mr")
    live = rig.find("ConfigMap", "c")
    assert (live is not None) == stays
    assert live is None or not describes_the_agent(live)
    assert rig.find("ConfigMap", "d") is None


def test_what_counts_is_what_the_live_object_reports(rig: Rig) -> None:
    rig.apply("mr", config_map("c"))
    rig.patch("ConfigMap", "c", {"metadata": {"annotations": {_KEEP: "true"}}})
    rig.delete_managed_resource("mr")
    assert rig.find("ConfigMap", "c")


def test_all_objects_are_kept_if_the_managed_resource_states_so(rig: Rig) -> None:
    rig.apply("mr", config_map("c"), service("s"), keepObjects=True)
    before = [rig.get("ConfigMap", "c"), rig.get("Service", "s")]
    rig.delete_managed_resource("mr")
    assert [without_description(rig.get(obj["kind"], obj["metadata"]["name"])) for obj in before] == [
        without_description(obj) for obj in before
    ]
    assert not {obj["kind"] for obj in before if describes_the_agent(rig.get(obj["kind"], obj["metadata"]["name"]))}


# --- finalizers


def test_finalizers_are_taken_away_after_the_time_that_the_object_grants(rig: Rig) -> None:
    rig.apply("mr", held(config_map("c", annotations={_FINALIZE_AFTER: "2s"})))
    began = time.monotonic()
    rig.write_secret("mr")
    rig.until_gone("ConfigMap", "c")
    assert time.monotonic() - began > 1  # deletion timestamps are whole seconds
    rig.until_applied("mr")


def test_a_time_that_is_none_is_reported(rig: Rig) -> None:
    rig.apply("mr", held(config_map("c", annotations={_FINALIZE_AFTER: "soon"})))
    rig.write_secret("mr")
    rig.until_failed(
        "mr",
        f"failed parsing duration of {_FINALIZE_AFTER} annotation",
        reason="DeletionPending",
    )
    let_go(rig, "ConfigMap", "c")
    rig.until_applied("mr")


@pytest.fixture
def own_namespace(rig: Rig) -> Iterator[str]:
    name = f"{rig.namespace}-own"
    yield name
    with contextlib.suppress(NotFound):
        let_go(Place(rig.cluster, name), "ConfigMap", "stuck")


def test_a_namespace_that_does_not_get_empty_is_finalized_too(rig: Rig, own_namespace: str) -> None:
    rig.apply("mr", obj("Namespace", own_namespace, annotations={_FINALIZE_AFTER: "2s"}))
    Place(rig.cluster, own_namespace).create(held(config_map("stuck")))
    rig.delete("ManagedResource", "mr")
    rig.until_gone("Namespace", own_namespace)
    rig.until_gone("ManagedResource", "mr")


# --- volume claims


@pytest.mark.parametrize("delete_claims", [True, False])
def test_volume_claims_go_with_their_stateful_set_if_wanted(delete_claims: bool, rig: Rig) -> None:
    rig.apply("mr", stateful_set("f"), config_map("c"), deletePersistentVolumeClaims=delete_claims)
    for name, app in (("data-f-0", "f"), ("other", "other")):
        rig.put(claim(name, app))
    rig.write_secret("mr", config_map("c"))
    rig.until_gone("StatefulSet", "f")
    rig.until_applied("mr")
    claims = {"data-f-0", "other"} if not delete_claims else {"other"}
    rig.until(
        lambda: {name for name in ("data-f-0", "other") if rig.find("PersistentVolumeClaim", name)} == claims,
        f"the claims {claims}",
    )


def claim(name: str, app: str) -> Object:
    return obj(VOLUME_CLAIMS, name, labels={"app": app}, spec=GIBIBYTE)


def kept_claims(rig: Rig) -> set[str]:
    return {obj["metadata"]["name"] for obj in rig.list(VOLUME_CLAIMS) if not is_deleting(obj)}


def test_volume_claims_that_are_recreated_while_their_stateful_set_goes_are_not_left_over(rig: Rig) -> None:
    """By another process than the one that began; those of a successor with the same labels are none of its business."""
    own = Agent(rig.cluster, resource_class=f"c-{rig.namespace[-10:]}")
    rig.write_secret("mr", held(stateful_set("f")), config_map("c"))
    with own.start():
        rig.write_managed_resource("mr", resource_class=own.resource_class, deletePersistentVolumeClaims=True)
        rig.until_applied("mr")
        rig.put(claim("data-f-0", "f"))
        rig.write_secret("mr", config_map("c"))
        rig.until(lambda: is_deleting(rig.get("StatefulSet", "f")), "the deletion")
        rig.until(lambda: kept_claims(rig) == set(), "its claims to go")
        rig.until_gone("PersistentVolumeClaim", "data-f-0")
        rig.until_failed("mr", "still pending", reason="DeletionPending")
    for name, app in (("data-f-0", "f"), ("data-f-1", "f"), ("data-g-0", "f"), ("data-f-2", "other")):
        rig.put(claim(name, app))
    let_go(rig, "StatefulSet", "f")
    rig.until_gone("StatefulSet", "f")
    with own.start():
        rig.until_applied("mr")
        assert kept_claims(rig) == {"data-g-0", "data-f-2"}
        rig.delete_managed_resource("mr")


def test_volume_claims_of_others_stay_though_they_have_the_same_labels(rig: Rig) -> None:
    rig.apply("mr", stateful_set("f"), config_map("c"), deletePersistentVolumeClaims=True)
    theirs = {"backup-of-f", "data-g-0", "logs-f-0", "data-f-x"}
    for name in ("data-f-0", "data-f-1", *theirs):
        rig.put(claim(name, "f"))
    rig.write_secret("mr", config_map("c"))
    rig.until_gone("StatefulSet", "f")
    rig.until_applied("mr")
    assert kept_claims(rig) == theirs


def test_no_volume_claims_are_left_over_whatever_the_control_plane_does_meanwhile(rig: Rig) -> None:
    """Its pods run, and all goes at once."""
    names = [f"f-{number}" for number in range(4)]
    at_once = {"terminationGracePeriodSeconds": 0}
    sets = [stateful_set(name, replicas=2, podManagementPolicy="Parallel", pod=at_once) for name in names]
    rig.write("mr", *sets, deletePersistentVolumeClaims=True)
    rig.until(lambda: len(kept_claims(rig)) == 8, "the claims")
    rig.delete_managed_resource("mr")
    assert kept_claims(rig) == set()


# --- what pods need until they end


def used_by_pods() -> list[Object]:
    return [config_map("c"), secret("s", {"k": "v"}), obj("ServiceAccount", "a"), role("r"), role_binding("b", to="r")]


def missing(rig: Place, objects: Iterable[Object]) -> set[str]:
    found = ((each["kind"], each["metadata"]["name"]) for each in objects)
    return {name for kind, name in found if rig.find(kind, name) is None}


@pytest.mark.parametrize("dropped", [True, False])
def test_what_pods_may_need_goes_after_them(dropped: bool, rig: Rig) -> None:
    used, others = used_by_pods(), [service("s"), service("t")]
    rig.apply("mr", held(deployment("d")), *used, *others, config_map("stays"))
    if dropped:
        rig.write_secret("mr", config_map("stays"))
    else:
        rig.delete("ManagedResource", "mr")
    rig.until(lambda: missing(rig, others) == {each["metadata"]["name"] for each in others}, "the others to go")
    workload = f"apps/v1/Deployment/{rig.namespace}/d"
    text = f'waiting for at most {format_duration(600)} until "{workload}" is gone together with all pods, which may need it'
    message = rig.until_failed("mr", text, reason="DeletionPending")
    assert message.count(text) == len(used) + (not dropped)
    assert missing(rig, used) == set()
    let_go(rig, "Deployment", "d")
    if dropped:
        rig.until_applied("mr")
    else:
        rig.until_gone("ManagedResource", "mr")
    assert len(missing(rig, used)) == len(used)


def test_pods_keep_their_config_map_while_they_end(rig: Rig, audit: Audit) -> None:
    """Those of a real Deployment, which are held in the midst of their end, beyond a restart of the agent."""
    own = Agent(rig.cluster, resource_class=f"c-{rig.namespace[-10:]}")
    rig.write_secret("mr", deployment("d", replicas=1), config_map("c"))
    with own.start():
        rig.write_managed_resource("mr", resource_class=own.resource_class)
        (pod,) = rig.until(lambda: rig.list("Pod"), "the pod")
        name = pod["metadata"]["name"]
        rig.patch("Pod", name, {"metadata": {"finalizers": [_HOLD]}})
        rig.until_applied("mr")
        mark = audit.mark()
        rig.delete("ManagedResource", "mr")
        rig.until_failed("mr", "together with all pods", reason="DeletionPending")
    with own.start():
        rig.until(lambda: is_deleting(rig.get("Pod", name)), "the pod to end")
        rig.until_failed("mr", "together with all pods", reason="DeletionPending")
        assert rig.find("ConfigMap", "c") is not None
        let_go(rig, "Pod", name)
        rig.until_gone("ManagedResource", "mr")
    assert rig.find("ConfigMap", "c") is None
    calls = audit.calls(since=mark, namespace=rig.namespace, verbs=("delete",))
    assert sorted(call.name for call in calls if call.user == own.user) == ["c", "d"]


@pytest.mark.parametrize("timeout", ["0s", "2s"])
def test_nothing_waits_for_pods_longer_than_it_is_configured(timeout: str, rig: Rig) -> None:
    """Time since the deletion of the workload, even if other processes have worked since."""
    settings = {"syncPeriod": "15s", "workloadRemovalTimeout": timeout}
    own = Agent(rig.cluster, resource_class=f"c-{rig.namespace[-10:]}", managedResource=settings)
    rig.write_secret("mr", held(deployment("d")), config_map("c"))
    with own.start():
        rig.write_managed_resource("mr", resource_class=own.resource_class)
        rig.until_applied("mr")
        rig.delete("ManagedResource", "mr")
        rig.until_gone("ConfigMap", "c")
        assert rig.find("Deployment", "d") is not None
        let_go(rig, "Deployment", "d")
        rig.until_gone("ManagedResource", "mr")


# --- Services


def test_a_service_that_lingers_is_reported_with_its_warnings(rig: Rig) -> None:
    rig.apply("mr", held(service("lb")))
    now = format_time(datetime.now(UTC))
    warning = service_warning(f"{rig.namespace}/lb", "quota exceeded")
    rig.put({**warning, "firstTimestamp": now, "lastTimestamp": now})
    rig.write_secret("mr")
    message = rig.until_failed("mr", "-> Events:", reason="DeletionPending")
    head, _, tail = message.partition("\n\n")
    assert head.endswith(f'deletion of old resource "v1/Service/{rig.namespace}/lb" is still pending')
    lines = tail.splitlines()
    assert lines[0] == "-> Events:"
    assert lines[1].startswith("* service-controller reported ")
    assert lines[1].endswith(" ago: quota exceeded")
    let_go(rig, "Service", "lb")
    rig.until_applied("mr")
