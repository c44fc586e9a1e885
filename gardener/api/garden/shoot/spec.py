"""`spec` of a Shoot."""

from gardener.api.garden.common import (
    CLOUD_PROFILE_REFERENCE,
    NAMED_RESOURCE_REFERENCE,
    seed_selector,
    tolerations,
)
from gardener.api.garden.shoot.kubernetes import KUBERNETES
from gardener.api.garden.shoot.workers import PROVIDER, has_workers
from gardener.api.schema import (
    FORBIDDEN,
    REQUIRED,
    Schema,
    array,
    boolean,
    but,
    immutable,
    immutable_once_set,
    name,
    not_removed,
    present,
    raw,
    rule,
    string,
    string_map,
    strings,
    struct,
    without_defaults,
)

_WITH_WORKERS = has_workers("self.provider")
_HA_TYPE = "controlPlane.highAvailability.failureTolerance.type"
_HA, _OLD_HA = present("controlPlane.highAvailability"), present("controlPlane.highAvailability", "oldSelf")

_RULES = (
    immutable("region"),
    immutable("exposureClassName"),
    immutable_once_set("schedulerName"),
    immutable("networking.type"),
    immutable("networking.ipFamilies"),
    immutable_once_set("networking.pods"),
    immutable_once_set("networking.services"),
    immutable("kubernetes.kubeControllerManager.nodeCIDRMaskSize"),
    immutable_once_set("dns.domain"),
    not_removed("dns", "field is immutable"),
    not_removed("credentialsBindingName", "the field cannot be unset"),
    rule(
        "has(oldSelf.secretBindingName) == has(self.secretBindingName)"
        " ? !has(self.secretBindingName) || self.secretBindingName == oldSelf.secretBindingName"
        " : !has(self.secretBindingName) && has(self.credentialsBindingName) && !has(oldSelf.credentialsBindingName)",
        "field is immutable",
        field="secretBindingName",
    ),
    rule(
        f"!{_WITH_WORKERS} || has(self.secretBindingName) || has(self.credentialsBindingName)",
        "must be set when credentialsBindingName is not",
        field="secretBindingName",
        reason=REQUIRED,
    ),
    rule(
        "!has(self.secretBindingName) || !has(self.credentialsBindingName)",
        "is incompatible with credentialsBindingName",
        field="secretBindingName",
        reason=FORBIDDEN,
    ),
    rule(
        f"{_WITH_WORKERS} || !has(self.secretBindingName)",
        "this field should not be set for workerless Shoot clusters",
        field="secretBindingName",
        reason=FORBIDDEN,
    ),
    rule(
        f"{_WITH_WORKERS} || !has(self.credentialsBindingName)",
        "this field should not be set for workerless Shoot clusters",
        field="credentialsBindingName",
        reason=FORBIDDEN,
    ),
    rule(
        "!has(oldSelf.cloudProfile) || !has(self.cloudProfile) || self.cloudProfile == oldSelf.cloudProfile"
        " || (oldSelf.cloudProfile.kind == 'CloudProfile' && self.cloudProfile.kind == 'NamespacedCloudProfile')",
        "a CloudProfile may be replaced by a NamespacedCloudProfile whose parent it is; nothing else can change",
        field="cloudProfile",
    ),
    rule(
        "!has(oldSelf.seedName) || !has(self.seedSelector)"
        " || (has(oldSelf.seedSelector) && self.seedSelector == oldSelf.seedSelector)",
        "cannot set seed selector when .spec.seedName is set",
        field="seedSelector",
        reason=FORBIDDEN,
    ),
    rule(
        f"!has(oldSelf.seedName) || !{_OLD_HA} || ({_HA} && self.{_HA_TYPE} == oldSelf.{_HA_TYPE})",
        "field is immutable",
        field=_HA_TYPE,
    ),
)

_ADDONS = struct(
    "Components that run in the cluster on request; for evaluation only, and not without workers.",
    {
        "kubernetesDashboard": struct(
            "The dashboard of Kubernetes.",
            {
                "enabled*": boolean("Whether gardenlet deploys it."),
                "authenticationMode": string(
                    "Authentication mode of users: token. The webhooks fill it in.", enum=["token"]
                ),
            },
        ),
        "nginxIngress": struct(
            "An ingress controller with nginx.",
            {
                "enabled*": boolean("Whether gardenlet deploys it."),
                "loadBalancerSourceRanges": strings("Addresses (CIDRs) that may reach it. All, if empty.", at_most=256),
                "config": string_map("Settings of nginx by name, as in its ConfigMap."),
                "externalTrafficPolicy": string(
                    "Cluster: requests may go on to a Pod on another node. Local: they do not, and keep the address"
                    " they came from. Default: Cluster.",
                    enum=["Cluster", "Local"],
                    default="Cluster",
                ),
            },
        ),
    },
)

_CONTROL_PLANE = struct(
    "Settings of the control plane.",
    {
        "highAvailability": struct(
            "Several replicas, so that the control plane survives failures.",
            {
                "failureTolerance*": struct(
                    "Failure that the control plane tolerates without an outage.",
                    {
                        "type*": string(
                            "node: replicas on several nodes. zone: in several zones, which the Seed must have (three"
                            " at least). Immutable once set and scheduled.",
                            enum=["node", "zone"],
                        )
                    },
                )
            },
        )
    },
)


def _domains(what: str) -> Schema:
    return struct(
        f"Selection of {what} of the provider.",
        {
            "include": strings(f"Included {what}. All, if empty.", at_most=128),
            "exclude": strings(f"Excluded {what}.", at_most=128),
        },
    )


_DNS = struct(
    "Names by which the cluster is reached from outside.",
    {
        "domain": string(
            "The domain; the API server is `api.` and it. The webhooks fill in `<shoot>.<project>.<default domain>`"
            " once a Seed is known. Immutable once set.",
            at_most=253,
        ),
        "providers": array(
            "Providers of DNS records: the primary one has the domain above; others serve Services and "
            "Ingresses of the cluster, if an extension supports that.",
            struct(
                "A provider of DNS records.",
                {
                    "type": string(
                        "Type of the provider, which selects the extension; `unmanaged`: no records are made.",
                        at_most=63,
                    ),
                    "primary": boolean("Whether the provider has the domain of the cluster. Default is the first one."),
                    "secretName": string("Secret with its credentials, in the project's namespace.", at_most=253),
                    "domains": _domains("domains"),
                    "zones": _domains("zones"),
                },
            ),
            at_most=64,
        ),
    },
)

_SCHEDULES = array(
    "Schedules of hibernation and wake-up.",
    struct(
        "A time of hibernation: at least one of start and end is needed.",
        {
            "start": string(
                "Start of hibernation: a cron expression with five fields, such as `0 20 * * *`.", at_most=256
            ),
            "end": string("End of hibernation: a cron expression with five fields.", at_most=256),
            "location": string("Time zone of both, such as `Europe/Berlin`. UTC, if not given.", at_most=128),
        },
    ),
    at_most=64,
)

_MAINTENANCE = struct(
    "Settings of maintenance.",
    {
        "autoUpdate": struct(
            "Versions that are updated in the maintenance time window, before they expire. The webhooks fill "
            "in true for both.",
            {
                "kubernetesVersion*": boolean(
                    "Whether Kubernetes gets the newest patch release. Expired versions are replaced in any case."
                ),
                "machineImageVersion": boolean(
                    "Whether machine images get the newest version that their update strategy allows."
                ),
            },
        ),
        "timeWindow": struct(
            "The maintenance time window: every day, 30 minutes to 6 hours long. Disruptive work waits for it. The"
            " webhooks choose an hour.",
            {
                "begin*": string("Start of the window, `HHMMSS` and the offset to UTC: `220000+0100`.", at_most=32),
                "end*": string(
                    "End of the window, `HHMMSS` and the offset to UTC. If it is not after the start, it is on the "
                    "next day.",
                    at_most=32,
                ),
            },
        ),
        "confineSpecUpdateRollout": boolean(
            "Whether changes of the spec wait for the maintenance time window; hibernation and waking up do not."
        ),
    },
)

_NETWORKING = struct(
    "Networks of the cluster. They may not overlap each other or those of the Seed.",
    {
        "type": string(
            "Type of the network of Pods, as an extension knows it: `calico`, for example. Immutable.", at_most=63
        ),
        "providerConfig": raw("Settings that the network's extension knows."),
        "pods": string("Addresses of Pods; a CIDR. Default is what the Seed proposes. Immutable once set.", at_most=64),
        "nodes": string("Addresses of nodes; a CIDR.", at_most=64),
        "services": string(
            "Addresses of Services; a CIDR. Default is what the Seed proposes. Immutable once set.", at_most=64
        ),
        "ipFamilies": array(
            "IP families of the cluster. Immutable. Default: [IPv4].",
            string("An IP family.", enum=["IPv4", "IPv6"]),
            default=["IPv4"],
            at_most=2,
        ),
    },
)

_SYSTEM_COMPONENTS = struct(
    "Settings of components that run in the cluster.",
    {
        "coreDNS": struct(
            "CoreDNS, which answers names in the cluster.",
            {
                "autoscaling": struct(
                    "Autoscaling of replicas.",
                    {
                        "mode*": string(
                            "horizontal: by their load. cluster-proportional: by the number of nodes and cores. The"
                            " webhooks fill in horizontal for Shoots with workers.",
                            enum=["horizontal", "cluster-proportional"],
                        )
                    },
                ),
                "rewriting": struct(
                    "Names that are answered without trying all search domains.",
                    {"commonSuffixes": strings("Suffixes of such names, with two dots at least.", at_most=5)},
                ),
            },
        ),
        "nodeLocalDNS": struct(
            "A cache of names on each node.",
            {
                "enabled*": boolean("Whether gardenlet deploys it."),
                "forceTCPToClusterDNS": boolean("Whether NodeLocal DNS queries CoreDNS by TCP. Default is true."),
                "forceTCPToUpstreamDNS": boolean(
                    "Whether NodeLocal DNS queries other servers by TCP. Default is true."
                ),
                "disableForwardToUpstreamDNS": boolean(
                    "Whether NodeLocal DNS queries CoreDNS for external names, too."
                ),
            },
        ),
    },
)

SPEC = struct(
    "Desired state of the cluster.",
    {
        "cloudProfileName": string(
            "A CloudProfile by name. Use cloudProfile; the webhooks keep the two in step, and remove this one from"
            " Kubernetes 1.34 on.",
            at_most=253,
        ),
        "cloudProfile": CLOUD_PROFILE_REFERENCE,
        "region*": string(
            "Region of the infrastructure, one of the cloud profile. Immutable.", at_least=1, at_most=128
        ),
        "purpose": string(
            "Purpose of the cluster: size and monitoring of its control plane depend on it. infrastructure "
            "is for the namespace `garden` only. Default: evaluation.",
            default="evaluation",
            enum=["evaluation", "testing", "development", "production", "infrastructure"],
        ),
        "secretBindingName": name(
            "SecretBinding with the credentials of the infrastructure. A Shoot with workers has this or"
            " credentialsBindingName."
        ),
        "credentialsBindingName": name(
            "CredentialsBinding with the credentials of the infrastructure. It may be replaced by another, but not"
            " removed."
        ),
        "seedName": name(
            "Seed on which the control plane runs. The scheduler writes it; it needs the right to update"
            " `shoots/binding`."
        ),
        "seedSelector": seed_selector(
            "Selector of the Seeds that the scheduler may choose. Once set, it can only be removed."
        ),
        "schedulerName": string(
            "Scheduler that chooses the Seed. Immutable. Default: default-scheduler.",
            default="default-scheduler",
            at_most=253,
        ),
        "exposureClassName": name("ExposureClass: how the API server is reached. Immutable."),
        "tolerations": tolerations("Taints of Seeds that do not matter. The project must allow them."),
        "resources": array(
            "Objects in the project's namespace that extensions need. Names are unique.",
            NAMED_RESOURCE_REFERENCE,
            at_most=128,
        ),
        "extensions": array(
            "Extensions of this cluster, beside those that all have. Types are unique.",
            struct(
                "An extension.",
                {
                    "type*": string("Type of the extension.", at_least=1, at_most=63),
                    "providerConfig": raw("Settings that it knows."),
                    "disabled": boolean("Whether the extension is disabled here, if it is enabled for all."),
                },
            ),
            at_most=128,
        ),
        "addons": _ADDONS,
        "controlPlane": _CONTROL_PLANE,
        "dns": _DNS,
        "hibernation": struct(
            "Hibernation: all machines are deleted and the control plane is scaled down, so that the cluster costs"
            " little. Its data stay.",
            {
                "enabled": boolean("Whether hibernation is desired. Default is false. Schedules write here, too."),
                "schedules": _SCHEDULES,
            },
        ),
        "maintenance": _MAINTENANCE,
        "monitoring": struct(
            "Monitoring of the control plane.",
            {
                "alerting": struct(
                    "Receivers of alerts.",
                    {"emailReceivers": strings("E-mail addresses that alerts are sent to.", at_most=64)},
                )
            },
        ),
        "networking": _NETWORKING,
        "systemComponents": _SYSTEM_COMPONENTS,
        "kubernetes*": KUBERNETES,
        "provider*": PROVIDER,
    },
    rules=_RULES,
)

_ROLLED_OUT = ("maxSurge", "maxUnavailable")


def template_spec() -> Schema:
    """Spec of a Shoot that does not exist yet: without defaults, except those that its rules need."""
    return without_defaults(but(SPEC, "Spec of the Shoots."), keep=lambda field: field in _ROLLED_OUT)
