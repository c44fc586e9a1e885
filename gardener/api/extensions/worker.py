"""Worker: the machines of a Shoot, by pools.

Pools refer to the Secret with the user data of their machines, so that many pools fit into one object.
"""

from gardener.api.extensions import WORKERS
from gardener.api.extensions.common import (
    CREDENTIALS,
    INFRASTRUCTURE_STATUS,
    REGION_COLUMN,
    SSH_PUBLIC_KEY,
    definition,
    region,
)
from gardener.api.schema import (
    Schema,
    array,
    base64,
    boolean,
    duration,
    immutable,
    integer,
    mapping,
    number_or_percentage,
    quantity,
    raw,
    string,
    string_map,
    strings,
    struct,
    time,
)

_TAINT = struct(
    "A taint.",
    {
        "key*": string("Its key.", at_least=1),
        "value": string("Its value."),
        "effect*": string("NoSchedule, PreferNoSchedule or NoExecute."),
        "timeAdded": time("When it was added."),
    },
)


def _volume(description: str, name: str) -> Schema:
    """Schema of a volume. Args: name: the field of the name, with a star if it is required."""
    return struct(
        description,
        {
            name: string("Its name."),
            "type": string("Its type."),
            "size*": string("Its size: a number and a unit, such as 50Gi."),
            "encrypted": boolean("Whether it is encrypted."),
        },
    )


_MACHINE_CONTROLLER_MANAGER = struct(
    "Settings of the machine-controller-manager for the pool.",
    {
        "machineDrainTimeout": duration("How long a node may be drained before its machine is deleted all the same."),
        "machineHealthTimeout": duration("How long a machine may be unhealthy before it is replaced."),
        "machineCreationTimeout": duration("How long a machine may take to become a node before it is replaced."),
        "maxEvictRetries": integer("How often the eviction of a Pod is tried."),
        "nodeConditions": strings("Conditions of a node which, when true, make its machine unhealthy."),
        "inPlaceUpdateTimeout": duration("How long an update without replacement may take."),
        "disableHealthTimeout": boolean("Whether unhealthy machines are kept."),
    },
)

_AUTOSCALER = struct(
    "Settings of the cluster autoscaler for the pool.",
    {
        "scaleDownUtilizationThreshold": string("Share of requested resources below which a node is unneeded."),
        "scaleDownGpuUtilizationThreshold": string("The same of GPUs."),
        "scaleDownUnneededTime": duration("How long a node must have been unneeded before it is removed."),
        "scaleDownUnreadyTime": duration("How long a node must have been unready before it is removed."),
        "maxNodeProvisionTime": duration("How long a new machine may take to become a node."),
    },
)

_CAPACITY = quantity("An amount.")

_POOL = struct(
    "A pool of equal machines.",
    {
        "machineType*": string("Type of the machines.", at_least=1),
        "maximum*": integer("Machines at most."),
        "maxSurge*": number_or_percentage("Machines above the wanted number while the pool is rolled."),
        "maxUnavailable*": number_or_percentage("Machines below the wanted number while the pool is rolled."),
        "annotations": string_map("Annotations of the nodes."),
        "labels": string_map("Labels of the nodes."),
        "taints": array("Taints of the nodes.", _TAINT),
        "machineImage": struct(
            "Their operating system.",
            {"name*": string("Name of the image.", at_least=1), "version*": string("Its version.", at_least=1)},
        ),
        "minimum*": integer("Machines at least."),
        "name*": string("Its name.", at_least=1),
        "nodeAgentSecretName": string("Name of the Secret for gardener-node-agent: another one makes the pool roll."),
        "providerConfig": raw("Settings of the pool that the extension knows."),
        "userDataSecretRef": struct(
            "The value of a Secret that a machine gets at its start.",
            {
                "name": string("Name of the Secret, in the same namespace."),
                "key*": string("Key of the value."),
                "optional": boolean("Whether there may be none."),
            },
        ),
        "volume": _volume("The root volume.", "name"),
        "dataVolumes": array("Volumes besides the root volume.", _volume("A further volume.", "name*")),
        "kubeletDataVolumeName": string("The volume among `dataVolumes` for the kubelet."),
        "zones": strings("Zones of the machines."),
        "machineControllerManager": _MACHINE_CONTROLLER_MANAGER,
        "kubernetesVersion": string("Version of Kubernetes on the nodes."),
        "nodeTemplate": struct(
            "What a node has, for scaling from zero.",
            {
                "capacity*": mapping("Amounts by resource.", _CAPACITY),
                "virtualCapacity": mapping("Amounts of resources that only scaling knows.", _CAPACITY),
            },
        ),
        "architecture": string("Architecture of their CPUs.", enum=["amd64", "arm64"]),
        "clusterAutoscaler": _AUTOSCALER,
        "priority": integer("Pools with a higher one are scaled first."),
        "updateStrategy": string("How machines are updated: AutoRollingUpdate, AutoInPlaceUpdate, ..."),
        "userData": base64("What a machine gets, in place of a Secret; former releases wrote it. Base64."),
        "kubeletConfig": raw("Settings of the kubelet, as the Shoot has them."),
    },
)

WORKER = definition(
    WORKERS,
    "The machines of a Shoot.",
    spec={
        "infrastructureProviderStatus": INFRASTRUCTURE_STATUS,
        "region*": region("the Shoot"),
        "secretRef*": CREDENTIALS,
        "sshPublicKey": SSH_PUBLIC_KEY,
        "pools*": array("Pools of machines.", _POOL),
    },
    status={
        "machineDeployments": array(
            "What the machines of a pool and zone are made from.",
            struct(
                "A MachineDeployment.",
                {
                    "name*": string("Its name."),
                    "minimum*": integer("Machines at least."),
                    "maximum*": integer("Machines at most."),
                    "priority": integer("Those with a higher one are scaled first."),
                },
            ),
        ),
        "machineDeploymentsLastUpdateTime": time("When `machineDeployments` changed the last time."),
        "inPlaceUpdates": struct(
            "Updates without replacement.",
            {"workerPoolToHashMap": string_map("For each pool, a hash of what its nodes are updated to.")},
        ),
    },
    columns=(REGION_COLUMN,),
    rules=[immutable("region")],
)
