"""What gardenlets may write: by the name of an object, and by what it says."""

import base64
from typing import Any

import pytest

from gardener.api import garden
from gardener.garden.seed_graph import Graph
from gardener.garden.seeds import BOOTSTRAP_GROUP, bootstrap_token_id
from gardener.keys import OPERATION, SEED_USER_PREFIX
from kit.webhooks.seeds import graph_of, managed_seed, named, obj, secret_ref, shoot, templated_seed
from kube import resources as kubernetes
from kube.clock import parse_time
from kube.objects import Key, Object, key, metadata
from kube.resources import Resource
from webhooks.authorizers.seed.rules.restriction import Objection, Write, objection

DEV = "garden-dev"
NOW = parse_time("2026-01-01T00:00:00Z")
BUCKET = {"seedName": "a", "secretRef": secret_ref("backup-a")}
BASE = [
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
GARDEN = graph_of([*BASE, managed_seed("child", "host")])


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
            "may not make the object use secrets",
            id="another Secret for a Shoot",
        ),
        pytest.param("create", garden.BACKUP_ENTRIES, entry(OWN_BACKUP, "uid-a", "a"), None, "", id="a backup"),
        pytest.param(
            "create",
            garden.BACKUP_ENTRIES,
            entry(OWN_BACKUP, "uid-b", "a"),
            None,
            "may not make the object use backupbuckets",
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
            "may not make the object use backupbuckets",
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
            "create", garden.BACKUP_BUCKETS, obj(garden.BACKUP_BUCKETS, "x", spec=BUCKET), None, "", id="a bucket"
        ),
        pytest.param(
            "create",
            garden.BACKUP_BUCKETS,
            obj(garden.BACKUP_BUCKETS, "x", spec={**BUCKET, "secretRef": secret_ref("backup-b")}),
            None,
            'may not make the object use secrets "garden/backup-b"',
            id="a bucket with foreign credentials",
        ),
        pytest.param(
            "update",
            garden.CONTROLLER_INSTALLATIONS,
            installation("a", "other"),
            installation("a", "d"),
            "may not make the object use controllerdeployments",
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
            "ask an operator to enter it",
            id="its Seed with credentials of a Project",
        ),
        pytest.param(
            "create",
            garden.SEEDS,
            obj(garden.SEEDS, "a", spec={"backup": {"secretRef": secret_ref("foreign-host.kubeconfig")}}),
            None,
            "ask an operator to enter it",
            id="its Seed with credentials of a foreign Shoot in garden",
        ),
        pytest.param(
            "create",
            garden.SEEDS,
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("backup-b")}}),
            None,
            "",
            id="its Seed with credentials that another Seed has, too",
        ),
        pytest.param(
            "update",
            garden.SEEDS,
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("backup-b")}}),
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("backup-a")}}),
            'may not make the object use secrets "garden/backup-b"',
            id="its Seed takes the credentials of another Seed",
        ),
        pytest.param(
            "create",
            garden.SEEDS,
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("generated-bucket-uid-b")}}),
            None,
            "may not make the object use secrets",
            id="its Seed with generated credentials of another Seed",
        ),
        pytest.param(
            "update",
            garden.SEEDS,
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("new")}}),
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("backup-a")}}),
            "",
            id="its Seed with new credentials",
        ),
        pytest.param("delete", garden.SEEDS, obj(garden.SEEDS, "a"), None, "", id="the end of its Seed"),
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
            obj(kubernetes.SECRETS, "backup-child", "garden"),
            None,
            "",
            id="credentials for backups of a ManagedSeed",
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
            "may only change the metadata",
            id="the content of a Secret that a Shoot names",
        ),
    ],
)
def test_a_write(verb: str, resource: Resource, new: Object, old: Object | None, expected: str) -> None:
    found = why_not(verb, resource, new, old)
    assert expected in found if expected else not found


def test_the_seed_of_a_managed_seed_that_goes_may_go() -> None:
    graph = graph_of([*BASE, managed_seed("child", "host", deletionTimestamp="2026-01-01T00:00:00Z")])
    assert not why_not("delete", garden.SEEDS, obj(garden.SEEDS, "child"), graph=graph)


@pytest.mark.parametrize(
    ("name", "host", "secret", "expected"),
    [
        ("templated", "host", "of-template", ""),
        ("templated", "host", "other", "may not make the object use secrets"),
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


# --- bootstrap credentials


def token(**changes: str) -> Object:
    identity = bootstrap_token_id(Key("garden", "child"))
    data = {
        "token-id": identity,
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}
    return obj(kubernetes.SECRETS, f"bootstrap-token-{identity}", "kube-system", data=encoded)


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
    asked = {"annotations": {OPERATION: operation}} if operation else {}
    present = [] if seed is None else [obj(garden.SEEDS, "child", status=seed)]
    graph = graph_of([*BASE, managed_seed("child", "host", **asked), *present])
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
        (kubernetes.SECRETS, token(auth_extra_groups="system:bootstrappers:nodes"), "extra group"),
        (kubernetes.SECRETS, token(token_id="abcdef"), "the id that is in its name"),
        (kubernetes.SECRETS, token(auth_extra_groups=BOOTSTRAP_GROUP), ""),
        (kubernetes.CLUSTER_ROLE_BINDINGS, binding(role="cluster-admin"), "the role must be"),
        (kubernetes.CLUSTER_ROLE_BINDINGS, binding(account="other"), "only subject"),
    ],
)
def test_credentials_for_a_child_are_good_for_nothing_else(resource: Resource, new: Object, expected: str) -> None:
    found = why_not("create", resource, new)
    assert expected in found if expected else not found
