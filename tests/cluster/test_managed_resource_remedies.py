"""Refusals are distinguished by what this API server reports, each with its remedy: in the condition, and by `kubectl mr`."""

from collections.abc import Iterator

import pytest

from gardener.overview.hints import hints
from kit.eventually import eventually
from kit.objects import config_map, deployment, obj, pod
from kit.rig import Rig
from kube.objects import Object
from kube.resources import NAMESPACES

_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def refused(rig: Rig, *objects: Object, remedy: str) -> str:
    """The message of the condition, which has the remedy; what `describe` and the status page advise is the same."""
    rig.write("mr", *objects)
    message = rig.until_failed("mr", remedy)
    assert any(remedy in advice for advice in hints(rig.get("ManagedResource", "mr"), []))
    return message


def test_a_quota(rig: Rig) -> None:
    path = f"/api/v1/namespaces/{rig.namespace}/resourcequotas"
    rig.api.create(path, obj("v1 ResourceQuota", "none", spec={"hard": {"count/deployments.apps": "0"}}))
    eventually(lambda: rig.api.get(f"{path}/none").get("status", {}).get("used"), "the quota to be counted")
    refused(rig, deployment("d"), remedy="raise the ResourceQuota none, or request less")


def test_pod_security(rig: Rig) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}
    rig.api.patch(NAMESPACES.path(name=rig.namespace), {"metadata": {"labels": labels}})
    refused(rig, pod("p"), remedy="lower the level restricted of that Namespace")
    # Of a Deployment the API server only warns.
    rig.write("warned", deployment("d"))
    rig.until_applied("warned")
    assert 'would violate PodSecurity "restricted:latest"' in rig.applied("warned")[2]
    assert "securityContext" in str(hints(rig.get("ManagedResource", "warned"), []))


@pytest.fixture
def lost_webhook(rig: Rig) -> Iterator[None]:
    """Request for each ConfigMap in the namespace; none exists."""
    webhook = {
        "name": "lost.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": rig.namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    kind = "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration"
    rig.api.create(_WEBHOOKS, obj(kind, rig.namespace, webhooks=[webhook]))
    yield
    rig.api.delete(f"{_WEBHOOKS}/{rig.namespace}")


@pytest.mark.usefixtures("lost_webhook")
def test_a_webhook_that_can_not_be_reached(rig: Rig) -> None:
    def is_asked() -> bool:
        try:
            rig.dry_run(config_map("asked"))
        except Exception as error:  # noqa: BLE001 - whatever it reports, it was queried
            return "lost.example.com" in str(error)
        return False

    eventually(is_asked, "the webhook to be called")
    refused(rig, config_map("c", {}), remedy="the server of the webhook lost.example.com is reachable")


def test_a_missing_permission(rig: Rig) -> None:
    rig.create(obj("ServiceAccount", "weak"))
    rig.write_secret("mr", config_map("c", {}))
    rig.write_managed_resource("mr", annotated={"resources.gardener.cloud/service-account-name": "weak"})
    user = f"system:serviceaccount:{rig.namespace}:weak"
    rig.until_failed("mr", f"; allow {user} to get configmaps in namespace {rig.namespace}, in the target cluster")


def test_an_immutable_field(rig: Rig) -> None:
    rig.apply("mr", deployment("d"))
    changed = deployment("d")
    labels = {"app": "other"}
    changed["spec"] |= {"selector": {"matchLabels": labels}}
    changed["spec"]["template"]["metadata"] = {"labels": labels}
    refused(
        rig,
        changed,
        remedy="undo the change of spec.selector, or have the object recreated by the annotation",
    )


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("apps/v1 Deploymnet", "did you mean Deployment?"),
        ("policy/v1beta1 PodDisruptionBudget", "did you mean PodDisruptionBudget of policy/v1?"),
        ("batch/v1 Workload", "this version of Kubernetes does not serve it"),
        ("example.com/v1 Nothing", "install the CustomResourceDefinition of that kind"),
    ],
)
def test_a_kind_that_is_not_served(kind: str, remedy: str, rig: Rig) -> None:
    message = refused(rig, obj(kind, "x"), remedy=remedy)
    api_version, _, name = kind.partition(" ")
    assert f'no matches for kind "{name}" in version "{api_version}"; {remedy}' in message
