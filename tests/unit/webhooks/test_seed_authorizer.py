"""Which requests of gardenlets are about what belongs to their Seeds: the graph, and the rights that follow from it."""

import itertools
import time
from typing import Any

import pytest

from gardener.api import garden
from gardener.garden.seed_graph import KINDS, Reference
from gardener.garden.seeds import bootstrap_token_id
from gardener.keys import SEED_LABEL_PREFIX, SEED_USER_PREFIX, SEEDS_GROUP
from gardener.rights.gardenlet import TABLE
from gardener.rights.requests import Attributes, Requirement, Selector
from kit.signing.requests import CLIENT, csr_object, signing_request
from kit.webhooks.seeds import graph_of, managed_seed, named, obj, secret_ref, shoot, templated_seed
from kube import resources as kubernetes
from kube.objects import Key, Object
from kube.resources import CERTIFICATE_SIGNING_REQUESTS
from webhooks.authorizers.decisions import Effect
from webhooks.authorizers.seed.graph import VIEWS, of_signing_request
from webhooks.authorizers.seed.rules.authorize import authorize

DEV = "garden-dev"


GARDEN = graph_of(
    [
        obj(
            garden.SEEDS,
            "a",
            uid="uid-a",
            spec={
                "backup": {"secretRef": secret_ref("backup-a")},
                "dns": {"provider": {"secretRef": secret_ref("dns")}},
            },
        ),
        obj(garden.SEEDS, "b", uid="uid-b", spec={"backup": {"secretRef": secret_ref("backup-b")}}),
        shoot("s", "a", resources=[named("named")], exposureClassName="internal"),
        shoot("t", "b", binding="other"),
        shoot("moving", "b", former="a", binding="other"),
        shoot("host", "a", namespace="garden"),
        shoot("profiled", "a", namespace="garden-p", cloudProfile={"kind": "NamespacedCloudProfile", "name": "own"}),
        obj(garden.SECRET_BINDINGS, "b", DEV, secretRef=secret_ref("key", "garden-keys")),
        obj(garden.SECRET_BINDINGS, "other", DEV, secretRef=secret_ref("other", DEV)),
        obj(
            garden.CREDENTIALS_BINDINGS,
            "c",
            DEV,
            credentialsRef={
                "apiVersion": "security.gardener.cloud/v1alpha1",
                "kind": "WorkloadIdentity",
                **secret_ref("wi", DEV),
            },
        ),
        shoot("identified", "b", binding="", credentialsBindingName="c"),
        obj(
            garden.NAMESPACED_CLOUD_PROFILES,
            "own",
            "garden-p",
            spec={"parent": {"kind": "CloudProfile", "name": "base"}},
        ),
        obj(garden.PROJECTS, "dev", spec={"namespace": DEV}),
        obj(garden.PROJECTS, "empty", spec={"namespace": "garden-empty"}),
        obj(
            garden.BACKUP_BUCKETS,
            "uid-b",
            spec={"seedName": "b", "secretRef": secret_ref("backup-b")},
            status={"generatedSecretRef": secret_ref("generated")},
        ),
        obj(garden.BACKUP_BUCKETS, "shared", spec={"seedName": "b", "secretRef": secret_ref("copied")}),
        obj(garden.BACKUP_ENTRIES, "source-x", DEV, spec={"bucketName": "shared", "seedName": "a"}),
        obj(
            garden.BACKUP_ENTRIES,
            "kept",
            "garden-gone",
            spec={"bucketName": "x", "seedName": "b"},
            status={"seedName": "a"},
        ),
        obj(garden.BASTIONS, "bastion", DEV, spec={"seedName": "a", "shootRef": {"name": "s"}}),
        obj(garden.CONTROLLER_INSTALLATIONS, "i", spec={"seedRef": {"name": "a"}, "deploymentRef": {"name": "d"}}),
        managed_seed("child", "host"),
        templated_seed("templated", "host", {}),
        csr_object(signing_request(f"{SEED_USER_PREFIX}a", organizations=[SEEDS_GROUP]), name="csr-a", signer=CLIENT),
    ]
)
TOKEN = f"bootstrap-token-{bootstrap_token_id(Key('garden', 'child'))}"
ACCOUNT = "gardenlet-bootstrap-child"
BINDING = f"gardener.cloud:system:seed-bootstrapper:garden:{ACCOUNT}"


def decided(seed: str, verb: str, what: str, where: str = "", **fields: Any) -> Effect:
    """Args: what: resource, perhaps with a group after a dot, subresource, and name after a space."""
    kind, _, name = what.partition(" ")
    kind, _, subresource = kind.partition("/")
    kinds = {(each.resource.group, each.resource.plural) for each in TABLE.rights}
    (resource,) = [key for key in kinds if key[1] == kind and key[0] != "events.k8s.io"]
    asked = Attributes(
        user=f"{SEED_USER_PREFIX}{seed}",
        groups=[SEEDS_GROUP],
        verb=verb,
        group=resource[0],
        resource=kind,
        subresource=subresource,
        namespace=where,
        name=name,
        **fields,
    )
    return authorize(asked, GARDEN).effect


def allowed(seed: str, verb: str, what: str, where: str = "", **fields: Any) -> bool:
    return decided(seed, verb, what, where, **fields) is Effect.ALLOW


@pytest.mark.parametrize(
    ("what", "where", "seeds"),
    [
        pytest.param("secrets named", DEV, "a", id="a Secret that a Shoot names"),
        pytest.param("secrets key", "garden-keys", "a", id="credentials by a SecretBinding, of another namespace"),
        pytest.param("secrets other", DEV, "ab", id="credentials of a Shoot that moves"),
        pytest.param("secrets nothing", DEV, "", id="a Secret of the namespace that no Shoot uses"),
        pytest.param("workloadidentities wi", DEV, "b", id="a WorkloadIdentity by a CredentialsBinding"),
        pytest.param("credentialsbindings c", DEV, "b", id="a CredentialsBinding"),
        pytest.param("secretbindings b", DEV, "a", id="a SecretBinding"),
        pytest.param("cloudprofiles base", "", "a", id="the parent of a profile of a Project"),
        pytest.param("namespacedcloudprofiles own", "garden-p", "a", id="a profile of a Project"),
        pytest.param("projects dev", "", "ab", id="a Project with Shoots"),
        pytest.param("projects empty", "", "", id="a Project without"),
        pytest.param("namespaces garden-gone", "", "ab", id="the namespace of former Shoots"),
        pytest.param("namespaces garden-empty", "", "", id="a namespace without Shoots"),
        pytest.param("namespaces seed-a", "", "a", id="the namespace of the Seed"),
        pytest.param("secrets backup-a", "garden", "a", id="credentials for the backups of a Seed"),
        pytest.param("secrets dns", "garden", "a", id="credentials for the DNS of a Seed"),
        pytest.param("secrets generated", "garden", "b", id="generated credentials of a bucket"),
        pytest.param("secrets copied", "garden", "ab", id="credentials of a bucket from which backups are copied"),
        pytest.param("backupbuckets shared", "", "ab", id="this bucket"),
        pytest.param("backupbuckets uid-a", "", "a", id="the bucket of a Seed, which does not exist yet"),
        pytest.param("backupbuckets uid-b", "", "b", id="the bucket of a Seed"),
        pytest.param("backupentries kept", "garden-gone", "ab", id="backups that move"),
        pytest.param("backupentries shoot--dev--s--uid-s", DEV, "a", id="backups of a Shoot, which are not there yet"),
        pytest.param("bastions bastion", DEV, "a", id="a Bastion"),
        pytest.param("controllerdeployments d", "", "a", id="the chart of an extension"),
        pytest.param("controllerinstallations i", "", "a", id="an extension"),
        pytest.param("secrets backup-child", "garden", "a", id="credentials for backups of a ManagedSeed"),
        pytest.param(f"secrets {TOKEN}", "kube-system", "a", id="the bootstrap token of a ManagedSeed"),
        pytest.param("secrets bootstrap-token-abcdef", "kube-system", "", id="another bootstrap token"),
        pytest.param(f"serviceaccounts {ACCOUNT}", "garden", "a", id="the bootstrap account of a ManagedSeed"),
        pytest.param(f"clusterrolebindings {BINDING}", "", "a", id="its binding"),
        pytest.param("clusterrolebindings cluster-admin", "", "", id="another binding"),
        pytest.param("secrets dev--uid-s", "gardener-system-shoot-issuer", "a", id="public keys of a Shoot"),
        pytest.param("secrets dev--uid-t", "gardener-system-shoot-issuer", "b", id="public keys of another"),
        pytest.param("configmaps cluster-identity", "kube-system", "abc", id="the name of the garden"),
        pytest.param("configmaps other", "kube-system", "", id="a ConfigMap of the system"),
        pytest.param("leases a", "gardener-system-seed-lease", "a", id="the Lease of the Seed"),
        pytest.param("leases a", "kube-system", "", id="a Lease elsewhere"),
        pytest.param("gardenlets a", "garden", "a", id="the Gardenlet"),
        pytest.param("certificatesigningrequests csr-a", "", "a", id="a request for a certificate"),
        pytest.param("secrets any", "seed-a", "a", id="all in the namespace of the Seed"),
        pytest.param("shootstates moving", DEV, "ab", id="the state of a Shoot that moves"),
        pytest.param("shootstates moving--1", DEV, "ab", id="a part of it"),
        pytest.param("shootstates moving--a", DEV, "", id="another one"),
        pytest.param("internalsecrets s.ca-client", DEV, "a", id="a key of a Shoot"),
        pytest.param("internalsecrets s.other", DEV, "", id="another InternalSecret"),
        pytest.param("secrets nothing.ca-cluster", DEV, "", id="that of a Shoot that does not exist"),
    ],
)
def test_who_reads_an_object(what: str, where: str, seeds: str) -> None:
    for verb in ("get", "watch"):
        assert {seed for seed in "abc" if allowed(seed, verb, what, where)} == set(seeds)


@pytest.mark.parametrize(
    ("verb", "what", "where", "expected"),
    [
        ("delete", "secrets s.ssh-keypair", DEV, True),
        ("delete", "secrets named", DEV, False),
        ("patch", "secrets named", DEV, False),
        ("patch", "secrets backup-a", "garden", False),
        ("delete", "secrets backup-child", "garden", True),
        ("delete", "secrets backup-a", "garden", False),
        ("patch", "shoots s", DEV, True),
        ("patch", "shoots/status s", DEV, True),
        ("update", "shoots/binding s", DEV, False),
        ("create", "shoots/adminkubeconfig s", DEV, False),
        ("delete", "shoots s", DEV, False),
        ("create", "shoots", DEV, False),
        ("delete", "backupentries shoot--dev--s--uid-s", DEV, False),
        ("delete", "backupentries source-shoot--dev--s--uid-s", DEV, True),
        ("patch", "backupentries shoot--dev--moving--uid-moving", DEV, True),
        ("patch", "backupbuckets shared", "", False),
        ("create", "workloadidentities/token wi", DEV, False),
        ("create", "serviceaccounts/token any", "seed-a", True),
        ("create", "serviceaccounts/token any", "seed-b", False),
        ("create", "serviceaccounts/token any", "garden", False),
        ("delete", "seeds child", "", True),
        ("patch", "seeds child", "", False),
        ("patch", "seeds templated", "", True),
        ("patch", "seeds/status templated", "", False),
        ("delete", "seeds b", "", False),
        ("patch", "managedseeds/status child", "garden", True),
        ("delete", "managedseeds child", "garden", False),
        ("create", "bastions", DEV, False),
        ("delete", "bastions bastion", DEV, True),
        ("create", "secrets", DEV, True),
        ("create", "secrets", "garden-empty", False),
        ("create", "certificatesigningrequests/seedclient", "", True),
        ("update", "certificatesigningrequests/approval csr-a", "", False),
        ("deletecollection", "secrets", "seed-a", False),
        ("impersonate", "serviceaccounts any", "seed-a", False),
    ],
)
def test_what_a_gardenlet_writes(verb: str, what: str, where: str, expected: bool) -> None:
    assert allowed("a", verb, what, where) is expected


def equal(key: str, *values: str, operator: str = "In") -> Selector:
    return Selector(requirements=(Requirement(key, operator, values),))


@pytest.mark.parametrize(
    ("what", "where", "fields", "expected"),
    [
        ("shoots", "", {"label_selector": equal(f"{SEED_LABEL_PREFIX}a", "true")}, True),
        ("shoots", "", {"label_selector": equal(f"{SEED_LABEL_PREFIX}b", "true")}, False),
        ("shoots", "", {"label_selector": equal(f"{SEED_LABEL_PREFIX}a", "true", operator="NotIn")}, False),
        ("shoots", "", {"label_selector": equal(f"{SEED_LABEL_PREFIX}a", "true", "false")}, False),
        ("shoots", "", {"label_selector": Selector(raw=f"{SEED_LABEL_PREFIX}a=true")}, False),
        ("shoots", DEV, {"field_selector": equal("status.seedName", "a")}, True),
        ("bastions", DEV, {"field_selector": equal("spec.shootRef.name", "s")}, True),
        ("bastions", DEV, {"field_selector": equal("spec.shootRef.name", "t")}, False),
        ("bastions", "", {"field_selector": equal("spec.seedName", "a")}, True),
        ("backupbuckets", "", {}, False),
        ("secrets", "seed-a", {}, True),
        ("secrets", "", {}, False),
        ("seeds", "", {}, True),
    ],
)
def test_lists_are_limited(what: str, where: str, fields: dict[str, Selector], expected: bool) -> None:
    assert allowed("a", "list", what, where, **fields) is expected


@pytest.mark.parametrize(
    ("user", "groups", "resource"),
    [
        (f"{SEED_USER_PREFIX}a", ["system:authenticated"], ("", "secrets")),
    ],
)
def test_others_are_left_to_the_next_authorizer(user: str, groups: list[str], resource: tuple[str, str]) -> None:
    asked = Attributes(user=user, groups=groups, verb="get", group=resource[0], resource=resource[1], name="x")
    assert authorize(asked, GARDEN).effect is Effect.NO_OPINION


@pytest.mark.parametrize(
    ("verb", "group", "resource", "left_to_rbac"),
    [
        ("get", "", "pods", False),
        ("list", "anything.example.com", "anythings", False),
        ("get", "rbac.authorization.k8s.io", "roles", False),
        ("create", "authorization.k8s.io", "subjectaccessreviews", False),
        ("create", "authorization.k8s.io", "selfsubjectaccessreviews", True),
        ("create", "authorization.k8s.io", "selfsubjectrulesreviews", True),
        ("create", "authentication.k8s.io", "selfsubjectreviews", True),
        ("watch", "apiextensions.k8s.io", "customresourcedefinitions", True),
        ("create", "authentication.gardener.cloud", "workloadidentities/token", True),
        ("create", "authentication.gardener.cloud", "workloadidentities", False),
    ],
)
def test_kinds_that_are_not_in_the_table_are_denied(verb: str, group: str, resource: str, left_to_rbac: bool) -> None:
    resource, _, subresource = resource.partition("/")
    asked = Attributes(
        user=f"{SEED_USER_PREFIX}a",
        groups=[SEEDS_GROUP],
        verb=verb,
        group=group,
        resource=resource,
        subresource=subresource,
        name="x",
    )
    assert authorize(asked, GARDEN).effect is (Effect.NO_OPINION if left_to_rbac else Effect.DENY)


@pytest.mark.parametrize(
    ("verb", "path", "left_to_rbac"),
    [
        ("get", "/version", True),
        ("get", "/apis/core.gardener.cloud/v1beta1", True),
        ("get", "/openapi/v3", True),
        ("get", "/versions", False),
        ("get", "/metrics", False),
        ("get", "/logs/kube-apiserver.log", False),
        ("get", "/debug/pprof/heap", False),
        ("post", "/apis", False),
    ],
)
def test_paths_that_all_users_may_get(verb: str, path: str, left_to_rbac: bool) -> None:
    asked = Attributes(
        user=f"{SEED_USER_PREFIX}a", groups=[SEEDS_GROUP], is_resource_request=False, verb=verb, path=path
    )
    assert authorize(asked, GARDEN).effect is (Effect.NO_OPINION if left_to_rbac else Effect.DENY)


NO_GARDENLETS = (
    "ann",
    "",
    "system:admin",
    "a",
    f"x{SEED_USER_PREFIX}a",
    *(f"{SEED_USER_PREFIX}{name}" for name in ("", "A", "a_b", "a:b", "a.b", "-", "a\n", " a", "\u0661", "a" * 64)),
)


@pytest.mark.parametrize("user", NO_GARDENLETS)
def test_members_of_the_group_without_a_valid_name_are_denied_everything(user: str) -> None:
    groups = [SEEDS_GROUP, "system:authenticated"]
    for verb, resource in itertools.product(
        ("get", "list", "create", "*"), ("shoots", "pods", "seeds", "cloudprofiles")
    ):
        asked = Attributes(user=user, groups=groups, verb=verb, group="core.gardener.cloud", resource=resource)
        assert authorize(asked, GARDEN).effect is Effect.DENY
        assert authorize(asked, GARDEN, with_selectors=False).effect is Effect.DENY
    asked = Attributes(user=user, groups=groups, is_resource_request=False, verb="get")
    assert authorize(asked, GARDEN).effect is Effect.DENY


def test_what_everybody_may_read_is_not_denied() -> None:
    assert decided("c", "get", "cloudprofiles local") is Effect.NO_OPINION
    assert decided("c", "list", "exposureclasses") is Effect.NO_OPINION
    assert decided("c", "patch", "cloudprofiles local") is Effect.DENY


def requested(user: str, *conditions: str, signer: str = CLIENT) -> Object:
    csr = csr_object(signing_request(f"{SEED_USER_PREFIX}a", organizations=[SEEDS_GROUP]), name="c", signer=signer)
    csr["spec"]["username"] = user
    return {**csr, "status": {"conditions": [{"type": each, "status": "True"} for each in conditions]}}


def test_a_request_for_a_certificate_belongs_to_the_seed_that_it_is_for() -> None:
    assert of_signing_request(requested("system:bootstrap:abcdef")).seeds == ("a",)
    assert of_signing_request(requested("system:bootstrap:abcdef", signer="kubernetes.io/kubelet-serving")).seeds == ()
    csr = csr_object(signing_request("system:node:n", organizations=["system:nodes"]), name="c", signer=CLIENT)
    assert not of_signing_request(csr).seeds
    assert not of_signing_request(csr).uses
    assert of_signing_request({"metadata": {"name": "c"}, "spec": {"request": "e30="}}).seeds == ()


def test_bootstrap_tokens_belong_to_the_seed_of_an_approved_request() -> None:
    """Other users with a request for the Seed would lend it their credentials."""
    token = Reference(kubernetes.SECRETS, Key("kube-system", "bootstrap-token-abcdef"))
    assert of_signing_request(requested("system:bootstrap:abcdef", "Approved")).uses == (token,)
    for conditions in ((), ("Denied",), ("Approved", "Denied"), ("Approved", "Failed")):
        assert not of_signing_request(requested("system:bootstrap:abcdef", *conditions)).uses, conditions
    assert not of_signing_request(requested("system:serviceaccount:kube-system:deployer", "Approved")).uses


def test_the_nodes_of_all_kinds_are_made_of_anything() -> None:
    for kind in KINDS.values():
        assert kind.node({"metadata": {"name": "x"}, "spec": 1, "status": []}).key.name == "x"
    assert CERTIFICATE_SIGNING_REQUESTS in VIEWS


def test_a_token_that_could_be_that_of_two_is_of_none() -> None:
    """The id is a truncated hash, of which names with the same are found within a second."""
    seen: dict[str, str] = {}
    for number in itertools.count():
        identity = bootstrap_token_id(Key("garden", name := f"x{number:x}"))
        if identity in seen:
            break
        seen[identity] = name
    host = shoot("host", "a", namespace="garden")
    own = obj(garden.SEEDS, "a", uid="uid-a")
    alone = graph_of([managed_seed(name, "host"), host, own])
    both = graph_of([managed_seed(name, "host"), host, own, obj(garden.SEEDS, seen[identity])])
    for graph, seed, expected in (
        (alone, "a", Effect.ALLOW),
        (both, "a", Effect.DENY),
        (both, seen[identity], Effect.DENY),
    ):
        asked = Attributes(
            user=f"{SEED_USER_PREFIX}{seed}",
            groups=[SEEDS_GROUP],
            verb="get",
            resource="secrets",
            namespace="kube-system",
            name=f"bootstrap-token-{identity}",
        )
        assert authorize(asked, graph).effect is expected


# --- how long a decision takes


def test_what_thousands_of_objects_of_members_use_is_decided_at_once() -> None:
    secret, parent = secret_ref("s", "garden-dev"), {"kind": "CloudProfile", "name": "parent"}
    own = shoot("own", "a", binding="b7")
    many = range(5000)
    found = graph_of(
        [
            obj(garden.SEEDS, "a", uid="uid-a"),
            own,
            *(obj(garden.SECRET_BINDINGS, f"b{each}", "garden-dev", secretRef=secret) for each in many),
            *(obj(garden.SECRET_BINDINGS, f"c{each}", "garden-dev", secretRef=secret_ref("t", "x")) for each in many),
            *(obj(garden.NAMESPACED_CLOUD_PROFILES, f"p{each}", "x", spec={"parent": parent}) for each in many),
            *(shoot(f"waits{each}", "", binding="other") for each in many),
        ]
    )
    begin = time.thread_time()
    assert found.uses("a", kubernetes.SECRETS, Key("garden-dev", "s"))
    assert not found.uses("a", kubernetes.SECRETS, Key("x", "t"))
    assert not found.uses("a", garden.CLOUD_PROFILES, Key("", "parent"))
    assert not found.uses("a", garden.SECRET_BINDINGS, Key("garden-dev", "other"))
    assert time.thread_time() - begin < 0.02
