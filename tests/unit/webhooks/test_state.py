"""What is watched for whom; that it follows the cluster is tested with a real one."""

from collections.abc import Sequence
from typing import Any

import pytest

from config.resource_manager.webhooks import (
    HighAvailabilityConfig,
    ProjectedTokenMount,
    SystemComponentsConfig,
    Webhook,
    Webhooks,
)
from kit.objects import obj
from kit.webhooks.mutating import StillCaches, at_once, state_of
from kube.errors import NotFound
from kube.objects import Object
from webhooks.handlers.high_availability_config.cluster import ClusterLister, Target
from webhooks.handlers.pod_kube_apiserver_load_balancing import Gateways
from webhooks.handlers.system_components_config import view
from webhooks.registry import enabled
from webhooks.state import NotCovered, SharedListers

ALL = Webhooks(
    high_availability_config=HighAvailabilityConfig(enabled=True),
    projected_token_mount=ProjectedTokenMount(enabled=True),
    system_components_config=SystemComponentsConfig(enabled=True, node_selector={"a": "b", "c": "d"}),
    pod_kube_apiserver_load_balancing=Webhook(enabled=True),
    seccomp_profile=Webhook(enabled=True),
)
SCALED = {"namespaces", "horizontalpodautoscalers", "hvpas"}


def read_by(webhooks: Webhooks, *objects: Object, namespaces: Sequence[str] = ()) -> SharedListers:
    """With what the enabled webhooks read."""
    state = state_of(*objects, namespaces=namespaces)
    for webhook in enabled(webhooks):
        webhook.endpoint(webhook.settings_in(webhooks), state)
    return state


def watched(state: SharedListers) -> set[str]:
    caches: Any = state.target.caches
    assert isinstance(caches, StillCaches)
    return {resource.plural for resource in caches.stores}


@pytest.mark.parametrize(
    ("webhooks", "plurals"),
    [
        (Webhooks(), set()),
        (Webhooks(seccomp_profile=Webhook(enabled=True), endpoint_slice_hints=Webhook(enabled=True)), set()),
        (Webhooks(high_availability_config=HighAvailabilityConfig(enabled=True)), SCALED),
        (
            Webhooks(high_availability_config=HighAvailabilityConfig(enabled=True, behavior="latest")),
            {*SCALED, "nodes"},
        ),
        (Webhooks(projected_token_mount=ProjectedTokenMount(enabled=True)), {"serviceaccounts"}),
        (Webhooks(system_components_config=SystemComponentsConfig(enabled=True)), {"nodes"}),
        (Webhooks(pod_kube_apiserver_load_balancing=Webhook(enabled=True)), {"configmaps", "services"}),
    ],
)
def test_only_what_an_enabled_webhook_reads_is_watched(webhooks: Webhooks, plurals: set[str]) -> None:
    assert watched(read_by(webhooks)) == plurals


def test_everything_is_given_back() -> None:
    state = read_by(ALL)
    assert watched(state)
    at_once(state.close())
    assert not watched(state)
    at_once(state.close())


def test_nothing_is_waited_for_at_the_start_but_what_exists_for_sure() -> None:
    caches: Any = read_by(ALL).target.caches
    assert {resource.plural for resource, store in caches.stores.items() if not store.needed_at_start} == {"hvpas"}


def test_only_selected_nodes_are_watched() -> None:
    assert view({"a": "b", "c": "d"}).label_selector == "a=b,c=d"


def test_a_namespace_keeps_its_labels_and_the_annotations_that_matter() -> None:
    annotations = {"high-availability-config.resources.gardener.cloud/zones": "a", "other": "x"}
    state = read_by(ALL, obj("v1 Namespace", "ns", labels={"l": "1"}, annotations=annotations))
    found = at_once(state.namespace("ns"))
    assert found.labels == {"l": "1"}
    assert found.annotations == {"high-availability-config.resources.gardener.cloud/zones": "a"}


async def test_a_namespace_that_the_api_server_does_not_have_is_not_found() -> None:
    with pytest.raises(NotFound, match='^namespaces "missing" not found$'):
        await read_by(ALL).namespace("missing")


def test_a_broken_autoscaler_scales_nothing_or_to_nothing() -> None:
    hpa, spec = "autoscaling/v2 HorizontalPodAutoscaler", {"hpa": {"deploy": "true"}, "targetRef": {"name": "e"}}
    state = state_of(
        obj(hpa, "ns/a", spec=None),
        obj(hpa, "ns/b", spec={"scaleTargetRef": {"name": "d"}}),
        obj("autoscaling.k8s.io/v1alpha1 Hvpa", "ns/c", spec=spec),
    )
    lister = ClusterLister(HighAvailabilityConfig(), state)
    assert lister.max_replicas(Target("ns", "", "", "d")) == 0
    assert lister.max_replicas(Target("ns", "", "", "e")) is None


def test_namespaces_that_are_not_watched_are_reported() -> None:
    state = state_of(namespaces=["kube-system"])
    gateways, lister = Gateways(state), ClusterLister(HighAvailabilityConfig(), state)
    assert gateways.configured("kube-system") is None
    assert lister.max_replicas(Target("kube-system", "apps/v1", "Deployment", "d")) is None
    for ask in (gateways.configured, gateways.ips, lambda name: lister.max_replicas(Target(name, "", "", ""))):
        with pytest.raises(NotCovered, match="targetClientConnection.namespaces"):
            ask("default")
