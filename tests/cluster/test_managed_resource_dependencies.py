"""ManagedResources that depend on others: applied after them, removed before them, without polling."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import config_map, deployment
from kit.rig import Agent, Rig
from kube.objects import Object, is_deleting

DEPENDS_ON = "resources.gardener.cloud/depends-on"
WAITING, INVALID, PENDING = "WaitingForDependencies", "InvalidDependencies", "DeletionPending"


def write(rig: Rig, name: str, *depends_on: str, objects: list[Object] | None = None, **spec: Any) -> None:
    rig.write_secret(name, *([config_map(name)] if objects is None else objects))
    rig.write_managed_resource(name, annotated={DEPENDS_ON: ", ".join(depends_on)} if depends_on else None, **spec)


def depend(rig: Rig, name: str, *depends_on: str) -> None:
    rig.patch("ManagedResource", name, {"metadata": {"annotations": {DEPENDS_ON: ", ".join(depends_on) or None}}})


def test_it_is_applied_after_what_it_depends_on(rig: Rig) -> None:
    write(rig, "top", "middle")
    write(rig, "middle", "base")
    rig.until_failed("top", f"ManagedResource {rig.namespace}/middle, which is not applied", reason=WAITING)
    rig.until_failed("middle", f"ManagedResource {rig.namespace}/base, which does not exist", reason=WAITING)
    assert rig.condition("top", "ResourcesApplied")["status"] == "Progressing"
    assert rig.find("ConfigMap", "top") is None
    assert rig.listed("top") == set()
    write(rig, "base")
    for name in ("base", "middle", "top"):
        rig.until_applied(name)
    made = [rig.get("ConfigMap", name)["metadata"]["uid"] for name in ("base", "middle", "top")]
    applied = [rig.condition(name, "ResourcesApplied")["lastTransitionTime"] for name in ("base", "middle", "top")]
    assert len(set(made)) == 3
    assert applied == sorted(applied)


def test_health_is_waited_for_if_it_is_requested(rig: Rig) -> None:
    write(rig, "base", objects=[deployment("d", replicas=1, paused=True)])
    rig.until_applied("base")
    write(rig, "applied", "base")
    rig.until_applied("applied")
    write(rig, "healthy", "base:healthy")
    rig.until_failed("healthy", f"{rig.namespace}/base, which is not healthy", reason=WAITING)
    assert rig.find("ConfigMap", "healthy") is None
    write(rig, "base", objects=[config_map("c")])
    rig.until_applied("healthy")


def test_changes_that_come_together_are_applied_in_order_and_what_is_applied_is_kept_right(rig: Rig) -> None:
    write(rig, "top", "base", objects=[config_map("top", {"k": "1"})])
    write(rig, "base")
    rig.until_applied("top")
    with rig.asleep():
        rig.write_secret("top", config_map("top", {"k": "2"}))
        rig.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "base"}, "stringData": {"a.yaml": "{"}})
    rig.until_failed("base", reason="DecodingFailed")
    rig.until_failed("top", f"{rig.namespace}/base, which is not applied (DecodingFailed)", reason=WAITING)
    rig.until_data("top", {"k": "1"})
    rig.write_secret("base", config_map("base", {"k": "2"}))
    rig.until_applied("base")
    rig.until_applied("top")
    rig.until_data("top", {"k": "2"})
    # Later failures of the dependency don't keep others from being corrected.
    rig.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "base"}, "stringData": {"a.yaml": "{"}})
    rig.until_failed("base", reason="DecodingFailed")
    rig.delete("ConfigMap", "top")
    rig.until_data("top", {"k": "2"})
    rig.until_applied("top")


def test_who_waits_costs_no_call(rig: Rig, audit: Audit) -> None:
    write(rig, "top", "base")
    rig.until_failed("top", reason=WAITING)
    mark = audit.mark()
    rig.patch("ManagedResource", "top", {"metadata": {"annotations": {"example.com/a": "1"}, "labels": {"a": "b"}}})
    rig.patch("Secret", "top", {"metadata": {"labels": {"a": "b"}}})
    write(rig, "other")
    rig.until_applied("other")
    calls = [call for call in audit.calls(since=mark, namespace=rig.namespace) if call.user == rig.agent.user]
    assert {call.name for call in calls} <= {"other", ""}


def test_a_cycle_is_reported_to_each_member_by_name(rig: Rig) -> None:
    write(rig, "a", "b")
    write(rig, "b", "c")
    write(rig, "outside", "a")
    rig.until_failed("b", "c, which does not exist", reason=WAITING)
    write(rig, "c", "a")
    ns = rig.namespace
    for cycle in (f"{ns}/a -> {ns}/b -> {ns}/c -> {ns}/a", f"{ns}/b -> {ns}/c -> {ns}/a -> {ns}/b"):
        rig.until_failed(cycle.split(" ")[0].rpartition("/")[2], cycle, reason=INVALID)
    rig.until_failed("c", f"{ns}/c -> {ns}/a -> {ns}/b -> {ns}/c", reason=INVALID)
    rig.until_failed("outside", "a, which is not applied", reason=WAITING)
    assert [name for name in ("a", "b", "c", "outside") if rig.find("ConfigMap", name)] == []
    depend(rig, "c")
    for name in ("c", "b", "a", "outside"):
        rig.until_applied(name)
    # Who is in a cycle does not wait for the others with its deletion.
    depend(rig, "c", "a")
    rig.until_failed("b", "depend on each other", reason=INVALID)
    for name in ("b", "c"):
        rig.delete_managed_resource(name)
    assert rig.find("ConfigMap", "a") is not None


def test_what_can_not_be_depended_on_is_reported_and_nothing_is_written(rig: Rig) -> None:
    write(rig, "mr", "mr", "other-namespace/base", "base:ready")
    message = rig.until_failed("mr", "nothing is written or deleted", reason=INVALID)
    for text in ("can't depend on itself", "restrictions.dependencies", 'there is no ":ready"'):
        assert text in message
    assert rig.find("ConfigMap", "mr") is None
    rig.until(lambda: [e for e in rig.events("mr") if e["reason"] == INVALID], "the Event")
    depend(rig, "mr")
    rig.until_applied("mr")


def test_it_is_removed_before_what_it_depends_on(rig: Rig) -> None:
    write(rig, "base")
    write(rig, "top", "base")
    rig.until_applied("top")
    rig.delete("ManagedResource", "base")
    rig.until_failed("base", f"that depend on it are removed: {rig.namespace}/top", reason=PENDING)
    assert rig.find("ConfigMap", "base") is not None
    rig.patch("ConfigMap", "top", {"metadata": {"finalizers": ["example.com/hold"]}})
    rig.delete("ManagedResource", "top")
    rig.until(lambda: is_deleting(rig.get("ConfigMap", "top")), "the deletion")
    assert rig.find("ConfigMap", "base") is not None
    rig.patch("ConfigMap", "top", {"metadata": {"finalizers": None}})
    for name in ("top", "base"):
        rig.until_gone("ManagedResource", name)
    assert rig.find("ConfigMap", "base") is None


@pytest.mark.parametrize("keeps", [True, False])
def test_a_deletion_goes_on_when_none_needs_the_objects_any_more(keeps: bool, rig: Rig) -> None:
    write(rig, "base", keepObjects=keeps)
    write(rig, "top", "base")
    write(rig, "never-applied", "base", "missing")
    rig.until_applied("top")
    rig.delete("ManagedResource", "base")
    if not keeps:
        rig.until_failed("base", f"{rig.namespace}/top;", reason=PENDING)
        depend(rig, "top")
    rig.until_gone("ManagedResource", "base")
    assert (rig.find("ConfigMap", "base") is not None) == keeps
    rig.until_failed("never-applied", f"{rig.namespace}/base, which does not exist", reason=WAITING)


@contextmanager
def namespace_beside(cluster: Cluster, name: str) -> Iterator[str]:
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    cluster.api.delete(f"/api/v1/namespaces/{name}")


def test_others_across_restarts_classes_and_namespaces(cluster: Cluster, namespace: str, rig: Rig) -> None:
    """By what is stored alone: each step is seen by a process that has just started."""
    install_crd(cluster)
    rules = {"dependencies": [{"from": [namespace], "to": [f"{namespace}-*"]}]}
    settings = {"syncPeriod": "15s", "restrictions": rules}
    own = Agent(cluster, resource_class=f"c-{namespace[-10:]}", managedResource=settings)
    with namespace_beside(cluster, f"{namespace}-b") as beside:
        there = Rig(cluster, beside, rig.agent, rig.process)
        with own.start():
            write(rig, "top", f"{beside}/base:healthy", resource_class=own.resource_class)
            rig.until_failed("top", f"{beside}/base, which does not exist", reason=WAITING)
        write(there, "base")  # of the other agent
        there.until_applied("base")
        with own.start():
            rig.until_applied("top")
        # Its agent takes no notice of dependants of namespaces that its own configuration does not allow.
        there.delete_managed_resource("base")
        with own.start():
            rig.delete_managed_resource("top")


def test_a_deletion_waits_across_restarts(rig: Rig) -> None:
    own = Agent(rig.cluster, resource_class=f"c-{rig.namespace[-10:]}")
    with own.start():
        write(rig, "base", resource_class=own.resource_class)
        write(rig, "top", "base", resource_class=own.resource_class)
        rig.until_applied("top")
    rig.delete("ManagedResource", "base")
    with own.start():
        rig.until_failed("base", f"{rig.namespace}/top;", reason=PENDING)
        rig.delete("ManagedResource", "top")
        for name in ("top", "base"):
            rig.until_gone("ManagedResource", name)


def test_the_example_of_the_documentation(rig: Rig) -> None:
    """The metadata and the message are those of the page, save for the namespace."""
    page = (Path(__file__).parents[2] / "docs" / "managed-resource-order.md").read_text()
    section = page.partition("\n## Dependencies\n")[2].partition("\n## ")[0].replace("garden", rig.namespace)
    (metadata,) = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    ((command, message),) = re.findall(r"```\n\$ (.*?)\n(.*?)\n```", section, re.DOTALL)
    assert "ResourcesApplied" in command
    write(rig, "cert-manager", objects=[deployment("cert-manager", replicas=1, paused=True)])
    rig.until(lambda: rig.condition("cert-manager", "ResourcesHealthy").get("status") == "False", "it to be unhealthy")
    # The prefix of annotations has the name of the namespace in it, too.
    documented = yaml.safe_load(metadata.replace(f"{rig.namespace}er.cloud", "gardener.cloud"))["metadata"]
    rig.write_secret("issuers", config_map("issuers"))
    rig.write_managed_resource(documented["name"], annotated=documented["annotations"])
    rig.until_failed("issuers", message, reason=WAITING)
    assert rig.condition("issuers", "ResourcesApplied")["message"] == message
