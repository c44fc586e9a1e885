"""Seed: a cluster in which the control planes of Shoots run."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import SEEDS
from gardener.api.garden.common import (
    DNS_LABEL,
    GARDENER,
    LAST_OPERATION,
    OBSERVED_GENERATION,
    conditions,
    provider_type,
    secret_reference,
)
from gardener.api.schema import (
    Schema,
    array,
    boolean,
    but,
    immutable,
    immutable_once_set,
    mapping,
    not_removed,
    quantity,
    raw,
    string,
    string_map,
    strings,
    struct,
    time,
    with_fields,
    without_defaults,
)

_CIDR = 64
"""Maximum length, in characters."""


def _enabled(description: str, *, default: bool, meaning: str = "Whether the feature is enabled.") -> Schema:
    """An optional object with a switch."""
    flag = boolean(f"{meaning} Default: {str(default).lower()}.", default=default)
    return struct(
        f"{description} Default: {'on' if default else 'off'}.", {"enabled*": flag}, default={"enabled": default}
    )


_NETWORKS = struct(
    "Networks of the cluster. They may not overlap each other.",
    {
        "nodes": string("Addresses of nodes; a CIDR. Immutable once set.", at_most=_CIDR),
        "pods*": string("Addresses of Pods; a CIDR. Immutable.", at_least=1, at_most=_CIDR),
        "services*": string("Addresses of Services; a CIDR. Immutable.", at_least=1, at_most=_CIDR),
        "shootDefaults": struct(
            "Networks for Shoots that do not set theirs.",
            {
                "pods": string("Addresses of Pods; a CIDR.", at_most=_CIDR),
                "services": string("Addresses of Services; a CIDR.", at_most=_CIDR),
            },
        ),
        "blockCIDRs": strings("Addresses that control planes of Shoots may not reach; CIDRs.", at_most=256),
        "ipFamilies": array(
            "IP families of the cluster. Immutable. Default: [IPv4].",
            string("An IP family.", enum=["IPv4", "IPv6"]),
            default=["IPv4"],
            at_most=2,
        ),
    },
    rules=[immutable("pods"), immutable("services"), immutable("ipFamilies"), immutable_once_set("nodes")],
)

_TRAFFIC = string(
    "Cluster: requests may go on to a Pod on another node. Local: they do not, and keep the address they came from.",
    enum=["Cluster", "Local"],
)
_PROXY_PROTOCOL = struct(
    "The PROXY protocol, by which load balancers pass on the address of the client.",
    {"allowed*": boolean("Whether the PROXY protocol is accepted. Connections without it are accepted, too.")},
)

_LOAD_BALANCERS = struct(
    "Load balancers through which control planes of Shoots are reached.",
    {
        "annotations": string_map("Annotations of their Services."),
        "externalTrafficPolicy": _TRAFFIC,
        "proxyProtocol": _PROXY_PROTOCOL,
        "zones": array(
            "Settings of load balancers of one zone, for Seeds with several zones.",
            struct(
                "Settings for a zone.",
                {
                    "name*": string("A zone of the Seed.", at_least=1, at_most=128),
                    "annotations": string_map("Annotations of its Service."),
                    "externalTrafficPolicy": _TRAFFIC,
                    "proxyProtocol": _PROXY_PROTOCOL,
                },
            ),
            at_most=64,
        ),
    },
)

_SETTINGS = struct(
    "Settings of the Seed.",
    {
        "excessCapacityReservation": struct(
            "Capacity that is kept free for control planes, so that new ones need not wait for machines.",
            {
                "enabled": boolean("Whether capacity is kept free. Default is true."),
                "configs": array(
                    "Amounts to reserve, and their nodes. The webhooks fill in one entry with 2 CPUs and 6Gi of "
                    "memory.",
                    struct(
                        "A part of the capacity.",
                        {
                            "resources*": mapping("Reserved resources, by name: cpu, memory.", quantity("The amount.")),
                            "nodeSelector": string_map("Labels of the nodes where it is kept free."),
                            "tolerations": array(
                                "Taints of these nodes that do not matter.",
                                raw("A toleration, as in a Pod."),
                                at_most=64,
                            ),
                        },
                    ),
                    at_most=32,
                ),
            },
        ),
        "scheduling": struct(
            "Whether the scheduler may choose this Seed. Default: it may.",
            {"visible*": boolean("Whether the scheduler sees the Seed. Default: true.", default=True)},
            default={"visible": True},
        ),
        "loadBalancerServices": _LOAD_BALANCERS,
        "verticalPodAutoscaler": _enabled(
            "The vertical autoscaler for the Pods of control planes. If disabled, it must be provided by other means.",
            default=True,
        ),
        "dependencyWatchdog": struct(
            "A watch over what control planes need.",
            {
                "weeder": _enabled("Restarts Pods that wait for something which works again.", default=True),
                "prober": _enabled(
                    "Scales down controllers of a control plane while nodes cannot reach its API server.", default=True
                ),
            },
            default={},
        ),
        "topologyAwareRouting": _enabled(
            "Keeps traffic inside of a zone; for Seeds with two zones at least.", default=False
        ),
    },
    default={},
)

SPEC = struct(
    "Desired state of the Seed.",
    {
        "provider*": struct(
            "The infrastructure on which the Seed runs.",
            {
                "type*": provider_type("Type of the provider."),
                "region*": string("Region of the provider.", at_least=1, at_most=128),
                "zones": strings(
                    "Zones, over which control planes are spread. Each occurs once.", unique=True, at_most=64
                ),
                "providerConfig": raw("Settings that the provider's extension knows."),
            },
        ),
        "networks*": _NETWORKS,
        "dns*": struct(
            "DNS of the Seed.",
            {
                "provider": struct(
                    "Provider of DNS records for the ingress of the Seed.",
                    {
                        "type*": provider_type("Type of the provider, which selects the extension."),
                        "secretRef*": secret_reference("Secret with its credentials."),
                    },
                )
            },
        ),
        "ingress*": struct(
            "Access to monitoring and other pages of control planes. It needs `dns.provider`.",
            {
                "domain*": string("Domain under which they have their names. Immutable.", at_least=1, at_most=253),
                "controller*": struct(
                    "Ingress controller that gardenlet deploys in the Seed.",
                    {
                        "kind*": string(
                            "Kind of the ingress controller: nginx. Default: nginx.", enum=["nginx"], default="nginx"
                        ),
                        "providerConfig": raw("Settings of the ingress controller."),
                    },
                ),
            },
            rules=[immutable("domain")],
        ),
        "backup": struct(
            "Object store for backups of control planes' etcd. Without it there are no backups, and Shoots "
            "cannot move away.",
            {
                "provider*": provider_type("Type of the object store. Immutable."),
                "region": string(
                    "Region of the object store; required if its type is not that of the Seed. Immutable.", at_most=128
                ),
                "providerConfig": raw("Settings that the provider's extension knows."),
                "secretRef*": secret_reference("Secret with its credentials."),
            },
            rules=[immutable("provider"), immutable("region")],
        ),
        "taints": array(
            "Marks that keep Shoots away which do not tolerate them. Of key and value together each stands here once.",
            struct(
                "A mark.",
                {
                    "key*": string(
                        "Key of the taint, such as `seed.gardener.cloud/protected`.", at_least=1, at_most=317
                    ),
                    "value": string("Value of the taint.", at_most=317),
                },
            ),
            at_most=64,
        ),
        "volume": struct(
            "Volumes in the Seed.",
            {
                "minimumSize": quantity("Smallest size of a volume that the infrastructure allows; bytes."),
                "providers": array(
                    "Drivers of volumes, by purpose.",
                    struct(
                        "Driver of volumes for a purpose.",
                        {
                            "purpose*": string(
                                "The purpose, such as `etcd-main`. Each stands here once.", at_least=1, at_most=128
                            ),
                            "name*": string("Name of the provider.", at_least=1, at_most=128),
                        },
                    ),
                    key="name",
                    at_most=64,
                ),
            },
        ),
        "settings": _SETTINGS,
    },
    rules=[not_removed("backup", "field is immutable")],
)


def template_spec() -> Schema:
    """Spec of a Seed that does not exist yet; values missing for its cluster are determined later.

    So values may be added later, and the webhooks check changes: all rules of this kind are about changes.
    """
    spec = without_defaults(SPEC)
    found_out = {field: _open(spec["properties"][field]) for field in ("provider", "networks", "ingress", "backup")}
    return _open(with_fields(spec, found_out))


def _open(schema: Schema) -> Schema:
    demands: Schema = {"required": None, "x-kubernetes-validations": None}
    return but(schema, **demands)


_STATUS = struct(
    "State that gardenlet and the controllers report.",
    {
        "phase": string(
            "The conditions in one word. Ready: control planes can run here. NotReady: something of it is not as it"
            " should be. Unknown: gardenlet is silent.",
            enum=["Ready", "NotReady", "Unknown"],
        ),
        "gardener": GARDENER,
        "kubernetesVersion": string("Version of Kubernetes in the Seed."),
        "conditions": conditions(
            "Conditions of the Seed: GardenletReady, BackupBucketsReady, ExtensionsReady, SeedSystemComponentsHealthy."
        ),
        "observedGeneration": OBSERVED_GENERATION,
        "clusterIdentity": string("Name that no other cluster has. Immutable once set.", at_most=1024),
        "capacity": mapping("Capacity, by name: `shoots`, for example.", quantity("The amount.")),
        "allocatable": mapping(
            "Allocatable resources, by name: `shoots`, for example. The scheduler obeys them.",
            quantity("The amount."),
        ),
        "clientCertificateExpirationTimestamp": time("Time at which gardenlet's certificate expires."),
        "lastOperation": LAST_OPERATION,
    },
    rules=[immutable_once_set("clusterIdentity")],
)

SEED = Definition(
    resource=SEEDS,
    description="A cluster in which control planes of Shoots run, with a gardenlet that looks after them.",
    name=DNS_LABEL,
    fields={"spec*": SPEC, "status": _STATUS},
    has_operation=True,
    columns=(
        Column("Status", ".status.phase"),
        Column("Last Operation", ".status.lastOperation.type"),
        Column("State", ".status.lastOperation.state"),
        Column("Provider", ".spec.provider.type"),
        Column("Region", ".spec.provider.region"),
        AGE,
        Column("Version", ".status.gardener.version"),
        Column("K8S Version", ".status.kubernetesVersion"),
    ),
)
