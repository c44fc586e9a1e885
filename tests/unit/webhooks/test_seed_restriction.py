"""What gardenlets may write: by the name of an object, and by what it reports."""

import base64
from dataclasses import replace
from typing import Any

import pytest

from gardener.api import garden
from gardener.garden.seed_graph import Graph, Reference
from gardener.garden.seeds import BOOTSTRAP_GROUP, bootstrap_token_id
from gardener.keys import OPERATION, SEED_USER_PREFIX
from kit.webhooks.seeds import graph_of, managed_seed, named, obj, secret_ref, shoot, templated_seed
from kube import resources as kubernetes
from kube.clock import parse_time
from kube.objects import Key, Object, key, metadata
from kube.resources import Resource
from webhooks.authorizers.seed.rules.common import Objection, Write
from webhooks.authorizers.seed.rules.restriction import objection
from webhooks.authorizers.seed.rules.uses import confirming_command, unconfirmed

DEV = "garden-dev"
NOW = parse_time("2026-01-01T00:00:00Z")
BUCKET = {"seedName": "a", "secretRef": secret_ref("backup-a")}
BASE = [
    obj(garden.PROJECTS, "dev", spec={"namespace": DEV}),
    obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("backup-a")}}),
    obj(garden.SEEDS, "b", uid="uid-b"),
    shoot("s", "a", resources=[named("named")]),
    shoot("t", "b"),
    shoot("moving", "b", former="a"),
    shoot("host", "a", namespace="garden"),
    shoot("foreign-host", "b", namespace="garden"),
    obj(garden.BACKUP_BUCKETS, "uid-a", spec=BUCKET),
    obj(garden.BACKUP_BUCKETS, "uid-b", spec={"seedName": "b", "secretRef": secret_ref("backup-b")}),
    obj(
        garden.BACKUP_ENTRIES,
        "shoot--dev--moving--uid-moving",
        DEV,
        spec={"bucketName": "uid-b", "seedName": "b"},
        status={"seedName": "a"},
    ),
]
ELSEWHERE = managed_seed("elsewhere", "host", uid="uid-elsewhere")
ELSEWHERE["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]["backup"] = {
    "secretRef": secret_ref("backup-elsewhere", DEV)
}
GARDEN = graph_of([*BASE, managed_seed("child", "host", uid="uid-child"), ELSEWHERE])


def write(verb: str, resource: Resource, new: Object, old: Object | None = None, **fields: Any) -> Write:
    """Args: new: for a deletion what is deleted."""
    is_deletion = verb == "delete"
    return Write(
        seed="a",
        user=f"{SEED_USER_PREFIX}a",
        resource=resource,
        verb=verb,
        key=key(new),
        new={} if is_deletion else new,
        old=new if is_deletion else old or {},
        now=NOW,
        **fields,
    )


def why_not(
    verb: str, resource: Resource, new: Object, old: Object | None = None, *, graph: Graph = GARDEN, **fields: Any
) -> str:
    found = objection(write(verb, resource, new, old, **fields), graph)
    return "" if found is None else found.message


def entry(name: str, bucket: str, seed: str, status: str = "") -> Object:
    reported: dict[str, Any] = {"status": {"seedName": status}} if status else {}
    return obj(garden.BACKUP_ENTRIES, name, DEV, spec={"bucketName": bucket, "seedName": seed}, **reported)


def owned(obj: Object, *owners: str, controller: bool = True) -> Object:
    obj["metadata"]["ownerReferences"] = [{"uid": each, "controller": controller} for each in owners]
    return obj


def former(bucket: Object) -> Object:
    bucket["metadata"]["ownerReferences"] = [{"kind": "Seed", "name": "a", "uid": "uid-of-former"}]
    return bucket


def installation(seed: str, deployment: str) -> Object:
    spec = {"seedRef": {"name": seed}, "deploymentRef": {"name": deployment}}
    return obj(garden.CONTROLLER_INSTALLATIONS, "i", spec=spec)


NOT_OWN = 'object does not belong to seed "a"'
MOVING = "shoot--dev--moving--uid-moving"
OWN_BACKUP = "shoot--dev--s--uid-s"


@pytest.mark.parametrize(
    ("verb", "resource", "new", "old", "expected"),
    [
        pytest.param("update", garden.SHOOTS, shoot("s", "a"), shoot("s", "a"), "", id="its Shoot"),
        pytest.param("update", garden.SHOOTS, shoot("t", "a"), shoot("t", "b"), NOT_OWN, id="it takes a Shoot"),
        pytest.param(
            "update",
            garden.SHOOTS,
            shoot("s", "a", former="b"),
            shoot("s", "a"),
            'seed "a" may not give the object to seed "b"',
            id="it gives a Shoot away",
        ),
        pytest.param(
            "update", garden.SHOOTS, shoot("s", "b"), shoot("s", "b", former="a"), "", id="it lets a Shoot go"
        ),
        pytest.param("create", garden.SHOOTS, shoot("new", "a"), None, NOT_OWN, id="a new Shoot"),
        pytest.param("delete", garden.SHOOTS, shoot("s", "a"), None, NOT_OWN, id="the end of a Shoot"),
        pytest.param(
            "update",
            garden.SHOOTS,
            shoot("s", "a", resources=[named("other")]),
            shoot("s", "a"),
            "may not refer to secrets",
            id="another Secret for a Shoot",
        ),
        pytest.param("create", garden.BACKUP_ENTRIES, entry(OWN_BACKUP, "uid-a", "a"), None, "", id="a backup"),
        pytest.param(
            "create",
            garden.BACKUP_ENTRIES,
            entry(OWN_BACKUP, "uid-b", "a"),
            None,
            "may not refer to backupbuckets",
            id="a backup in a foreign bucket",
        ),
        pytest.param(
            "create", garden.BACKUP_ENTRIES, entry(f"source-{MOVING}", "uid-b", "a"), None, "", id="a copy of a backup"
        ),
        pytest.param(
            "create",
            garden.BACKUP_ENTRIES,
            entry(f"source-{OWN_BACKUP}", "uid-b", "a"),
            None,
            "may not refer to backupbuckets",
            id="a copy from a foreign bucket",
        ),
        pytest.param(
            "update",
            garden.BACKUP_ENTRIES,
            entry(MOVING, "uid-a", "b", "a"),
            entry(MOVING, "uid-a", "a", "a"),
            "",
            id="the source lets a backup go",
        ),
        pytest.param(
            "update",
            garden.BACKUP_ENTRIES,
            entry(OWN_BACKUP, "uid-a", "b", "a"),
            entry(OWN_BACKUP, "uid-a", "a", "a"),
            'may not give the object to seed "b"',
            id="a backup without its Shoot",
        ),
        pytest.param(
            "update",
            garden.BACKUP_ENTRIES,
            entry(MOVING, "uid-a", "a"),
            entry(MOVING, "uid-b", "b"),
            "",
            id="the destination takes a backup",
        ),
        pytest.param(
            "update",
            garden.BACKUP_ENTRIES,
            entry("shoot--dev--t--uid-t", "uid-a", "a"),
            entry("shoot--dev--t--uid-t", "uid-b", "b"),
            NOT_OWN,
            id="a foreign backup",
        ),
        pytest.param(
            "create",
            garden.BACKUP_ENTRIES,
            entry("shoot--dev--t--uid-t", "uid-a", "a"),
            None,
            NOT_OWN,
            id="a backup in advance, with the name of that of a foreign Shoot",
        ),
        pytest.param(
            "create", garden.BACKUP_BUCKETS, obj(garden.BACKUP_BUCKETS, "uid-a", spec=BUCKET), None, "", id="its bucket"
        ),
        pytest.param(
            "create",
            garden.BACKUP_BUCKETS,
            obj(garden.BACKUP_BUCKETS, "uid-b", spec=BUCKET),
            None,
            NOT_OWN,
            id="a bucket of another Seed in advance",
        ),
        pytest.param(
            "delete",
            garden.BACKUP_BUCKETS,
            former(obj(garden.BACKUP_BUCKETS, "uid-of-former", spec=BUCKET)),
            None,
            NOT_OWN,
            id="the bucket of a former Seed of the same name",
        ),
        pytest.param(
            "update",
            garden.BACKUP_BUCKETS,
            obj(
                garden.BACKUP_BUCKETS, "uid-a", spec=BUCKET, status={"generatedSecretRef": secret_ref("default-domain")}
            ),
            obj(garden.BACKUP_BUCKETS, "uid-a", spec=BUCKET),
            'may not refer to secrets "garden/default-domain"',
            id="a bucket with a Secret that was not generated for it",
        ),
        pytest.param(
            "create",
            garden.BACKUP_BUCKETS,
            obj(garden.BACKUP_BUCKETS, "uid-a", spec={**BUCKET, "secretRef": secret_ref("backup-b")}),
            None,
            'may not refer to secrets "garden/backup-b"',
            id="a bucket with foreign credentials",
        ),
        pytest.param(
            "update",
            garden.CONTROLLER_INSTALLATIONS,
            installation("a", "other"),
            installation("a", "d"),
            "may not refer to controllerdeployments",
            id="another chart",
        ),
        pytest.param(
            "update",
            garden.CONTROLLER_INSTALLATIONS,
            installation("b", "d"),
            installation("a", "d"),
            'may not give the object to seed "b"',
            id="an extension for another Seed",
        ),
        pytest.param("create", garden.SEEDS, obj(garden.SEEDS, "a"), None, "", id="its Seed"),
        pytest.param("create", garden.SEEDS, obj(garden.SEEDS, "c"), None, NOT_OWN, id="another Seed"),
        pytest.param(
            "create",
            garden.SEEDS,
            obj(garden.SEEDS, "a", spec={"backup": {"secretRef": secret_ref("key", DEV)}}),
            None,
            f'Secret "{DEV}/key" is not confirmed for seed "a"',
            id="its Seed with credentials of a Project",
        ),
        pytest.param(
            "create",
            garden.SEEDS,
            obj(garden.SEEDS, "a", spec={"backup": {"secretRef": secret_ref("foreign-host.kubeconfig")}}),
            None,
            'Secret "garden/foreign-host.kubeconfig" is not confirmed for seed "a"',
            id="its Seed with credentials of a foreign Shoot in garden",
        ),
        pytest.param(
            "create",
            garden.SEEDS,
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("backup-b")}}),
            None,
            'Secret "garden/backup-b" is not confirmed for seed "a"',
            id="its Seed, created again, with credentials of another Seed",
        ),
        pytest.param(
            "create",
            garden.SEEDS,
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("key", "seed-a")}}),
            None,
            "",
            id="its Seed with credentials of its own namespace",
        ),
        pytest.param(
            "update",
            garden.SEEDS,
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("backup-b")}}),
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("backup-a")}}),
            'Secret "garden/backup-b" is not confirmed for seed "a"',
            id="its Seed takes the credentials of another Seed",
        ),
        pytest.param(
            "create",
            garden.SEEDS,
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("generated-bucket-uid-b")}}),
            None,
            "is not confirmed for seed",
            id="its Seed with generated credentials of another Seed",
        ),
        pytest.param(
            "update",
            garden.SEEDS,
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("new")}}),
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("backup-a")}}),
            "is not confirmed for seed",
            id="its Seed with new credentials",
        ),
        pytest.param("delete", garden.SEEDS, obj(garden.SEEDS, "a"), None, NOT_OWN, id="the end of its Seed"),
        pytest.param("delete", garden.SEEDS, obj(garden.SEEDS, "b"), None, NOT_OWN, id="the end of another Seed"),
        pytest.param(
            "delete",
            garden.SEEDS,
            obj(garden.SEEDS, "child"),
            None,
            "object can only be deleted if corresponding ManagedSeed has a deletion timestamp",
            id="the end of the Seed of a ManagedSeed that stays",
        ),
        pytest.param(
            "create",
            kubernetes.SECRETS,
            owned(obj(kubernetes.SECRETS, "backup-child", "garden"), "uid-child"),
            None,
            "",
            id="credentials for backups of a ManagedSeed",
        ),
        pytest.param(
            "create",
            kubernetes.SECRETS,
            obj(kubernetes.SECRETS, "backup-child", "garden"),
            None,
            "not owned by the ManagedSeed",
            id="the same as if an operator had made them",
        ),
        pytest.param(
            "update",
            kubernetes.SECRETS,
            owned(obj(kubernetes.SECRETS, "backup-child", "garden"), "uid-child"),
            obj(kubernetes.SECRETS, "backup-child", "garden"),
            "not owned by the ManagedSeed",
            id="those of an operator",
        ),
        pytest.param(
            "update",
            kubernetes.SECRETS,
            owned(obj(kubernetes.SECRETS, "backup-child", "garden"), "uid-child"),
            owned(obj(kubernetes.SECRETS, "backup-child", "garden"), "uid-child", controller=False),
            "not owned by the ManagedSeed",
            id="those of an operator, which go with the ManagedSeed",
        ),
        pytest.param(
            "update",
            kubernetes.SECRETS,
            owned(obj(kubernetes.SECRETS, "backup-elsewhere", DEV), "uid-elsewhere"),
            obj(kubernetes.SECRETS, "backup-elsewhere", DEV),
            "not owned by the ManagedSeed",
            id="those of an operator in another namespace",
        ),
        pytest.param(
            "delete",
            kubernetes.SECRETS,
            obj(kubernetes.SECRETS, "backup-child", "garden"),
            None,
            "not owned by the ManagedSeed",
            id="the end of those of an operator",
        ),
        pytest.param(
            "create",
            kubernetes.SECRETS,
            obj(kubernetes.SECRETS, "any", "garden"),
            None,
            NOT_OWN,
            id="another Secret in garden",
        ),
        pytest.param(
            "update",
            kubernetes.SECRETS,
            obj(kubernetes.SECRETS, "named", DEV, data={"a": "Yg=="}),
            obj(kubernetes.SECRETS, "named", DEV, data={"a": "YQ=="}),
            NOT_OWN,
            id="a Secret that a Shoot names",
        ),
    ],
)
def test_a_write(verb: str, resource: Resource, new: Object, old: Object | None, expected: str) -> None:
    found = why_not(verb, resource, new, old)
    assert expected in found if expected else not found


# --- references of Seeds


SECRET = secret_ref("new")
IDENTITY = {"kind": "WorkloadIdentity", "apiVersion": "security.gardener.cloud/v1alpha1", **SECRET}
PLACES = {
    "backup": {"backup": {"secretRef": SECRET}},
    "backup by an identity": {"backup": {"credentialsRef": IDENTITY}},
    "dns": {"dns": {"provider": {"secretRef": SECRET}}},
    "dns by an identity": {"dns": {"provider": {"credentialsRef": IDENTITY}}},
    "internal domain": {"dns": {"internal": {"credentialsRef": {"kind": "Secret", **SECRET}}}},
    "default domains": {"dns": {"defaults": [{"domain": "d"}, {"credentialsRef": {"kind": "Secret", **SECRET}}]}},
    "a resource": {"resources": [{"name": "r", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "new"}}]},
    "a ConfigMap": {
        "resources": [{"name": "r", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "new"}}]
    },
}


def holder(resource: Resource, name: str, seed_spec: Object) -> Object:
    """A Seed, or an object with the spec of one."""
    config = {"seedConfig": {"spec": seed_spec}}
    match resource:
        case garden.SEEDS:
            return obj(resource, name, uid=f"uid-{name}", spec=seed_spec)
        case garden.GARDENLETS:
            return obj(resource, name, "garden", spec={"config": config})
        case _:
            return obj(resource, name, "garden", spec={"shoot": {"name": "host"}, "gardenlet": {"config": config}})


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("resource", [garden.SEEDS, garden.GARDENLETS], ids=["Seed", "Gardenlet"])
def test_a_gardenlet_enters_only_what_others_have_confirmed_for_its_seed(resource: Resource, place: Object) -> None:
    new, empty = holder(resource, "a", place), holder(resource, "a", {})
    for verb, old in (("create", {}), ("update", empty)):
        requested = write(verb, resource, new, old)
        (used,) = unconfirmed(requested, GARDEN)
        refused = objection(requested, GARDEN)
        assert refused is not None
        assert f"`{confirming_command(used, 'a')}`" in refused.message
        assert objection(replace(requested, confirmed=[used]), GARDEN) is None
        for by in (garden.SEEDS, garden.MANAGED_SEEDS, garden.GARDENLETS):
            known = graph_of([*(each for each in BASE if key(each) != Key("", "a")), holder(by, "a", place)])
            assert objection(requested, known) is None, by.kind
            assert not unconfirmed(requested, known)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_the_parent_of_a_managed_seed_enters_nothing(place: Object) -> None:
    template = {"shoot": {"name": "host"}, "seedTemplate": {"spec": place}}
    for new in (
        holder(garden.MANAGED_SEEDS, "child", place),
        obj(garden.MANAGED_SEEDS, "child", "garden", spec=template),
    ):
        old = holder(garden.MANAGED_SEEDS, "child", {})
        assert "may not refer to" in why_not("update", garden.MANAGED_SEEDS, new, old)
        assert not why_not("update", garden.MANAGED_SEEDS, new, new)
        assert not unconfirmed(write("update", garden.MANAGED_SEEDS, new, old), GARDEN)


def test_the_parent_of_a_managed_seed_does_not_ask_for_credentials_of_the_child() -> None:
    old, new = managed_seed("child", "host"), managed_seed("child", "host", annotations={OPERATION: "renew-kubeconfig"})
    assert "may not request renew-kubeconfig" in why_not("update", garden.MANAGED_SEEDS, new, old)
    assert not why_not("update", garden.MANAGED_SEEDS, old, new)
    moved = managed_seed("child", "s")
    assert "another Shoot" in why_not("update", garden.MANAGED_SEEDS, moved, old)


@pytest.mark.parametrize(
    "name",
    [
        "workload-identity-issuer",
        "gardener-resource-manager-ca",
        "gardener-resource-manager-server",
        "garden-gardener-resource-manager-ca",
    ],
)
def test_secrets_of_the_garden_itself_are_never_those_of_a_seed(name: str) -> None:
    reference = secret_ref(name)
    seed = obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": reference}})
    used = Reference(kubernetes.SECRETS, Key("garden", name))
    requested = replace(write("create", garden.SEEDS, seed), confirmed=[used])
    assert objection(requested, GARDEN) is not None
    binding = obj(garden.SECRET_BINDINGS, "b", DEV, secretRef=reference)
    graph = graph_of([*(each for each in BASE if key(each) != Key("", "a")), seed, binding])
    assert not graph.uses("a", *used)


@pytest.mark.parametrize("resource", [kubernetes.SECRETS, kubernetes.CONFIG_MAPS], ids=["Secret", "ConfigMap"])
def test_a_gardenlet_confirms_nothing(resource: Resource) -> None:
    plain = obj(resource, "s.ca-cluster", DEV)
    confirmed = obj(resource, "s.ca-cluster", DEV)
    confirmed["metadata"]["labels"] = {"usable-by.seed.gardener.cloud/b": "true"}
    assert "have an operator" in why_not("create", resource, confirmed)
    assert "have an operator" in why_not("update", resource, confirmed, plain)
    assert not why_not("update", resource, plain, confirmed)


# --- the status of a Shoot


def reported(**status: str) -> Object:
    return {**shoot("s", "a"), "status": status}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({}, {"technicalID": "shoot--dev--s", "uid": "uid-s"}, ""),
        ({}, {"technicalID": "", "uid": ""}, ""),
        ({}, {"technicalID": "shoot--dev--s", "clusterIdentity": "shoot--dev--s-uid-s-garden"}, ""),
        ({"technicalID": "old", "uid": "old"}, {"technicalID": "old", "uid": "old"}, ""),
        ({}, {"technicalID": "shoot--dev--t"}, "status.technicalID must be"),
        ({}, {"technicalID": "shoot--other--s"}, "status.technicalID must be"),
        ({}, {"technicalID": "garden"}, "status.technicalID must be"),
        ({}, {"uid": "uid-t"}, "status.uid must be metadata.uid"),
        ({}, {"technicalID": "shoot--dev--s", "clusterIdentity": "shoot--dev--t-uid-t-garden"}, "clusterIdentity must"),
        ({"uid": "uid-s"}, {"uid": "uid-t"}, "status.uid may not change"),
        ({"technicalID": "shoot--dev--s"}, {}, "status.technicalID may not change"),
    ],
)
def test_the_status_of_a_shoot_names_no_other(before: Object, now: Object, expected: str) -> None:
    found = why_not("update", garden.SHOOTS, reported(**now), reported(**before), subresource="status")
    assert expected in found if expected else not found


def test_the_status_of_a_shoot_gives_no_rights() -> None:
    """Neither to the backups nor to the keys of another one."""
    stolen = {**shoot("s", "a"), "status": {"technicalID": "shoot--dev--t", "uid": "uid-t"}}
    graph = graph_of([*(each for each in BASE if key(each) != Key(DEV, "s")), stolen])
    assert graph.is_backup("a", Key(DEV, OWN_BACKUP))
    assert graph.is_backup("a", Key(DEV, f"source-{OWN_BACKUP}"))
    assert graph.has_keys("a", "dev--uid-s")
    for name in ("shoot--dev--t--uid-t", "shoot--dev--s--uid-t", "shoot--dev--t--uid-s", "shoot--x--s--uid-s"):
        assert not graph.is_backup("a", Key(DEV, name)), name
    assert not graph.has_keys("a", "dev--uid-t")


# --- Seeds of ManagedSeeds


def test_the_seed_of_a_managed_seed_that_goes_may_go() -> None:
    graph = graph_of([*BASE, managed_seed("child", "host", deletionTimestamp="2026-01-01T00:00:00Z")])
    assert not why_not("delete", garden.SEEDS, obj(garden.SEEDS, "child"), graph=graph)


@pytest.mark.parametrize(
    ("name", "host", "secret", "expected"),
    [
        ("templated", "host", "of-template", ""),
        ("templated", "host", "other", "may not refer to secrets"),
        ("templated", "foreign-host", "of-template", NOT_OWN),
        ("another", "host", "of-template", NOT_OWN),
    ],
)
def test_a_seed_is_made_from_the_template_of_its_managed_seed(name: str, host: str, secret: str, expected: str) -> None:
    template = {"dns": {"provider": {"type": "t", "secretRef": secret_ref("of-template")}}}
    graph = graph_of([*BASE, templated_seed("templated", host, template)])
    seed = obj(garden.SEEDS, name, spec={"dns": {"provider": {"type": "t", "secretRef": secret_ref(secret)}}})
    found = why_not("create", garden.SEEDS, seed, graph=graph)
    assert expected in found if expected else not found


# --- Secrets that Kubernetes fills


def test_no_secret_gets_the_token_of_a_service_account() -> None:
    """Not even one with the name and the content of a bootstrap token."""
    kind = "kubernetes.io/service-account-token"
    for where in (("s.monitoring", DEV), ("backup-child", "garden"), ("generated-bucket-uid-a", "garden")):
        assert kind in why_not("create", kubernetes.SECRETS, obj(kubernetes.SECRETS, *where, type=kind)), where
    assert kind in why_not("create", kubernetes.SECRETS, {**token(), "type": kind})
    assert "must have the type" in why_not("create", kubernetes.SECRETS, {**token(), "type": "Opaque"})
    assert not why_not("create", kubernetes.SECRETS, obj(kubernetes.SECRETS, "of-account", "seed-a", type=kind))


# --- bootstrap credentials


def token(**changes: str) -> Object:
    identity = bootstrap_token_id(Key("garden", "child"))
    data = {
        "token-id": identity,
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "expiration": "2026-01-02T00:00:00Z",
        "auth-extra-groups": f"{BOOTSTRAP_GROUP},{BOOTSTRAP_GROUP}:seed:child:by:a",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}
    kind = "bootstrap.kubernetes.io/token"
    return obj(kubernetes.SECRETS, f"bootstrap-token-{identity}", "kube-system", type=kind, data=encoded)


ACCOUNT = obj(kubernetes.SERVICE_ACCOUNTS, "gardenlet-bootstrap-child", "garden")


def binding(
    role: str = "gardener.cloud:system:seed-bootstrapper", account: str = "gardenlet-bootstrap-child"
) -> Object:
    name = "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-child"
    subject = {"kind": "ServiceAccount", "namespace": "garden", "name": account}
    reference = {"kind": "ClusterRole", "name": role}
    return obj(kubernetes.CLUSTER_ROLE_BINDINGS, name, roleRef=reference, subjects=[subject])


def credentials() -> list[tuple[Resource, Object]]:
    return [
        (kubernetes.SECRETS, token()),
        (kubernetes.SERVICE_ACCOUNTS, ACCOUNT),
        (kubernetes.CLUSTER_ROLE_BINDINGS, binding()),
    ]


@pytest.mark.parametrize(
    ("seed", "operation", "permitted"),
    [
        (None, "", True),
        ({}, "", False),
        ({"clientCertificateExpirationTimestamp": "2025-12-31T00:00:00Z"}, "", True),
        ({"clientCertificateExpirationTimestamp": "2026-02-01T00:00:00Z"}, "", False),
        ({"clientCertificateExpirationTimestamp": "2026-02-01T00:00:00Z"}, "renew-kubeconfig", True),
    ],
)
def test_there_are_credentials_for_a_child_while_it_has_none(
    seed: Object | None, operation: str, permitted: bool
) -> None:
    requested = {"annotations": {OPERATION: operation}} if operation else {}
    present = [] if seed is None else [obj(garden.SEEDS, "child", status=seed)]
    graph = graph_of([*BASE, managed_seed("child", "host", **requested), *present])
    for resource, new in credentials():
        found = objection(write("create", resource, new), graph)
        already = Objection("managed seed garden/child is already bootstrapped", 400)
        assert found == (None if permitted else already), metadata(new)["name"]
        assert objection(write("delete", resource, new), graph) is None


def test_credentials_for_the_child_of_another_seed_are_refused() -> None:
    graph = graph_of([*BASE, managed_seed("child", "foreign-host")])
    for resource, new in credentials():
        for verb in ("create", "delete"):
            assert why_not(verb, resource, new, graph=graph) == NOT_OWN


@pytest.mark.parametrize(
    ("resource", "new", "expected"),
    [
        (kubernetes.SECRETS, token(usage_bootstrap_signing="false"), "usage-bootstrap-signing"),
        (kubernetes.SECRETS, token(usage_bootstrap_authentication=""), "usage-bootstrap-authentication"),
        *(
            (kubernetes.SECRETS, token(auth_extra_groups=groups), "must have other auth-extra-groups")
            for groups in (
                "",
                "system:bootstrappers:nodes",
                BOOTSTRAP_GROUP,
                f"{BOOTSTRAP_GROUP},{BOOTSTRAP_GROUP}:seed:child",
                f"{BOOTSTRAP_GROUP},{BOOTSTRAP_GROUP}:seed:b:by:a",
                f"{BOOTSTRAP_GROUP},{BOOTSTRAP_GROUP}:seed:child:by:b",
                f"{BOOTSTRAP_GROUP},{BOOTSTRAP_GROUP}:seed:child:by:a,{BOOTSTRAP_GROUP}:seed:b",
            )
        ),
        *((kubernetes.SECRETS, token(expiration=each), "expiration") for each in ("", "2026-01-03T00:00:00Z", "x")),
        (kubernetes.SECRETS, token(token_id="abcdef"), "the id that is in its name"),
        (kubernetes.SECRETS, token(), ""),
        (kubernetes.CLUSTER_ROLE_BINDINGS, binding(role="cluster-admin"), "the role must be"),
        (kubernetes.CLUSTER_ROLE_BINDINGS, binding(account="other"), "only subject"),
    ],
)
def test_credentials_for_a_child_are_good_for_nothing_else(resource: Resource, new: Object, expected: str) -> None:
    found = why_not("create", resource, new)
    assert expected in found if expected else not found


def test_the_bootstrap_token_of_an_operator_is_not_changed() -> None:
    for groups in (BOOTSTRAP_GROUP, f"{BOOTSTRAP_GROUP},{BOOTSTRAP_GROUP}:seed:child"):
        found = why_not("update", kubernetes.SECRETS, token(), token(auth_extra_groups=groups))
        assert "has other auth-extra-groups" in found
    assert not why_not("update", kubernetes.SECRETS, token(), token())


def test_the_own_token_is_valid_for_the_own_seed_alone() -> None:
    identity = bootstrap_token_id(Key("garden", "a"))
    for seed, expected in (("a", ""), ("b", "must have other auth-extra-groups")):
        groups = f"{BOOTSTRAP_GROUP},{BOOTSTRAP_GROUP}:seed:{seed}:by:a"
        own = token(token_id=identity, auth_extra_groups=groups)
        own["metadata"]["name"] = f"bootstrap-token-{identity}"
        assert expected in why_not("create", kubernetes.SECRETS, own)


def test_tokens_of_bootstrap_accounts_are_short() -> None:
    where = obj(kubernetes.SERVICE_ACCOUNTS, "gardenlet-bootstrap-child", "garden")
    for seconds, expected in ((600, ""), (86400, "expirationSeconds"), (None, "expirationSeconds")):
        requested = {**where, "spec": {"expirationSeconds": seconds}}
        found = why_not("create", kubernetes.SERVICE_ACCOUNTS, requested, subresource="token")
        assert expected in found if expected else not found
