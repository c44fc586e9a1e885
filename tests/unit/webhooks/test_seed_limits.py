"""What a gardenlet may change of objects that others decide about: its finalizer, listed annotations, nothing else."""

from typing import Any

import pytest

from gardener import keys
from gardener.api import garden
from gardener.garden.seed_graph import Graph
from kit.webhooks.seeds import graph_of, managed_seed, named, obj, secret_ref, shoot
from kube import resources as kubernetes
from kube.clock import parse_time
from kube.objects import Key, Object, key
from kube.resources import Resource
from webhooks.authorizers.seed.rules.common import Write
from webhooks.authorizers.seed.rules.restriction import objection

DEV, NOW = "garden-dev", parse_time("2026-01-01T00:00:00Z")
IDENTITY = {"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity"}


def graph(*more: Object, **bucket: Any) -> Graph:
    """Args: bucket: metadata of the BackupBucket."""
    made = obj(garden.BACKUP_BUCKETS, "uid-a", spec={"seedName": "a", "secretRef": secret_ref("backup")})
    made["spec"]["credentialsRef"] = {**IDENTITY, **secret_ref("identity")}
    made["metadata"] |= bucket
    return graph_of(
        [
            obj(garden.SEEDS, "a", uid="uid-a", spec={"backup": {"secretRef": secret_ref("backup")}}),
            made,
            shoot("s", "a", resources=[named("named")]),
            shoot("host", "a", namespace="garden"),
            managed_seed("child", "host", uid="uid-child"),
            obj(garden.BASTIONS, "bastion", DEV, spec={"seedName": "a", "shootRef": {"name": "s"}}),
            obj(
                garden.CONTROLLER_INSTALLATIONS,
                "i",
                spec={"seedRef": {"name": "a"}, "deploymentRef": {"name": "d"}, "registrationRef": {"name": "r"}},
            ),
            *more,
        ]
    )


GARDEN, LEAVING = graph(), graph(deletionTimestamp="2026-01-01T00:00:00Z")


def why_not(
    verb: str, resource: Resource, old: Object, new: Object, *, graph: Graph = GARDEN, subresource: str = ""
) -> str:
    write = Write(
        seed="a",
        user=f"{keys.SEED_USER_PREFIX}a",
        resource=resource,
        verb=verb,
        key=key(new or old),
        subresource=subresource,
        new=new,
        old=old,
        now=NOW,
    )
    found = objection(write, graph)
    return found.message if found else ""


def changed(resource: Resource, where: Key, before: Object, after: Object, graph: Graph = GARDEN) -> str:
    """Args: before, after: metadata."""
    old, new = (obj(resource, where.name, where.namespace, **_belonging(resource)) for _ in range(2))
    old["metadata"] |= before
    new["metadata"] |= after
    return why_not("update", resource, old, new, graph=graph)


def _belonging(resource: Resource) -> dict[str, Any]:
    spec: dict[Resource, Any] = {
        garden.SHOOTS: {"seedName": "a"},
        garden.BASTIONS: {"seedName": "a"},
        garden.CONTROLLER_INSTALLATIONS: {"seedRef": {"name": "a"}},
    }
    return {"spec": spec[resource]} if resource in spec else {}


HANDLED = {
    garden.SHOOTS: Key(DEV, "s"),
    garden.BASTIONS: Key(DEV, "bastion"),
    garden.CONTROLLER_INSTALLATIONS: Key("", "i"),
    garden.MANAGED_SEEDS: Key("garden", "child"),
    garden.GARDENLETS: Key("garden", "a"),
}
USED = {kubernetes.SECRETS: Key("garden", "backup"), garden.WORKLOAD_IDENTITIES: Key("garden", "identity")}
FOREIGN: list[tuple[str, Object, Object]] = [
    ("an owner", {}, {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}]}),
    ("no owner", {"ownerReferences": [{"uid": "u"}]}, {}),
    ("other owner", {"ownerReferences": [{"uid": "u"}]}, {"ownerReferences": [{"uid": "v"}]}),
    ("a label", {}, {"labels": {keys.ROLE: "default-domain"}}),
    ("other label", {"labels": {"a": "b"}}, {"labels": {"a": "c"}}),
    ("no label", {"labels": {"a": "b"}}, {}),
    ("an annotation", {}, {"annotations": {"dns.gardener.cloud/domain": "evil.example"}}),
    ("confirmation", {}, {"annotations": {keys.CONFIRM_DELETION: "true"}}),
    ("no annotation", {"annotations": {"a": "b"}}, {"annotations": {}}),
    ("a finalizer", {}, {"finalizers": ["example.com/forever"]}),
    ("the garbage collector's", {}, {"finalizers": ["foregroundDeletion"]}),
    ("no finalizer", {"finalizers": [keys.REFERENCE_PROTECTION]}, {"finalizers": []}),
    ("not all", {"finalizers": ["x", keys.GARDENER_FINALIZER]}, {"finalizers": [keys.GARDENER_FINALIZER]}),
]


@pytest.mark.parametrize("resource", [*HANDLED, *USED], ids=lambda each: each.plural)
@pytest.mark.parametrize(("before", "after"), [each[1:] for each in FOREIGN], ids=[each[0] for each in FOREIGN])
def test_metadata_of_others_stays(resource: Resource, before: Object, after: Object) -> None:
    for state in (GARDEN, LEAVING):
        assert changed(resource, (HANDLED | USED)[resource], before, after, state)


@pytest.mark.parametrize("resource", [*HANDLED], ids=lambda each: each.plural)
def test_a_finalizer_comes_and_goes(resource: Resource) -> None:
    where = HANDLED[resource]
    own = keys.INSTALLATION_FINALIZER if resource == garden.CONTROLLER_INSTALLATIONS else keys.GARDENER_FINALIZER
    for before, after in (([], [own]), (["x", own], ["x"]), (["x"], ["x", own])):
        assert not changed(resource, where, {"finalizers": before}, {"finalizers": after})


@pytest.mark.parametrize("resource", [*USED], ids=lambda each: each.plural)
def test_credentials_of_a_bucket_are_protected_as_long_as_it_stays(resource: Resource) -> None:
    where, bare, protected = USED[resource], {"finalizers": ["x"]}, {"finalizers": ["x", keys.CREDENTIALS_FINALIZER]}
    assert not changed(resource, where, bare, protected)
    assert f'"{keys.CREDENTIALS_FINALIZER}" removed' in changed(resource, where, protected, bare)
    assert not changed(resource, where, protected, bare, LEAVING)


def test_credentials_that_a_child_shares_are_protected_as_well() -> None:
    """The operator has made them; the child gives its parent no right to their content, and takes no other right."""
    sharing = managed_seed("sharing", "host", uid="uid-sharing")
    sharing["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]["backup"] = {"secretRef": secret_ref("backup")}
    shared, where = graph(sharing), USED[kubernetes.SECRETS]
    assert not changed(kubernetes.SECRETS, where, {}, {"finalizers": [keys.CREDENTIALS_FINALIZER]}, shared)
    assert changed(kubernetes.SECRETS, where, {}, {"labels": {"a": "b"}}, shared)


@pytest.mark.parametrize(
    "change", [{"data": {"a": "b"}}, {"immutable": True}, {"type": "kubernetes.io/tls"}, {"stringData": {"a": "b"}}]
)
def test_content_of_credentials_stays(change: Object) -> None:
    old = obj(kubernetes.SECRETS, "backup", "garden", data={"a": "a"}, type="Opaque")
    assert next(iter(change)) in why_not("update", kubernetes.SECRETS, old, {**old, **change})
    assert why_not("update", kubernetes.SECRETS, {**old, "immutable": True}, old)


@pytest.mark.parametrize("resource", [kubernetes.SECRETS, kubernetes.CONFIG_MAPS], ids=lambda each: each.plural)
def test_what_shoots_use_is_only_read(resource: Resource) -> None:
    assert "does not belong" in changed(resource, Key(DEV, "named"), {}, {"finalizers": [keys.CREDENTIALS_FINALIZER]})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"annotations": {keys.OPERATION: "reconcile"}}, {}),
        ({"annotations": {keys.TASKS: "a,b"}}, {"annotations": {keys.TASKS: "b"}}),
        ({"annotations": {keys.SHOOT_SKIP_READINESS: ""}}, {}),
        ({"labels": {f"{keys.SEED_LABEL_PREFIX}b": "true"}}, {"labels": {f"{keys.SEED_LABEL_PREFIX}a": "true"}}),
        ({"labels": {}}, {"labels": {"provider.extensions.gardener.cloud/local": "true"}}),
    ],
)
def test_what_a_gardenlet_has_done_goes_from_its_shoot(before: Object, after: Object) -> None:
    """Webhooks keep some labels of Shoots, in a write of anybody."""
    assert not changed(garden.SHOOTS, HANDLED[garden.SHOOTS], before, after)
    if "labels" in after:
        assert changed(garden.MANAGED_SEEDS, HANDLED[garden.MANAGED_SEEDS], before, after)


def test_a_status_is_written_with_whatever_metadata_the_request_has() -> None:
    """The API server ignores it."""
    old, new = (obj(garden.SHOOTS, "s", DEV, spec={"seedName": "a"}) for _ in range(2))
    new["metadata"]["labels"] = {"a": "b"}
    assert not why_not("update", garden.SHOOTS, old, new, subresource="status")


# --- labels on which programs of the garden act


@pytest.mark.parametrize(
    ("resource", "where", "role", "permitted"),
    [
        (kubernetes.SECRETS, Key("garden", "host.kubeconfig"), "kubeconfig", True),
        (kubernetes.SECRETS, Key("garden", "host.kubeconfig"), "default-domain", False),
        (kubernetes.SECRETS, Key("garden", "host.ca-cluster"), "internal-domain", False),
        (kubernetes.SECRETS, Key("garden", "host.ca-cluster"), "alerting", False),
        (kubernetes.SECRETS, Key("garden", "generated-bucket-uid-a"), "global-monitoring", False),
        (kubernetes.SECRETS, Key(DEV, "s.ssh-keypair.old"), "ssh-keypair", True),
        (kubernetes.CONFIG_MAPS, Key(DEV, "s.ca-cluster"), "ca-cluster", True),
        (kubernetes.CONFIG_MAPS, Key(DEV, "s.ca-cluster"), "controlplane", False),
        (garden.INTERNAL_SECRETS, Key(DEV, "s.ca-client"), "ca-client", True),
    ],
)
def test_what_is_published_of_a_shoot_has_no_other_role(
    resource: Resource, where: Key, role: str, permitted: bool
) -> None:
    bare = obj(resource, where.name, where.namespace)
    new = {**bare, "metadata": {**bare["metadata"], "labels": {keys.ROLE: role}}}
    for verb, old in (("create", {}), ("update", bare)):
        found = why_not(verb, resource, old, new)
        assert not found if permitted else "may not set label" in found
    assert not why_not("update", resource, new, new)


@pytest.mark.parametrize(("registration", "permitted"), [("r", True), ("other", False), ("", True)])
def test_a_service_account_is_that_of_an_extension_of_its_seed(registration: str, permitted: bool) -> None:
    account = obj(kubernetes.SERVICE_ACCOUNTS, "extension-i", "seed-a")
    account["metadata"]["labels"] = {keys.CONTROLLER_REGISTRATION_NAME: registration}
    bare = obj(kubernetes.SERVICE_ACCOUNTS, "extension-i", "seed-a")
    for verb, old in (("create", {}), ("update", bare)):
        assert bool(why_not(verb, kubernetes.SERVICE_ACCOUNTS, old, account)) is not permitted


@pytest.mark.parametrize(
    ("role", "permitted"),
    [("ca-cluster", True), ("default-domain", False), ("shoot-service-account-issuer", False), ("alerting", False)],
)
def test_what_is_published_of_a_shoot_in_garden_is_no_setting_for_all_seeds(role: str, *, permitted: bool) -> None:
    new = obj(kubernetes.SECRETS, "host.ca-cluster", "garden", data={})
    new["metadata"]["labels"] = {keys.ROLE: role}
    assert (
        "programs of the garden use it; have an operator set it" in why_not("create", kubernetes.SECRETS, {}, new)
    ) != permitted
