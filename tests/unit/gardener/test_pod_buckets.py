"""A pod is found among few: every pod that a Deployment selects is in the bucket that is looked into."""

from typing import Any

import pytest

from gardener.health.checks.deployment import PodsWanted, buckets
from kube.objects import Key

POD = {"app": "web", "instance": "web-of-somebody", "pod-template-hash": "5d"}


@pytest.mark.parametrize(
    ("selector", "bucket"),
    [
        ({"matchLabels": {"app": "web"}}, ("ns", "app", "web")),
        ({"matchLabels": {"app": "web", "instance": "web-of-somebody"}}, ("ns", "instance", "web-of-somebody")),
        ({"matchLabels": {"app": "my-app", "component": "controlplane"}}, ("ns", "app", "my-app")),
        ({"matchLabels": {"app": "app", "component": "controlplane"}}, ("ns", "app", "app")),
        ({"matchLabels": {"app": "", "component": "controlplane"}}, ("ns", "component", "controlplane")),
        ({"matchLabels": {"a": "x", "b": "y"}}, ("ns", "b", "y")),
        ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}, ("ns", "app", "web")),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, ("ns",)),
        ({"matchLabels": {}}, ("ns",)),
        ({}, ("ns",)),
        (None, ("ns",)),
    ],
)  # fmt: skip
def test_a_selector_leads_to_its_most_telling_label(selector: Any, bucket: tuple[str, ...]) -> None:
    wanted = PodsWanted(Key("ns", "my-app"), selector, 1)
    assert wanted.bucket == bucket
    if wanted.select(POD):
        assert bucket in buckets("ns", POD)


def test_a_pod_is_in_the_bucket_of_its_namespace_and_of_each_label() -> None:
    assert buckets("ns", {"app": "web", "a": "b"}) == [("ns",), ("ns", "app", "web"), ("ns", "a", "b")]
    assert buckets("ns", {}) == [("ns",)]
