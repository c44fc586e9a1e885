"""Which configurations are refused, and in which words."""

import pytest

from config import controller_manager, webhooks
from config.resource_manager import decode
from process.configuration.component import check, validate
from process.configuration.errors import ConfigError

VALID = "leaderElection: {resourceNamespace: garden}\n"
NAMESPACE_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def errors_of(text: str) -> list[str]:
    return [str(error) for error in validate(decode(text).config)]


def test_the_worked_example_gives_its_errors_in_order() -> None:
    config = decode("""
        apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
        kind: ResourceManagerConfiguration
        logLevel: trace
        controllers: {resourceClass: "", health: {syncPeriod: 10s}, managedResource: {concurrentSyncs: 0}}
        webhooks: {projectedTokenMount: {enabled: true, expirationSeconds: 60}}
    """).config
    with pytest.raises(ConfigError) as caught:
        check(config)
    assert str(caught.value) == (
        "[leaderElection.resourceNamespace: Required value, "
        'logLevel: Unsupported value: "trace": supported values: "debug", "info", "error", '
        "controllers.resourceClass: Required value: must provide a resource class, "
        "controllers.health.syncPeriod: Invalid value: 10s: must be at least 15s, "
        "controllers.managedResources.concurrentSyncs: Invalid value: 0: must be at least 1, "
        "webhooks.projectedTokenMount.expirationSeconds: Invalid value: 60: must be at least 600]"
    )


DISABLED = [
    "controllers: {garbageCollector: {enabled: false, syncPeriod: 1s}, tokenRequestor: {enabled: false, concurrentSyncs: -1}}",
    "controllers: {garbageCollector: {syncPeriod: 1s, minimumObjectLifetime: -1s}}",
    "controllers: {kubeletCSRApprover: {concurrentSyncs: 0, machineNamespace: '', denialGracePeriod: -1s}}",
    "controllers: {networkPolicy: {concurrentSyncs: 0, namespaceSelectors: [{matchLabels: {'': ''}}], fromWorldPeers: x}}",
    "controllers: {networkPolicy: {ingressControllerSelector: {}}}",
    "controllers: {nodeCriticalComponents: {concurrentSyncs: 0, backoff: -1s}}",
    "controllers: {nodeAgentReconciliationDelay: {minDelay: 10m, maxDelay: -1s}}",
    "controllers: {tokenRequestor: {class: '-', audiences: ['']}, istioClusterConfiguration: {concurrentSyncs: 0}}",
    "webhooks: {podSchedulerName: {schedulerName: ''}, projectedTokenMount: {expirationSeconds: 0}}",
    "webhooks: {highAvailabilityConfig: {behavior: x}, nodeAgentAuthorizer: {machineNamespace: ''}}",
    "webhooks: {systemComponentsConfig: {nodeSelector: {'': ''}, podNodeSelector: {'': ''}}}",
    "tracing: {endpoint: nowhere, samplingRatePerMillion: -1}",
]  # fmt: skip
VALID_TEXTS = [
    "",
    "sourceClientConnection: {qps: -1, burst: 1, cacheResyncPeriod: 10s}",
    "server: {webhooks: {port: 1}, healthProbes: {port: 65535}, metrics: {port: 3}}",
    "server: {healthProbes: {bindAddress: 127.0.0.1, port: 80}, metrics: {bindAddress: 127.0.0.2, port: 80}}",
    "gracefulShutdownTimeout: 0s",
    "tracing: {enabled: true}",
    "tracing: {enabled: true, endpoint: 'https://[::1]:4318/otlp/v1/traces', samplingRatePerMillion: 1000000}",
    "tracing: {enabled: true, endpoint: 'http://collector', samplingRatePerMillion: 0}",
    "controllers: {resourceClass: '*', health: {concurrentSyncs: 1, syncPeriod: 15s}}",
    "controllers: {garbageCollector: {enabled: true, syncPeriod: 15s, minimumObjectLifetime: 0s, dryRun: true}}",
    "controllers: {kubeletCSRApprover: {enabled: true, machineNamespace: shoot--a--b}}",
    ("controllers: {networkPolicy: {enabled: true, namespaceSelectors: [{}], fromWorldPeers: none,"
    " ingressControllerSelector: {namespace: a, podSelector: {}}}}"),
    "controllers: {nodeAgentReconciliationDelay: {enabled: true, minDelay: 5m}}",
    "controllers: {tokenInvalidator: {enabled: true, concurrentSyncs: 0}}\nwebhooks: {tokenInvalidator: {enabled: true}}",
    "controllers: {tokenRequestor: {enabled: true, class: shoot, audiences: []}}",
    "webhooks: {highAvailabilityConfig: {enabled: true, behavior: latest, defaultNotReadyTolerationSeconds: 0}}",
    "webhooks: {kubernetesServiceHost: {enabled: true, host: api.example.com}, nodeAgentAuthorizer: {enabled: true}}",
    "webhooks: {systemComponentsConfig: {enabled: true, nodeSelector: {a.b/c: 'true'}, podTolerations: [{operator: Exists}]}}",
]  # fmt: skip


@pytest.mark.parametrize("text", VALID_TEXTS)
def test_what_is_within_the_rules_is_valid(text: str) -> None:
    assert errors_of(VALID + text) == []


@pytest.mark.parametrize("text", DISABLED)
def test_disabled_blocks_are_not_checked(text: str) -> None:
    assert errors_of(VALID + text) == []


def test_without_leader_election_its_fields_are_not_checked() -> None:
    text = "leaderElection: {leaderElect: false, leaseDuration: -1s, resourceLock: x, resourceName: X, resourceNamespace: X}"
    assert errors_of(text) == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("sourceClientConnection: {burst: -1}", "sourceClientConnection.burst: Invalid value: -1: must be non-negative"),
        ("targetClientConnection: {burst: -1}", "targetClientConnection.burst: Invalid value: -1: must be non-negative"),
        ("targetClientConnection: {cacheResyncPeriod: 9.9s}",
         "targetClientConnection.cacheResyncPeriod: Invalid value: 9.9s: must be at least 10s"),
        ("sourceClientConnection: {namespaces: [a, B]}",
         f'sourceClientConnection.namespaces[1]: Invalid value: "B": {NAMESPACE_RULE}'),
        ("sourceClientConnection: {namespaces: ['']}",
         f'sourceClientConnection.namespaces[0]: Invalid value: "": {NAMESPACE_RULE}'),
        ("server: {webhooks: {port: -1}}",
         "server.webhooks.port: Invalid value: -1: must be greater than or equal to 0"),
        ("server: {healthProbes: {port: -1}}",
         "server.healthProbes.port: Invalid value: -1: must be greater than or equal to 0"),
        ("server: {metrics: {port: 65536}}",
         "server.metrics.port: Invalid value: 65536: must be less than or equal to 65535"),
        ("server: {metrics: {managedResourceSeriesLimit: -1}}",
         "server.metrics.managedResourceSeriesLimit: Invalid value: -1: must be non-negative"),
        ("server: {metrics: {port: 8081}}",
         "server.metrics.port: Invalid value: 8081: must differ from server.healthProbes.port"),
        ("server: {webhooks: {bindAddress: '::', port: 8080}, metrics: {bindAddress: 127.0.0.1}}",
         "server.metrics.port: Invalid value: 8080: must differ from server.webhooks.port"),
        ("server: {webhooks: {bindAddress: 127.0.0.1, port: 8080}, metrics: {bindAddress: 127.0.0.1}}",
         "server.metrics.port: Invalid value: 8080: must differ from server.webhooks.port"),
        ("logFormat: xml", 'logFormat: Unsupported value: "xml": supported values: "json", "text"'),
        ("logLevel: Info", 'logLevel: Unsupported value: "Info": supported values: "debug", "info", "error"'),
        ("gracefulShutdownTimeout: -1s", "gracefulShutdownTimeout: Invalid value: -1s: must be non-negative"),
        ("tracing: {enabled: true, endpoint: 'localhost:4318'}",
         'tracing.endpoint: Invalid value: "localhost:4318": must be a URL such as http://host:4318'),
        ("tracing: {enabled: true, endpoint: 'http://'}",
         'tracing.endpoint: Invalid value: "http://": must be a URL such as http://host:4318'),
        ("tracing: {enabled: true, endpoint: 'http://host:port'}", "tracing.endpoint: Forbidden: must be a URL"),
        ("tracing: {enabled: true, endpoint: 'http://user:password@host'}",
         "tracing.endpoint: Forbidden: a URL may not have credentials, a query or a fragment here"),
        ("tracing: {enabled: true, endpoint: 'http://host/?token=x'}",
         "tracing.endpoint: Forbidden: a URL may not have credentials, a query or a fragment here"),
        ("tracing: {enabled: true, samplingRatePerMillion: -1}",
         "tracing.samplingRatePerMillion: Invalid value: -1: must be from 0 to 1000000"),
        ("tracing: {enabled: true, samplingRatePerMillion: 1000001}",
         "tracing.samplingRatePerMillion: Invalid value: 1000001: must be from 0 to 1000000"),
        ("controllers: {cacheSyncTimeout: -1s}", "controllers.cacheSyncTimeout: Invalid value: -1s: must be non-negative"),
        ("controllers: {garbageCollector: {enabled: true, syncPeriod: 14s}}",
         "controllers.garbageCollector.syncPeriod: Invalid value: 14s: must be at least 15s"),
        ("controllers: {garbageCollector: {enabled: true, minimumObjectLifetime: -1m}}",
         "controllers.garbageCollector.minimumObjectLifetime: Invalid value: -1m0s: must be non-negative"),
        ("controllers: {health: {concurrentSyncs: 0}}",
         "controllers.health.concurrentSyncs: Invalid value: 0: must be at least 1"),
        ("controllers: {kubeletCSRApprover: {enabled: true, concurrentSyncs: 0}}",
         "controllers.csrApprover.concurrentSyncs: Invalid value: 0: must be at least 1"),
        ("controllers: {csrApprover: {enabled: true, machineNamespace: ''}}",
         'controllers.csrApprover.machineNamespace: Invalid value: "": machine namespace must be nil or not empty'),
        ("controllers: {csrApprover: {enabled: true, machineNamespace: A}}",
         f'controllers.csrApprover.machineNamespace: Invalid value: "A": {NAMESPACE_RULE}'),
        ("controllers: {csrApprover: {enabled: true, denialGracePeriod: -1s}}",
         "controllers.csrApprover.denialGracePeriod: Invalid value: -1s: must be non-negative"),
        ("controllers: {managedResource: {syncPeriod: 10ms}}",
         "controllers.managedResources.syncPeriod: Invalid value: 10ms: must be at least 15s"),
        ("controllers: {managedResource: {managedByLabelValue: ''}}",
         "controllers.managedResources.managedByLabelValue: Required value: must specify value of managed-by label"),
        ("controllers: {networkPolicy: {enabled: true, concurrentSyncs: 0}}",
         "controllers.networkPolicy.concurrentSyncs: Invalid value: 0: must be at least 1"),
        ("controllers: {networkPolicy: {enabled: true, namespaceSelectors: [{}, {matchExpressions: [{key: a, operator: is}]}]}}",
         ('controllers.networkPolicy.namespaceSelectors[1].matchExpressions[0].operator: Invalid value: "is": '
         "not a valid selector operator")),
        ("controllers: {networkPolicy: {enabled: true, ingressControllerSelector: {}}}",
         ("controllers.networkPolicy.ingressControllerSelector.namespace: Required value: "
         "must specify the namespace of the ingress controller")),
        ("controllers: {networkPolicy: {enabled: true, ingressControllerSelector: {namespace: A}}}",
         f'controllers.networkPolicy.ingressControllerSelector.namespace: Invalid value: "A": {NAMESPACE_RULE}'),
        (("controllers: {networkPolicy: {enabled: true, ingressControllerSelector: {namespace: a, podSelector: "
         "{matchExpressions: [{key: a, operator: In}]}}}}"),
         ("controllers.networkPolicy.ingressControllerSelector.podSelector.matchExpressions[0].values: Required value: "
         "must be specified when `operator` is 'In' or 'NotIn'")),
        ("controllers: {networkPolicy: {enabled: true, fromWorldPeers: all}}",
         'controllers.networkPolicy.fromWorldPeers: Unsupported value: "all": supported values: "explicit", "none"'),
        ("controllers: {node: {enabled: true, concurrentSyncs: -2}}",
         "controllers.nodeCriticalComponents.concurrentSyncs: Invalid value: -2: must be at least 1"),
        ("controllers: {nodeCriticalComponents: {enabled: true, backoff: -10s}}",
         "controllers.nodeCriticalComponents.backoff: Invalid value: -10s: must be non-negative"),
        ("controllers: {nodeAgentReconciliationDelay: {enabled: true, minDelay: 10m}}",
         ("controllers.nodeAgentReconciliationDelay.minDelay: Invalid value: 10m0s: "
         "minimum delay must not be higher than maximum delay")),
        ("controllers: {nodeAgentReconciliationDelay: {enabled: true, minDelay: -1s}}",
         "controllers.nodeAgentReconciliationDelay.minDelay: Invalid value: -1s: must be non-negative"),
        ("controllers: {tokenInvalidator: {enabled: true}}",
         ("controllers.tokenInvalidator: Forbidden: "
         "controller and webhook for TokenInvalidator must either be both disabled or enabled")),
        ("webhooks: {tokenInvalidator: {enabled: true}}",
         ("controllers.tokenInvalidator: Forbidden: "
         "controller and webhook for TokenInvalidator must either be both disabled or enabled")),
        ("controllers: {tokenRequestor: {enabled: true, concurrentSyncs: 0}}",
         "controllers.tokenRequestor.concurrentSyncs: Invalid value: 0: must be at least 1"),
        ("controllers: {tokenRequestor: {enabled: true, audiences: [a, '']}}",
         "controllers.tokenRequestor.audiences[1]: Required value: must not be empty"),
        ("controllers: {istioClusterConfiguration: {enabled: true, concurrentSyncs: 0}}",
         "controllers.istioClusterConfiguration.concurrentSyncs: Invalid value: 0: must be at least 1"),
        ("webhooks: {highAvailabilityConfig: {enabled: false, defaultNotReadyTolerationSeconds: -1}}",
         ("webhooks.highAvailabilityConfig.defaultNotReadyTolerationSeconds: Invalid value: -1: "
         "must be greater than or equal to 0")),
        ("webhooks: {highAvailabilityConfig: {enabled: true, defaultUnreachableTolerationSeconds: -1}}",
         ("webhooks.highAvailabilityConfig.defaultUnreachableTolerationSeconds: Invalid value: -1: "
         "must be greater than or equal to 0")),
        ("webhooks: {highAvailabilityConfig: {enabled: true, behavior: newest}}",
         'webhooks.highAvailabilityConfig.behavior: Unsupported value: "newest": supported values: "seed", "latest"'),
        ("webhooks: {kubernetesServiceHost: {enabled: true}}",
         "webhooks.kubernetesServiceHost.host: Required value: must specify host when webhook is enabled"),
        ("webhooks: {podSchedulerName: {enabled: true, schedulerName: ''}}",
         "webhooks.podSchedulerName.schedulerName: Required value: must specify schedulerName when webhook is enabled"),
        ("webhooks: {projectedTokenMount: {enabled: true, expirationSeconds: 599}}",
         "webhooks.projectedTokenMount.expirationSeconds: Invalid value: 599: must be at least 600"),
        ("webhooks: {systemComponentsConfig: {podTolerations: [{operator: Exists}, {key: a, effect: x}]}}",
         ('webhooks.systemComponentsConfig.podTolerations[1].effect: Unsupported value: "x": '
         'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"')),
        ("webhooks: {nodeAgentAuthorizer: {enabled: true, machineNamespace: ''}}",
         'webhooks.nodeAgentAuthorizer.machineNamespace: Invalid value: "": machine namespace must be nil or not empty'),
    ],
)  # fmt: skip
def test_a_broken_rule_is_the_only_error(text: str, error: str) -> None:
    assert errors_of(VALID + text) == [error]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("controllers: {managedResource: {managedByLabelValue: '-'}}", "controllers.managedResources.managedByLabelValue"),
        ("controllers: {tokenRequestor: {enabled: true, class: '-'}}", "controllers.tokenRequestor.class"),
        ("webhooks: {systemComponentsConfig: {enabled: true, nodeSelector: {a: '-'}}}",
         "webhooks.systemComponentsConfig.nodeSelector"),
        ("webhooks: {systemComponentsConfig: {enabled: true, podNodeSelector: {a/b/c: ''}}}",
         "webhooks.systemComponentsConfig.podNodeSelector"),
    ],
)  # fmt: skip
def test_labels_have_to_be_valid(text: str, path: str) -> None:
    (error,) = errors_of(VALID + text)
    assert error.startswith(f"{path}: Invalid value: ")


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        ("leaseDuration: -1s", ["leaseDuration: Invalid value: -1s: must be greater than zero",
                                "leaseDuration: Invalid value: 10s: must be greater than `RenewDeadline`"]),
        ("leaseDuration: 10s", ["leaseDuration: Invalid value: 10s: must be greater than `RenewDeadline`"]),
        ("renewDeadline: 20s", ["leaseDuration: Invalid value: 20s: must be greater than `RenewDeadline`"]),
        ("renewDeadline: 2400ms", [("renewDeadline: Invalid value: 2.4s: "
                                   "renewDeadline must be greater than retryPeriod*JitterFactor (1.2)")]),
        ("renewDeadline: 2401ms", []),
        ("retryPeriod: -1s", ["retryPeriod: Invalid value: -1s: must be greater than zero"]),
        ("resourceLock: configmapsleases", [('resourceLock: Invalid value: "configmapsleases": '
                                            "configmapsleases lock is removed, migrate to leases")]),
        ("resourceLock: endpoints", [('resourceLock: Invalid value: "endpoints": '
                                     "endpoints lock is removed, migrate to leases")]),
        ("resourceLock: etcd", ['resourceLock: Invalid value: "etcd": Invalid lock-type etcd']),
    ],
)  # fmt: skip
def test_leader_election_has_to_be_able_to_work(fields: str, errors: list[str]) -> None:
    found = errors_of(f"leaderElection: {{resourceNamespace: garden, {fields}}}")
    assert found == [f"leaderElection.{error}" for error in errors]


def test_names_of_the_lease_have_to_be_valid() -> None:
    found = errors_of("leaderElection: {resourceNamespace: A, resourceName: A}")
    assert [error.split(": a lowercase")[0] for error in found] == [
        'leaderElection.resourceName: Invalid value: "A"',
        'leaderElection.resourceNamespace: Invalid value: "A"',
    ]


def test_negative_delays_are_refused_beside_their_order() -> None:
    path = "controllers.nodeAgentReconciliationDelay"
    text = "controllers: {nodeAgentReconciliationDelay: {enabled: true, minDelay: -1s, maxDelay: -2s}}"
    assert errors_of(VALID + text) == [
        f"{path}.minDelay: Invalid value: -1s: must be non-negative",
        f"{path}.maxDelay: Invalid value: -2s: must be non-negative",
        f"{path}.minDelay: Invalid value: -1s: minimum delay must not be higher than maximum delay",
    ]


RESOURCE = "name: volumes, prometheus: {address: 'https://p', query: q}"


@pytest.mark.parametrize(
    ("controllers", "errors"),
    [
        (f"seedAutoscaler: {{enabled: true, resources: [{{{RESOURCE}}}]}}", []),
        ("seedAutoscaler: {resources: [{}]}", []),
        (
            f"seedAutoscaler: {{enabled: true, resources: [{{{RESOURCE}}}, {{{RESOURCE}}}]}}",
            ['seedAutoscaler.resources[1].name: Duplicate value: "volumes"'],
        ),
        (
            "seedAutoscaler: {enabled: true, resources: [{name: shoots, prometheus: {address: 'http://a:b@p'}}]}",
            [
                (
                    "seedAutoscaler.resources[0].prometheus.address: Forbidden: a URL may not have credentials, a query "
                    "or a fragment here"
                ),
                "seedAutoscaler.resources[0].prometheus.query: Required value",
                "seedAutoscaler.resources[0].name: Forbidden: shoots are counted",
            ],
        ),
        (
            "seedExtensionsCheck: {conditionThresholds: [{type: a}, {duration: 0s}]}",
            [
                "seedExtensionsCheck.conditionThresholds[1].type: Required value",
                "seedExtensionsCheck.conditionThresholds[1].duration: Invalid value: 0s: must be greater than zero",
            ],
        ),
    ],
)
def test_elements_of_lists_keep_the_rules_of_their_fields(controllers: str, errors: list[str]) -> None:
    config = controller_manager.decode(f"controllers: {{{controllers}}}").config
    assert [str(error) for error in validate(config)] == [f"controllers.{error}" for error in errors]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "webhooks: {garden: {sizeLimits: [{size: big}]}}",
            (
                "webhooks.garden.sizeLimits[0].size: Invalid value: \"big\": 'big' is not a quantity; write a number with an "
                "optional suffix such as m, k, Mi"
            ),
        ),
        (
            "webhooks: {garden: {sizeLimits: [{size: '0'}]}}",
            'webhooks.garden.sizeLimits[0].size: Invalid value: "0": must be greater than 0',
        ),
        (
            "webhooks: {garden: {unrestrictedSubjects: [{kind: Robot, name: r}]}}",
            (
                'webhooks.garden.unrestrictedSubjects[0].kind: Unsupported value: "Robot": supported values: "User", "Group", '
                '"ServiceAccount"'
            ),
        ),
    ],
)
def test_rules_of_the_webhooks_of_a_garden(text: str, error: str) -> None:
    assert [str(each) for each in validate(webhooks.decode(text).config)] == [error]
