"""What a configuration is when nothing, or only zero values, are set."""

from typing import Any

import pytest
import yaml

from config.resource_manager import COMPONENT, decode
from config.resource_manager.schema import ResourceManagerConfiguration
from config.shared import LabelSelector
from process.configuration.component import check, validate
from process.configuration.fields import is_block, join, members
from process.configuration.overrides import Overrides, override


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """The fields of a document that have no fields, by path."""
    if not isinstance(value, dict) or not value:
        return {path: tuple(value) if isinstance(value, list) else value}
    return {where: leaf for name, inner in value.items() for where, leaf in leaves(inner, join(path, name)).items()}


# All of the schema; durations in seconds.
DEFAULTS = leaves(
    yaml.safe_load("""
sourceClientConnection: &connection
  {kubeconfig: '', acceptContentTypes: '', contentType: '', qps: 100, burst: 130, namespaces: [], cacheResyncPeriod: 86400}
targetClientConnection: *connection
leaderElection:
  {leaderElect: true, leaseDuration: 15, renewDeadline: 10, retryPeriod: 2, resourceLock: leases,
   resourceName: gardener-resource-manager, resourceNamespace: ''}
server:
  webhooks: {bindAddress: '', port: 9449, tls: {serverCertDir: '', clientCAFile: '', clientNames: []}}
  healthProbes: {bindAddress: '', port: 8081}
  metrics: {bindAddress: '', port: 8080, managedResourceSeriesLimit: 1000}
  statusPage: {bindAddress: 127.0.0.1, port: 0}
debugging: {enableProfiling: false, enableContentionProfiling: false}
tracing: {enabled: false, endpoint: 'http://localhost:4318', samplingRatePerMillion: 10000}
logLevel: info
logFormat: json
gracefulShutdownTimeout: 5
controllers:
  clusterID: ''
  resourceClass: resources
  cacheSyncTimeout: 120
  garbageCollector: {enabled: false, syncPeriod: 3600, minimumObjectLifetime: 600, dryRun: false}
  health: {concurrentSyncs: 5, syncPeriod: 60, checkWhileFailing: false, kstatus: false,
    healthCheckExprs: [], readyCondition: false}
  kubeletCSRApprover:
    {enabled: false, concurrentSyncs: 1, machineNamespace: null, denialGracePeriod: 0,
     nodeAddressTypes: [Hostname, InternalDNS, ExternalDNS, InternalIP, ExternalIP]}
  managedResource:
    concurrentSyncs: 5
    syncPeriod: 60
    alwaysUpdate: false
    historyLimit: 0
    workloadRemovalTimeout: 600.0
    managedByLabelValue: gardener
    injectLabelsOnlyIntoWorkloads: false
    restrictions:
      namespacedKinds: {allow: [], deny: []}
      clusterScopedKinds: {allow: [], deny: []}
      namespaces: []
      dependencies: []
      impersonation: {serviceAccountName: '', allowedServiceAccountNames: [], required: false}
  networkPolicy:
    {enabled: false, concurrentSyncs: 5, namespaceSelectors: [], ingressControllerSelector: null,
     requireMatchingPods: false, fromWorldPeers: none, istioRoutes: true}
  nodeCriticalComponents: {enabled: false, concurrentSyncs: 5, backoff: 10}
  nodeAgentReconciliationDelay: {enabled: false, minDelay: 0, maxDelay: 300}
  tokenInvalidator: {enabled: false, concurrentSyncs: 5}
  tokenRequestor:
    {enabled: false, concurrentSyncs: 5, class: null, audiences: [gardener], mergeServiceAccountLabels: false,
     restoreTargetKubeconfig: false}
  istioClusterConfiguration: {enabled: false, concurrentSyncs: 5}
webhooks:
  endpointSliceHints: {enabled: false}
  extensionValidation: {enabled: false}
  podTopologySpreadConstraints: {enabled: false}
  seccompProfile: {enabled: false}
  tokenInvalidator: {enabled: false}
  podKubeAPIServerLoadBalancing: {enabled: false}
  vpaInPlaceUpdates: {enabled: false}
  crdDeletionProtection: {enabled: false, protectBastions: false}
  highAvailabilityConfig:
    {enabled: false, defaultNotReadyTolerationSeconds: null, defaultUnreachableTolerationSeconds: null, behavior: seed}
  kubernetesServiceHost: {enabled: false, host: ''}
  podSchedulerName: {enabled: false, schedulerName: default-scheduler}
  projectedTokenMount: {enabled: false, expirationSeconds: 43200}
  systemComponentsConfig: {enabled: false, nodeSelector: {}, podNodeSelector: {}, podTolerations: []}
  nodeAgentAuthorizer: {enabled: false, machineNamespace: null, authorizeWithSelectors: false}
""")
)

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
        "controllers.garbageCollector.syncPeriod": 12 * 3600,
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
