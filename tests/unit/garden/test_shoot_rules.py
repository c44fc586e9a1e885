"""Shoots: what their spec must be, alone and compared with their cloud profile."""

from typing import Any

import pytest

from kit.webhooks.shoots import create, operation, stored, submitted, update, worker, workerless
from kube.objects import Object

VOLUME = {"type": "std", "size": "30Gi"}


def pool(**fields: Any) -> dict[str, Any]:
    return {"provider__workers": [worker(**fields)]}


def window(begin: str, end: str) -> dict[str, Any]:
    return {"maintenance__timeWindow": {"begin": begin, "end": end}}


W = "spec.provider.workers"
SERVER, MANAGER = "spec.kubernetes.kubeAPIServer", "spec.kubernetes.kubeControllerManager"
MASK = f"{MANAGER}.nodeCIDRMaskSize"
OLD_IMAGE = {"name": "linux", "version": "1.0.0"}


def swapping(behavior: str) -> Object:
    return {"failSwapOn": False, "featureGates": {"NodeSwap": True}, "memorySwap": {"swapBehavior": behavior}}


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
        ({"networking__pods": "127.0.0.0/8"}, {"spec.networking.pods"}),
        ({"networking__pods": "0.0.0.0/8"}, {"spec.networking.pods"}),
        ({"networking__services": "255.255.255.0/24"}, {"spec.networking.services"}),
        *(({"networking__pods": pods, "networking__ipFamilies": ["IPv4", "IPv6"]}, {"spec.networking.pods", W})
          for pods in ("::/120", "::ffff:10.0.0.0/120")),
        ({"networking__services": "169.254.0.0/17"}, {"spec.networking.services"}),
        ({"networking__nodes": "224.1.0.0/16"}, {"spec.networking.nodes"}),
        ({"networking__nodes": "10.0.0.0/8", "networking__pods": "10.1.0.0/16", "networking__services": "10.1.2.0/24"},
         {"spec.networking.pods", "spec.networking.services"}),
        (pool(sysctls={"net.ipv4.ip_forward": "1\nkernel.panic = 1"}), {f"{W}[0].sysctls[net.ipv4.ip_forward]"}),
        (pool(sysctls={"a\nb": "1"}), {f"{W}[0].sysctls[a\nb]"}),
        (pool(sysctls={"a = b": "1", "": "1", "# a": "1"}), {f"{W}[0].sysctls[{each}]" for each in ("a = b", "", "# a")}),
        ({"kubernetes__kubeAPIServer": {"runtimeConfig": {"foo/v1": True, "batch": True, "batch/v2alpha1": True,
                                                          "a/b/c/d": True, "api/nope": True, "apps/v1": False,
                                                          "v1": False, "api/all": False, "resource.k8s.io/v1": True}}},
         {f"{SERVER}.runtimeConfig[{each}]" for each in (
             "foo/v1", "batch", "batch/v2alpha1", "a/b/c/d", "api/nope", "apps/v1", "v1", "api/all",
             "resource.k8s.io/v1")}),
        ({"kubernetes__kubeAPIServer": {"apiAudiences": ["", " ", "a,b", "ok"]}},
         {f"{SERVER}.apiAudiences[{index}]" for index in range(3)}),
        *(({"kubernetes__kubeAPIServer": {"serviceAccountConfig": {"issuer": issuer}}},
           {f"{SERVER}.serviceAccountConfig.issuer"})
          for issuer in ("foo", "http://a", "https://", "https://a?b", "https://u@a", "https://[")),
        ({"kubernetes__kubeAPIServer": {"serviceAccountConfig": {"acceptedIssuers": [""]}}},
         {f"{SERVER}.serviceAccountConfig.acceptedIssuers[0]"}),
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
        (window("2200", "x"), {"spec.maintenance.timeWindow.begin/end"}),
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
         {"spec.kubernetes.kubeAPIServer.structuredAuthentication"}),
        ({"kubernetes__kubeAPIServer": {"encryptionConfig": {"resources": ["secrets", "*.apps"]}}},
         {"spec.kubernetes.kubeAPIServer.encryptionConfig.resources[0]",
          "spec.kubernetes.kubeAPIServer.encryptionConfig.resources[1]"}),
        ({"systemComponents__coreDNS__rewriting": {"commonSuffixes": ["local"]}},
         {"spec.systemComponents.coreDNS.rewriting.commonSuffixes[0]"}),
        ({f"kubernetes__{each}": {"featureGates": {"Nope": True, "AllAlpha": True}}
          for each in ("kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet")},
         {f"spec.kubernetes.{each}.featureGates[Nope]"
          for each in ("kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet")}),
        (pool(kubernetes__kubelet={"featureGates": {"Nope": False}}),
         {f"{W}[0].kubernetes.kubelet.featureGates[Nope]"}),
        ({"kubernetes__kubeAPIServer": {"admissionPlugins": [{"name": "Nope"}, {"name": "PodSecurity"}]}},
         {"spec.kubernetes.kubeAPIServer.admissionPlugins[Nope]"}),
        ({"kubernetes__kubelet": {"containerLogMaxFiles": 1}}, {"spec.kubernetes.kubelet.containerLogMaxFiles"}),
        ({"kubernetes__kubelet": {"memorySwap": {"swapBehavior": "NoSwap"}}},
         {"spec.kubernetes.kubelet.memorySwap"}),
        ({"kubernetes__kubelet": {"memorySwap": {}}}, {"spec.kubernetes.kubelet.memorySwap"}),
        ({"kubernetes__kubelet": swapping("UnlimitedSwap")}, {"spec.kubernetes.kubelet.memorySwap.swapBehavior"}),
        ({"kubernetes__version": "1.29.8", "kubernetes__kubelet": swapping("NoSwap"), **pool(machine__image=OLD_IMAGE)},
         {"spec.kubernetes.kubelet.memorySwap.swapBehavior"}),
        (pool(kubernetes__kubelet={"evictionHard": {"memoryAvailable": "some"}}),
         {f"{W}[0].kubernetes.kubelet.evictionHard.memoryAvailable"}),
        ({"kubernetes__kubelet": {"evictionSoft": {"memoryAvailable": "-1Mi", "nodeFSAvailable": "101%"}}},
         {f"spec.kubernetes.kubelet.evictionSoft.{signal}" for signal in ("memoryAvailable", "nodeFSAvailable")}),
        ({"kubernetes__kubelet": {"evictionSoftGracePeriod": {"memoryAvailable": "-1s"},
                                  "evictionPressureTransitionPeriod": "-1s", "evictionMaxPodGracePeriod": -1}},
         {f"spec.kubernetes.kubelet.{field}" for field in (
             "evictionSoftGracePeriod.memoryAvailable", "evictionPressureTransitionPeriod", "evictionMaxPodGracePeriod")}),
        (pool(maxUnavailable="10%", maxSurge="-1%"), {f"{W}[0].maxSurge"}),
        (pool(annotations={"a b": ""}), {f"{W}[0].annotations"}),
        (pool(taints=[{"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}]),
         {f"{W}[0].taints[0].key"}),
        (pool(taints=[{"key": "k", "value": "a b", "effect": "NoSchedule"}]), {f"{W}[0].taints[0].value"}),
        (pool(volume=VOLUME, dataVolumes=[{"name": "Data", "size": "20Gi"}]), {f"{W}[0].dataVolumes[0].name"}),
        (pool(volume=VOLUME, dataVolumes=[{"name": "d" * 16, "size": "20Gi"}]), {f"{W}[0].dataVolumes[0].name"}),
        (pool(clusterAutoscaler={"scaleDownUnneededTime": "-1s"}), {f"{W}[0].clusterAutoscaler.scaleDownUnneededTime"}),
        ({"kubernetes__enableStaticTokenKubeconfig": True}, {"spec.kubernetes.enableStaticTokenKubeconfig"}),
        ({"kubernetes__kubeControllerManager": {"nodeCIDRMaskSize": 29}}, {MASK}),
        ({"kubernetes__kubeControllerManager": {"nodeCIDRMaskSize": 26}}, {MASK}),
        ({"kubernetes__kubeControllerManager": {"nodeCIDRMaskSize": 24}, **pool(kubernetes__kubelet={"maxPods": 255})},
         {MASK}),
        ({"kubernetes__kubeControllerManager": {"podEvictionTimeout": "0s", "nodeMonitorGracePeriod": "0s"}},
         {f"{MANAGER}.podEvictionTimeout", f"{MANAGER}.nodeMonitorGracePeriod"}),
        ({"kubernetes__kubeControllerManager": {"horizontalPodAutoscaler": {
            "tolerance": 0, "downscaleStabilization": "1ms", "initialReadinessDelay": "0s",
            "cpuInitializationPeriod": "1ms", "syncPeriod": "1ms"}}},
         {f"{MANAGER}.horizontalPodAutoscaler.{field}" for field in (
             "tolerance", "downscaleStabilization", "initialReadinessDelay", "cpuInitializationPeriod", "syncPeriod")}),
        ({"kubernetes__clusterAutoscaler": {"maxNodeProvisionTime": "-1s", "ignoreTaints": ["a", "a", "b c"]}},
         {f"spec.kubernetes.clusterAutoscaler.{field}" for field in (
             "maxNodeProvisionTime", "ignoreTaints[1]", "ignoreTaints[2]")}),
        ({"kubernetes__verticalPodAutoscaler": {"enabled": True, "updaterInterval": "-1s"}},
         {"spec.kubernetes.verticalPodAutoscaler.updaterInterval"}),
        ({"kubernetes__verticalPodAutoscaler": {"enabled": True, "targetCPUPercentile": 2}},
         {"spec.kubernetes.verticalPodAutoscaler.targetCPUPercentile"}),
        ({"kubernetes__kubeAPIServer": {"requests": {"maxMutatingInflight": 401, "maxNonMutatingInflight": 801}}},
         {f"{SERVER}.requests.{field}" for field in ("maxMutatingInflight", "maxNonMutatingInflight")}),
        ({"kubernetes__kubeAPIServer": {"oidcConfig": {"clientID": "c"}}}, {f"{SERVER}.oidcConfig.issuerURL"}),
        ({"kubernetes__kubeAPIServer": {"oidcConfig": {"issuerURL": "https://x"}}}, {f"{SERVER}.oidcConfig.clientID"}),
        ({"kubernetes__kubeAPIServer": {"oidcConfig": {"clientID": "c", "issuerURL": "https://"}}},
         {f"{SERVER}.oidcConfig.issuerURL"}),
        ({"kubernetes__kubeAPIServer": {"oidcConfig": {"clientID": "c", "issuerURL": "https://a:b@x?y#z"}}},
         {f"{SERVER}.oidcConfig.issuerURL"}),
        ({"kubernetes__kubeAPIServer": {"oidcConfig": {"signingAlgs": ["RS256", "HS256"], "groupsClaim": ""}}},
         {f"{SERVER}.oidcConfig.signingAlgs[1]", f"{SERVER}.oidcConfig.groupsClaim"}),
        ({"kubernetes__kubeAPIServer": {"structuredAuthentication": {"configMapName": "c"}, "oidcConfig": {}}},
         {f"{SERVER}.oidcConfig"}),
        ({"kubernetes__kubeAPIServer": {"structuredAuthentication": {"configMapName": "c"},
                                        "featureGates": {"StructuredAuthenticationConfiguration": False}}},
         {f"{SERVER}.structuredAuthentication"}),
        ({"kubernetes__kubeAPIServer": {"serviceAccountConfig": {"issuer": "https://a", "acceptedIssuers": ["b", "https://a", "b"]}}},
         {f"{SERVER}.serviceAccountConfig.acceptedIssuers[{index}]" for index in (1, 2)}),
        ({"kubernetes__kubeAPIServer": {"encryptionConfig": {"resources": ["configmaps", "configmaps."]}}},
         {f"{SERVER}.encryptionConfig.resources[1]"}),
        ({"monitoring": {"alerting": {"emailReceivers": ["a@b.c", "a@b.c"]}}},
         {"spec.monitoring.alerting.emailReceivers[1]"}),
        ({"networking__pods": "10.0.0.1/16"}, {"spec.networking.pods"}),
        ({"cloudProfile": None}, {"spec.cloudProfile.name"}),
        ({"tolerations": [{"key": "w"}, {"key": "w", "value": "x"}]}, {"spec.tolerations[1]"}),
        ({"resources": [{"name": "r", "resourceRef": {"kind": "Secret", "apiVersion": "apps/v1", "name": "cred"}}]},
         {"spec.resources[0].resourceRef.apiVersion"}),
        ({"dns": {"domain": "a.b", "providers": [{"type": "a_b", "secretName": "cred"}]}}, {"spec.dns.providers[0]"}),
        ({"dns": {"domain": "a.dev.ex.org", "providers": [{"type": "unmanaged", "primary": True}]}},
         {"spec.dns.providers"}),
        ({"meta__finalizers": ["gardener"]}, {"metadata.finalizers[0]"}),
        ({"meta__annotations": {"shoot.gardener.cloud/expiration-timestamp": "soon"}},
         {"metadata.annotations[shoot.gardener.cloud/expiration-timestamp]"}),
    ],
)  # fmt: skip
def test_a_field_that_is_wrong_is_named(fields: dict[str, Any], expected: set[str]) -> None:
    refused = create(submitted(**fields))
    assert (refused.code, refused.fields) == (422, expected), refused.message


@pytest.mark.parametrize(
    "fields",
    [
        {"kubernetes__kubelet": swapping("NoSwap")},
        {"kubernetes__kubelet": {"evictionHard": {"memoryAvailable": "5%"}, "maxPods": 0}},
        {"kubernetes__kubeAPIServer": {"oidcConfig": {"usernameClaim": "sub"}}},
        {"kubernetes__kubeControllerManager": {"nodeCIDRMaskSize": 27}, "kubernetes__kubelet": {"maxPods": 30}},
        {"networking__ipFamilies": ["IPv6"], "kubernetes__kubeControllerManager": {"nodeCIDRMaskSize": 60}},
        pool(maxSurge="150%"),
        {"provider__workers": [worker(zones=["a", "b"], maximum=1), worker("v", zones=["b", "a"], maximum=2)]},
        {"provider__workers": [worker(), worker("v", zones=["a", "b"], maximum=1, systemComponents={"allow": False})]},
    ],
)
def test_a_field_that_only_looks_wrong_is_accepted(fields: dict[str, Any]) -> None:
    assert create(submitted(**fields)).status is None


def test_all_that_is_wrong_is_reported_at_once() -> None:
    refused = create(submitted(purpose="infrastructure", region="mars", networking__pods="x", **pool(maxSurge="x")))
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
        {"kubernetes__kubeControllerManager__horizontalPodAutoscaler": {}},
        {"kubernetes__kubeControllerManager__nodeMonitorGracePeriod": "40s"},
        {"kubernetes__kubeControllerManager__podEvictionTimeout": "2m"},
    ],
)
def test_a_workerless_shoot_has_nothing_for_workers(fields: dict[str, Any]) -> None:
    path = "spec." + next(iter(fields)).replace("__", ".")
    refused = create(workerless(**fields))
    assert refused.fields == {path}
    assert "should not be set for workerless Shoot clusters" in refused.message


@pytest.mark.parametrize(
    ("fields", "reported"),
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
        ({"kubernetes__version": "1.29.8", **pool(machine__image={"name": "linux", "version": "2.0.0"})}, "only supports kubelet >= 1.30"),
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
def test_what_the_garden_does_not_have_is_refused(fields: dict[str, Any], reported: str) -> None:
    refused = create(submitted(**fields))
    assert refused.code == 403, refused
    assert reported in refused.message


def test_a_workerless_shoot_may_state_how_long_pods_stay_on_nodes_that_join_it_by_themselves() -> None:
    server = {"defaultNotReadyTolerationSeconds": 60, "defaultUnreachableTolerationSeconds": 60}
    assert create(workerless(kubernetes__kubeAPIServer=server)).status is None


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
    ("old", "new", "reported"),
    [
        ("1.30.5", "1.30.1", "kubernetes version downgrade is not supported"),
        ("1.29.8", "1.31.2", "kubernetes version upgrade cannot skip a minor version"),
        ("1.29.8", "1.30.0", ""),
        ("1.29.8", "1.30", ""),
    ],
)
def test_versions_rise_by_one_minor_version_at_a_time(old: str, new: str, reported: str) -> None:
    changed = update(stored(submitted(kubernetes__version=old, **pool(machine__image={"name": "linux", "version": "1.0.0"}))),
                     kubernetes__version=new)  # fmt: skip
    assert changed.fields == ({"spec.kubernetes.version"} if reported else set()), changed.message
    assert reported in changed.message


def test_pools_may_skip_minor_versions_but_not_go_back() -> None:
    old = stored(
        submitted(
            kubernetes__version="1.31.2",
            **pool(kubernetes__version="1.29.8", machine__image={"name": "linux", "version": "1.0.0"}),
        )
    )
    path = "provider__workers__0__kubernetes__version"
    assert update(old, **{path: "1.31.2"}).status is None
    newer = update(old, **{path: "1.31.2"}).object
    assert update(newer, **{path: "1.30.5"}).fields == {f"{W}[0].kubernetes.version"}


def test_settings_of_kubelet_are_those_of_the_version_of_the_pool() -> None:
    """So that a control plane can go ahead of a pool."""
    behind = pool(kubernetes={"version": "1.29.8", "kubelet": swapping("UnlimitedSwap")}, machine__image=OLD_IMAGE)
    old = stored(submitted(kubernetes__version="1.29.8", **behind))
    ahead = update(old, kubernetes__version="1.30.5")
    assert ahead.status is None, ahead.message
    followed = update(ahead.object, provider__workers__0__kubernetes__version="1.30.5")
    assert followed.fields == {f"{W}[0].kubernetes.kubelet.memorySwap.swapBehavior"}


def constraint(status: str) -> Object:
    found = {"type": "HibernationPossible", "status": status, "message": "no", "reason": "r"}
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    return {"constraints": [{**found, **times}]}


@pytest.mark.parametrize(
    ("status", "reported"),
    [
        ({}, ""),
        (constraint("True"), ""),
        (constraint("False"), "'HibernationPossible' constraint is 'False': no"),
        (constraint("False") | operation("Create", "Error"), "constraint is 'False': no; hibernate the Shoot once it"),
        ({"credentials": {"rotation": {"serviceAccountKey": {"phase": "Preparing"}}}}, "serviceAccountKey is in phase"),
        ({"credentials": {"rotation": {"serviceAccountKey": {"phase": "Prepared"}}}}, ""),
    ],
)
def test_a_cluster_goes_to_sleep_only_if_it_can(status: Object, reported: str) -> None:
    outcome = update(stored(status=status), hibernation={"enabled": True})
    assert (outcome.status is None) is not bool(reported)
    assert reported in outcome.message
    asleep = stored(status=status, hibernation={"enabled": True})
    assert update(asleep, purpose="testing").status is None


def moving(kind: str, state: str) -> Object:
    reported = {"progress": 1, "description": "d", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    return {"lastOperation": {"type": kind, "state": state, **reported}}


@pytest.mark.parametrize(
    ("status", "frozen"),
    [
        ({"seedName": "other"}, True),
        (moving("Migrate", "Succeeded"), True),
        (moving("Restore", "Error"), True),
        (moving("Restore", "Succeeded"), False),
        ({}, False),
    ],
)
def test_what_moves_neither_falls_asleep_nor_wakes(status: Object, frozen: bool) -> None:
    outcome = update(stored(status=status, seedName="seed"), seedName="seed", hibernation={"enabled": True})
    assert ("must not change while the Shoot moves to another Seed" in outcome.message) == frozen


def test_a_cluster_that_sleeps_does_not_become_highly_available() -> None:
    node = {"highAvailability": {"failureTolerance": {"type": "node"}}}
    asleep = stored(status=operation(hibernated=True))
    assert update(asleep, controlPlane=node).fields == {"spec.controlPlane.highAvailability.failureTolerance.type"}
    assert update(stored(), controlPlane=node).status is None


def test_in_deletion_the_spec_stays_and_nothing_else_is_looked_at() -> None:
    old = stored(meta__deletionTimestamp="2026-01-01T00:00:00Z", secretBindingName="gone", region="gone")
    assert update(old, meta__annotations={"a": "b"}).status is None
    assert update(old, purpose="testing").fields == {"spec"}


def test_defaults_of_a_later_release_do_not_keep_a_shoot_from_being_deleted() -> None:
    old = stored(meta__deletionTimestamp="2026-01-01T00:00:00Z", meta__finalizers=["gardener"])
    del old["spec"]["kubernetes"]["kubelet"]["kubeReserved"]
    gone = update(old, meta__finalizers=[])
    assert gone.status is None, gone.message
    assert gone.spec == old["spec"]


def encrypted(*wanted: str, now: tuple[str, ...] = (), **fields: Any) -> Object:
    """A Shoot with these resources in its spec and in its status."""
    server = {"encryptionConfig": {"resources": list(wanted)}}
    status = operation(encryptedResources=list(now), **fields.pop("status", {}))
    return stored(submitted(kubernetes__kubeAPIServer=server), status=status, **fields)


RESOURCES = "kubernetes__kubeAPIServer__encryptionConfig__resources"


@pytest.mark.parametrize(
    ("old", "possible"),
    [
        (encrypted("configmaps", now=("configmaps",)), True),
        (encrypted("configmaps"), False),
        (encrypted("configmaps", now=("configmaps",), hibernation={"enabled": True}), False),
        (
            encrypted(
                "configmaps",
                now=("configmaps",),
                status={"credentials": {"rotation": {"etcdEncryptionKey": {"phase": "Prepared"}}}},
            ),
            False,
        ),
    ],
)
def test_what_is_encrypted_changes_once_at_a_time(old: Object, *, possible: bool) -> None:
    outcome = update(old, **{RESOURCES: ["configmaps", "deployments.apps"]})
    assert outcome.fields == (set() if possible else {f"{SERVER}.encryptionConfig.resources"}), outcome.message
    assert update(old, purpose="testing").status is None


def test_a_cluster_does_not_go_to_sleep_while_its_data_are_encrypted_again() -> None:
    assert update(encrypted("configmaps"), hibernation={"enabled": True}).fields == {"spec.hibernation.enabled"}
    assert update(encrypted("configmaps", now=("configmaps",)), hibernation={"enabled": True}).status is None
