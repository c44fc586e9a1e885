"""What is watched for whom; that facts follow the cluster is tested with a real one."""

import asyncio
from typing import Any

import pytest
from mutating import StillCaches, at_once, facts_of

from config.schema_webhooks import (
    HighAvailabilityConfig,
    ProjectedTokenMount,
    SystemComponentsConfig,
    Webhook,
    Webhooks,
)
from kube.errors import NotFound
from kube.objects import Object
from webhooks import facts as facts_module
from webhooks.facts import Facts, NotCovered, Target


def watched(facts: Facts) -> set[str]:
    caches: Any = facts.target.caches
    assert isinstance(caches, StillCaches)
    return {resource.plural for resource in caches.stores}


ALL = Webhooks(
    high_availability_config=HighAvailabilityConfig(enabled=True),
    projected_token_mount=ProjectedTokenMount(enabled=True),
    system_components_config=SystemComponentsConfig(enabled=True, node_selector={"a": "b", "c": "d"}),
    pod_kube_apiserver_load_balancing=Webhook(enabled=True),
    kubernetes_service_host=Webhooks().kubernetes_service_host,
    seccomp_profile=Webhook(enabled=True),
)


@pytest.mark.parametrize(
    ("webhooks", "plurals"),
    [
        (Webhooks(), set()),
        (Webhooks(seccomp_profile=Webhook(enabled=True), endpoint_slice_hints=Webhook(enabled=True)), set()),
        (
            Webhooks(high_availability_config=HighAvailabilityConfig(enabled=True)),
            {"namespaces", "horizontalpodautoscalers", "hvpas"},
        ),
        (
            Webhooks(high_availability_config=HighAvailabilityConfig(enabled=True, behavior="latest")),
            {"namespaces", "horizontalpodautoscalers", "hvpas", "nodes"},
        ),
        (Webhooks(projected_token_mount=ProjectedTokenMount(enabled=True)), {"serviceaccounts"}),
        (Webhooks(system_components_config=SystemComponentsConfig(enabled=True)), {"nodes"}),
        (Webhooks(pod_kube_apiserver_load_balancing=Webhook(enabled=True)), {"configmaps", "services"}),
    ],
)
def test_only_what_an_enabled_webhook_reads_is_watched(webhooks: Webhooks, plurals: set[str]) -> None:
    assert watched(facts_of(webhooks)) == plurals


def test_everything_is_given_back() -> None:
    facts = facts_of(ALL)
    assert watched(facts)
    at_once(facts.close())
    assert not watched(facts)
    at_once(facts.close())


def test_nothing_is_waited_for_at_the_start_but_what_exists_for_sure() -> None:
    facts = facts_of(ALL)
    caches: Any = facts.target.caches
    assert {resource.plural for resource, store in caches.stores.items() if not store.needed_at_start} == {"hvpas"}


def test_only_selected_nodes_are_watched() -> None:
    assert facts_of(ALL)._system_nodes.view.label_selector == "a=b,c=d"


def test_a_namespace_keeps_its_labels_and_the_annotations_that_matter() -> None:
    annotations = {"high-availability-config.resources.gardener.cloud/zones": "a", "other": "x"}
    metadata = {"name": "ns", "labels": {"l": "1"}, "annotations": annotations}
    facts = facts_of(ALL, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    found = at_once(facts.namespace("ns"))
    assert found.labels == {"l": "1"}
    assert found.annotations == {"high-availability-config.resources.gardener.cloud/zones": "a"}


async def test_a_namespace_that_comes_late_is_waited_for() -> None:
    facts = facts_of(ALL)
    waiting = asyncio.create_task(facts.namespace("late"))
    await asyncio.sleep(0)
    assert not waiting.done()
    for version, name in enumerate(["other", "late"], start=1):
        facts._namespaces._put({"metadata": {"name": name, "resourceVersion": str(version)}}, initial=False)
    assert await waiting == ({}, {})
    assert facts._namespaces._handlers == []


async def test_a_namespace_that_never_comes_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "_ARRIVAL_SECONDS", 0.01)
    with pytest.raises(NotFound, match='^namespaces "missing" not found$'):
        await facts_of(ALL).namespace("missing")


def test_a_broken_autoscaler_scales_nothing_or_to_nothing() -> None:
    def scaler(kind: str, api_version: str, name: str, spec: Any) -> Object:
        metadata = {"namespace": "ns", "name": name}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}

    facts = facts_of(
        ALL,
        scaler("HorizontalPodAutoscaler", "autoscaling/v2", "a", None),
        scaler("HorizontalPodAutoscaler", "autoscaling/v2", "b", {"scaleTargetRef": {"name": "d"}}),
        scaler("Hvpa", "autoscaling.k8s.io/v1alpha1", "c", {"hpa": {"deploy": "true"}, "targetRef": {"name": "e"}}),
    )
    assert facts.max_replicas(Target("ns", "", "", "d")) == 0
    assert facts.max_replicas(Target("ns", "", "", "e")) is None


def test_namespaces_that_are_not_watched_are_told() -> None:
    facts = facts_of(ALL, namespaces=["kube-system"])
    assert facts.load_balancing("kube-system") is None
    assert facts.max_replicas(Target("kube-system", "apps/v1", "Deployment", "d")) is None
    for ask in (facts.load_balancing, facts.gateway_ips, lambda name: facts.max_replicas(Target(name, "", "", ""))):
        with pytest.raises(NotCovered, match="targetClientConnection.namespaces"):
            ask("default")
