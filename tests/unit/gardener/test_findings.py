"""The words in which a finding about a managed object is reported."""

import pytest

from gardener.health.findings import (
    Finding,
    Reference,
    health_finding,
    may_have_events,
    missing,
    pods_finding,
    pods_wanted,
    progress_api_version,
    progress_finding,
    references,
    with_events,
)
from kit.objects import obj
from kube.errors import KindNotServed
from kube.objects import Object

POD = Reference("v1", "Pod", "a", "p")
WEB = Reference("apps/v1", "Deployment", "a", "web")
CRD = Reference("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "foos.example.com")


def pod(phase: str, **annotations: str) -> Object:
    renamed = {f"resources.gardener.cloud/{name.replace('_', '-')}": v for name, v in annotations.items()}
    return obj("v1 Pod", "a/p", annotations=renamed, status={"phase": phase})


def deployment(generation: int = 1, *, reason: str = "NewReplicaSetAvailable") -> Object:
    progressing = {"type": "Progressing", "status": "True", "reason": reason, "message": "m"}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}}
    status = {"observedGeneration": 1, "conditions": [progressing]}
    return obj("apps/v1 Deployment", "a/web", generation=generation, spec=spec, status=status)


def test_references_keep_the_stored_order() -> None:
    stored = [
        {"apiVersion": "v1", "kind": "Pod", "namespace": "a", "name": "p", "labels": {"x": "y"}},
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": "foos.example.com"},
    ]
    assert references({"status": {"resources": stored}}) == [POD, CRD]


@pytest.mark.parametrize("managed_resource", [{}, {"status": None}, {"status": {"resources": None}}])
def test_a_managed_resource_may_have_no_references(managed_resource: Object) -> None:
    assert references(managed_resource) == []


def reported(finding: Finding | None) -> tuple[str, str]:
    assert finding is not None
    return finding.reason, finding.message


def test_a_missing_object_is_named_with_its_namespace() -> None:
    assert missing(WEB) == Finding(WEB, "DeploymentMissing", 'Required Deployment "web" in namespace "a" is missing')
    assert missing(CRD).message == 'Required CustomResourceDefinition "foos.example.com" in namespace "" is missing'


def test_a_kind_that_is_not_served_is_missing_too() -> None:
    unknown = str(KindNotServed("example.com/v1", "Foo"))
    reason, message = reported(missing(Reference("example.com/v1", "Foo", "a", "x"), unknown_kind=unknown))
    assert reason == "FooMissing"
    assert message == (
        'Required Foo "x" in namespace "a" is missing: no matches for kind "Foo" in version "example.com/v1"'
    )


def test_an_unhealthy_object_is_named_by_namespace_and_name() -> None:
    text = 'Pod "a/p" is unhealthy: pod is in invalid phase "Pending" (expected one of ["Running" "Succeeded"])'
    assert health_finding(POD, pod("Pending")) == Finding(POD, "PodUnhealthy", text)


def test_the_name_of_a_cluster_scoped_object_begins_with_a_slash() -> None:
    accepted = "the initial names have been accepted"
    served = {"type": "Established", "status": "False", "reason": "Installing", "message": accepted}
    found = health_finding(CRD, {"status": {"conditions": [served, {"type": "NamesAccepted", "status": "True"}]}})
    reason, message = reported(found)
    assert reason == "CustomResourceDefinitionUnhealthy"
    assert message == (
        'CustomResourceDefinition "/foos.example.com" is unhealthy: condition "Established" has invalid status'
        f" False (expected True) due to Installing: {accepted}"
    )


def test_a_healthy_object_gives_no_finding() -> None:
    assert health_finding(POD, pod("Running")) is None


@pytest.mark.parametrize(("value", "skipped"), [("true", True), ("True", False), ("1", False), ("", False)])
def test_checks_are_skipped_for_the_exact_annotation_only(value: str, skipped: bool) -> None:
    assert (health_finding(POD, pod("Pending", skip_health_check=value)) is None) is skipped
    outdated = deployment(generation=2)
    outdated["metadata"]["annotations"] = {"resources.gardener.cloud/skip-health-check": value}
    assert (progress_finding(WEB, outdated) is None) is skipped
    assert (pods_wanted(WEB, outdated) is None) is skipped


def test_only_an_unhealthy_service_is_reported_with_events() -> None:
    service = Reference("v1", "Service", "a", "lb")
    finding = health_finding(service, {"spec": {"type": "LoadBalancer"}})
    assert finding is not None
    assert may_have_events(finding)
    assert with_events(finding, "").message == (
        'Service "a/lb" is unhealthy: service is missing ingress status; cause: it has no load balancer; check whether '
        "the cluster has a controller for load balancers"
    )
    assert with_events(finding, "-> Events:\n* x").message == (
        'Service "a/lb" is unhealthy: service is missing ingress status\n\n-> Events:\n* x'
    )
    assert not may_have_events(missing(service))
    other = Reference("serving.example.com/v1", "Service", "a", "lb")
    assert not may_have_events(Finding(other, "ServiceUnhealthy", "m"))


@pytest.mark.parametrize(
    ("reference", "api_version"),
    [
        (WEB, "apps/v1"),
        (Reference("apps/v1beta1", "Deployment", "a", "web"), "apps/v1"),
        (Reference("cert.gardener.cloud/v1", "Issuer", "a", "i"), "cert.gardener.cloud/v1alpha1"),
        (Reference("extensions/v1beta1", "Deployment", "a", "web"), None),
        (Reference("cert-manager.io/v1", "Issuer", "a", "i"), None),
        (POD, None),
    ],
)
def test_progress_is_read_in_the_version_of_the_rule(reference: Reference, api_version: str | None) -> None:
    assert progress_api_version(reference) == api_version


def test_a_progressing_object_reports_what_it_waits_for() -> None:
    assert progress_finding(WEB, deployment(reason="ReplicaSetUpdated")) == Finding(
        WEB, "DeploymentProgressing", 'Deployment "a/web" is progressing: m'
    )
    assert progress_finding(WEB, deployment()) is None
    assert progress_finding(POD, pod("Pending")) is None


def test_only_deployments_need_their_pods() -> None:
    assert pods_wanted(WEB, deployment()) is not None
    assert pods_wanted(Reference("apps/v1", "StatefulSet", "a", "web"), deployment()) is None
    assert pods_wanted(POD, pod("Running")) is None


def test_old_pods_keep_a_deployment_progressing() -> None:
    wanted = pods_wanted(WEB, deployment())
    assert wanted is not None
    assert pods_finding(WEB, wanted, 1) is None
    assert pods_finding(WEB, wanted, 2) == Finding(
        WEB, "DeploymentProgressing", 'Deployment "a/web" is progressing: there are still non-terminated old pods'
    )


def test_progress_of_a_malformed_object_is_left_to_its_health() -> None:
    reference = Reference("monitoring.coreos.com/v1", "Prometheus", "a", "x")
    assert progress_finding(reference, {"status": "broken"}) is None
    assert reported(health_finding(reference, {"status": "broken"}))[0] == "HealthCheckError"


def test_a_selector_that_is_no_selector_does_not_stop_the_check() -> None:
    odd = deployment()
    odd["spec"]["selector"] = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    assert pods_wanted(WEB, odd) is None
