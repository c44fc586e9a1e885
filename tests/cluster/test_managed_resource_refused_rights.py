"""Rights that the agent lacks: what was never created blocks no deletion, and a refused deletion reports what is missing."""

from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from kit.objects import config_map, rule, service
from kit.processes.agent import QuickAgentProcess, sole_configuration
from kit.rbac import grant
from kit.rig import Agent, Rig

RULES = (
    rule("", "events secrets namespaces pods", "*"),
    rule("", "configmaps", "get list watch create update patch"),
    rule("resources.gardener.cloud", "*"),
    rule("coordination.k8s.io", "leases"),
    rule("apiextensions.k8s.io", "customresourcedefinitions"),
    rule("autoscaling", "horizontalpodautoscalers"),
)


@pytest.fixture
def limited_rig(cluster: Cluster, namespace: str, managed_resources: None) -> Iterator[Rig]:
    """Its agent may not delete ConfigMaps, and knows nothing of Services."""
    user = f"limited-{namespace}"
    grant(cluster, user, *RULES)
    controllers = {
        "resourceClass": namespace,
        "managedResource": {"syncPeriod": "15s", "managedByLabelValue": namespace},
    }
    process = QuickAgentProcess(sole_configuration(controllers=controllers), kubeconfig=cluster.kubeconfig_for(user))
    with process as started:
        started.wait_until_ready()
        yield Rig(cluster, namespace, Agent(cluster, resource_class=namespace), started)


def test_what_could_not_be_created_since_it_may_not_be_read_blocks_no_deletion(limited_rig: Rig) -> None:
    rig = limited_rig
    rig.write("mr", service("s"))
    rig.until_failed("mr", 'cannot get resource "services"')
    assert rig.listed("mr") == {"s"}
    rig.delete("ManagedResource", "mr")
    rig.until_gone("ManagedResource", "mr")


def test_a_refused_deletion_reports_who_lacks_which_right(limited_rig: Rig) -> None:
    rig = limited_rig
    rig.apply("mr", config_map("c"))
    rig.delete("ManagedResource", "mr")
    user = f"limited-{rig.namespace}"
    rig.until_failed(
        "mr",
        f'deletion of old resource "v1/ConfigMap/{rig.namespace}/c" is still pending: configmaps "c" is forbidden: ',
        f"allow {user} to delete configmaps in namespace {rig.namespace}, in the target cluster",
        reason="DeletionPending",
    )
    grant(rig.cluster, f"{user}-more", rule("", "configmaps", "delete"), subject={"kind": "User", "name": user})
    rig.until_gone("ManagedResource", "mr")
