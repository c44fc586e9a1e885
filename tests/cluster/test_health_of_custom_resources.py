"""Custom resources are checked by their status, and ManagedResources sum up their conditions, by option."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from gardener.api.kinds import MANAGED_RESOURCES
from kit.eventually import eventually
from kit.kinds import custom_resource, serve
from kit.managed_resources import install_crd
from kit.objects import config_map, obj
from kit.processes.agent import AgentProcess, configuration
from kit.rig import OWN_CLASS, Agent, Rig
from kit.world import connected
from kube.objects import Object, uid
from kube.runtime.client import Selection

WIDGETS = custom_resource("kstatus.example.com", "Widget")
GADGETS = custom_resource("kstatus.example.com", "Gadget")
DOCS = Path(__file__).parents[2] / "docs" / "managed-resource-status.md"


@pytest.fixture(scope="module")
def checking_agent(cluster: Cluster) -> Agent:
    """One with all options about health."""
    install_crd(cluster)
    return Agent(
        cluster,
        resource_class=f"{OWN_CLASS}-checking",
        health={
            "syncPeriod": "15s",
            "kstatus": True,
            "readyCondition": True,
            "healthCheckExprs": [
                {
                    **GADGETS.type_meta,
                    "failed": "status.phase == 'Failed'",
                    "current": "status.phase == 'Running'",
                }
            ],
        },
    )


@pytest.fixture(scope="module")
def checking_process(checking_agent: Agent) -> Iterator[AgentProcess]:
    with checking_agent.start() as process:
        yield process


@pytest.fixture
def checking(cluster: Cluster, namespace: str, checking_agent: Agent, checking_process: AgentProcess) -> Rig:
    serve(cluster, WIDGETS, GADGETS, has_status=True)
    return Rig(cluster, namespace, checking_agent, checking_process)


def widget(rig: Rig, name: str = "w") -> Object:
    return obj(WIDGETS, f"{rig.namespace}/{name}")


def said(kind: str, status: str) -> Object:
    return {"type": kind, "status": status, "reason": "Because", "message": "so it is"}


def set_status(rig: Rig, *conditions: Object, name: str = "w", **status: Any) -> None:
    """What the controller of the object reports of it."""
    path = rig.path(WIDGETS, name, subresource="status")
    reported = {"conditions": list(conditions) or None, "observedGeneration": None, **status}
    rig.api.patch(path, {"status": reported})


def until_reported(rig: Rig, condition_type: str, *expected: str, name: str = "mr") -> str:
    """Waits for status and reason of a condition; its message."""

    def reported() -> str:
        found = rig.condition(name, condition_type)
        return found["message"] if found and (found["status"], found["reason"]) == expected else ""

    return rig.until(reported, f"{condition_type} to be {expected}")


def wrong(kind: str, status: str, expected: str) -> str:
    return f'condition "{kind}" has invalid status {status} (expected {expected}) due to Because: so it is'


HEALTHY = ("ResourcesHealthy", "True", "ResourcesHealthy")
ROLLED_OUT = ("ResourcesProgressing", "False", "ResourcesRolledOut")
UNHEALTHY = ("ResourcesHealthy", "False", "WidgetUnhealthy")
PROGRESSING = ("ResourcesProgressing", "True", "WidgetProgressing")


def test_a_custom_resource_is_checked_by_its_conditions(checking: Rig) -> None:
    checking.apply("mr", widget(checking))
    until_reported(checking, "Ready", "True", "ResourcesReady")
    name = f'Widget "{checking.namespace}/w"'

    set_status(checking, said("Reconciling", "True"), said("Ready", "False"))
    message = until_reported(checking, *PROGRESSING)
    assert message == f"{name} is progressing: {wrong('Reconciling', 'True', 'False')}"
    until_reported(checking, *HEALTHY)
    assert until_reported(checking, "Ready", "Unknown", "WidgetProgressing") == message

    set_status(checking, said("Ready", "False"))
    message = until_reported(checking, *UNHEALTHY)
    assert message == f"{name} is unhealthy: {wrong('Ready', 'False', 'True')}"
    until_reported(checking, *ROLLED_OUT)
    assert until_reported(checking, "Ready", "False", "WidgetUnhealthy") == message

    set_status(checking, said("Ready", "True"))
    until_reported(checking, "Ready", "True", "ResourcesReady")

    set_status(checking, said("Stalled", "True"))
    assert wrong("Stalled", "True", "False") in until_reported(checking, *UNHEALTHY)

    set_status(checking, said("Ready", "True"), observedGeneration=0)
    assert "observed generation outdated (0/1)" in until_reported(checking, *PROGRESSING)
    until_reported(checking, *HEALTHY)

    set_status(checking, said("Ready", "True"), observedGeneration=1)
    until_reported(checking, "Ready", "True", "ResourcesReady")


def test_a_status_of_another_shape_reports_nothing(checking: Rig) -> None:
    checking.apply("mr", widget(checking))
    set_status(checking, conditions={"Ready": "False"}, observedGeneration="none")
    until_reported(checking, "Ready", "True", "ResourcesReady")


def test_a_kind_with_expressions_is_checked_by_them(checking: Rig) -> None:
    checking.apply("mr", obj(GADGETS, f"{checking.namespace}/g"))
    path = checking.path(GADGETS, "g", subresource="status")
    name = f'Gadget "{checking.namespace}/g"'
    message = until_reported(checking, "ResourcesProgressing", "True", "GadgetProgressing")
    assert message == f"{name} is progressing: current is not true: status.phase == 'Running'"

    checking.api.patch(path, {"status": {"phase": "Failed"}})
    message = until_reported(checking, "Ready", "False", "GadgetUnhealthy")
    assert message == f"{name} is unhealthy: failed is true: status.phase == 'Failed'"

    # Conditions do not count for this kind.
    checking.api.patch(path, {"status": {"phase": "Running", "conditions": [said("Ready", "False")]}})
    until_reported(checking, "Ready", "True", "ResourcesReady")

    checking.api.patch(path, {"status": {"phase": 7}})
    until_reported(checking, "ResourcesProgressing", "True", "GadgetProgressing")

    checking.api.patch(path, {"status": {"phase": None}})
    message = until_reported(checking, "Ready", "False", "HealthCheckError")
    assert message == (
        f"Error executing health check for {name}: expression failed (status.phase == 'Failed'):"
        ' Key not found in map : "phase"'
    )


def test_an_agent_with_a_wrong_expression_does_not_start(cluster: Cluster, namespace: str) -> None:
    expressions = {"apiVersion": "example.com/v1", "kind": "Widget", "current": "status.phase = 'x'"}
    config = configuration(namespace, controllers={"health": {"healthCheckExprs": [expressions]}})
    with AgentProcess(config, kubeconfig=cluster.kubeconfig).start() as agent:
        assert agent.wait() == 1
        assert (
            "controllers.health.healthCheckExprs[0].current: Invalid value: \"status.phase = 'x'\": of Widget: "
            "at column 14: Syntax error"
        ) in agent.output


def test_by_default_it_is_healthy_if_it_exists(rig: Rig, cluster: Cluster) -> None:
    serve(cluster, WIDGETS, has_status=True)
    rig.apply("mr", widget(rig), widget(rig, "witness"))
    until_reported(rig, *HEALTHY)
    set_status(rig, said("Ready", "False"), said("Stalled", "True"), observedGeneration=0)
    # The watch reported that status before this, which is noticed.
    before = uid(rig.get(WIDGETS, "witness"))
    rig.delete(WIDGETS, "witness")
    rig.until(lambda: uid(rig.find(WIDGETS, "witness") or {}) not in {"", before}, "another witness")
    until_reported(rig, *HEALTHY)
    until_reported(rig, *ROLLED_OUT)
    reported = [each["type"] for each in rig.get("ManagedResource", "mr")["status"]["conditions"]]
    assert sorted(reported) == ["ResourcesApplied", "ResourcesHealthy", "ResourcesProgressing"]


async def test_ready_comes_with_the_writes_of_the_others(checking: Rig) -> None:
    began = checking.api.get(MANAGED_RESOURCES.path(namespace=checking.namespace))["metadata"]["resourceVersion"]
    checking.apply("mr", config_map("a"))
    until_reported(checking, "Ready", "True", "ResourcesReady")
    checking.write_secret("mr", config_map("a"), config_map("b"))
    checking.until(lambda: checking.find("ConfigMap", "b"), "ConfigMap b")
    until_reported(checking, "Ready", "True", "ResourcesReady")
    versions = [version async for version in versions_since(checking, began)]
    assert len({bool(conditions_of(each, "Ready")) for each in versions}) == 2, "it came, and was seen coming"
    # How many writes the others need depends on how fast they are.
    assert not [later for earlier, later in pairwise(versions) if without_ready(earlier) == without_ready(later)]


async def versions_since(rig: Rig, resource_version: str) -> AsyncIterator[Object]:
    """Of the ManagedResources in its namespace, as they were one after the other until now."""
    async with (
        connected(rig.cluster) as client,
        client.watch(
            MANAGED_RESOURCES,
            Selection(namespace=rig.namespace),
            resource_version=resource_version,
            timeout_seconds=3,
            idle_timeout=60,
        ) as events,
    ):
        async for event in events:
            if event["type"] != "BOOKMARK":
                yield event["object"]


def conditions_of(version: Object, *kinds: str) -> list[Object]:
    return [each for each in (version.get("status") or {}).get("conditions") or [] if each["type"] in kinds]


def without_ready(version: Object) -> Object:
    meta = {
        name: value for name, value in version["metadata"].items() if name not in {"managedFields", "resourceVersion"}
    }
    others = conditions_of(version, "ResourcesApplied", "ResourcesHealthy", "ResourcesProgressing")
    return {**version, "metadata": meta, "status": {**(version.get("status") or {}), "conditions": others}}


def test_checking_costs_one_write_and_no_read(checking: Rig, audit: Audit) -> None:
    checking.apply("mr", widget(checking))
    until_reported(checking, "Ready", "True", "ResourcesReady")
    mark = audit.mark()
    set_status(checking, said("Reconciling", "True"))
    until_reported(checking, "Ready", "Unknown", "WidgetProgressing")
    set_status(checking, said("Ready", "True"))
    until_reported(checking, "Ready", "True", "ResourcesReady")

    def made() -> list[tuple[str, str]]:
        calls = audit.calls(since=mark, namespace=checking.namespace)
        return [(call.verb, call.resource) for call in calls if call.user == checking.agent.user]

    eventually(lambda: len(made()) > 1, "both writes to be in the audit log")
    assert made() == [("patch", "managedresources/status")] * 2


def test_ready_names_what_fails(checking: Rig) -> None:
    checking.write_managed_resource("mr", secretRefs=[{"name": "nowhere"}])
    assert "nowhere" in until_reported(checking, "Ready", "False", "CannotReadSecret")


def test_a_condition_that_is_not_maintained_any_more_goes(checking: Rig, rig: Rig) -> None:
    checking.apply("mr", config_map("a"))
    until_reported(checking, "Ready", "True", "ResourcesReady")
    left = checking.get("ManagedResource", "mr")["status"]["conditions"]
    rig.apply("other", config_map("b"))
    until_reported(rig, *HEALTHY, name="other")
    path = rig.path("ManagedResource", "other", subresource="status")
    rig.api.patch(path, {"status": {"conditions": left}})
    rig.until(lambda: not rig.condition("other", "Ready"), "Ready to go")


_BLOCK = re.compile(r"^```\n\$ (kubectl [^\n]*condition=Ready[^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
def test_kubectl_waits_for_it_as_the_documentation_shows(checking: Rig) -> None:
    [(command, output)] = _BLOCK.findall(DOCS.read_text())
    checking.write("hello", config_map("hello"))
    words = shlex.split(command.replace("garden", checking.namespace))
    environment = {**os.environ, "KUBECONFIG": str(checking.cluster.kubeconfig)}
    run = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, timeout=120)
    assert (run.returncode, run.stdout) == (0, output), run.stderr
