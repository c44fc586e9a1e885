"""The oracles of the fault campaign: each reports nothing when all is well, and finds what was planted."""

import copy
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from campaign import manifests, oracles
from campaign.manifests import WORK, Place
from campaign.model import Edit, apply_all, empty
from campaign.oracles import Admissions, Excuse, Failure, Level, Problem, Snapshot, Write
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.keys import POLICY_SERVICE_NAME
from kube.objects import Object
from kube.resources import CONFIG_MAPS, NETWORK_POLICIES, NODES, PODS, SECRETS, SERVICES

MODEL = apply_all(
    empty(),
    [
        Edit("managed", "mr", {"class": "", "objects": {"ConfigMap/apps-0/o": 1}, "packing": "plain", "secrets": 1}),
        Edit("services", "apps-0/s", {"port": 80, "clients": ["apps-1"], "alias": True, "world": True}),
        Edit("tokens", "t", {"account": "a", "elsewhere": False}),
        Edit("referrers", "apps-0/r", {"kind": "Deployment", "refers": ["secret/apps-0/used"]}),
        Edit("collectables", "secret/apps-0/used", {}),
        Edit("collectables", "secret/apps-0/unused", {}),
        Edit("nodes", "waits", {"waits": True}),
        Edit("nodes", "ready", {"waits": False}),
    ],
)
EXPECTED = manifests.expected(MODEL)

OBJECT = Place("target", CONFIG_MAPS, "apps-0", "o")
OWNER = Place("source", MANAGED_RESOURCES, WORK, "mr")
USED = Place("target", SECRETS, "apps-0", "used")
UNUSED = Place("target", SECRETS, "apps-0", "unused")
TOKEN = Place("source", SECRETS, WORK, "t")
POLICY = Place("target", NETWORK_POLICIES, "apps-0", "ingress-to-s-tcp-80")
POD = Place("target", PODS, "apps-0", "p")
WAITING, READY = Place("target", NODES, "", "waits"), Place("target", NODES, "", "ready")
FOREIGN = Place("target", CONFIG_MAPS, "apps-0", "foreign")

ORIGIN = "resources.gardener.cloud/origin"
TAINTED: Object = {"taints": [{"key": "node.gardener.cloud/critical-components-not-ready"}]}


def live(place: Place, meta: Object | None = None, **fields: Any) -> Object:
    named = {"namespace": place.namespace, "name": place.name, "uid": "u", "resourceVersion": "1"}
    return {"metadata": named | (meta or {}), **fields}


def asking(renewal: str) -> Object:
    """The metadata of a Secret that requests a token."""
    return {
        "labels": {"resources.gardener.cloud/purpose": "token-requestor"},
        "annotations": {"serviceaccount.resources.gardener.cloud/token-renew-timestamp": renewal},
    }


def good() -> dict[Place, Object]:
    """A world in which all is as it has to be."""
    manifest = EXPECTED.managed[OBJECT][0]
    statuses = {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}
    conditions = [{"type": kind, "status": status} for kind, status in statuses.items()]
    listed = [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "apps-0", "name": "o"}]
    collectable = {"labels": {"resources.gardener.cloud/garbage-collectable-reference": "true"}}
    of_service = {"labels": {POLICY_SERVICE_NAME: "s"}}
    policies = {
        place: live(place, of_service, spec={"podSelector": selector or {}})
        for place, selector in EXPECTED.policies.items()
    }
    return {
        OBJECT: {**live(OBJECT, {"annotations": {ORIGIN: f"{WORK}/mr"}}), "data": manifest["data"]}
        | {"apiVersion": "v1", "kind": "ConfigMap"},
        OWNER: live(OWNER, status={"conditions": conditions, "resources": listed}),
        USED: live(USED, collectable),
        TOKEN: live(TOKEN, asking("2026-01-01T00:00:01Z")),
        POD: live(POD, spec={"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}),
        WAITING: live(WAITING, spec=TAINTED),
        READY: live(READY, spec={}),
        FOREIGN: live(FOREIGN),
        **policies,
    }


def problems_of(objects: dict[Place, Object], users: dict[Place, str] | None = None) -> list[Problem]:
    tokens = {TOKEN: "system:serviceaccount:apps-0:a"} if users is None else users
    foreign = {FOREIGN: live(FOREIGN)}
    seen = Snapshot(objects, tokens, datetime(2026, 1, 1, tzinfo=UTC))
    state = oracles.state_problems(MODEL, EXPECTED, seen, foreign=foreign, namespaces=["apps-0"])
    return [*state, *oracles.foreign_problems(foreign, seen)]


def test_a_world_in_which_all_is_well_has_no_problems() -> None:
    assert problems_of(good()) == []


Plant = Callable[[dict[Place, Object]], None]


def changed(place: Place, *, meta: Object | None = None, **fields: Any) -> Plant:
    def change(objects: dict[Place, Object]) -> None:
        obj = copy.deepcopy(objects.get(place, live(place)))
        objects[place] = {**obj, "metadata": obj["metadata"] | (meta or {}), **fields}

    return change


def meta(place: Place, **fields: Any) -> Plant:
    return changed(place, meta=fields)


def gone(place: Place) -> Plant:
    def change(objects: dict[Place, Object]) -> None:
        del objects[place]

    return change


EXTRA = Place("target", SERVICES, "apps-1", "extra")
EXTRA_OWNER = Place("source", MANAGED_RESOURCES, WORK, "gone")
EXTRA_POLICY = Place("target", NETWORK_POLICIES, "apps-0", "ingress-to-gone-tcp-80")
OF_NO_SERVICE = {POLICY_SERVICE_NAME: "gone"}
STATUS = good()[OWNER]["status"]
FAILED = [{**STATUS["conditions"][0], "status": "False", "reason": "ApplyFailed"}, *STATUS["conditions"][1:]]


def with_status(**fields: Any) -> Plant:
    return changed(OWNER, status={**STATUS, **fields})


def due(renewal: str) -> Plant:
    return changed(TOKEN, meta=asking(renewal))


PLANTED = {
    "a foreign object is deleted": (gone(FOREIGN), "foreign", FOREIGN, "was deleted"),
    "a foreign object is recreated": (meta(FOREIGN, uid="other"), "foreign", FOREIGN, "recreated"),
    "a foreign object is changed": (meta(FOREIGN, resourceVersion="2"), "foreign", FOREIGN, "was changed"),
    "an object is missing": (gone(OBJECT), "state", OBJECT, "is missing"),
    "an object is about to go": (meta(OBJECT, deletionTimestamp="now"), "state", OBJECT, "being deleted"),
    "an object is changed": (changed(OBJECT, data={}), "state", OBJECT, "not as in its manifest"),
    "an object has no origin": (meta(OBJECT, annotations={}), "state", OBJECT, "has the origin"),
    "an object is leaked": (meta(EXTRA, annotations={ORIGIN: f"{WORK}/gone"}), "leaked", EXTRA, "left over"),
    "a deleted ManagedResource stays": (meta(EXTRA_OWNER), "leaked", EXTRA_OWNER, "is still there"),
    "a ManagedResource is missing": (gone(OWNER), "state", OWNER, "is missing"),
    "a ManagedResource is not applied": (with_status(conditions=FAILED), "state", OWNER, "ApplyFailed"),
    "an inventory is empty": (with_status(resources=[]), "state", OWNER, "lists 0"),
    "an inventory is not finished": (with_status(pendingResources=[{}]), "state", OWNER, "about to be created"),
    "a policy is missing": (gone(POLICY), "state", POLICY, "is missing"),
    "a policy selects other pods": (changed(POLICY, spec={"podSelector": {}}), "state", POLICY, "other pods"),
    "a policy is leaked": (meta(EXTRA_POLICY, labels=OF_NO_SERVICE), "leaked", EXTRA_POLICY, "left over"),
    "an object in use is collected": (gone(USED), "lost", USED, "was collected"),
    "an object in no use stays": (meta(UNUSED), "leaked", UNUSED, "was not collected"),
    "a token has no time of renewal": (due(""), "state", TOKEN, "does not report when"),
    "a time of renewal is garbled": (due("soon"), "state", TOKEN, "does not report when"),
    "a renewal is late": (due("2026-01-01T00:00:00Z"), "state", TOKEN, "should have got a new token"),
    "a taint goes too early": (changed(WAITING, spec={}), "state", WAITING, "although a driver is missing"),
    "a taint stays": (changed(READY, spec=TAINTED), "state", READY, "still has the taint"),
    "a Node is gone": (gone(READY), "state", READY, "is missing"),
    "a pod slips through": (changed(POD, spec={}), "admission", POD, "without having been changed"),
}


@pytest.mark.parametrize(("plant", "oracle", "place", "text"), PLANTED.values(), ids=PLANTED)
def test_what_is_planted_is_found(plant: Plant, oracle: str, place: Place, text: str) -> None:
    objects = good()
    plant(objects)
    found = problems_of(objects)
    assert [(problem.oracle, problem.place) for problem in found] == [(oracle, place)]
    assert text in found[0].text


@pytest.mark.parametrize("user", ["", "system:serviceaccount:apps-0:other"])
def test_a_token_that_is_not_accepted_or_another_ones_is_found(user: str) -> None:
    (found,) = problems_of(good(), {TOKEN: user})
    assert found.place == TOKEN
    assert "of system:serviceaccount:apps-0:a" in found.text


# --- calls

PATCH = {"verb": "patch", "cluster": "target", "resource": "configmaps", "namespace": "apps-0", "name": "o"}
WRITE = Write(at=10.0, user="a", status=200, **PATCH)
LEASE = replace(WRITE, resource="leases", name="lease", verb="update")


def test_a_write_in_steady_state_is_found_and_a_lease_is_none() -> None:
    assert oracles.rest_problems([LEASE], seconds=60) == []
    (found,) = oracles.rest_problems([LEASE, WRITE], seconds=60)
    assert "1 writes in 60 s" in found.text
    assert "patch configmaps apps-0/o" in found.text


def test_two_writers_are_found() -> None:
    writes = [
        replace(LEASE, at=0),
        replace(WRITE, at=1),
        replace(LEASE, at=20, user="b"),
        replace(WRITE, at=20.5),
        replace(WRITE, at=21, user="b"),
    ]
    assert oracles.writer_problems(writes, lease="lease", tolerance=1) == []
    (found,) = oracles.writer_problems([*writes, replace(WRITE, at=22)], lease="lease", tolerance=1)
    assert "by a" in found.text
    assert "2.0 s after b took the lease" in found.text


def test_writes_that_were_refused_and_leases_that_were_not_taken_do_not_count() -> None:
    writes = [
        replace(LEASE, at=0),
        replace(LEASE, at=5, user="b", status=409),
        replace(WRITE, at=7),
        replace(LEASE, at=8, user="b", name="another"),
        replace(WRITE, at=10, user="b", status=403),
    ]
    assert oracles.writer_problems(writes, lease="lease", tolerance=1) == []


# --- admissions, levels, logs


def test_an_admission_that_fails_without_an_excuse_is_found() -> None:
    failed = Admissions(succeeded=5, failures=[Failure(10.0, "failed calling webhook")])
    assert oracles.admission_problems(failed, [Excuse(9.0, 11.0, "killed")]) == []
    (found,) = oracles.admission_problems(failed, [Excuse(10.5, 11.0, "killed")])
    assert "failed calling webhook" in found.text


def test_an_admission_that_is_lost_or_slips_through_is_found_in_any_case() -> None:
    seen = Admissions(unchanged=2, lost=["no endpoints"])
    texts = [problem.text for problem in oracles.admission_problems(seen, [Excuse(0.0, 1e9, "all the time")])]
    assert texts == ["was lost: no endpoints", "2 pods were let through without having been changed"]


def test_memory_and_files_that_do_not_come_back_are_found() -> None:
    before = {"leader": Level(100, 20)}
    assert oracles.level_problems(before, {"leader": Level(150, 25)}, more_bytes=50, more_files=5) == []
    found = oracles.level_problems(before, {"leader": Level(100 + 2**21, 26)}, more_bytes=50, more_files=5)
    assert [problem.text for problem in found] == [
        "leader uses 2 MiB more memory than at the begin",
        "leader has 26 open files, at the begin 20",
    ]


def test_an_error_of_the_program_itself_is_found_in_its_log() -> None:
    fine = '{"level":"error","msg":"Reconciler error","error":"no response in time"}'
    assert oracles.log_problems("agent", fine) == []
    lost = '{"level":"error","msg":"Failed","error":"leader election lost","stacktrace":"..."}'
    assert oracles.log_problems("agent", lost) == []
    for bad in ('{"level":"error","msg":"m","stacktrace":"..."}', "Traceback (most recent call last):"):
        (found,) = oracles.log_problems("agent", f"{fine}\n{bad}\n")
        assert found.text.startswith("agent: ")
