"""Shoots: what their spec must be, alone and compared with their cloud profile."""

from typing import Any

import pytest

from kit.webhooks.shoots import create, operation, shoot, stored, update, worker, workerless
from kube.objects import Object

VOLUME = {"type": "std", "size": "30Gi"}


def pool(**fields: Any) -> dict[str, Any]:
    return {"provider__workers": [worker(**fields)]}


def window(begin: str, end: str) -> dict[str, Any]:
    return {"maintenance__timeWindow": {"begin": begin, "end": end}}


W = "spec.provider.workers"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"provider__workers": [worker(maximum=0, minimum=0)]}, {W}),
        (pool(systemComponents={"allow": False}), {W}),
        (pool(zones=["a", "b", "a"], maximum=3), {f"{W}[0].zones[2]"}),
        (pool(zones=["a", "b"], maximum=1), {f"{W}[0].maximum"}),
        (pool(maxSurge="x"), {f"{W}[0].maxSurge"}),
        (pool(maxUnavailable="101%"), {f"{W}[0].maxUnavailable"}),
        (pool(labels={"a b": "c"}), {f"{W}[0].labels"}),
        (pool(taints=[{"key": "k", "effect": "NoSchedule"}] * 2), {f"{W}[0].taints[1]"}),
        (pool(dataVolumes=[{"name": "d", "size": "20Gi"}]), {f"{W}[0].volume"}),
        (pool(volume=VOLUME, dataVolumes=[{"name": "d", "size": "20Gi"}] * 2), {f"{W}[0].dataVolumes[1].name"}),
        (pool(kubeletDataVolumeName="d"), {f"{W}[0].kubeletDataVolumeName"}),
        (pool(caBundle="none"), {f"{W}[0].caBundle"}),
        (pool(kubernetes__version="1.31.2"), {f"{W}[0].kubernetes.version"}),
        (pool(kubernetes__version="nope.1.2"), {f"{W}[0].kubernetes.version"}),
        (pool(kubernetes__kubelet={"imageGCHighThresholdPercent": 5, "imageGCLowThresholdPercent": 5}),
         {f"{W}[0].kubernetes.kubelet.imageGCLowThresholdPercent"}),
        ({"networking__type": None}, {"spec.networking.type"}),
        ({"networking__pods": "10.0.0.0"}, {"spec.networking.pods"}),
        ({"networking__nodes": "fd00::/64"}, {"spec.networking.nodes"}),
        ({"networking__pods": "10.0.0.0/24", "provider__workers": [worker(maximum=5)]}, {W}),
        ({"kubernetes__kubeControllerManager": {"nodeCIDRMaskSize": 30}, "networking__pods": "10.0.0.0/8"},
         {"spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize"}),
        ({"purpose": "infrastructure"}, {"spec.purpose"}),
        ({"purpose": "production", "addons": {"nginxIngress": {"enabled": True}}}, {"spec.addons"}),
        ({"extensions": [{"type": "some"}] * 2}, {"spec.extensions[1].type"}),
        ({"seedSelector": {"matchLabels": {"a b": "c"}}}, {"spec.seedSelector.matchLabels"}),
        ({"tolerations": [{"key": "w"}] * 2}, {"spec.tolerations[1]"}),
        ({"monitoring": {"alerting": {"emailReceivers": ["a@b", "none"]}}},
         {"spec.monitoring.alerting.emailReceivers[1]"}),
        (window("220000+0100", "222900+0100"), {"spec.maintenance.timeWindow"}),
        (window("220000+0000", "040100+0000"), {"spec.maintenance.timeWindow"}),
        (window("2200", "x"), {"spec.maintenance.timeWindow.begin", "spec.maintenance.timeWindow.end"}),
        ({"hibernation__schedules": [{}]}, {"spec.hibernation.schedules[0].start/end"}),
        ({"hibernation__schedules": [{"start": "0 20 * * *", "location": "Mars/Base"}]},
         {"spec.hibernation.schedules[0].location"}),
        ({"hibernation__schedules": [{"start": "0 20 * *"}]}, {"spec.hibernation.schedules[0].start"}),
        ({"hibernation__schedules": [{"start": "@daily"}, {"end": "@daily"}]}, {"spec.hibernation.schedules[1].end"}),
        ({"dns": {"domain": "a_b"}}, {"spec.dns.domain"}),
        ({"dns": {"providers": [{"type": "local", "primary": True, "secretName": "cred"}]}}, {"spec.dns.domain"}),
        ({"dns": {"domain": "a.b", "providers": [{"type": "unmanaged", "secretName": "cred"}]}},
         {"spec.dns.providers[0].secretName"}),
        ({"kubernetes__kubeAPIServer": {"eventTTL": "169h"}}, {"spec.kubernetes.kubeAPIServer.eventTTL"}),
        ({"kubernetes__kubeAPIServer": {"serviceAccountConfig": {"maxTokenExpiration": "1h"}}},
         {"spec.kubernetes.kubeAPIServer.serviceAccountConfig.maxTokenExpiration"}),
        ({"kubernetes__kubeAPIServer": {"oidcConfig": {"clientID": "c", "issuerURL": "http://x"}}},
         {"spec.kubernetes.kubeAPIServer.oidcConfig.issuerURL"}),
        ({"kubernetes__version": "1.29.8", "kubernetes__kubeAPIServer": {"structuredAuthentication": {"configMapName": "c"}}},
         {"spec.kubernetes.kubeAPIServer.structuredAuthentication", f"{W}[0].machine.image.version"}),
        ({"kubernetes__kubeAPIServer": {"encryptionConfig": {"resources": ["secrets", "*.apps"]}}},
         {"spec.kubernetes.kubeAPIServer.encryptionConfig.resources[0]",
          "spec.kubernetes.kubeAPIServer.encryptionConfig.resources[1]"}),
        ({"systemComponents__coreDNS__rewriting": {"commonSuffixes": ["local"]}},
         {"spec.systemComponents.coreDNS.rewriting.commonSuffixes[0]"}),
        ({"kubernetes__kubelet": {"containerLogMaxFiles": 1}}, {"spec.kubernetes.kubelet.containerLogMaxFiles"}),
        ({"kubernetes__kubelet": {"memorySwap": {"swapBehavior": "NoSwap"}}},
         {"spec.kubernetes.kubelet.memorySwap.swapBehavior"}),
        ({"meta__finalizers": ["gardener"]}, {"metadata.finalizers[0]"}),
        ({"meta__annotations": {"shoot.gardener.cloud/expiration-timestamp": "soon"}},
         {"metadata.annotations[shoot.gardener.cloud/expiration-timestamp]"}),
    ],
)  # fmt: skip
def test_a_field_that_is_wrong_is_named(fields: dict[str, Any], expected: set[str]) -> None:
    refused = create(shoot(**fields))
    assert (refused.code, refused.fields) == (422, expected), refused.message


def test_all_that_is_wrong_is_said_at_once() -> None:
    refused = create(shoot(purpose="infrastructure", region="mars", networking__pods="x", **pool(maxSurge="x")))
    assert {"spec.purpose", "spec.region", "spec.networking.pods", f"{W}[0].maxSurge"} == refused.fields
    assert 'spec.region: Unsupported value: "mars"' in refused.message


@pytest.mark.parametrize(
    "fields",
    [
        {"addons": {}},
        {"kubernetes__kubelet": {}},
        {"networking__pods": "10.0.0.0/8"},
        {"provider__infrastructureConfig": {}},
        {"systemComponents": {}},
    ],
)
def test_a_workerless_shoot_has_nothing_for_workers(fields: dict[str, Any]) -> None:
    path = "spec." + next(iter(fields)).replace("__", ".")
    refused = create(workerless(**fields))
    assert refused.fields == {path}
    assert "should not be set for workerless Shoot clusters" in refused.message


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"cloudProfile__name": "none"}, 'CloudProfile "none" not found'),
        ({"kubernetes__version": "1.30.0"}, 'spec.kubernetes.version: Unsupported value: "1.30.0"'),
        ({"kubernetes__version": "1.30.9"}, 'supported values: "1.29.8", "1.30.1", "1.30.5", "1.31.2", "1.32.0"'),
        (pool(zones=["x"]), 'zones[0]: Unsupported value: "x": supported values: "a", "b", "c"'),
        ({"region": "without-zones", **pool(zones=["a"])}, "this region does not support availability zones"),
        (pool(machine__type="old"), 'machine.type: Unsupported value: "old": supported values: "arm", "small"'),
        (pool(machine__type="arm"), "machine type arm has architecture arm64, not amd64"),
        (pool(zones=["c"]), "machine.type: Invalid value: \"small\": is not available in the zones c"),
        (pool(machine__image={"name": "linux", "version": "0.9.0"}), 'machine.image.version: Unsupported value: "0.9.0"'),
        (pool(machine__image={"name": "none"}), 'machine.image.name: Unsupported value: "none"'),
        (pool(machine__image={"name": "other", "version": "1.0.0"}), "image other:1.0.0 has architectures arm64"),
        ({"kubernetes__version": "1.29.8", **pool(machine__image={"name": "linux", "version": "2.0.0"})}, ">= 1.30 only"),
        (pool(cri={"name": "containerd", "containerRuntimes": [{"type": "x"}]}), "containerRuntimes[0].type"),
        (pool(volume={"type": "gone", "size": "30Gi"}), 'volume.type: Unsupported value: "gone": supported values: "std"'),
        (pool(volume={"type": "std", "size": "10Gi"}), "volume.size: Invalid value: \"10Gi\": must not be less than 20Gi"),
        ({"provider__type": "x"}, 'provider type in shoot must equal provider type of referenced CloudProfile: "local"'),
        ({"provider__type": "x"}, 'must match provider type of referenced SecretBinding: "local"'),
        ({"networking__type": "x"}, 'given Shoot uses non-registered network'),
        ({"extensions": [{"type": "none"}]}, 'extension type: spec.extensions[0].type ("none")'),
        ({"secretBindingName": "none"}, 'secretbindings.core.gardener.cloud "none" not found'),
        ({"exposureClassName": "none"}, 'exposureclasses.core.gardener.cloud "none" not found'),
        ({"resources": [{"name": "r", "resourceRef": {"kind": "Secret", "apiVersion": "v1", "name": "none"}}]},
         'secrets "none" not found'),
        ({"tolerations": [{"key": "x"}]}, "only the following tolerations are allowed: [d w]"),
        ({"meta__name": "a" * 19}, "must not exceed 21 characters (project: dev; shoot: aaaaaaaaaaaaaaaaaaa)"),
    ],
)  # fmt: skip
def test_what_the_garden_does_not_have_is_refused(fields: dict[str, Any], said: str) -> None:
    refused = create(shoot(**fields))
    assert refused.code == 403, refused
    assert said in refused.message


def test_a_workerless_shoot_has_only_extensions_for_such() -> None:
    assert create(workerless(extensions=[{"type": "some"}])).status is None
    assert "is workerless and uses non-supported" in create(workerless(extensions=[{"type": "all"}])).message


def test_an_update_is_not_refused_for_what_it_does_not_change() -> None:
    old = stored(kubernetes__version="1.30.0", networking__nodes="10.0.0.0/33", region="gone", purpose="infrastructure")
    assert update(old, meta__labels={"a": "b"}).status is None
    refused = update(
        old, provider__workers=[*old["spec"]["provider"]["workers"], worker("v", kubernetes__version="1.30.0")]
    )
    assert f"{W}[1].kubernetes.version" in refused.message
    assert "spec.kubernetes.version: U" not in refused.message
    assert "spec.region" not in refused.message


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1.30.5", "1.30.1", "kubernetes version downgrade is not supported"),
        ("1.29.8", "1.31.2", "kubernetes version upgrade cannot skip a minor version"),
        ("1.29.8", "1.30.0", ""),
        ("1.29.8", "1.30", ""),
    ],
)
def test_versions_rise_by_one_minor_version_at_a_time(old: str, new: str, said: str) -> None:
    changed = update(stored(shoot(kubernetes__version=old, **pool(machine__image={"name": "linux", "version": "1.0.0"}))),
                     kubernetes__version=new)  # fmt: skip
    assert changed.fields == ({"spec.kubernetes.version"} if said else set()), changed.message
    assert said in changed.message


def test_pools_may_skip_minor_versions_but_not_go_back() -> None:
    old = stored(
        shoot(
            kubernetes__version="1.31.2",
            **pool(kubernetes__version="1.29.8", machine__image={"name": "linux", "version": "1.0.0"}),
        )
    )
    path = "provider__workers__0__kubernetes__version"
    assert update(old, **{path: "1.31.2"}).status is None
    newer = update(old, **{path: "1.31.2"}).object
    assert update(newer, **{path: "1.30.5"}).fields == {f"{W}[0].kubernetes.version"}


def constraint(status: str) -> Object:
    found = {"type": "HibernationPossible", "status": status, "message": "no", "reason": "r"}
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    return {"constraints": [{**found, **times}]}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({}, ""),
        (constraint("True"), ""),
        (constraint("False"), "'HibernationPossible' constraint is 'False': no"),
        ({"credentials": {"rotation": {"serviceAccountKey": {"phase": "Preparing"}}}}, "serviceAccountKey is in phase"),
        ({"credentials": {"rotation": {"serviceAccountKey": {"phase": "Prepared"}}}}, ""),
    ],
)
def test_a_cluster_goes_to_sleep_only_if_it_can(status: Object, said: str) -> None:
    outcome = update(stored(status=status), hibernation={"enabled": True})
    assert (outcome.status is None) is not bool(said)
    assert said in outcome.message
    asleep = stored(status=status, hibernation={"enabled": True})
    assert update(asleep, purpose="testing").status is None


def test_a_cluster_that_sleeps_does_not_become_highly_available() -> None:
    node = {"highAvailability": {"failureTolerance": {"type": "node"}}}
    asleep = stored(status=operation(hibernated=True))
    assert update(asleep, controlPlane=node).fields == {"spec.controlPlane.highAvailability.failureTolerance.type"}
    assert update(stored(), controlPlane=node).status is None


def test_in_deletion_the_spec_stays_and_nothing_else_is_looked_at() -> None:
    old = stored(meta__deletionTimestamp="2026-01-01T00:00:00Z", secretBindingName="gone", region="gone")
    assert update(old, meta__annotations={"a": "b"}).status is None
    assert update(old, purpose="testing").fields == {"spec"}
