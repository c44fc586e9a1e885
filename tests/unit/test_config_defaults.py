"""What a configuration is when nothing, or only zero values, are set."""

from typing import Any

import pytest

from config.fields import is_block, join, members
from config.overrides import Overrides, override
from config.resource_manager import COMPONENT, decode
from config.resource_manager.schema import ResourceManagerConfiguration
from config.shared import LabelSelector
from config.validation import check, validate

HOUR = 3600.0

# All of the schema; durations in seconds.
CONNECTION = {
    "kubeconfig": "",
    "acceptContentTypes": "",
    "contentType": "",
    "qps": 100.0,
    "burst": 130,
    "namespaces": (),
    "cacheResyncPeriod": 24 * HOUR,
}
SWITCHES = (
    "endpointSliceHints",
    "extensionValidation",
    "podTopologySpreadConstraints",
    "seccompProfile",
    "tokenInvalidator",
    "podKubeAPIServerLoadBalancing",
    "vpaInPlaceUpdates",
)
DEFAULTS: dict[str, Any] = {
    **{f"sourceClientConnection.{name}": value for name, value in CONNECTION.items()},
    **{f"targetClientConnection.{name}": value for name, value in CONNECTION.items()},
    "leaderElection.leaderElect": True,
    "leaderElection.leaseDuration": 15.0,
    "leaderElection.renewDeadline": 10.0,
    "leaderElection.retryPeriod": 2.0,
    "leaderElection.resourceLock": "leases",
    "leaderElection.resourceName": "gardener-resource-manager",
    "leaderElection.resourceNamespace": "",
    "server.webhooks.bindAddress": "",
    "server.webhooks.port": 9449,
    "server.webhooks.tls.serverCertDir": "",
    "server.healthProbes.bindAddress": "",
    "server.healthProbes.port": 8081,
    "server.metrics.bindAddress": "",
    "server.metrics.port": 8080,
    "server.metrics.managedResourceSeriesLimit": 1000,
    "server.statusPage.bindAddress": "127.0.0.1",
    "server.statusPage.port": 0,
    "debugging.enableProfiling": False,
    "debugging.enableContentionProfiling": False,
    "tracing.enabled": False,
    "tracing.endpoint": "http://localhost:4318",
    "tracing.samplingRatePerMillion": 10_000,
    "logLevel": "info",
    "logFormat": "json",
    "gracefulShutdownTimeout": 5.0,
    "controllers.clusterID": "",
    "controllers.resourceClass": "resources",
    "controllers.cacheSyncTimeout": 120.0,
    "controllers.garbageCollector.enabled": False,
    "controllers.garbageCollector.syncPeriod": HOUR,
    "controllers.garbageCollector.minimumObjectLifetime": 600.0,
    "controllers.garbageCollector.dryRun": False,
    "controllers.health.concurrentSyncs": 5,
    "controllers.health.syncPeriod": 60.0,
    "controllers.kubeletCSRApprover.enabled": False,
    "controllers.kubeletCSRApprover.concurrentSyncs": 1,
    "controllers.kubeletCSRApprover.machineNamespace": None,
    "controllers.kubeletCSRApprover.denialGracePeriod": 0.0,
    "controllers.kubeletCSRApprover.nodeAddressTypes": (
        "Hostname",
        "InternalDNS",
        "ExternalDNS",
        "InternalIP",
        "ExternalIP",
    ),
    "controllers.managedResource.concurrentSyncs": 5,
    "controllers.managedResource.syncPeriod": 60.0,
    "controllers.managedResource.alwaysUpdate": False,
    "controllers.managedResource.managedByLabelValue": "gardener",
    "controllers.managedResource.injectLabelsOnlyIntoWorkloads": False,
    "controllers.managedResource.restrictions.namespacedKinds.allow": (),
    "controllers.managedResource.restrictions.namespacedKinds.deny": (),
    "controllers.managedResource.restrictions.clusterScopedKinds.allow": (),
    "controllers.managedResource.restrictions.clusterScopedKinds.deny": (),
    "controllers.managedResource.restrictions.namespaces": (),
    "controllers.managedResource.restrictions.impersonation.serviceAccountName": "",
    "controllers.managedResource.restrictions.impersonation.allowedServiceAccountNames": (),
    "controllers.managedResource.restrictions.impersonation.required": False,
    "controllers.networkPolicy.enabled": False,
    "controllers.networkPolicy.concurrentSyncs": 5,
    "controllers.networkPolicy.namespaceSelectors": (),
    "controllers.networkPolicy.ingressControllerSelector": None,
    "controllers.networkPolicy.requireMatchingPods": False,
    "controllers.networkPolicy.fromWorldPeers": "explicit",
    "controllers.nodeCriticalComponents.enabled": False,
    "controllers.nodeCriticalComponents.concurrentSyncs": 5,
    "controllers.nodeCriticalComponents.backoff": 10.0,
    "controllers.nodeAgentReconciliationDelay.enabled": False,
    "controllers.nodeAgentReconciliationDelay.minDelay": 0.0,
    "controllers.nodeAgentReconciliationDelay.maxDelay": 300.0,
    "controllers.tokenInvalidator.enabled": False,
    "controllers.tokenInvalidator.concurrentSyncs": 5,
    "controllers.tokenRequestor.enabled": False,
    "controllers.tokenRequestor.concurrentSyncs": 5,
    "controllers.tokenRequestor.class": None,
    "controllers.tokenRequestor.audiences": ("gardener",),
    "controllers.tokenRequestor.mergeServiceAccountLabels": False,
    "controllers.tokenRequestor.restoreTargetKubeconfig": False,
    "controllers.istioClusterConfiguration.enabled": False,
    "controllers.istioClusterConfiguration.concurrentSyncs": 5,
    **{f"webhooks.{name}.enabled": False for name in SWITCHES},
    "webhooks.crdDeletionProtection.enabled": False,
    "webhooks.crdDeletionProtection.protectBastions": False,
    "webhooks.highAvailabilityConfig.enabled": False,
    "webhooks.highAvailabilityConfig.defaultNotReadyTolerationSeconds": None,
    "webhooks.highAvailabilityConfig.defaultUnreachableTolerationSeconds": None,
    "webhooks.highAvailabilityConfig.behavior": "seed",
    "webhooks.kubernetesServiceHost.enabled": False,
    "webhooks.kubernetesServiceHost.host": "",
    "webhooks.podSchedulerName.enabled": False,
    "webhooks.podSchedulerName.schedulerName": "default-scheduler",
    "webhooks.projectedTokenMount.enabled": False,
    "webhooks.projectedTokenMount.expirationSeconds": 43200,
    "webhooks.systemComponentsConfig.enabled": False,
    "webhooks.systemComponentsConfig.nodeSelector": {},
    "webhooks.systemComponentsConfig.podNodeSelector": {},
    "webhooks.systemComponentsConfig.podTolerations": (),
    "webhooks.nodeAgentAuthorizer.enabled": False,
    "webhooks.nodeAgentAuthorizer.machineNamespace": None,
    "webhooks.nodeAgentAuthorizer.authorizeWithSelectors": False,
}

WRITTEN_BY_GARDENLET = """
apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
sourceClientConnection: {kubeconfig: "", acceptContentTypes: "", contentType: "", qps: 0, burst: 0, namespaces: [shoot--p--a]}
leaderElection: {leaderElect: true, leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s, resourceLock: "",
  resourceName: gardener-resource-manager, resourceNamespace: shoot--p--a}
server: {webhooks: {bindAddress: "", port: 10250, tls: {serverCertDir: /etc/x}}}
logLevel: ""
controllers: {garbageCollector: {enabled: true, syncPeriod: 12h}, networkPolicy: {enabled: false}}
webhooks: {projectedTokenMount: {enabled: true}}
"""


def flat(block: Any, path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for member in members(type(block)):
        value, where = getattr(block, member.attribute), join(path, member.name)
        found.update(flat(value, where) if is_block(type(value)) else {where: value})
    return found


@pytest.mark.parametrize("text", ["", "{}", "---\n", "controllers:\nwebhooks: null\nserver: {metrics: null}"])
def test_every_field_that_is_not_set_has_its_default(text: str) -> None:
    assert flat(decode(text).config) == DEFAULTS


def test_a_configuration_made_in_code_has_the_same_defaults() -> None:
    assert ResourceManagerConfiguration() == decode("").config


def test_a_file_as_gardenlet_writes_it_is_completed_and_valid() -> None:
    decoded = decode(WRITTEN_BY_GARDENLET)
    check(decoded.config, conflicts=decoded.conflicts)
    assert decoded.warnings == ()
    assert flat(decoded.config) == DEFAULTS | {
        "sourceClientConnection.namespaces": ("shoot--p--a",),
        "leaderElection.resourceNamespace": "shoot--p--a",
        "server.webhooks.port": 10250,
        "server.webhooks.tls.serverCertDir": "/etc/x",
        "controllers.garbageCollector.enabled": True,
        "controllers.garbageCollector.syncPeriod": 12 * HOUR,
        "webhooks.projectedTokenMount.enabled": True,
    }


def test_zero_values_that_writers_fill_in_become_defaults() -> None:
    config = decode("""
        sourceClientConnection: {qps: 0.0, burst: 0}
        leaderElection: {leaseDuration: 0s, renewDeadline: 0s, retryPeriod: "0", resourceLock: "", resourceName: ""}
        server: {webhooks: {port: 0}, healthProbes: {port: 0}, metrics: {port: 0}}
        logLevel: ""
        logFormat: ""
        controllers: {cacheSyncTimeout: 0s, networkPolicy: {fromWorldPeers: ""}, tokenRequestor: {class: ""}}
        webhooks: {highAvailabilityConfig: {behavior: ""}}
    """).config
    assert flat(config) == DEFAULTS


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("leaderElection: {leaderElect: false}", "leaderElection.leaderElect", False),
        ("controllers: {resourceClass: ''}", "controllers.resourceClass", ""),
        ("controllers: {health: {concurrentSyncs: 0}}", "controllers.health.concurrentSyncs", 0),
        ("controllers: {garbageCollector: {syncPeriod: 0s}}", "controllers.garbageCollector.syncPeriod", 0.0),
        ("controllers: {tokenRequestor: {audiences: []}}", "controllers.tokenRequestor.audiences", ()),
        ("controllers: {kubeletCSRApprover: {machineNamespace: ''}}", "controllers.kubeletCSRApprover.machineNamespace", ""),
        ("webhooks: {podSchedulerName: {schedulerName: ''}}", "webhooks.podSchedulerName.schedulerName", ""),
        ("webhooks: {highAvailabilityConfig: {defaultNotReadyTolerationSeconds: 0}}",
         "webhooks.highAvailabilityConfig.defaultNotReadyTolerationSeconds", 0),
        ("gracefulShutdownTimeout: 0s", "gracefulShutdownTimeout", 0.0),
        ("targetClientConnection: {cacheResyncPeriod: 0s}", "targetClientConnection.cacheResyncPeriod", 0.0),
    ],
)  # fmt: skip
def test_other_zero_values_are_taken_literally(text: str, path: str, value: object) -> None:
    assert flat(decode(text).config) == DEFAULTS | {path: value}


def test_all_defaults_are_valid_but_for_the_namespace_of_the_lease() -> None:
    errors = list(map(str, validate(ResourceManagerConfiguration())))
    assert errors == ["leaderElection.resourceNamespace: Required value"]


def test_a_selector_without_requirements_selects_everything() -> None:
    selector = decode("controllers: {networkPolicy: {namespaceSelectors: [{}]}}").config.controllers.network_policy
    assert selector.namespace_selectors == (LabelSelector(),)


def test_no_overrides_change_nothing() -> None:
    config = ResourceManagerConfiguration()
    assert override(config, Overrides(), clusters=COMPONENT.clusters, environment={}) == config
