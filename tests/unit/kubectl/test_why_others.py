"""What `why` shows of Seeds, Projects, and kinds that are kept while others refer to them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardener.api.garden import (
    BACKUP_BUCKETS,
    BACKUP_ENTRIES,
    BASTIONS,
    CLOUD_PROFILES,
    CONTROLLER_DEPLOYMENTS,
    CONTROLLER_INSTALLATIONS,
    CONTROLLER_REGISTRATIONS,
    MANAGED_SEED_SETS,
    MANAGED_SEEDS,
    NAMESPACED_CLOUD_PROFILES,
    QUOTAS,
    SEEDS,
    SHOOTS,
)
from gardener.api.garden.definitions import DEFINITIONS
from kube.objects import Key, Object
from kube.resources import SECRETS, Resource
from kubectl.errors import UserError
from kubectl.garden import kinds
from kubectl.garden.why import other, project, protected, seed
from kubectl.garden.why.finding import Finding, Level, Users, about_it, named, ordered
from kubectl.kinds import plural

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
HOUR_AGO = "2026-01-10T11:00:00Z"
ASKED = "the deletion, requested at 2026-01-10T11:00:00Z (60m ago),"


def obj(*, finalizers: Any = (), deleted: bool = False, namespace: str = "", status: Any = None, **spec: Any) -> Object:
    meta: Object = {"name": "x", "finalizers": list(finalizers)}
    if namespace:
        meta["namespace"] = namespace
    if deleted:
        meta["deletionTimestamp"] = HOUR_AGO
    return {"metadata": meta, "spec": spec, "status": status or {}}


def shown(found: Any) -> list[tuple[str, str, str]]:
    return [(each.level.value, each.about, each.text) for each in ordered(found)]


# --- Seeds


def lease(renewed: str) -> Object:
    return {"spec": {"renewTime": renewed}}


READY = {"conditions": [{"type": "GardenletReady", "status": "True"}]}
UNKNOWN = {"conditions": [{"type": "GardenletReady", "status": "Unknown", "reason": "R", "message": "m"}]}
FRESH = lease("2026-01-10T11:59:58.000000Z")


def of_seed(of: Object, **around: Any) -> list[tuple[str, str, str]]:
    return shown(seed.findings(of, seed.Around(**around), now=NOW))


def test_a_seed_that_is_well() -> None:
    heard = ("info", "heartbeat", "the last heartbeat of the gardenlet was at 2026-01-10T11:59:58Z (2s ago)")
    assert of_seed(obj(status=READY), lease=FRESH) == [heard]
    assert of_seed(obj(status=READY), is_lease_known=False) == []


def test_a_seed_that_is_lost() -> None:
    assert of_seed(obj(status=UNKNOWN), lease=lease("2026-01-10T10:00:00.000000Z")) == [
        ("problem", "condition", "GardenletReady is Unknown: R: m"),
        ("problem", "heartbeat", "the last heartbeat of the gardenlet was at 2026-01-10T10:00:00Z (120m ago)"),
    ]
    assert of_seed(obj()) == [
        (
            "problem",
            "condition",
            "no conditions yet: neither the gardenlet nor the controller manager has reported on it",
        ),
        ("problem", "heartbeat", "the gardenlet has never renewed the Lease gardener-system-seed-lease/x"),
    ]


HELD = ("gardener", "core.gardener.cloud/controllerregistration")
OF_SEED = (
    (SHOOTS, "Shoot n/a"),
    (CONTROLLER_INSTALLATIONS, "ControllerInstallation n/a"),
    (BACKUP_BUCKETS, "BackupBucket n/a"),
    (BACKUP_ENTRIES, "BackupEntry n/a"),
)


def test_who_holds_a_seed() -> None:
    users = [Users(resource, [Key("n", "a")]) for resource, _ in OF_SEED]
    blocked = of_seed(obj(finalizers=HELD, deleted=True, status=READY), lease=FRESH, users=users)[:4]
    assert blocked == [("blocked", "deletion", f"{ASKED} waits for {name}") for _, name in OF_SEED]
    (used,) = (each for each in of_seed(obj(status=READY), lease=FRESH, users=users) if each[1] == "users")
    assert used[2].startswith("in use (a deletion is refused while it has Shoots): Shoot n/a; ")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (READY, f"{ASKED} waits for the gardenlet: it removes its objects from the Seed"),
        (UNKNOWN, f"{ASKED} waits for the gardenlet, which is lost: it removes its objects from the Seed"),
    ],
)
def test_a_seed_without_users_waits_for_its_gardenlet(status: Object, text: str) -> None:
    assert of_seed(obj(finalizers=HELD, deleted=True, status=status), lease=FRESH)[0] == ("blocked", "deletion", text)


# --- Projects


def of_project(of: Object, **around: Any) -> list[tuple[str, str, str]]:
    return shown(project.findings(of, project.Around(**around), now=NOW))


NAMESPACE: Object = {"metadata": {"name": "garden-x"}}
TERMINATING: Object = {
    "metadata": {"name": "garden-x", "deletionTimestamp": HOUR_AGO},
    "status": {
        "conditions": [
            {"type": "NamespaceContentRemaining", "status": "True", "message": "Some resources are remaining: pods."},
            {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "fine"},
        ]
    },
}
STALE = {"phase": "Ready", "staleSinceTimestamp": "2026-01-01T12:00:00Z"}
NOTHING_USED = "stale since 2026-01-01T12:00:00Z (9d ago): nothing in it is used"
SHOOT_USERS = [Users(SHOOTS, [Key("garden-x", "a")])]


@pytest.mark.parametrize(
    ("status", "around", "expected"),
    [
        ({"phase": "Ready"}, {}, [("info", "phase", "Ready, namespace garden-x")]),
        (
            {"phase": "Failed"},
            {},
            [("problem", "phase", "phase Failed: the controller manager could not set it up, and retries")],
        ),
        ({}, {}, [("blocked", "phase", "phase not set: the controller manager has yet to set it up")]),
        (
            {"phase": "Ready"},
            {"namespace": None},
            [
                ("problem", "namespace", "its namespace garden-x does not exist"),
                ("info", "phase", "Ready, namespace garden-x"),
            ],
        ),
        (
            {"phase": "Ready", "lastActivityTimestamp": HOUR_AGO},
            {"users": SHOOT_USERS},
            [
                ("info", "phase", "Ready, namespace garden-x"),
                ("info", "users", "in use: Shoot garden-x/a"),
                ("info", "activity", "its last activity was at 2026-01-10T11:00:00Z (60m ago)"),
            ],
        ),
        (
            STALE,
            {},
            [
                (
                    "next",
                    "stale",
                    f"{NOTHING_USED}; not to be deleted yet",
                ),
                ("info", "phase", "Ready, namespace garden-x"),
            ],
        ),
        (
            {**STALE, "staleAutoDeleteTimestamp": "2026-01-20T12:00:00Z"},
            {},
            [
                (
                    "problem",
                    "stale",
                    f"{NOTHING_USED}; it is deleted at 2026-01-20T12:00:00Z (in 10d)",
                ),
                ("info", "phase", "Ready, namespace garden-x"),
            ],
        ),
        (
            STALE,
            {
                "namespace": {
                    "metadata": {"name": "garden-x", "annotations": {"project.gardener.cloud/skip-stale-check": "true"}}
                }
            },
            [
                ("info", "phase", "Ready, namespace garden-x"),
                (
                    "info",
                    "stale",
                    "never taken for stale: its namespace has the annotation project.gardener.cloud/skip-stale-check",
                ),
            ],
        ),
    ],
)
def test_a_project(status: Object, around: Any, expected: list[tuple[str, str, str]]) -> None:
    assert (
        of_project(obj(namespace="", status=status) | _in("garden-x"), **{"namespace": NAMESPACE, **around}) == expected
    )


def _in(namespace: str) -> Object:
    return {"spec": {"namespace": namespace}}


@pytest.mark.parametrize(
    ("around", "text"),
    [
        ({"users": SHOOT_USERS}, "waits for Shoot garden-x/a"),
        ({"namespace": TERMINATING}, "waits for the namespace garden-x: Some resources are remaining: pods."),
        ({}, "waits for the controller manager"),
    ],
)
def test_who_holds_a_project(around: Any, text: str) -> None:
    held = obj(finalizers=["gardener"], deleted=True) | _in("garden-x")
    assert of_project(held, **around) == [("blocked", "deletion", f"{ASKED} {text}")]


RBAC = "rbac.authorization.k8s.io"


def user(name: str) -> Object:
    return {"kind": "User", "apiGroup": RBAC, "name": name}


def account(name: str) -> Object:
    return {"kind": "ServiceAccount", "namespace": "garden-x", "name": name}


def role_binding(name: str, *subjects: Object, owner: str = "") -> Object:
    owners = [{"apiVersion": "v1", "kind": "Project", "name": "p", "uid": owner, "controller": True}] if owner else []
    meta = {"namespace": "garden-x", "name": name, "ownerReferences": owners}
    return {"metadata": meta, "roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": list(subjects)}


def test_rights_that_outlive_a_membership() -> None:
    of: Object = {
        "metadata": {"name": "p", "uid": "u1"},
        "spec": {"namespace": "garden-x", "owner": user("ann"), "members": [{**account("robot"), "role": "admin"}]},
        "status": {"phase": "Ready"},
    }
    bindings = [
        role_binding("own", user("ann"), account("robot"), user("system:serviceaccount:garden-x:robot")),
        role_binding("of-project", user("bob"), owner="u1"),
        role_binding("left", user("ann"), user("bob"), account("old")),
        role_binding("fine", account("old")),
        role_binding("many", *(user(f"u{number}") for number in range(9))),
    ]
    findings = of_project(of, namespace=NAMESPACE, role_bindings=bindings)
    assert findings[0] == (
        "problem",
        "rights",
        "RoleBinding garden-x/left gives ClusterRole view to User bob, ServiceAccount garden-x/old, not members",
    )
    assert findings[1][2].endswith("to User u0, User u1, User u2, User u3, User u4 and 4 more, not members")
    assert [each for each in findings[2:] if each[1] != "phase"] == [
        (
            "info",
            "rights",
            "RoleBinding garden-x/fine gives ClusterRole view to ServiceAccount garden-x/old, not members",
        ),
        (
            "info",
            "accounts",
            "2 ServiceAccounts garden-x/old, garden-x/robot: owners of their tokens keep these rights after their membership ends",
        ),
    ]
    many = [role_binding(f"b{number:02}", user("bob")) for number in range(30)]
    last = of_project(of, namespace=NAMESPACE, role_bindings=many)[20]
    assert last == ("problem", "rights", "10 more RoleBindings have subjects that are not members")


def test_what_other_projects_use() -> None:
    meta = {"namespace": "garden-y", "name": "b"}
    binding: Object = {
        "metadata": meta,
        "secretRef": {"namespace": "garden-x", "name": "cloud"},
        "quotas": [{"namespace": "garden-x", "name": "q"}, {"namespace": "garden", "name": "q"}],
    }
    identity = {"kind": "WorkloadIdentity", "apiVersion": "security.gardener.cloud/v1alpha1", "namespace": "garden-x"}
    unused: Object = {"metadata": meta, "credentialsRef": {**identity, "name": "w"}}
    shoot: Object = {"metadata": {"namespace": "garden-y", "name": "s"}, "spec": {"secretBindingName": "b"}}
    found = list(project.used_from_elsewhere("garden-x", [shoot], [binding, unused]))
    assert found == [Users(SECRETS, [Key("garden-x", "cloud")]), Users(QUOTAS, [Key("garden-x", "q")])]
    assert not list(project.used_from_elsewhere("garden-x", [], [binding]))


# --- others


def test_what_is_kept_for_others() -> None:
    users = [Users(NAMESPACED_CLOUD_PROFILES, []), Users(SHOOTS, [Key("n", "a"), Key("n", "b")])]

    def finding(of: Object, using: Any) -> Finding:
        (found,) = protected.findings(CLOUD_PROFILES, of, using, now=NOW)
        return found

    held = obj(finalizers=["gardener"], deleted=True)
    assert finding(obj(), users).text == "in use, so a deletion would wait: 2 Shoots n/a, n/b"
    assert finding(obj(), []).text == "nothing refers to it; it can be deleted"
    assert finding(held, users).text == f"{ASKED} waits for 2 Shoots n/a, n/b"
    assert finding(held, users).remedy.endswith("begin with: kubectl gardener why shoot a -n n")
    assert finding(held, []).text == f"{ASKED} is about to end: nothing refers to it any more"
    for of, text in (
        (obj(), "nothing that you may read refers to it"),
        (held, f"{ASKED} may wait for other objects: "),
    ):
        (only,) = protected.findings(CLOUD_PROFILES, of, [], is_complete=False, now=NOW)
        assert only.text.startswith(text)
    assert finding(obj(finalizers=["mine"], deleted=True), []).text == "waits for the owner of the finalizer mine"


@pytest.mark.parametrize(
    ("resource", "finalizer"),
    [
        (CONTROLLER_DEPLOYMENTS, "core.gardener.cloud/controllerdeployment"),
        (CONTROLLER_REGISTRATIONS, "core.gardener.cloud/controllerregistration"),
        (QUOTAS, "gardener"),
    ],
)
def test_the_finalizer_of_each_kind(resource: Any, finalizer: str) -> None:
    assert protected.finalizer_of(resource) == finalizer


def test_a_seed_has_the_shoots_that_come_and_those_that_leave() -> None:
    shoot = {"spec": {"seedName": "new"}, "status": {"seedName": "old"}}
    assert list(protected.seeds_of_shoot(shoot)) == [Key("", "new"), Key("", "old")]
    assert list(protected.seeds_of_backup({"spec": {}})) == []


def test_of_many_users_the_first_are_named_and_programs_get_all() -> None:
    many = [Key("n", str(number)) for number in range(7)]
    assert named(many) == "n/0, n/1, n/2, n/3, n/4 and 2 more"
    found = Finding(level=Level.INFO, about="users", text="t", users=[Users(SHOOTS, many)], at=NOW).data()
    assert found["users"][6] == {"kind": "Shoot", "namespace": "n", "name": "6"}
    assert found["time"] == "2026-01-10T12:00:00Z"
    assert [plural(kind) for kind in ("Shoot", "BackupEntry", "ExposureClass")] == [
        "Shoots",
        "BackupEntries",
        "ExposureClasses",
    ]


# --- kinds that one program works on


def of_other(resource: Resource, of: Object, **around: Any) -> list[tuple[str, str, str]]:
    return shown(other.findings(resource, of, other.Around(**around), now=NOW))


def test_what_no_gardenlet_has_begun_with() -> None:
    found = of_other(BACKUP_BUCKETS, obj(seedName="far"), seed_name="far")
    assert found == [("blocked", "change", "the gardenlet of Seed far has not started its reconciliation")]
    seen = {"observedGeneration": 1}
    changed: Object = {"metadata": {"name": "x", "generation": 2}, "status": seen}
    assert of_other(BACKUP_BUCKETS, changed)[0][2] == "a change waits for a gardenlet to take it up"
    assert of_other(MANAGED_SEED_SETS, {**changed, "spec": {"replicas": 0}})[0][2].startswith(
        "a change waits for the controller manager"
    )


def test_the_last_error_of_a_backup() -> None:
    last = {"type": "Create", "state": "Error", "lastUpdateTime": HOUR_AGO}
    broken = obj(seedName="far", status={"lastOperation": last, "lastError": {"description": "no\n quota"}})
    assert of_other(BACKUP_BUCKETS, broken) == [("problem", "operation", "Create failed for 60m: no quota")]
    going = obj(status={"lastOperation": {"type": "Create", "state": "Processing", "progress": 30}})
    assert of_other(BACKUP_ENTRIES, going) == [("next", "operation", "Create is processing, 30 %")]


def test_a_deletion_waits_for_the_gardenlet() -> None:
    leaving = obj(finalizers=["gardener", "mine"], deleted=True, seedName="far", status={"observedGeneration": 1})
    lost = {"metadata": {"name": "far"}, "status": UNKNOWN}
    assert of_other(BACKUP_BUCKETS, leaving, seed_name="far", seed=lost) == [
        ("blocked", "deletion", f"{ASKED} waits for the gardenlet of Seed far"),
        ("blocked", "deletion", "waits for the owner of the finalizer mine"),
        ("problem", "seed", "the Seed far is lost: nothing is done to it until the gardenlet is back"),
    ]


def test_conditions_that_are_good_if_they_are_false() -> None:
    types = {"Installed": "True", "Healthy": "False", "Progressing": "True", "Required": "False"}
    status = {"conditions": [{"type": name, "status": value, "reason": "R"} for name, value in types.items()]}
    assert of_other(CONTROLLER_INSTALLATIONS, obj(status=status)) == [
        ("problem", "condition", "Healthy is False: R"),
        ("next", "condition", "Progressing is True: R"),
    ]


def test_what_an_object_names_and_what_does_not_exist() -> None:
    managed = obj(namespace="garden", status={"observedGeneration": 1}, shoot={"name": "s"})
    assert other.named_by(MANAGED_SEEDS, managed) == [(SHOOTS, Key("garden", "s"))]
    found = of_other(MANAGED_SEEDS, managed, missing=[(SHOOTS, Key("garden", "s"))])
    assert ("problem", "reference", "its Shoot garden/s does not exist") in found


def test_a_set_names_the_replica_that_it_waits_for() -> None:
    pending = {"name": "x-1", "reason": "ShootReconciling", "since": HOUR_AGO, "retries": 2}
    waiting = obj(namespace="garden", replicas=3, status={"replicas": 2, "readyReplicas": 1, "pendingReplica": pending})
    assert of_other(MANAGED_SEED_SETS, waiting) == [
        (
            "blocked",
            "replica",
            "replica x-1: ShootReconciling since 2026-01-10T11:00:00Z (60m ago), tried again 2 times",
        ),
        ("problem", "replicas", "2 of 3 replicas are there, 1 are ready"),
    ]
    good = obj(namespace="garden", replicas=2, status={"replicas": 2, "readyReplicas": 2})
    assert of_other(MANAGED_SEED_SETS, good) == [("info", "replicas", "2 of 2 replicas are there, 2 are ready")]


def test_a_bastion_ends() -> None:
    status = {"observedGeneration": 1, "expirationTimestamp": "2026-01-10T13:00:00Z"}
    assert of_other(BASTIONS, obj(status=status)) == [
        ("next", "expiration", "it is deleted at 2026-01-10T13:00:00Z (in 60m)")
    ]


# --- names of kinds


def test_kinds_are_called_as_kubectl_calls_them() -> None:
    for resource in kinds.KINDS:
        for name in (resource.plural, resource.kind, *resource.short_names, f"{resource.plural}.{resource.group}"):
            assert kinds.find(name) == resource
    assert set(kinds.KINDS) >= protected.USERS.keys()
    assert kinds.find("cpfl") == CLOUD_PROFILES
    assert kinds.find("managedseedset") == kinds.find("mss") == MANAGED_SEED_SETS
    assert set(kinds.KINDS) >= {definition.resource for definition in DEFINITIONS}
    assert kinds.find("shoots.example.com") is None
    with pytest.raises(UserError, match="'pod'"):
        kinds.demand("pod")


def test_a_name_in_a_command_is_one_word_of_the_shell() -> None:
    assert about_it(SEEDS, Key("", "a; b")) == "kubectl gardener why seed 'a; b'"
