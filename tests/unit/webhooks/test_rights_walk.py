"""Every verb of every kind, for gardenlets that have no right to it: what is left is listed here."""

from collections.abc import Iterable, Iterator
from itertools import product

import pytest

from agent.controller_manager.seed.roles import rules as roles
from gardener.api import garden
from gardener.garden.seed_graph import KINDS as KINDS_OF_GRAPH
from gardener.garden.seed_graph import Graph, Node, projects_named
from gardener.garden.seeds import bootstrap_account, bootstrap_binding, bootstrap_token_id
from gardener.keys import SEED_USER_PREFIX, SEEDS_GROUP
from gardener.rights import gardenlet
from gardener.rights.model import Case
from gardener.rights.requests import Attributes
from kit.rights_walk import KINDS, SUBRESOURCES, VERBS
from kit.signing.requests import CLIENT, csr_object, signing_request
from kit.webhooks.garden import Reviews
from kit.webhooks.mutating import state_of
from kit.webhooks.seeds import graph_of, managed_seed, named, obj, secret_ref, shoot, templated_seed
from kube import resources as kubernetes
from kube.clock import parse_time
from kube.objects import Key, Object
from kube.resources import Resource
from webhooks.authorizers.decisions import Effect
from webhooks.authorizers.seed.graph import LiveGraph
from webhooks.authorizers.seed.rules.authorize import authorize
from webhooks.authorizers.seed.rules.common import Write
from webhooks.authorizers.seed.rules.restriction import objection
from webhooks.authorizers.seed.webhook import WRITTEN

DEV, ISSUERS, LEASES = "garden-dev", "gardener-system-shoot-issuer", "gardener-system-seed-lease"
NAMESPACES = ("", DEV, "garden", "kube-system", "kube-public", "default", "seed-a", LEASES, ISSUERS)


# --- a garden in which everything that can belong to a Seed belongs to `a`


def victim(*, uid: str = "uid-a") -> Iterator[Object]:
    """Without its Seed."""
    backup = {"secretRef": secret_ref("backup-a")}
    yield shoot("s", "a", resources=[named("named")], exposureClassName="internal", credentialsBindingName="c")
    yield shoot("profiled", "a", cloudProfile={"kind": "NamespacedCloudProfile", "name": "own"})
    yield shoot("host", "a", namespace="garden")
    yield obj(garden.SECRET_BINDINGS, "b", DEV, secretRef=secret_ref("key", DEV))
    identity = {"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity", **secret_ref("wi", DEV)}
    yield obj(garden.CREDENTIALS_BINDINGS, "c", DEV, credentialsRef=identity)
    parent = {"kind": "CloudProfile", "name": "base"}
    yield obj(garden.NAMESPACED_CLOUD_PROFILES, "own", DEV, spec={"parent": parent})
    yield obj(garden.PROJECTS, "dev", spec={"namespace": DEV})
    generated = {"generatedSecretRef": secret_ref(f"generated-bucket-{uid}")}
    of_bucket = {**identity, **secret_ref("of-bucket")}
    spec = {"seedName": "a", **backup, "credentialsRef": of_bucket}
    bucket = obj(garden.BACKUP_BUCKETS, uid, spec=spec, status=generated)
    bucket["metadata"]["ownerReferences"] = [{"kind": "Seed", "name": "a", "uid": uid}]
    yield bucket
    yield obj(garden.BACKUP_ENTRIES, "shoot--dev--s--uid-s", DEV, spec={"bucketName": uid, "seedName": "a"})
    yield obj(garden.BASTIONS, "bastion", DEV, spec={"seedName": "a", "shootRef": {"name": "s"}})
    yield obj(garden.CONTROLLER_INSTALLATIONS, "i", spec={"seedRef": {"name": "a"}, "deploymentRef": {"name": "d"}})
    yield managed_seed("child", "host", uid="uid-child")
    yield templated_seed("templated", "host", {})
    user = signing_request(f"{SEED_USER_PREFIX}a", organizations=[SEEDS_GROUP])
    yield csr_object(user, name="csr", signer=CLIENT)


SEED_A = obj(
    garden.SEEDS,
    "a",
    uid="uid-a",
    spec={
        "backup": {"secretRef": secret_ref("backup-a")},
        "dns": {"provider": {"secretRef": secret_ref("dns-a")}},
        "resources": [
            {"name": "r", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "for-extensions"}}
        ],
    },
)
RECREATED = {**SEED_A, "metadata": {"name": "a", "uid": "uid-of-the-next"}, "spec": {}}
OTHER = obj(garden.SEEDS, "b", uid="uid-b", spec={"backup": {"secretRef": secret_ref("backup-b")}})
CHILD = obj(garden.SEEDS, "child", uid="uid-of-child", spec={"backup": {"secretRef": secret_ref("backup-child")}})
OF_CHILD = [
    CHILD,
    shoot("on-child", "child"),
    obj(garden.BACKUP_BUCKETS, "uid-of-child", spec={"seedName": "child", "secretRef": secret_ref("backup-child")}),
]
GARDEN = graph_of([*victim(), SEED_A, OTHER, *OF_CHILD])


def bootstrap_of(owner: Key) -> list[tuple[Resource, Key]]:
    account = bootstrap_account(owner)
    return [
        (kubernetes.SECRETS, Key("kube-system", f"bootstrap-token-{bootstrap_token_id(owner)}")),
        (kubernetes.SERVICE_ACCOUNTS, account),
        (kubernetes.CLUSTER_ROLE_BINDINGS, Key("", bootstrap_binding(account))),
    ]


OF_SEED_BY_NAME = [
    (garden.SEEDS, Key("", "a")),
    (garden.GARDENLETS, Key("garden", "a")),
    (kubernetes.LEASES, Key(LEASES, "a")),
    (kubernetes.NAMESPACES, Key("", "seed-a")),
    *bootstrap_of(Key("garden", "a")),
]
OF_CHILDREN = [
    (garden.MANAGED_SEEDS, Key("garden", "child")),
    (garden.SEEDS, Key("", "child")),
    (garden.SEEDS, Key("", "templated")),
    (kubernetes.SECRETS, Key("garden", "backup-child")),
    *bootstrap_of(Key("garden", "child")),
]
OF_BUCKET = [
    (garden.BACKUP_BUCKETS, Key("", "uid-a")),
    (kubernetes.SECRETS, Key("garden", "generated-bucket-uid-a")),
    (garden.WORKLOAD_IDENTITIES, Key("garden", "of-bucket")),
]
OF_SEED = [
    *OF_BUCKET,
    (kubernetes.SECRETS, Key("garden", "backup-a")),
    (kubernetes.SECRETS, Key("garden", "dns-a")),
    (kubernetes.SECRETS, Key("seed-a", "any")),
    (kubernetes.CONFIG_MAPS, Key("garden", "for-extensions")),
    (kubernetes.CONFIG_MAPS, Key("seed-a", "kube-root-ca.crt")),
    (kubernetes.SERVICE_ACCOUNTS, Key("seed-a", "any")),
    (garden.CONTROLLER_INSTALLATIONS, Key("", "i")),
    (garden.CONTROLLER_DEPLOYMENTS, Key("", "d")),
    (kubernetes.CERTIFICATE_SIGNING_REQUESTS, Key("", "csr")),
]
OF_SHOOTS = [
    (garden.SHOOTS, Key(DEV, "s")),
    (garden.SHOOTS, Key("garden", "host")),
    (garden.SHOOT_STATES, Key(DEV, "s")),
    (garden.SHOOT_STATES, Key(DEV, "s--1")),
    (garden.INTERNAL_SECRETS, Key(DEV, "s.ca-client")),
    *((kubernetes.SECRETS, Key(DEV, f"s.{each}")) for each in ("ca-cluster", "kubeconfig", "ssh-keypair.old")),
    (kubernetes.CONFIG_MAPS, Key(DEV, "s.ca-cluster")),
    (kubernetes.SECRETS, Key(DEV, "named")),
    (kubernetes.SECRETS, Key(DEV, "key")),
    (kubernetes.SECRETS, Key(ISSUERS, "dev--uid-s")),
    (garden.WORKLOAD_IDENTITIES, Key(DEV, "wi")),
    (garden.SECRET_BINDINGS, Key(DEV, "b")),
    (garden.CREDENTIALS_BINDINGS, Key(DEV, "c")),
    (garden.NAMESPACED_CLOUD_PROFILES, Key(DEV, "own")),
    (garden.PROJECTS, Key("", "dev")),
    (kubernetes.NAMESPACES, Key("", DEV)),
    (garden.BACKUP_ENTRIES, Key(DEV, "shoot--dev--s--uid-s")),
    (garden.BACKUP_ENTRIES, Key(DEV, "source-shoot--dev--s--uid-s")),
    (garden.BASTIONS, Key(DEV, "bastion")),
    (garden.CLOUD_PROFILES, Key("", "base")),
    (garden.EXPOSURE_CLASSES, Key("", "internal")),
]
OF_ALL = [
    (garden.CONTROLLER_REGISTRATIONS, Key("", "any")),
    (kubernetes.CONFIG_MAPS, Key("kube-system", "cluster-identity")),
    (kubernetes.CONFIG_MAPS, Key("gardener-system-public", "gardener-info")),
    (kubernetes.EVENTS, Key(DEV, "any")),
    (kubernetes.NEW_EVENTS, Key(DEV, "any")),
]
OBJECTS = [*OF_SEED_BY_NAME, *OF_CHILDREN, *OF_SEED, *OF_SHOOTS, *OF_ALL]


# --- the walk


def requests(seed: str, objects: Iterable[tuple[Resource, Key]]) -> Iterator[Attributes]:
    """Each verb of each object, and of its subresources."""
    for (resource, where), subresource, verb in product(objects, SUBRESOURCES, VERBS):
        yield Attributes(
            user=SEED_USER_PREFIX + seed,
            groups=(SEEDS_GROUP,),
            verb=verb,
            group=resource.group,
            resource=resource.plural,
            subresource=subresource,
            namespace=where.namespace,
            name=where.name,
        )


def allowed(seed: str, graph: Graph, objects: Iterable[tuple[Resource, Key]]) -> dict[str, set[str]]:
    """By object: verbs that are allowed or left to RBAC, with the subresource."""
    found: dict[str, set[str]] = {}
    for requested in requests(seed, objects):
        if authorize(requested, graph).effect is not Effect.DENY:
            place = f"{requested.namespace}/{requested.name}" if requested.namespace else requested.name
            verb = f"{requested.verb} {requested.subresource}" if requested.subresource else requested.verb
            found.setdefault(f"{requested.resource} {place}".strip(), set()).add(verb)
    return found


def foreign(objects: Iterable[tuple[Resource, Key]], *, own: Iterable[str] = ()) -> dict[str, set[str]]:
    """What every gardenlet may, of objects that are another's."""
    read, anybody = {"get", "list", "watch"}, {*own}
    of_all: dict[Resource, set[str]] = {
        garden.SEEDS: read,
        garden.MANAGED_SEEDS: read,
        garden.CONTROLLER_REGISTRATIONS: read,
        garden.CLOUD_PROFILES: read,
        garden.EXPOSURE_CLASSES: read,
        kubernetes.EVENTS: {"create", "patch"},
        kubernetes.NEW_EVENTS: {"create", "patch"},
        kubernetes.CERTIFICATE_SIGNING_REQUESTS: {"create", "create seedclient"},
    }
    public = {"configmaps kube-system/cluster-identity", "configmaps gardener-system-public/gardener-info"}
    found: dict[str, set[str]] = {}
    for resource, where in objects:
        name = f"{resource.plural} {where}"
        verbs = read if name in public else of_all.get(resource, set())
        if verbs and name not in anybody:
            found.setdefault(name, set()).update(verbs)
    return found


def test_a_gardenlet_of_another_seed_may_what_all_may() -> None:
    assert allowed("b", GARDEN, OBJECTS) == foreign(OBJECTS)


@pytest.mark.parametrize("seed", ["", "A", "a.b", "a/b", " a", "a ", "-a", "a" * 64, "system:seed:a"])
def test_a_gardenlet_without_a_valid_name_may_nothing(seed: str) -> None:
    assert not allowed(seed, GARDEN, OBJECTS)
    assert not allowed(seed, GARDEN, unnamed())


def test_a_gardenlet_of_a_deleted_seed_may_register_it_again() -> None:
    """It has what a new one needs: nothing else remains of the former Seed, though Shoots may still name it."""
    deleted = graph_of([*victim(), OTHER, *OF_CHILD])
    found = allowed("a", deleted, [*OF_SEED, *OF_SHOOTS, *OF_CHILDREN, *OF_ALL])
    csr = {"certificatesigningrequests csr": {"get", "list", "watch", "create", "create seedclient"}}
    assert found == foreign([*OF_SEED, *OF_SHOOTS, *OF_CHILDREN, *OF_ALL]) | csr


def test_a_gardenlet_of_a_recreated_seed_has_nothing_of_its_bucket() -> None:
    recreated = graph_of([*victim(), RECREATED, OTHER])
    secrets = [(kubernetes.SECRETS, Key("garden", name)) for name in ("backup-a", "dns-a")]
    without_entries = graph_of([*(each for each in victim() if each["kind"] != "BackupEntry"), RECREATED, OTHER])
    assert not allowed("a", without_entries, [*OF_BUCKET, *secrets])
    read = {"get", "list", "watch"}
    assert allowed("a", recreated, OF_BUCKET) == {
        "backupbuckets uid-a": read,
        "secrets garden/generated-bucket-uid-a": read,
        "workloadidentities garden/of-bucket": {*read, "create token"},
    }, "that of backups which name the Seed"


def test_the_parent_of_a_managed_seed_reaches_what_bootstraps_it() -> None:
    own, child = {"get", "list", "watch", "create", "update", "patch", "delete"}, bootstrap_of(Key("garden", "child"))
    of_child = [
        (garden.SHOOTS, Key(DEV, "on-child")),
        (kubernetes.SECRETS, Key(DEV, "on-child.kubeconfig")),
        (garden.SHOOT_STATES, Key(DEV, "on-child")),
        (garden.BACKUP_BUCKETS, Key("", "uid-of-child")),
        (kubernetes.SECRETS, Key("garden", "generated-bucket-uid-of-child")),
        (kubernetes.SECRETS, Key("seed-child", "any")),
        (kubernetes.SERVICE_ACCOUNTS, Key("seed-child", "any")),
        (kubernetes.LEASES, Key(LEASES, "child")),
        (garden.GARDENLETS, Key("garden", "child")),
    ]
    assert not allowed("a", GARDEN, of_child)
    assert allowed("a", GARDEN, OF_CHILDREN) == {
        "managedseeds garden/child": {"get", "list", "watch", "update", "patch"}
        | {f"{verb} status" for verb in ("get", "update", "patch")},
        "seeds child": {"get", "list", "watch", "delete"},
        "seeds templated": own,
        "secrets garden/backup-child": own,
        f"secrets {child[0][1]}": own,
        f"serviceaccounts {child[1][1]}": own | {"create token"},
        f"clusterrolebindings {child[2][1].name}": own,
    }


@pytest.mark.parametrize("namespace", ["seed-a", "seed-b", "seed-of-a-deleted-one", "seed-", "seed-A_B", "garden-dev"])
def test_extensions_have_what_rbac_gives_them_and_are_no_gardenlets(namespace: str) -> None:
    """Rights of a Seed's gardenlet do not pass on to ServiceAccounts of its namespace, by whatever group."""
    own = (f"system:serviceaccounts:{namespace}", "system:serviceaccounts")
    for groups, effect in ((own, Effect.NO_OPINION), ((*own, SEEDS_GROUP), Effect.DENY)):
        for resource, where in OBJECTS:
            for verb, subresource in product(VERBS, ("", "status", "token")):
                requested = Attributes(
                    user=f"system:serviceaccount:{namespace}:extension-x",
                    groups=groups,
                    verb=verb,
                    group=resource.group,
                    resource=resource.plural,
                    subresource=subresource,
                    namespace=where.namespace,
                    name=where.name,
                )
                assert authorize(requested, GARDEN).effect is effect


# --- requests without a name


def unnamed() -> list[tuple[Resource, Key]]:
    return [
        (kind, Key(namespace, "")) for kind in KINDS for namespace in NAMESPACES if kind.namespaced or not namespace
    ]


def test_of_what_has_no_name_a_gardenlet_may_create_where_its_own_things_are() -> None:
    """The admission sees the names; lists need a selector."""
    found = allowed("b", GARDEN, unnamed())
    read, create = {"get", "list", "watch"}, {"create"}
    of_the_cluster = {
        "seeds": {*read, "create"},
        "managedseeds": read,
        "controllerregistrations": read,
        "cloudprofiles": read,
        "exposureclasses": read,
        "customresourcedefinitions": read,
        "backupbuckets": create,
        "clusterrolebindings": create,
        "certificatesigningrequests": {"create", "create seedclient"},
        "tokenreviews": create,
        "selfsubjectreviews": create,
        "selfsubjectaccessreviews": create,
        "selfsubjectrulesreviews": create,
    }
    in_namespaces = {
        "gardenlets garden/": create,
        "serviceaccounts garden/": create,
        "secrets garden/": create,
        "secrets kube-system/": create,
        f"secrets {ISSUERS}/": create,
        f"leases {LEASES}/": create,
        **{f"managedseeds {namespace}/": read for namespace in NAMESPACES if namespace},
        **{f"events {namespace}/": create for namespace in NAMESPACES if namespace},
    }
    assert found == of_the_cluster | in_namespaces | {"events": create}


# --- what the admission sees


def objections(seed: str, objects: Iterable[tuple[Resource, Key]], graph: Graph) -> Iterator[tuple[bool, Write]]:
    """For each write of an object of `a`, whether it is refused."""
    written = [each for each in objects if each[0] in WRITTEN]
    for (resource, where), verb, subresource in product(written, ("create", "update", "delete"), ("", "status")):
        subject = obj(resource, where.name, where.namespace, spec={"seedName": "a", "seedRef": {"name": "a"}})
        write = Write(
            seed=seed,
            user=f"{SEED_USER_PREFIX}{seed}",
            resource=resource,
            verb=verb,
            key=where,
            subresource=subresource,
            new={} if verb == "delete" else subject,
            old={} if verb == "create" else subject,
            now=parse_time("2026-01-01T00:00:00Z"),
        )
        yield objection(write, graph) is not None, write


@pytest.mark.parametrize("graph", [GARDEN, graph_of([*victim(), OTHER])], ids=["own", "deleted"])
def test_nothing_of_another_seed_is_written(graph: Graph) -> None:
    assert not [write for is_refused, write in objections("b", OBJECTS, graph) if not is_refused]


def test_nothing_is_written_of_what_a_deleted_seed_had() -> None:
    """Roles may grant it where there is no authorizer."""
    deleted, of_seed = graph_of([*victim(), OTHER]), [*OF_SEED, *OF_SHOOTS, *OF_CHILDREN]
    assert not [write for is_refused, write in objections("a", of_seed, deleted) if not is_refused]


def test_each_right_is_of_use() -> None:
    """The walk reaches every row of the table."""
    cases = [Case(seed="a", requested=requested, graph=GARDEN) for requested in requests("a", OBJECTS)]
    for right in gardenlet.TABLE.rights:
        kind = (right.resource.group, right.resource.plural, right.subresource)
        mine = (
            each
            for each in cases
            if (each.requested.group, each.requested.resource, each.requested.subresource) == kind
        )
        if "while it is being deleted" not in right.objects.title:
            assert any(right.permits(case) for case in mine), right


async def test_what_permits_a_request_is_read_before_it_is_refused() -> None:
    """From a garden of which the caches know nothing."""
    stored = [*victim(), SEED_A, OTHER, *OF_CHILD]
    for version, each in enumerate(stored, start=1):
        each["metadata"] |= {"resourceVersion": str(version)}
    for requested in requests("a", OBJECTS):
        if authorize(requested, GARDEN).effect is not Effect.ALLOW:
            continue
        live, where = LiveGraph(state_of(client=Reviews(stored=stored))), Key(requested.namespace, requested.name)
        known = live.read()
        assert known is not None

        def is_refused(requested: Attributes = requested, known: Graph = known) -> bool:
            return authorize(requested, known).effect is Effect.DENY

        also = projects_named(requested.resource, where)
        assert not is_refused() or not await live.confirmed("a", requested.resource, where, is_refused, also=also), (
            requested
        )


def granted_by_roles() -> Iterator[tuple[str, tuple[Resource, str, tuple[str, ...]], set[str] | None]]:
    """Without the authorizer, to the gardenlet of `a`: by namespace."""
    of_kind: dict[str, list[Node]] = {}
    for stored in [*victim(), SEED_A]:
        kinds = (kind for resource, kind in KINDS_OF_GRAPH.items() if resource.kind == stored["kind"])
        of_kind.setdefault(stored["kind"], []).extend(kind.node(stored) for kind in kinds)
    bindings = [*of_kind["SecretBinding"], *of_kind["CredentialsBinding"]]
    credentials = [reference for each in bindings for reference in each.uses]
    grants = [
        roles.of_shoot(each, credentials, project="dev" if each.key.namespace == DEV else "")
        for each in of_kind["Shoot"]
        if each.key.namespace == DEV
    ]
    tokens = [bootstrap_token_id(Key("garden", name)) for name in ("a", "child", "templated")]
    grants.append(roles.of_seed(of_kind["Seed"][0], of_kind["BackupBucket"], of_kind["ManagedSeed"], tokens=tokens))
    for granted in grants:
        for namespace, rights in granted.by_namespace.items():
            yield from ((namespace, right, names) for right, names in rights.items())


def test_roles_without_an_authorizer_grant_no_more_than_the_table() -> None:
    for namespace, (resource, subresource, verbs), names in granted_by_roles():
        for verb, name in product(verbs, ["" if verbs == ("create",) else "any"] if names is None else names):
            requested = Attributes(
                user=f"{SEED_USER_PREFIX}a",
                groups=(SEEDS_GROUP,),
                verb=verb,
                group=resource.group,
                resource=resource.plural,
                subresource=subresource,
                namespace=namespace,
                name=name or ("any" if subresource else ""),
            )
            assert authorize(requested, GARDEN).effect is Effect.ALLOW, requested
