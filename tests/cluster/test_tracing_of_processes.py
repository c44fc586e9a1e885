"""Spans of real processes, as a collector gets them, and work that goes on without a collector."""

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import config_map
from kit.processes.agent import AgentProcess, configuration
from kit.processes.span_collector import Collected, Condition, SpanCollector
from kit.processes.webhooks import SECCOMP, SECCOMP_PROFILE, WebhookProcess, ask, client
from kit.rig import Agent, Rig
from localprocesses.ports import free_port

TRACE, NOT_RECORDED = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SECRET = "hunter2-is-the-password"


@pytest.fixture
def collector() -> Iterator[SpanCollector]:
    with SpanCollector() as started:
        yield started


def everything_to(endpoint: str) -> dict[str, Any]:
    return {"enabled": True, "endpoint": endpoint, "samplingRatePerMillion": 1_000_000}


def arrived(process: AgentProcess, collector: SpanCollector, wanted: Condition) -> Collected:
    return process.wait_for(lambda: collector.find(wanted), what="a span")


def traced_agent(cluster: Cluster, namespace: str, endpoint: str) -> tuple[AgentProcess, Rig]:
    """An agent that is to be started, and the namespace that it looks after."""
    install_crd(cluster)
    agent = Agent(cluster, resource_class=f"t{uuid.uuid4().hex[:8]}")
    config = configuration(
        namespace,
        leaderElection={"leaderElect": False},
        controllers={
            "resourceClass": agent.resource_class,
            "managedResource": {"managedByLabelValue": agent.managed_by},
        },
        tracing=everything_to(endpoint),
    )
    process = AgentProcess(config, kubeconfig=cluster.kubeconfig)
    return process, Rig(cluster, namespace, agent, process)


def test_passes_arrive_with_the_requests_they_send(cluster: Cluster, namespace: str, collector: SpanCollector) -> None:
    process, rig = traced_agent(cluster, namespace, collector.endpoint)
    with process.start().wait_until_ready():
        rig.write("traced", config_map("made", {"password": SECRET}))
        call = arrived(process, collector, lambda span: span.name == "create configmaps")
        attempt = arrived(process, collector, lambda span: span.span_id == call.parent_id)

        def is_of_a_pass(span: Collected) -> bool:
            roots = {each.trace_id for each in list(collector.spans) if each.name == "reconcile managedresource"}
            return span.name == "patch managedresources/status" and span.trace_id in roots

        arrived(process, collector, is_of_a_pass)  # others write it, too, and may be the first
        assert process.stop() == 0
    assert attempt.service == "resource-manager-agent"
    assert (attempt.name, attempt.parent_id) == ("reconcile managedresource", "")
    assert attempt.attributes["controller"] == "managedresource"
    assert attempt.attributes["k8s.namespace.name"] == namespace
    assert attempt.attributes["k8s.object.name"] == "traced"
    assert attempt.attributes["reconcile.result"] in {"success", "requeue_after", "requeue"}
    assert attempt.attributes["reconcile.id"] in {entry.get("reconcileID") for entry in process.entries}
    assert call.trace_id == attempt.trace_id
    assert call.attributes["http.response.status_code"] == 201
    assert call.attributes["k8s.resource"] == "configmaps"
    assert call.attributes["k8s.namespace.name"] == namespace
    # Watches and what else runs on and on would bury the rest.
    roots = {span.name for span in collector.spans if not span.parent_id}
    assert all(name.startswith("reconcile ") for name in roots)
    assert not any("watch" in str(span.attributes) for span in collector.spans)
    assert SECRET.encode() not in collector.raw


async def test_admissions_continue_the_trace_of_the_api_server(cluster: Cluster, collector: SpanCollector) -> None:
    parents = [f"{number:016x}" for number in range(1, 9)]
    with WebhookProcess(
        SECCOMP_PROFILE,
        kubeconfig=cluster.kubeconfig,
        tracing=everything_to(collector.endpoint),
        gracefulShutdownTimeout="15s",
    ) as server:
        await server.until_ready()
        async with client(force_close=True) as session:
            for parent in parents:
                await ask(session, server.url + SECCOMP, traceparent=f"00-{TRACE}-{parent}-01")
            await ask(session, server.url + SECCOMP, traceparent=f"00-{TRACE}-{NOT_RECORDED}-00")
        spans = [
            await asyncio.to_thread(arrived, server, collector, lambda span, parent=parent: span.parent_id == parent)  # type: ignore[misc]
            for parent in parents
        ]
        assert await asyncio.to_thread(server.stop) == 0
    assert {(span.service, span.name, span.trace_id) for span in spans} == {
        ("resource-manager-webhooks", f"POST {SECCOMP}", TRACE)
    }
    found = spans[0].attributes
    assert (found["admission.webhook"], found["admission.uid"]) == ("seccomp-profile", "u1")
    assert (found["admission.operation"], found["admission.kind"]) == ("CREATE", "Pod")
    assert (found["k8s.namespace.name"], found["admission.dry_run"]) == ("default", False)
    assert (found["admission.allowed"], found["admission.patch_operations"]) == (True, 1)
    assert collector.find(lambda span: span.parent_id == NOT_RECORDED) is None


def test_without_a_collector_work_goes_on(cluster: Cluster, namespace: str) -> None:
    process, rig = traced_agent(cluster, namespace, f"http://127.0.0.1:{free_port()}")
    with process.start().wait_until_ready():
        rig.write("traced", config_map("made", {"a": "b"}))
        process.wait_for(lambda: rig.find("ConfigMap", "made"), what="the object")
        entry = process.wait_for_log("Cannot deliver all spans")
        assert entry["level"] == "info"
        rig.delete("ManagedResource", "traced")
        process.wait_for(lambda: rig.find("ManagedResource", "traced") is None, what="its end")
        assert process.stop() == 0
