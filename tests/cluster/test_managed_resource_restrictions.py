"""An author of ManagedResources tries to get further than is allowed: by the configuration, and as a ServiceAccount."""

from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.objects import GIBIBYTE, account, config_map, obj, role, role_binding, rule, stateful_set, user
from kit.processes.agent import AgentProcess
from kit.rbac import grant, may
from kit.rig import Agent, Rig
from kit.world import find_at, writes
from kube.objects import Object, annotations
from kube.resources import CLUSTER_ROLES, CONFIG_MAPS, NAMESPACES, ROLE_BINDINGS, SECRETS, VOLUME_CLAIMS

ACCOUNT = "resources.gardener.cloud/service-account-name"
RBAC = ROLE_BINDINGS.api_version
OPEN = "-open"
"""The end of the names of namespaces that all ManagedResources may write to."""
RESTRICTIONS = {
    "namespacedKinds": {"deny": [{"apiGroups": [""], "kinds": ["Secret", "PersistentVolumeClaim"]}]},
    "clusterScopedKinds": {"deny": [{"apiGroups": ["rbac.authorization.k8s.io"], "kinds": ["ClusterRoleBinding"]}]},
    "namespaces": [{"toOwn": True}, {"to": [f"*{OPEN}"]}],
    "impersonation": {"allowedServiceAccountNames": ["deployer", "stranger"]},
}
SECTION = "controllers.managedResource.restrictions"


def agent_with(cluster: Cluster, resource_class: str, restrictions: Object) -> Agent:
    settings = {"syncPeriod": "15s", "managedByLabelValue": resource_class, "restrictions": restrictions}
    return Agent(cluster, resource_class=resource_class, managedResource=settings)


@pytest.fixture(scope="module")
def strict_agent(own_agent: Agent, cluster: Cluster) -> Agent:
    return agent_with(cluster, f"{own_agent.resource_class}-strict", RESTRICTIONS)


@pytest.fixture(scope="module")
def strict_process(strict_agent: Agent) -> Iterator[AgentProcess]:
    with strict_agent.start() as process:
        yield process


@pytest.fixture
def rig(cluster: Cluster, namespace: str, strict_agent: Agent, strict_process: AgentProcess) -> Rig:
    return Rig(cluster, namespace, strict_agent, strict_process)


@pytest.fixture
def foreign(cluster: Cluster, namespace: str) -> Iterator[str]:
    """Another tenant's namespace, which restrictions leave open."""
    name = f"{namespace}{OPEN}"
    cluster.api.create(NAMESPACES.path(), obj("Namespace", name))
    yield name
    cluster.api.delete(NAMESPACES.path(name=name))


def let_deploy(rig: Rig, *resources: str) -> None:
    """The ServiceAccount `deployer` may write these resources of the core group in its namespace."""
    rules = rule("", " ".join(resources), "get create update patch delete")
    grant(rig.cluster, "deployer", rules, namespace=rig.namespace, subject=account("deployer", rig.namespace))
    rig.create(obj("ServiceAccount", "deployer"))


def may_delete(rig: Rig, resource: str) -> bool:
    user = f"system:serviceaccount:{rig.namespace}:deployer"
    return may(rig.cluster, user, "delete", resource, namespace=rig.namespace)


def write_as(rig: Rig, name: str, user: str, *objects: Object, **spec: Any) -> None:
    rig.write_secret(name, *objects)
    rig.write_managed_resource(name, annotated={ACCOUNT: user}, **spec)


def written_kinds(audit: Audit, *, user: str, since: int, namespace: str) -> set[str]:
    """What the agent wrote, but Events, which are written by the way: they may be about a former pass."""
    written = writes(audit, user=user, since=since, namespace=namespace)
    return {call.resource for call in written if call.resource != "events"}


def log_lines(rig: Rig, *texts: str) -> list[str]:
    """About a test's namespace, with all these texts."""
    texts = (f'"{rig.namespace}"', *texts)
    return [line for line in rig.process.log.splitlines() if all(text in line for text in texts)]


# --- limits


def have_a_pass(rig: Rig, name: str) -> None:
    """It is over when the next one has begun."""
    for _ in range(2):
        rig.patch("ManagedResource", name, {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
        rig.until(lambda: not annotations(rig.get("ManagedResource", name)), "a pass to begin")


def test_what_is_not_allowed_is_refused_once_and_all_else_is_applied(rig: Rig, audit: Audit) -> None:
    binding = role_binding(rig.namespace, user("author"), of=CLUSTER_ROLES, to="cluster-admin")
    hidden = obj(SECRETS, "s", stringData={"k": "hidden"})
    new = obj("Namespace", f"{rig.namespace}-new")
    elsewhere = config_map(rig.namespace, namespace="kube-system")
    rig.write("mr", config_map("fine", {"k": "1"}), binding, hidden, new, elsewhere)
    message = rig.until_failed("mr", "4 errors occurred")
    assert f'"v1/Secret/{rig.namespace}/s": ManagedResources may not have objects of kind Secret: ' in message
    assert f"{SECTION}.namespacedKinds.deny" in message
    assert f'"{RBAC}/ClusterRoleBinding/default/{rig.namespace}"' in message
    assert f"{SECTION}.clusterScopedKinds.deny" in message
    for forbidden_namespace in ("kube-system", f"{rig.namespace}-new"):
        text = f'namespace "{rig.namespace}" may not write to namespace "{forbidden_namespace}"'
        assert text in message
    assert "remove the object, or have that setting changed" in message
    assert "hidden" not in message
    rig.until_data("fine", {"k": "1"})
    rig.until(lambda: rig.listed("mr") == {"fine"}, "the list to have what is allowed, and nothing else")

    # All else goes on, and nothing is reported twice.
    rig.write_secret("mr", config_map("fine", {"k": "2"}), binding, hidden, new, elsewhere)
    rig.until_data("fine", {"k": "2"})
    rig.patch("ConfigMap", "fine", {"data": {"k": "by hand"}})
    rig.until_data("fine", {"k": "2"})
    assert rig.until_failed("mr", "4 errors occurred") == message
    have_a_pass(rig, "mr")
    mark = audit.mark()
    have_a_pass(rig, "mr")
    # The annotation that requested the pass was taken off, and that is all.
    written = written_kinds(audit, user=rig.agent.user, since=mark, namespace=rig.namespace)
    assert written == {"managedresources"}
    [event] = rig.until(lambda: rig.events("mr"), "an event")
    assert (event["reason"], event.get("count") or 1) == ("ApplyFailed", 1)
    assert len(log_lines(rig, "The pass was incomplete")) == 1
    assert log_lines(rig, "Reconciler error", SECTION) == []
    assert rig.find("Secret", "s") is None
    assert rig.find("Namespace", f"{rig.namespace}-new") is None
    assert not find_at(rig.cluster, CONFIG_MAPS.path(namespace="kube-system", name=rig.namespace))
    assert rig.find("ClusterRoleBinding", rig.namespace) is None

    rig.write_secret("mr", config_map("fine", {"k": "3"}))
    rig.until_data("fine", {"k": "3"})
    rig.until_applied("mr")
    rig.delete_managed_resource("mr")
    assert rig.find("ConfigMap", "fine") is None


def test_volume_claims_that_may_not_be_written_are_not_deleted_with_their_stateful_set(rig: Rig) -> None:
    rig.put(obj(VOLUME_CLAIMS, "data-f-0", labels={"app": "f"}, spec=GIBIBYTE))
    rig.apply("mr", stateful_set("f"), deletePersistentVolumeClaims=True)
    rig.delete("ManagedResource", "mr")
    rig.until_failed("mr", "kind PersistentVolumeClaim", "StatefulSet", reason="DeletionFailed")
    assert "deletionTimestamp" not in rig.get("PersistentVolumeClaim", "data-f-0")["metadata"]
    assert "deletionTimestamp" not in rig.get("StatefulSet", "f")["metadata"]
    rig.patch("ManagedResource", "mr", {"spec": {"deletePersistentVolumeClaims": False}})
    rig.until_gone("ManagedResource", "mr")


def test_restrictions_that_come_later_keep_what_is_there_and_report_so(
    cluster: Cluster, namespace: str, own_agent: Agent, audit: Audit
) -> None:
    resource_class = f"{own_agent.resource_class}-late"
    open_agent = Agent(cluster, resource_class=resource_class)
    release = {"resources.gardener.cloud/mode": "Ignore"}
    with open_agent.start() as process:
        rig = Rig(cluster, namespace, open_agent, process)
        rig.apply("mr", config_map("wanted", {"k": "1"}), config_map("dropped"), config_map("released"), role("free"))

    rig.write_secret("mr", config_map("wanted", {"k": "2"}), config_map("released", annotations=release), role("more"))
    denied = {"namespacedKinds": {"deny": [{"apiGroups": [""], "kinds": ["ConfigMap"]}]}}
    mark = audit.mark()
    with agent_with(cluster, resource_class, denied).start() as process:
        rig = Rig(cluster, namespace, open_agent, process)
        rig.until(lambda: rig.find("Role", "more"), "the new Role")
        rig.until_gone("Role", "free")
        message = rig.until_failed("mr", "v1/ConfigMap", "3 errors occurred")
        assert f'error during apply of object "v1/ConfigMap/{namespace}/wanted"' in message
        assert f'deletion of old resource "v1/ConfigMap/{namespace}/dropped" is still pending' in message
        assert f'error patching object "v1/ConfigMap/{namespace}/released"' in message
        rig.until(lambda: rig.listed("mr") == {"wanted", "dropped", "released", "more"}, "the list to be complete")
        have_a_pass(rig, "mr")
        passes = audit.mark()
        have_a_pass(rig, "mr")
        assert rig.until_failed("mr", "3 errors occurred") == message
        written = written_kinds(audit, user=open_agent.user, since=passes, namespace=namespace)
        assert written == {"managedresources"}

        rig.delete("ManagedResource", "mr")
        rig.until_failed("mr", "dropped", "wanted", f"{SECTION}.namespacedKinds.deny", reason="DeletionFailed")
        rig.until_gone("Role", "more")
        rig.until(lambda: len(rig.events("mr")) > 1, "two events")
        assert sorted(e["reason"] for e in rig.events("mr")) == ["ApplyFailed", "DeletionFailed"]
        assert log_lines(rig, "Reconciler error", SECTION) == []
        assert "configmaps" not in written_kinds(audit, user=open_agent.user, since=mark, namespace=namespace)

        rig.patch("ManagedResource", "mr", {"spec": {"keepObjects": True}})
        rig.until_gone("ManagedResource", "mr")
        for name in ("wanted", "dropped", "released"):
            assert rig.get("ConfigMap", name)["data"] == ({"k": "1"} if name == "wanted" else {"k": "v"})


# --- impersonation


def test_everything_is_written_as_the_account_and_the_api_server_decides(rig: Rig, foreign: str, audit: Audit) -> None:
    let_deploy(rig, "configmaps")
    cluster_role = role(rig.namespace, rule("*", "*"), kind=CLUSTER_ROLES)
    mark = audit.mark()
    write_as(
        rig, "mr", "deployer", config_map("c", {"k": "1"}), role("r"), cluster_role, config_map("x", namespace=foreign)
    )
    message = rig.until_failed("mr", "3 errors occurred")
    impersonated = f"system:serviceaccount:{rig.namespace}:deployer"
    assert message.count(f"as ServiceAccount {rig.namespace}/deployer: ") == 3
    assert message.count(f'User "{impersonated}" cannot ') == 3
    rig.until_data("c", {"k": "1"})
    assert not find_at(rig.cluster, CONFIG_MAPS.path(namespace=foreign, name="x"))
    assert rig.find("Role", "r") is None

    rig.write_secret("mr", config_map("c", {"k": "2"}))
    rig.until_data("c", {"k": "2"})
    rig.until_applied("mr")
    rig.delete_managed_resource("mr")
    assert rig.find("ConfigMap", "c") is None
    of_bundle = {"configmaps", "roles", "clusterroles"}
    calls = [call for call in writes(audit, user=rig.agent.user, since=mark) if call.resource in of_bundle]
    assert {("create", 201), ("update", 200), ("delete", 200)} <= {(call.verb, call.status) for call in calls}
    for call in calls:
        assert call.event["impersonatedUser"]["username"] == impersonated
        assert set(call.event["impersonatedUser"]["groups"]) == {
            "system:serviceaccounts",
            f"system:serviceaccounts:{rig.namespace}",
            "system:authenticated",
        }


def test_aggregation_gives_an_author_no_rights_that_the_account_has_not(rig: Rig) -> None:
    """By rules that others' roles are put together from, and by a role that is put together from others' rules."""
    let_deploy(rig, "configmaps")
    label = f"{rig.namespace}.example.com/aggregate"
    grant(
        rig.cluster, rig.namespace,
        rule("rbac.authorization.k8s.io", "clusterroles", "get create update patch delete"), rule("", "pods", "get"),
        subject=account("deployer", rig.namespace),
    )  # fmt: skip
    aggregation = {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}
    admin = role(f"{rig.namespace}-all", kind=CLUSTER_ROLES, aggregationRule=aggregation)
    part = role(f"{rig.namespace}-part", rule("", "secrets", "get"), kind=CLUSTER_ROLES, labels={label: "true"})
    own = role(f"{rig.namespace}-own", rule("", "pods", "get"), kind=CLUSTER_ROLES, labels={label: "true"})
    write_as(rig, "mr", "deployer", admin, part, own)
    message = rig.until_failed("mr", "2 errors occurred")
    assert "must have cluster-admin privileges to use the aggregationRule" in message
    assert "attempting to grant RBAC permissions not currently held" in message
    assert rig.cluster.api.get(CLUSTER_ROLES.path(name=own["metadata"]["name"]))

    # One that another has made is not filled in by way of an update either.
    rig.cluster.api.create(CLUSTER_ROLES.path(), admin)
    rig.write_secret("mr", {**admin, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]})
    rig.until(lambda: rig.applied("mr")[2].count("aggregationRule;") == 1, "the refusal")
    live = rig.cluster.api.get(CLUSTER_ROLES.path(name=admin["metadata"]["name"]))
    assert all("secrets" not in each.get("resources", []) for each in live.get("rules") or [])
    rig.cluster.api.delete(CLUSTER_ROLES.path(name=admin["metadata"]["name"]))


def test_a_refused_author_cannot_find_out_what_exists_in_other_namespaces(rig: Rig, foreign: str, audit: Audit) -> None:
    let_deploy(rig, "configmaps")
    ignore = {"resources.gardener.cloud/ignore": "true"}
    # Known to the watches of the agent, since it is managed, and reported by others if one requests it.
    rig.apply("owner", config_map("there", {"k": "hidden"}, namespace=foreign))
    mark = audit.mark()

    def reported(by: str, name: str, annotated: dict[str, str] | None = None) -> str:
        write_as(rig, by, "deployer", config_map(name, annotations=annotated, namespace=foreign))
        message: str = rig.until_failed(by, "is forbidden")
        return message.replace(name, "NAME")

    assert reported("there", "there") == reported("gone", "gone")
    assert reported("there-ignored", "there", ignore) == reported("gone-ignored", "gone", ignore)

    # It was never theirs: nothing is held up when they give it up.
    rig.write_secret("there")
    rig.until_applied("there")
    rig.delete_managed_resource("gone")
    refused = writes(audit, user=rig.agent.user, since=mark, namespace=foreign)
    assert [call for call in refused if call.status < 300] == []
    assert rig.cluster.api.get(CONFIG_MAPS.path(namespace=foreign, name="there"))["data"] == {"k": "hidden"}


@pytest.mark.parametrize("hostile", ["", "../x", "a:b", "kube-system/default", "other"])
def test_an_account_that_may_not_be_named_leads_to_no_writes_at_all(hostile: str, rig: Rig) -> None:
    let_deploy(rig, "configmaps")
    write_as(rig, "mr", hostile, config_map("c"))
    message = rig.until_failed("mr", f"metadata.annotations[{ACCOUNT}]", f'"{hostile}"')
    assert message.startswith("nothing is written or deleted: ")
    assert rig.find("ConfigMap", "c") is None
    [event] = rig.until(lambda: rig.events("mr"), "an event")
    assert event["reason"] == "ApplyFailed"
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {ACCOUNT: "deployer"}}})
    rig.until_applied("mr")

    # Nor can what is there be deleted by giving a wrong one.
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {ACCOUNT: hostile}}})
    rig.until_failed("mr", f'"{hostile}"')
    rig.delete("ManagedResource", "mr")
    rig.until_failed("mr", "ConfigMap", f'"{hostile}"', reason="DeletionFailed")
    assert "deletionTimestamp" not in rig.get("ConfigMap", "c")["metadata"]
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {ACCOUNT: "deployer"}}})
    rig.until_gone("ManagedResource", "mr")
    assert rig.find("ConfigMap", "c") is None


def test_what_the_account_may_not_delete_any_more_holds_the_managed_resource_and_reports_why(rig: Rig) -> None:
    let_deploy(rig, "configmaps")
    write_as(rig, "mr", "deployer", config_map("c"))
    rig.until_applied("mr")
    rig.cluster.api.delete(ROLE_BINDINGS.path(namespace=rig.namespace, name="deployer"))
    rig.until(lambda: not may_delete(rig, "configmaps"), "the API server to know")
    rig.delete("ManagedResource", "mr")
    refused = f'as ServiceAccount {rig.namespace}/deployer: configmaps "c" is forbidden: User '
    rig.until_failed("mr", refused, "or keep the object", reason="DeletionPending")
    assert "deletionTimestamp" not in rig.get("ConfigMap", "c")["metadata"]
    rig.patch("ManagedResource", "mr", {"spec": {"keepObjects": True}})
    rig.until_gone("ManagedResource", "mr")
    assert rig.find("ConfigMap", "c")
