"""`spec.provider` of a Shoot: the infrastructure, and pools of worker nodes."""

from gardener.api.garden.shoot.kubelet import kubelet
from gardener.api.schema import (
    FORBIDDEN,
    LABEL,
    array,
    boolean,
    duration,
    immutable,
    integer,
    name,
    number,
    number_or_percentage,
    raw,
    rule,
    string,
    string_map,
    strings,
    struct,
)

MOST_WORKERS = 256
LONGEST_WORKER_NAME = 15
_LONGEST_VOLUME_NAME = 15
_SIZE = "^[0-9]+Gi$"

TAINT = struct(
    "A taint.",
    {
        "key*": string("Key of the taint.", at_least=1),
        "value": string("Value of the taint."),
        "effect*": string(
            "Effect on Pods that do not tolerate the taint: NoSchedule (none are scheduled), "
            "PreferNoSchedule (none are scheduled if another node fits), NoExecute (running ones are "
            "evicted, too).",
            enum=["NoSchedule", "PreferNoSchedule", "NoExecute"],
        ),
        "timeAdded": string("Not used: gardenlet does not pass it on.", form="date-time"),
    },
)

_MACHINE = struct(
    "Machines of the pool.",
    {
        "type*": string("A machine type of the cloud profile.", at_least=1),
        "architecture": string("Architecture of the CPU. Default: amd64.", default="amd64", at_most=63),
        "image": struct(
            "Image of the operating system. Default is the first image of the cloud profile that fits, or that the"
            " pool has already.",
            {
                "name*": name("A machine image of the cloud profile."),
                "version": string(
                    "Version of the image. Default is the newest usable one, or the present one of the pool."
                ),
                "providerConfig": raw("Settings that the extension of the operating system knows."),
            },
        ),
    },
)

_DATA_VOLUME = struct(
    "A further volume.",
    {
        "name*": string(
            "Name of the volume, for kubeletDataVolumeName; a label of DNS.",
            at_least=1,
            at_most=_LONGEST_VOLUME_NAME,
            pattern=LABEL,
        ),
        "type": string("A volume type of the cloud profile."),
        "size*": string("Size of the volume: a number and `Gi`.", pattern=_SIZE),
        "encrypted": boolean("Whether the volume is encrypted. Default is that of the infrastructure."),
    },
)

_AUTOSCALER = struct(
    "Settings of the cluster autoscaler for this pool; default are those of the Shoot.",
    {
        "scaleDownUtilizationThreshold": number(
            "Requests of a node's Pods, as a share of what it has, below which it is unneeded.", at_least=0, at_most=1
        ),
        "scaleDownGpuUtilizationThreshold": number(
            "Requests of GPUs by a node's Pods, as a share from 0 to 1 of what it has, below which it is unneeded.",
            at_least=0,
            at_most=1,
        ),
        "scaleDownUnneededTime": duration("Time for which a node is unneeded before it is removed."),
        "scaleDownUnreadyTime": duration("Time for which a node is unready before it is removed."),
        "maxNodeProvisionTime": duration("Maximum time for a new machine to become a node."),
    },
)

_MACHINE_CONTROLLER_MANAGER = struct(
    "Settings of the machine-controller-manager for this pool. Its own defaults hold where nothing is given.",
    {
        "machineDrainTimeout": duration("Timeout of draining a node; its machine is deleted afterwards."),
        "machineHealthTimeout": duration(
            "Maximum time for which a machine may be unhealthy; it is replaced afterwards."
        ),
        "machineCreationTimeout": duration("Maximum time for a machine to become a node; it is replaced afterwards."),
        "maxEvictRetries": integer("Maximum number of attempts to evict a Pod.", at_least=0),
        "nodeConditions": strings("Conditions of a node which, when true, make its machine unhealthy.", at_most=64),
    },
)

WORKER = struct(
    "A pool of equal worker nodes.",
    {
        "name*": string(
            "Name of the pool; a label of DNS. It is part of the names of machines.",
            at_least=1,
            at_most=LONGEST_WORKER_NAME,
            pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        ),
        "minimum*": integer("Machines at least, over all zones.", at_least=0),
        "maximum*": integer("Machines at most, over all zones; quotas count these. 0: the pool is empty.", at_least=0),
        "maxSurge": number_or_percentage(
            "Machines above the desired number while the pool is rolled: a number, or a percentage of it. Default: 1.",
            default=1,
        ),
        "maxUnavailable": number_or_percentage(
            "Machines below the desired number while the pool is rolled: a number, or a percentage of it. Not 0"
            " together with maxSurge. Default: 0.",
            default=0,
        ),
        "machine*": _MACHINE,
        "cri": struct(
            "The container runtime. Default: containerd.",
            {
                "name*": string(
                    "Name of the container runtime: containerd. Default: containerd.",
                    enum=["containerd"],
                    default="containerd",
                ),
                "containerRuntimes": array(
                    "Further runtimes that Pods may choose by a RuntimeClass.",
                    struct(
                        "A further runtime.",
                        {
                            "type*": string("Type of the container runtime, which selects the extension.", at_least=1),
                            "providerConfig": raw("Settings that the extension knows."),
                        },
                    ),
                    at_most=32,
                ),
            },
            default={"name": "containerd"},
        ),
        "kubernetes": struct(
            "Differences from `spec.kubernetes` on these nodes.",
            {
                "version": string(
                    "Version of kubelet, at most that of the control plane; else as there. Minor versions may be"
                    " skipped.",
                    at_most=64,
                ),
                "kubelet": kubelet("Settings of kubelet, instead of those in `spec.kubernetes.kubelet`."),
            },
        ),
        "annotations": string_map("Annotations of the nodes."),
        "labels": string_map("Labels of the nodes."),
        "taints": array("Taints of the nodes.", TAINT, at_most=64),
        "caBundle": string("Certificates (PEM) that the nodes trust."),
        "volume": struct(
            "The root volume. Default is what the machine type has.",
            {
                "name": string("Name of the volume.", at_most=63),
                "type": string("A volume type of the cloud profile."),
                "size*": string("Size of the volume: a number and `Gi`.", pattern=_SIZE),
                "encrypted": boolean("Whether the volume is encrypted. Default is that of the infrastructure."),
            },
        ),
        "dataVolumes": array("Volumes of a machine beside that of its operating system.", _DATA_VOLUME, at_most=64),
        "kubeletDataVolumeName": string(
            "The data volume on which kubelet has its files. Default is the root volume.", at_most=63
        ),
        "zones": strings("Zones of the region over which the machines are spread evenly.", at_most=64),
        "providerConfig": raw("Settings that the provider's extension knows."),
        "systemComponents": struct(
            "Components of the cluster itself, such as CoreDNS. Default: allowed on these nodes.",
            {
                "allow*": boolean(
                    "Whether they may run on these nodes. At least one pool with a maximum above 0 must allow it."
                )
            },
            default={"allow": True},
        ),
        "machineControllerManager": _MACHINE_CONTROLLER_MANAGER,
        "sysctls": string_map("Parameters of the kernel by name."),
        "clusterAutoscaler": _AUTOSCALER,
    },
    rules=[
        rule(
            "self.maximum >= self.minimum",
            "maximum value must not be less than minimum value",
            field="maximum",
            reason=FORBIDDEN,
        ),
        rule(
            "!(has(self.maxSurge) && (self.maxSurge == 0 || self.maxSurge == '0%') && has(self.maxUnavailable)"
            " && (self.maxUnavailable == 0 || self.maxUnavailable == '0%'))",
            "may not be 0 when `maxSurge` is 0",
            field="maxUnavailable",
        ),
    ],
)


def has_workers(provider: str) -> str:
    """CEL expression: whether a Shoot has workers."""
    return f"(has({provider}.workers) && size({provider}.workers) > 0)"


PROVIDER = struct(
    "The infrastructure, and the worker nodes on it.",
    {
        "type*": string(
            "Type of the infrastructure; that of the cloud profile and of the binding. Immutable.",
            at_least=1,
            at_most=63,
        ),
        "controlPlaneConfig": raw("Settings of the control plane that the provider's extension knows."),
        "infrastructureConfig": raw("Settings of networks and the like that the provider's extension knows."),
        "workersSettings": struct(
            "Settings for all pools.",
            {
                "sshAccess": struct(
                    "Access to nodes by SSH, also for Bastions.",
                    {
                        "enabled*": boolean(
                            "Whether there is a daemon and a key pair. The webhooks fill in true for Shoots with"
                            " workers."
                        )
                    },
                )
            },
        ),
        "workers": array(
            "Pools of worker nodes. A Shoot without any is workerless: an API server for its own sake. That cannot"
            " change later.",
            WORKER,
            key="name",
            at_most=MOST_WORKERS,
        ),
    },
    rules=[
        immutable("type"),
        rule(
            f"!{has_workers('oldSelf')} || {has_workers('self')}",
            "cannot switch from a Shoot with workers to a workerless Shoot",
            field="workers",
            reason=FORBIDDEN,
        ),
        rule(
            f"{has_workers('oldSelf')} || !{has_workers('self')}",
            "cannot switch from a workerless Shoot to a Shoot with workers",
            field="workers",
            reason=FORBIDDEN,
        ),
    ],
)
