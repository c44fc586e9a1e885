"""An author of ManagedResources tries to get further than is allowed: by the configuration, and as a ServiceAccount."""

from collections.abc import Iterator
from typing import Any

import pytest
from agent_process import AgentProcess
from managed_resource_rig import Agent, Rig, config_map, role, stateful_set

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kube.errors import NotFound
from kube.objects import Object, annotations
from kube.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, Resource

ACCOUNT = "resources.gardener.cloud/service-account-name"
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", namespaced=True)
RBAC = ROLE_BINDINGS.api_version
OPEN = "-open"
"""The end of the names of namespaces that all ManagedResources may write to."""
RESTRICTIONS = {
    "namespacedKinds": {"deny": [{"apiGroups": [""], "kinds": ["Secret", "PersistentVolumeClaim"]}]},
    "clusterScopedKinds": {"deny": [{"apiGroups": ["rbac.authorization.k8s.io"], "kinds": ["ClusterRoleBinding"]}]},
    "namespaces": [{"toOwn": True}, {"to": [f"*{OPEN}"]}],
    "impersonation": {"allowedServiceAccountNames": ["deployer", "nobody"]},
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
    cluster.api.create(NAMESPACES.path(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    cluster.api.delete(NAMESPACES.path(name=name))


def in_namespace(namespace: str, obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def rbac(kind: str, name: str, **fields: Any) -> Object:
    return {"apiVersion": RBAC, "kind": kind, "metadata": {"name": name}, **fields}


def let_deploy(rig: Rig, *resources: str) -> None:
    """The ServiceAccount `deployer` may write these resources of the core group in its namespace."""
    verbs = ["get", "create", "update", "patch", "delete"]
    rules = [{"apiGroups": [""], "resources": list(resources), "verbs": verbs}]
    rig.put(rbac("Role", "deployer", rules=rules))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer"}}
    rig.cluster.api.create(SERVICE_ACCOUNTS.path(namespace=rig.namespace), account)
    subject = {"kind": "ServiceAccount", "name": "deployer", "namespace": rig.namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"}
    binding = rbac("RoleBinding", "deployer", roleRef=reference, subjects=[subject])
    rig.cluster.api.create(ROLE_BINDINGS.path(namespace=rig.namespace), binding)


def may_delete(rig: Rig, resource: str) -> bool:
    """Whether the ServiceAccount may, by what the API server knows by now."""
    attributes = {"namespace": rig.namespace, "verb": "delete", "resource": resource}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": f"system:serviceaccount:{rig.namespace}:deployer", "resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(rig.cluster.api.create(path, review)["status"]["allowed"])


def write_as(rig: Rig, name: str, account: str, *objects: Object, **spec: Any) -> None:
    rig.write_secret(name, *objects)
    rig.write_managed_resource(name, annotated={ACCOUNT: account}, secretRefs=[{"name": name}], **spec)


def exists(rig: Rig, path: str) -> bool:
    try:
        rig.cluster.api.get(path)
    except NotFound:
        return False
    return True


def written_kinds(audit: Audit, *, user: str, since: int, namespace: str) -> set[str]:
    """What the agent wrote, but Events, which are written by the way: they may tell of a former pass."""
    calls = audit.calls(since=since, namespace=namespace, verbs=("create", "update", "patch", "delete"))
    return {call.resource for call in calls if call.user == user and call.resource != "events"}


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
    binding = rbac(
        "ClusterRoleBinding",
        rig.namespace,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        subjects=[{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "author"}],
    )
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "hidden"}}
    new = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{rig.namespace}-new"}}
    elsewhere = in_namespace("kube-system", config_map(rig.namespace))
    rig.write("mr", config_map("fine", k="1"), binding, secret, new, elsewhere)
    message = rig.until_failed("mr", "4 errors occurred")
    assert f'"v1/Secret/{rig.namespace}/s": ManagedResources may not have objects of kind Secret, by ' in message
    assert f"{SECTION}.namespacedKinds.deny" in message
    assert f'"{RBAC}/ClusterRoleBinding/default/{rig.namespace}"' in message
    assert f"{SECTION}.clusterScopedKinds.deny" in message
    for forbidden_namespace in ("kube-system", f"{rig.namespace}-new"):
        text = f'namespace "{rig.namespace}" may not write to namespace "{forbidden_namespace}"'
        assert text in message
    assert "take the object out, or have that setting changed" in message
    assert "hidden" not in message
    rig.until_data("fine", {"k": "1"})
    rig.until(lambda: rig.listed("mr") == {"fine"}, "the list to have what is allowed, and nothing else")

    # All else goes on, and nothing is told twice.
    rig.write_secret("mr", config_map("fine", k="2"), binding, secret, new, elsewhere)
    rig.until_data("fine", {"k": "2"})
    rig.patch("ConfigMap", "fine", {"data": {"k": "by hand"}})
    rig.until_data("fine", {"k": "2"})
    assert rig.until_failed("mr", "4 errors occurred") == message
    have_a_pass(rig, "mr")
    mark = audit.mark()
    have_a_pass(rig, "mr")
    # The annotation that asked for the pass was taken off, and that is all.
    written = written_kinds(audit, user=rig.agent.user, since=mark, namespace=rig.namespace)
    assert written == {"managedresources"}
    [event] = rig.until(lambda: rig.events("mr"), "an event")
    assert (event["reason"], event.get("count") or 1) == ("ApplyFailed", 1)
    assert len(log_lines(rig, "Not everything was done")) == 1
    assert log_lines(rig, "Reconciler error", SECTION) == []
    assert rig.find("Secret", "s") is None
    assert rig.find("Namespace", f"{rig.namespace}-new") is None
    assert not exists(rig, CONFIG_MAPS.path(namespace="kube-system", name=rig.namespace))
    assert not exists(rig, f"/apis/{RBAC}/clusterrolebindings/{rig.namespace}")

    rig.write_secret("mr", config_map("fine", k="3"))
    rig.until_data("fine", {"k": "3"})
    rig.until_applied("mr")
    rig.delete("ManagedResource", "mr")
    rig.until_gone("ManagedResource", "mr")
    assert rig.find("ConfigMap", "fine") is None


def test_volume_claims_that_may_not_be_written_are_not_deleted_with_their_stateful_set(rig: Rig) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-f-0", "labels": {"app": "f"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    rig.put(claim)
    rig.write("mr", stateful_set("f"), deletePersistentVolumeClaims=True)
    rig.until_applied("mr")
    rig.delete("ManagedResource", "mr")
    rig.until_failed("mr", "kind PersistentVolumeClaim", "StatefulSet", reason="DeletionFailed")
    assert "deletionTimestamp" not in rig.get("PersistentVolumeClaim", "data-f-0")["metadata"]
    assert "deletionTimestamp" not in rig.get("StatefulSet", "f")["metadata"]
    rig.patch("ManagedResource", "mr", {"spec": {"deletePersistentVolumeClaims": False}})
    rig.until_gone("ManagedResource", "mr")


def test_restrictions_that_come_later_keep_what_is_there_and_say_so(
    cluster: Cluster, namespace: str, own_agent: Agent, audit: Audit
) -> None:
    resource_class = f"{own_agent.resource_class}-late"
    open_agent = Agent(cluster, resource_class=resource_class)
    release = {"resources.gardener.cloud/mode": "Ignore"}
    with open_agent.start() as process:
        rig = Rig(cluster, namespace, open_agent, process)
        rig.write("mr", config_map("wanted", k="1"), config_map("dropped"), config_map("released"), role("free"))
        rig.until_applied("mr")

    rig.write_secret("mr", config_map("wanted", k="2"), config_map("released", release), role("more"))
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
        reasons = rig.until(lambda: len(found := rig.events("mr")) > 1 and [e["reason"] for e in found], "two events")
        assert sorted(reasons) == ["ApplyFailed", "DeletionFailed"]
        assert log_lines(rig, "Reconciler error", SECTION) == []
        calls = audit.calls(since=mark, namespace=namespace, verbs=("create", "update", "patch", "delete"))
        assert [call for call in calls if call.user == open_agent.user and call.resource == "configmaps"] == []

        rig.patch("ManagedResource", "mr", {"spec": {"keepObjects": True}})
        rig.until_gone("ManagedResource", "mr")
        for name in ("wanted", "dropped", "released"):
            assert rig.get("ConfigMap", name)["data"] == ({"k": "1"} if name == "wanted" else {"k": "v"})


# --- impersonation


def test_everything_is_written_as_the_account_and_the_api_server_decides(rig: Rig, foreign: str, audit: Audit) -> None:
    let_deploy(rig, "configmaps")
    cluster_role = rbac("ClusterRole", rig.namespace, rules=[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    mark = audit.mark()
    write_as(
        rig, "mr", "deployer", config_map("c", k="1"), role("r"), cluster_role, in_namespace(foreign, config_map("x"))
    )
    message = rig.until_failed("mr", "3 errors occurred")
    user = f"system:serviceaccount:{rig.namespace}:deployer"
    assert message.count(f"as ServiceAccount {rig.namespace}/deployer: ") == 3
    assert message.count(f'User "{user}" cannot ') == 3
    rig.until_data("c", {"k": "1"})
    assert not exists(rig, CONFIG_MAPS.path(namespace=foreign, name="x"))
    assert rig.find("Role", "r") is None

    rig.write_secret("mr", config_map("c", k="2"))
    rig.until_data("c", {"k": "2"})
    rig.until_applied("mr")
    rig.delete("ManagedResource", "mr")
    rig.until_gone("ManagedResource", "mr")
    assert rig.find("ConfigMap", "c") is None
    calls = [
        call
        for call in audit.calls(since=mark, verbs=("create", "update", "patch", "delete"))
        if call.user == rig.agent.user and call.resource in {"configmaps", "roles", "clusterroles"}
    ]
    assert {("create", 201), ("update", 200), ("delete", 200)} <= {(call.verb, call.status) for call in calls}
    for call in calls:
        impersonated = call.event["impersonatedUser"]
        assert impersonated["username"] == user
        assert set(impersonated["groups"]) == {
            "system:serviceaccounts",
            f"system:serviceaccounts:{rig.namespace}",
            "system:authenticated",
        }


def test_a_refused_author_cannot_tell_what_exists_in_other_namespaces(rig: Rig, foreign: str, audit: Audit) -> None:
    let_deploy(rig, "configmaps")
    ignore = {"resources.gardener.cloud/ignore": "true"}
    # Known to the watches of the agent, since it is managed, and told by others if one asks for it.
    rig.write("owner", in_namespace(foreign, config_map("there", k="hidden")))
    rig.until_applied("owner")
    mark = audit.mark()

    def told(by: str, name: str, annotated: dict[str, str] | None = None) -> str:
        write_as(rig, by, "deployer", in_namespace(foreign, config_map(name, annotated)))
        message: str = rig.until_failed(by, "is forbidden")
        return message.replace(name, "NAME")

    assert told("there", "there") == told("gone", "gone")
    assert told("there-ignored", "there", ignore) == told("gone-ignored", "gone", ignore)

    # It was never theirs: nothing is held up when they give it up.
    rig.write_secret("there")
    rig.until_applied("there")
    rig.delete("ManagedResource", "gone")
    rig.until_gone("ManagedResource", "gone")
    writes = audit.calls(since=mark, namespace=foreign, verbs=("create", "update", "patch", "delete"))
    # Others give each new namespace a ServiceAccount and the like.
    assert [call for call in writes if call.user == rig.agent.user and call.status < 300] == []
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


def test_what_the_account_may_not_delete_any_more_holds_the_managed_resource_and_says_why(rig: Rig) -> None:
    let_deploy(rig, "configmaps")
    write_as(rig, "mr", "deployer", config_map("c"))
    rig.until_applied("mr")
    rig.cluster.api.delete(ROLE_BINDINGS.path(namespace=rig.namespace, name="deployer"))
    rig.until(lambda: not may_delete(rig, "configmaps"), "the API server to know")
    rig.delete("ManagedResource", "mr")
    refused = f'as ServiceAccount {rig.namespace}/deployer: configmaps "c" is forbidden: User '
    rig.until_failed("mr", refused, "or the object kept", reason="DeletionPending")
    assert "deletionTimestamp" not in rig.get("ConfigMap", "c")["metadata"]
    rig.patch("ManagedResource", "mr", {"spec": {"keepObjects": True}})
    rig.until_gone("ManagedResource", "mr")
    assert rig.find("ConfigMap", "c")
