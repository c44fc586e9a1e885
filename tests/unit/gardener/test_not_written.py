"""What a manifest requests explicitly is written, or it is reported that it is not."""

import time
from typing import Any

import pytest

from gardener.keys import FIELD_MANAGER
from gardener.managed_resource.merge import merge, merge_options
from gardener.managed_resource.merge.not_written import not_written
from gardener.managed_resource.remedies import remedies_of_warnings
from kube.objects import Object

CLAIMS = "spec.volumeClaimTemplates"
DATA: Object = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
STORED: Object = {**DATA, "spec": {**DATA["spec"], "volumeMode": "Filesystem"}, "status": {"phase": "Pending"}}
MORE: Object = {**DATA, "spec": {"resources": {"requests": {"storage": "2Gi"}}}}
SAME: Object = {**DATA, "spec": {"resources": {"requests": {"storage": "1024Mi"}}}}
CPU: Object = {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}}
MORE_CPU: Object = {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}}
RULE, OTHER = {"verbs": ["get"]}, {"verbs": ["list"]}
AGGREGATED: Object = {"aggregationRule": {"clusterRoleSelectors": [{}]}}


def obj(kind: str, content: Object, **meta: Any) -> Object:
    api_version, _, name = kind.rpartition(" ")
    created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "n", **created, **meta}, **content}


def fields(
    manifest: Object, live: Object, *, ignored: tuple[tuple[str, ...], ...] = (), is_scaled: bool = False
) -> list[str]:
    """The paths that are reported."""
    options = merge_options(manifest, horizontally_scaled=is_scaled, vertically_scaled=is_scaled)
    merged = merge(
        *(manifest, live), origin="ns/mr", ignored=ignored, horizontally_scaled=is_scaled, vertically_scaled=is_scaled
    )
    return [text.split('"')[1] for text in not_written(manifest, merged, live, options, ignored=ignored)]


@pytest.mark.parametrize(
    ("kind", "manifest", "live", "reported"),
    [
        ("apps/v1 StatefulSet", {"volumeClaimTemplates": [DATA]}, {"volumeClaimTemplates": [STORED]}, []),
        ("apps/v1 StatefulSet", {"volumeClaimTemplates": [SAME]}, {"volumeClaimTemplates": [STORED]}, []),
        ("apps/v1 StatefulSet", {"volumeClaimTemplates": [MORE]}, {"volumeClaimTemplates": [STORED]}, [CLAIMS]),
        ("apps/v1 StatefulSet", {"volumeClaimTemplates": [DATA, MORE]}, {"volumeClaimTemplates": [STORED]}, [CLAIMS]),
        ("apps/v1 StatefulSet", {"volumeClaimTemplates": [DATA]}, {}, [CLAIMS]),
        ("apps/v1 StatefulSet", {}, {"volumeClaimTemplates": [STORED]}, [CLAIMS]),
        ("apps/v1 Deployment", {"replicas": 2}, {"replicas": 3}, []),
        ("v1 Service", {"clusterIP": "10.0.0.2"}, {"clusterIP": "10.0.0.1"}, ["spec.clusterIP"]),
        ("v1 Service", {"clusterIP": "10.0.0.2"}, {"clusterIP": "None"}, ["spec.clusterIP"]),
        ("v1 Service", {"clusterIP": "10.0.0.1"}, {"clusterIP": "10.0.0.1"}, []),
        ("v1 Service", {"clusterIP": ""}, {"clusterIP": "10.0.0.1"}, []),
        ("v1 Service", {"type": "NodePort", "ports": [{"port": 1}]}, {"ports": [{"port": 1, "nodePort": 30001}]}, []),
        (
            "batch/v1 Job",
            {"selector": {"matchLabels": {"a": "b"}}},
            {"selector": {"matchLabels": {"uid": "x"}}},
            ["spec.selector"],
        ),
        ("batch/v1 Job", {}, {"selector": {"matchLabels": {"uid": "x"}}}, []),
        ("v1 Pod", {"nodeName": "a"}, {"nodeName": "b"}, []),
        ("v1 PersistentVolumeClaim", {"volumeName": "a"}, {"volumeName": "b", "volumeMode": "Block"}, []),
    ],
)
def test_a_value_that_the_live_object_keeps_is_reported(
    kind: str, manifest: Object, live: Object, reported: list[str]
) -> None:
    assert fields(obj(kind, {"spec": manifest}), obj(kind, {"spec": live})) == reported


@pytest.mark.parametrize(
    ("manifest", "live", "reported"),
    [
        ({**AGGREGATED, "rules": [RULE]}, {**AGGREGATED, "rules": [OTHER]}, ["rules"]),
        ({**AGGREGATED, "rules": [RULE]}, AGGREGATED, ["rules"]),
        ({**AGGREGATED, "rules": []}, {**AGGREGATED, "rules": [OTHER]}, []),
        (AGGREGATED, {**AGGREGATED, "rules": [OTHER]}, []),
        ({"rules": [RULE]}, {"rules": [OTHER]}, []),
    ],
)
def test_rules_beside_an_aggregation_rule_never_count(manifest: Object, live: Object, reported: list[str]) -> None:
    kind = "rbac.authorization.k8s.io/v1 ClusterRole"
    assert fields(obj(kind, manifest), obj(kind, live)) == reported


def test_finalizers_are_written_at_creation_only() -> None:
    kind = "v1 ConfigMap"
    wanted = obj(kind, {}, finalizers=["example.com/a", "example.com/b"])
    assert fields(wanted, obj(kind, {}, finalizers=["example.com/a"])) == ["metadata.finalizers"]
    assert fields(wanted, obj(kind, {}, finalizers=["example.com/b", "example.com/a"])) == []
    assert fields(wanted, obj(kind, {}, deletionTimestamp="2026-01-01T00:00:00Z")) == []


def test_pull_secrets_that_the_manifest_no_longer_has_stay_and_are_reported() -> None:
    kind, lists = "v1 ServiceAccount", {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}
    agent = {"manager": FIELD_MANAGER, "operation": "Update", "fieldsV1": {"f:imagePullSecrets": {}}}
    manifest = obj(kind, {"imagePullSecrets": [{"name": "b"}]})
    assert fields(manifest, obj(kind, lists, managedFields=[agent])) == ["imagePullSecrets"]
    assert fields(manifest, obj(kind, lists)) == []


def test_what_the_user_leaves_to_others_is_not_reported() -> None:
    kind = "apps/v1 Deployment"
    manifest, live = obj(kind, {"spec": {"replicas": 1, **CPU}}), obj(kind, {"spec": {"replicas": 2, **MORE_CPU}})
    assert fields(manifest, live, is_scaled=True) == []
    pointers = (("spec", "replicas"), ("spec", "template"), ("metadata", "annotations", "x"))
    assert fields(manifest, live, ignored=pointers) == []


def test_the_remedy_names_the_field() -> None:
    kind = "apps/v1 StatefulSet"
    manifest, live = (
        obj(kind, {"spec": {"volumeClaimTemplates": [MORE]}}),
        obj(kind, {"spec": {"volumeClaimTemplates": [DATA]}}),
    )
    merged = merge(manifest, live, origin="ns/mr")
    options = merge_options(manifest, horizontally_scaled=False, vertically_scaled=False)
    texts = not_written(manifest, merged, live, options)
    (remedy,) = remedies_of_warnings(f"apps/v1/StatefulSet/ns/n: {', '.join(texts)}")
    assert remedy.startswith(
        "StatefulSet/ns/n: spec.volumeClaimTemplates: undo the change, or delete the StatefulSet with "
    )


@pytest.mark.parametrize(("number", "reported"), [(10, []), (200, ["rules"])])
def test_lists_in_lists_are_compared_within_a_bound(number: int, reported: list[str]) -> None:
    verbs = [f"v{each}" for each in range(number)]
    wanted = [{"verbs": [*verbs, f"own{each}"]} for each in range(number)]
    present = [{"verbs": [*reversed(verbs), f"own{each}"]} for each in reversed(range(number))]
    kind, begin = "rbac.authorization.k8s.io/v1 ClusterRole", time.thread_time()
    assert fields(obj(kind, {**AGGREGATED, "rules": wanted}), obj(kind, {**AGGREGATED, "rules": present})) == reported
    assert time.thread_time() - begin < 1
