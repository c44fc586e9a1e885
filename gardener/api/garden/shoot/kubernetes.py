"""`spec.kubernetes` of a Shoot: its version, and settings of the components of its control plane."""

from gardener.api.garden.shoot.kubelet import feature_gates, kubelet
from gardener.api.schema import (
    Schema,
    array,
    boolean,
    but,
    duration,
    integer,
    mapping,
    name,
    number,
    raw,
    string,
    string_map,
    strings,
    struct,
)

_ALGORITHMS = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512", "none")

_OIDC = struct(
    "Users who come with a token of an OpenID Connect provider. Deprecated in Kubernetes 1.30: use"
    " structuredAuthentication.",
    {
        "caBundle": string(
            "Certificates (PEM) of authorities that may have signed the certificate of the provider. Those of the"
            " host, if empty."
        ),
        "clientAuthentication": struct(
            "Settings with which kubectl gets a token. The API server does not use it.",
            {
                "extraConfig": string_map("Additional settings of kubectl's plugin, by name."),
                "secret": string("Secret of the client at the provider."),
            },
        ),
        "clientID": string("The audience that a token must have.", at_least=1),
        "groupsClaim": string("Claim of the token with the groups of the user.", at_least=1),
        "groupsPrefix": string("Prefix of each group, which prevents conflicts with groups of Kubernetes.", at_least=1),
        "issuerURL": string("URL of the provider; https.", at_least=1),
        "requiredClaims": string_map("Claims that a token must have, with the value of each."),
        "signingAlgs": array(
            "Algorithms of signatures that are accepted; RS256 if empty.", string("An algorithm.", enum=_ALGORITHMS)
        ),
        "usernameClaim": string("Claim of the token with the name of the user; `sub` if not given.", at_least=1),
        "usernamePrefix": string(
            "Prefix of the user name; `-`: none. Default is the URL of the provider and `#`.",
            at_least=1,
        ),
    },
)

_SERVICE_ACCOUNTS = struct(
    "Tokens of ServiceAccounts: settings of the API server.",
    {
        "issuer": string("Issuer of tokens; a URL. Default is that of the API server's internal domain."),
        "extendTokenExpiration": boolean(
            "Whether tokens that Pods get are valid for a year, for old clients. The API server's default is true."
        ),
        "maxTokenExpiration": duration("Maximum validity of a token; 720h to 2160h."),
        "acceptedIssuers": strings("Other issuers whose tokens are accepted: former values of `issuer`.", at_most=64),
    },
)

_WATCH_CACHES = struct(
    "Numbers of changes that the API server caches for watches.",
    {
        "default": integer(
            "Changes of a resource; 0: none are remembered. The API server's default is 100.", at_least=0
        ),
        "resources": array(
            "Sizes for some resources.",
            struct(
                "The size for a resource.",
                {
                    "apiGroup": string("Group of the resource; empty for Kubernetes' core."),
                    "resource*": string("Name of the resource, in the plural."),
                    "size*": integer("Changes that are remembered; 0 turns it off.", at_least=0),
                },
            ),
            at_most=128,
        ),
    },
)

KUBE_API_SERVER = struct(
    "Settings of the kube-apiserver.",
    {
        "featureGates": feature_gates("kube-apiserver"),
        "admissionPlugins": array(
            "Admission plugins, beside those that are always on.",
            struct(
                "An admission plugin.",
                {
                    "name*": string("Name of the plugin, such as PodNodeSelector.", at_least=1, at_most=128),
                    "config": raw("The configuration of the plugin, as kube-apiserver reads it."),
                    "disabled": boolean("Whether the plugin is disabled. Some cannot be."),
                    "kubeconfigSecretName": string(
                        "Secret in the project's namespace whose key `kubeconfig` the plugin uses to call a server."
                    ),
                },
            ),
            key="name",
            at_most=64,
        ),
        "apiAudiences": strings(
            "Audiences of tokens of ServiceAccounts. Default is the issuer, and `gardener` is always there."
        ),
        "auditConfig": struct(
            "Content of the audit log.",
            {
                "auditPolicy": struct(
                    "Policy: level of detail by request.",
                    {
                        "configMapRef": struct(
                            "ConfigMap in the project's namespace whose key `policy` holds an audit policy.",
                            {
                                "name*": name("Name of the ConfigMap."),
                                "kind": string("ConfigMap; may be empty."),
                                "apiVersion": string("v1; may be empty."),
                                "namespace": string("Not used: it is that of the Shoot."),
                                "uid": string("Not used: the name identifies the ConfigMap."),
                                "resourceVersion": string("Version that was read last."),
                                "fieldPath": string("Not used: the policy is the whole value of the key."),
                            },
                        )
                    },
                )
            },
        ),
        "oidcConfig": _OIDC,
        "structuredAuthentication": struct(
            "Users who come with tokens of others, in Kubernetes' own format; from Kubernetes 1.30 on, and not"
            " together with oidcConfig.",
            {
                "configMapName*": name(
                    "ConfigMap in the project's namespace whose key `config.yaml` holds an AuthenticationConfiguration."
                )
            },
        ),
        "runtimeConfig": mapping(
            "API groups and versions that are turned on or off, such as `batch/v1alpha1`.",
            boolean("True turns it on, false turns it off."),
        ),
        "serviceAccountConfig": _SERVICE_ACCOUNTS,
        "watchCacheSizes": _WATCH_CACHES,
        "requests": struct(
            "Limits of concurrent requests to the API server. They bound also the shares of priority levels.",
            {
                "maxNonMutatingInflight": integer(
                    "Number of reading requests that are served at the same time; 800 at most. Default: 400.",
                    default=400,
                    at_least=0,
                    at_most=800,
                ),
                "maxMutatingInflight": integer(
                    "Number of writing requests that are served at the same time; 400 at most. Default: 200.",
                    default=200,
                    at_least=0,
                    at_most=400,
                ),
            },
            default={},
        ),
        "enableAnonymousAuthentication": boolean(
            "Whether requests without credentials are let in as `system:anonymous`. The webhooks fill in false before"
            " Kubernetes 1.35, from which on it is forbidden: use structuredAuthentication."
        ),
        "eventTTL": duration("Retention of Events; up to 168h. Default: 1h0m0s.", default="1h0m0s"),
        "logging": struct(
            "Verbosity of kube-apiserver's log.",
            {
                "verbosity": integer(
                    "Level of detail, a number as for --v: more of it is more. Default: 2.", default=2, at_least=0
                ),
                "httpAccessVerbosity": integer(
                    "Level of detail, a number, from which on each HTTP request is logged.", at_least=0
                ),
            },
            default={},
        ),
        "defaultNotReadyTolerationSeconds": integer(
            "Time for which Pods tolerate a node that is not ready, if they do not set it; seconds. The "
            "webhooks fill in 300 for Shoots with workers.",
            at_least=0,
            bits=64,
        ),
        "defaultUnreachableTolerationSeconds": integer(
            "Time for which Pods tolerate an unreachable node, if they do not set it; seconds. The webhooks "
            "fill in 300 for Shoots with workers.",
            at_least=0,
            bits=64,
        ),
        "encryptionConfig": struct(
            "Resources that are encrypted in etcd.",
            {
                "resources*": strings(
                    "Resources beside Secrets, such as `configmaps` or `statefulsets.apps`.", at_most=128
                )
            },
        ),
    },
)

_KUBE_CONTROLLER_MANAGER = struct(
    "Settings of the kube-controller-manager.",
    {
        "featureGates": feature_gates("kube-controller-manager"),
        "horizontalPodAutoscaler": struct(
            "The horizontal autoscaler of Pods.",
            {
                "cpuInitializationPeriod": duration(
                    "Time after the start of a Pod during which its usage may be ignored. Kubernetes' default is 5m."
                ),
                "downscaleStabilization": duration(
                    "Period whose highest recommendation counts before a scale-down. Kubernetes' default is 5m."
                ),
                "initialReadinessDelay": duration(
                    "Time after the start of a Pod during which unreadiness counts as starting. Kubernetes' default "
                    "is 30s."
                ),
                "syncPeriod": duration("Time between two looks; at least 1s. Kubernetes' default is 15s."),
                "tolerance": number(
                    "Tolerated deviation of usage from its target, as a share of it. Kubernetes' default is 0.1."
                ),
            },
        ),
        "nodeCIDRMaskSize": integer(
            "Size of the network of each node, as the length of its mask; bits. The webhooks find it from maxPods:"
            " twice as many addresses as Pods, 24 for 110 Pods. Immutable.",
            at_least=1,
            at_most=128,
        ),
        "podEvictionTimeout": duration(
            "Time for which Pods stay on failed nodes. Deprecated, without effect: see "
            "defaultNotReadyTolerationSeconds of the API server."
        ),
        "nodeMonitorGracePeriod": duration(
            "Time without heartbeat after which a node counts as not ready. The webhooks fill in 40s."
        ),
    },
)

_CLUSTER_AUTOSCALER = struct(
    "Settings of the cluster autoscaler, which sets the number of machines between minimum and maximum of the pools.",
    {
        "scaleDownDelayAfterAdd": duration(
            "Delay of removals after a node was added. Default: 1h0m0s.", default="1h0m0s"
        ),
        "scaleDownDelayAfterDelete": duration("Delay of removals after a node was removed. Default: 0s.", default="0s"),
        "scaleDownDelayAfterFailure": duration(
            "Delay of removals after a failed removal. Default: 3m0s.", default="3m0s"
        ),
        "scaleDownUnneededTime": duration(
            "Time for which a node is unneeded before it is removed. Default: 30m0s.", default="30m0s"
        ),
        "scaleDownUtilizationThreshold": number(
            "Requests of a node's Pods, as a share of what it has, below which it is unneeded. Default: 0.5.",
            default=0.5,
            at_least=0,
            at_most=1,
        ),
        "scanInterval": duration("Time between two looks at the cluster. Default: 10s.", default="10s"),
        "expander": string(
            "Choice among suitable pools: least-waste, most-pods, priority or random; or several, separated "
            "by commas, each choosing from the remaining ones. Default: least-waste.",
            default="least-waste",
            pattern="^(least-waste|most-pods|priority|random)(,(least-waste|most-pods|priority|random))*$",
        ),
        "maxNodeProvisionTime": duration(
            "Maximum time for a new machine to become a node. Default: 20m0s.", default="20m0s"
        ),
        "maxGracefulTerminationSeconds": integer(
            "Maximum time for the termination of Pods of a removed node; seconds. Default: 600.",
            default=600,
            at_least=0,
        ),
        "ignoreTaints": strings(
            "Taints that are left out when a pool's next node is imagined. Deprecated: use startupTaints and"
            " statusTaints.",
            at_most=64,
        ),
        "startupTaints": strings("Taints that nodes have only while they start.", at_most=64),
        "statusTaints": strings("Taints that describe the state of a node.", at_most=64),
        "newPodScaleUpDelay": duration(
            "Minimum age of a pending Pod for which a node is added. Default: 0s.", default="0s"
        ),
        "maxEmptyBulkDelete": integer(
            "Empty nodes that may be removed at once. The webhooks fill in 10 before Kubernetes 1.33, from which on it"
            " is forbidden.",
            at_least=0,
        ),
        "ignoreDaemonsetsUtilization": boolean(
            "Whether Pods of DaemonSets are left out of a node's utilization. Default: false.", default=False
        ),
        "verbosity": integer("Level of detail of the log, a number as for --v. Default: 2.", default=2, at_least=0),
    },
)


def _share(description: str, default: float) -> Schema:
    return number(f"{description} Default: {default}.", default=default)


def _percentile(description: str, default: float) -> Schema:
    return but(_share(f"Percentile of {description}; from 0 to 1.", default), minimum=0, maximum=1)


_VERTICAL_POD_AUTOSCALER = struct(
    "The vertical autoscaler of Pods.",
    {
        "enabled*": boolean("Whether the autoscaler runs in this cluster."),
        "evictAfterOOMThreshold": duration(
            "A Pod that ran out of memory within this time of its start is evicted at once. Default: 10m0s.",
            default="10m0s",
        ),
        "evictionRateBurst": integer("Pods that may be evicted at once. Default: 1.", default=1),
        "evictionRateLimit": _share("Pods that may be evicted a second; -1: no limit.", -1),
        "evictionTolerance": _share("Share of the Pods of a workload that may be evicted at the same time.", 0.5),
        "recommendationMarginFraction": _share("Reserve that is added to a recommendation, as a share of it.", 0.15),
        "updaterInterval": duration("Time between two looks for Pods to evict. Default: 1m0s.", default="1m0s"),
        "recommenderInterval": duration("Time between two looks at usage. Default: 1m0s.", default="1m0s"),
        "targetCPUPercentile": _percentile("CPU usage that is recommended", 0.9),
        "recommendationLowerBoundCPUPercentile": _percentile("CPU usage that is the lower bound", 0.5),
        "recommendationUpperBoundCPUPercentile": _percentile("CPU usage that is the upper bound", 0.95),
        "targetMemoryPercentile": _percentile("memory peaks that is recommended", 0.9),
        "recommendationLowerBoundMemoryPercentile": _percentile(
            "Percentile of memory peaks that is the lower bound", 0.5
        ),
        "recommendationUpperBoundMemoryPercentile": _percentile(
            "Percentile of memory peaks that is the upper bound", 0.95
        ),
    },
)

KUBERNETES = struct(
    "Kubernetes: its version, and settings of its components.",
    {
        "version": string(
            "Version of the control plane, and of pools without one of their own. `1.30`, or nothing, stands for the"
            " newest usable version of the cloud profile that begins so; the full version is stored. It can rise by"
            " one minor version at a time, and cannot fall.",
            at_most=64,
        ),
        "enableStaticTokenKubeconfig": boolean(
            "Whether there is a kubeconfig with a token that never expires. Deprecated. The webhooks fill in false"
            " (true before Kubernetes 1.26)."
        ),
        "kubeAPIServer": KUBE_API_SERVER,
        "kubeControllerManager": _KUBE_CONTROLLER_MANAGER,
        "kubeScheduler": struct(
            "Settings of the kube-scheduler.",
            {
                "featureGates": feature_gates("kube-scheduler"),
                "kubeMaxPDVols": string(
                    "Volumes that may be attached to a node at most, where the cloud's own limit is not known."
                ),
                "profile": string(
                    "balanced: Pods are spread over nodes. bin-packing: nodes are filled. The webhooks fill in"
                    " balanced for Shoots with workers.",
                    enum=["balanced", "bin-packing"],
                ),
            },
        ),
        "kubeProxy": struct(
            "Settings of kube-proxy.",
            {
                "featureGates": feature_gates("kube-proxy"),
                "mode": string(
                    "Mode of kube-proxy. The webhooks fill in IPTables for Shoots with workers.",
                    enum=["IPTables", "IPVS"],
                ),
                "enabled": boolean(
                    "Whether kube-proxy runs; some networks replace it. The webhooks fill in true for Shoots with "
                    "workers."
                ),
            },
        ),
        "kubelet": kubelet("Settings of kubelet on all nodes, but those of pools with settings of their own."),
        "clusterAutoscaler": _CLUSTER_AUTOSCALER,
        "verticalPodAutoscaler": _VERTICAL_POD_AUTOSCALER,
    },
)
