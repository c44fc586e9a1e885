"""Which ConfigMaps and Secrets objects refer to: what manifests name, and what annotations state."""

from typing import Any

import pytest

from gardener.references import Name, annotation_key, inject_annotations, kind_from_annotation_key, references
from kit.objects import managed_resource, obj

PREFIX = "reference.resources.gardener.cloud/"

PLACES: dict[str, tuple[dict[str, Any], str, str]] = {
    f"{where}: {what}": ({where: [container]}, kind, name)
    for where in ("containers", "initContainers", "ephemeralContainers")
    for what, container, kind, name in [
        ("envFrom of a Secret", {"envFrom": [{"secretRef": {"name": "a"}}]}, "secret", "a"),
        ("envFrom of a ConfigMap", {"envFrom": [{"configMapRef": {"name": "b"}}]}, "configmap", "b"),
        ("variable of a Secret", {"env": [{"valueFrom": {"secretKeyRef": {"name": "c"}}}]}, "secret", "c"),
        ("variable of a ConfigMap", {"env": [{"valueFrom": {"configMapKeyRef": {"name": "d"}}}]}, "configmap", "d"),
    ]
} | {
    "volume of a Secret": ({"volumes": [{"secret": {"secretName": "e"}}]}, "secret", "e"),
    "volume of a ConfigMap": ({"volumes": [{"configMap": {"name": "f"}}]}, "configmap", "f"),
    "projected Secret": ({"volumes": [{"projected": {"sources": [{"secret": {"name": "g"}}]}}]}, "secret", "g"),
    "projected ConfigMap": ({"volumes": [{"projected": {"sources": [{"configMap": {"name": "h"}}]}}]}, "configmap", "h"),
    "pull secret": ({"imagePullSecrets": [{"name": "i"}]}, "secret", "i"),
    "CSI": ({"volumes": [{"csi": {"nodePublishSecretRef": {"name": "j"}}}]}, "secret", "j"),
    "Azure file": ({"volumes": [{"azureFile": {"secretName": "k", "shareName": "s"}}]}, "secret", "k"),
    **{
        kind: ({"volumes": [{"name": "v", kind: {"secretRef": {"name": "l"}}}]}, "secret", "l")
        for kind in ("cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
    },
    "kind to come": ({"volumes": [{"newest": {"auth": {"loginSecretRef": {"name": "m"}}}}]}, "secret", "m"),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_pod_protects_what_it_names(place: str) -> None:
    spec, kind, name = PLACES[place]
    annotated = inject_annotations(obj("v1 Pod", "p", spec=spec))
    assert annotated["metadata"]["annotations"] == {annotation_key(kind, name): name}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": None, "volumes": None, "imagePullSecrets": None},
        {"containers": [{"env": [{"name": "A", "value": "a"}], "envFrom": [{}]}], "volumes": [{"emptyDir": {}}]},
        {"volumes": [{"secret": {}}, {"configMap": {"name": ""}}, {"projected": {"sources": [{"downwardAPI": {}}]}}]},
        {"containers": [{"env": [{"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]},
        {"containers": "none", "volumes": [None], "imagePullSecrets": {"name": "a"}},
        {"nodeSelector": {"secretName": "a"}, "volumes": [{"csi": {"nodePublishSecretRef": None}}]},
        {"affinity": {"podAffinity": [{"labelSelector": {"matchLabels": {"secretName": "a"}}}]}},
        {"volumes": [{"persistentVolumeClaim": {"claimName": "a"}}, {"downwardAPI": {"items": [{"path": "secret"}]}}]},
    ],
)
def test_a_pod_that_names_nothing_needs_no_annotations(spec: dict[str, Any]) -> None:
    pod = obj("v1 Pod", "p", spec=spec)
    assert inject_annotations(pod) == pod


POD = {"containers": [{"envFrom": [{"secretRef": {"name": "s"}}]}]}
SECRET = {annotation_key("secret", "s"): "s"}
WORKLOADS = [
    *[(f"apps/{version}", kind) for version in ("v1", "v1beta1", "v1beta2") for kind in ("Deployment", "StatefulSet")],
    *(("apps/v1", "DaemonSet"), ("apps/v1beta2", "DaemonSet"), ("batch/v1", "Job")),
]


@pytest.mark.parametrize(("api_version", "kind"), WORKLOADS)
def test_a_workload_and_its_template_are_annotated(api_version: str, kind: str) -> None:
    found = inject_annotations(obj(f"{api_version} {kind}", spec={"template": {"spec": POD}}))
    assert found["metadata"] == {"annotations": SECRET}
    assert found["spec"]["template"] == {"metadata": {"annotations": SECRET}, "spec": POD}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_cron_job_and_both_of_its_templates_are_annotated(version: str) -> None:
    job = {"spec": {"template": {"spec": POD}}}
    found = inject_annotations(obj(f"batch/{version} CronJob", spec={"jobTemplate": job}))
    template = found["spec"]["jobTemplate"]
    assert found["metadata"] == template["metadata"] == {"annotations": SECRET}
    assert template["spec"]["template"]["metadata"] == {"annotations": SECRET}


def test_a_managed_resource_protects_its_secrets() -> None:
    found = inject_annotations(managed_resource(spec={"secretRefs": [{"name": "s"}, {"name": "t"}]}))
    assert found["metadata"]["annotations"] == {annotation_key("secret", name): name for name in "st"}


def test_a_prometheus_protects_what_its_pods_and_remotes_need() -> None:
    basic = {"username": {"name": "c", "key": "u"}, "password": {"name": "d", "key": "p"}}
    spec = {
        "containers": [{"envFrom": [{"secretRef": {"name": "a"}}]}],
        "volumes": [{"configMap": {"name": "b"}}],
        "remoteWrite": [{"url": "x"}, {"basicAuth": basic}],
    }
    found = inject_annotations(obj("monitoring.coreos.com/v1 Prometheus", spec=spec))
    wanted = [("secret", "a"), ("configmap", "b"), ("secret", "c"), ("secret", "d")]
    assert found["metadata"]["annotations"] == {annotation_key(kind, name): name for kind, name in wanted}


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("v1", "ConfigMap"), ("apps/v1beta1", "DaemonSet"), ("apps/v1", "ReplicaSet"), ("example.com/v1", "Deployment")],
)
def test_a_kind_that_protects_nothing_is_an_error(api_version: str, kind: str) -> None:
    with pytest.raises(ValueError, match=f"^unhandled object type {api_version} {kind}$"):
        inject_annotations(obj(f"{api_version} {kind}"))


def test_references_that_are_not_wanted_any_more_go_and_others_stay() -> None:
    template = {"metadata": {"annotations": {f"{PREFIX}configmap-old": "x"}, "labels": {"app": "a"}}, "spec": POD}
    old = {f"{PREFIX}secret-old": "x", "mine": "y"}
    deployment = obj("apps/v1 Deployment", "d", annotations=old, spec={"template": template})
    before = str(deployment)
    found = inject_annotations(deployment, f"{PREFIX}more")
    assert found["metadata"]["annotations"] == {"mine": "y", f"{PREFIX}more": "", **SECRET}
    expected = {"annotations": {f"{PREFIX}more": "", **SECRET}, "labels": {"app": "a"}}
    assert found["spec"]["template"]["metadata"] == expected
    assert str(deployment) == before


def test_the_same_name_in_several_places_is_one_reference() -> None:
    spec = {"containers": [{"envFrom": [{"secretRef": {"name": "s"}}]}], "imagePullSecrets": [{"name": "s"}]}
    assert inject_annotations(obj("v1 Pod", spec=spec))["metadata"]["annotations"] == SECRET


# --- annotations


def test_a_key_has_the_hash_of_the_name() -> None:
    assert annotation_key("configmap", "test-5678") == f"{PREFIX}configmap-4ed34879"


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (f"{PREFIX}configmap-82a3537f", "configmap"),
        (f"{PREFIX}secret-x", "secret"),
        (f"{PREFIX}secret-", "secret"),
        (f"{PREFIX}widget-1", "widget"),
        (f"{PREFIX}secret", ""),
        (f"{PREFIX}secret-a-b", ""),
        (f"{PREFIX}", ""),
        ("reference.resources.gardener.cloud", ""),
        ("resources.gardener.cloud/secret-1", ""),
        (f"x{PREFIX}secret-1", ""),
    ],
)
def test_the_kind_stands_before_the_only_hyphen(key: str, kind: str) -> None:
    assert kind_from_annotation_key(key) == kind


def test_an_object_refers_to_its_own_namespace_and_by_its_own_annotations() -> None:
    referring = {
        "metadata": {
            "namespace": "here",
            "annotations": {
                f"{PREFIX}secret-1": "a",
                f"{PREFIX}secret-2": "b",
                f"{PREFIX}configmap-1": "a",
                f"{PREFIX}secret-3": "",
                f"{PREFIX}secret-4-5": "c",
                "other": "d",
            },
        },
        "spec": {"template": {"metadata": {"annotations": {f"{PREFIX}secret-6": "e"}}}},
    }
    assert list(references(referring)) == [
        Name("secret", "here", "a"),
        Name("secret", "here", "b"),
        Name("configmap", "here", "a"),
    ]


def test_an_object_without_annotations_refers_to_nothing() -> None:
    assert list(references({"metadata": {"annotations": None}})) == []
