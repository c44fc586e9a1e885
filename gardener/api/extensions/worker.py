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
        "key*": string("Key of the taint.", at_least=1),
        "value": string("Value of the taint."),
        "effect*": string("NoSchedule, PreferNoSchedule or NoExecute."),
        "timeAdded": time("Time at which the taint was added."),
    },
)


def _volume(description: str, name: str) -> Schema:
    """Schema of a volume. Args: name: the field of the name, with a star if it is required."""
    return struct(
        description,
        {
            name: string("Name of the volume."),
            "type": string("Type of the volume."),
            "size*": string("Size of the volume: a number and a unit, such as 50Gi."),
            "encrypted": boolean("Whether the volume is encrypted."),
        },
    )


_MACHINE_CONTROLLER_MANAGER = struct(
    "Settings of the machine-controller-manager for the pool.",
    {
        "machineDrainTimeout": duration("Timeout of draining a node; its machine is deleted afterwards."),
        "machineHealthTimeout": duration(
            "Maximum time for which a machine may be unhealthy; it is replaced afterwards."
        ),
        "machineCreationTimeout": duration("Maximum time for a machine to become a node; it is replaced afterwards."),
        "maxEvictRetries": integer("Maximum number of attempts to evict a Pod."),
        "nodeConditions": strings("Conditions of a node which, when true, make its machine unhealthy."),
        "inPlaceUpdateTimeout": duration("Timeout of an in-place update."),
        "disableHealthTimeout": boolean("Whether unhealthy machines are kept."),
    },
)

_AUTOSCALER = struct(
    "Settings of the cluster autoscaler for the pool.",
    {
        "scaleDownUtilizationThreshold": string("Share of requested resources below which a node is unneeded."),
        "scaleDownGpuUtilizationThreshold": string("Share of requested GPUs below which a node is unneeded."),
        "scaleDownUnneededTime": duration("Time for which a node is unneeded before it is removed."),
        "scaleDownUnreadyTime": duration("Time for which a node is unready before it is removed."),
        "maxNodeProvisionTime": duration("Maximum time for a new machine to become a node."),
    },
)

_CAPACITY = quantity("An amount.")

_POOL = struct(
    "A pool of equal machines.",
    {
        "machineType*": string("Type of the machines.", at_least=1),
        "maximum*": integer("Machines at most."),
        "maxSurge*": number_or_percentage("Machines above the desired number while the pool is rolled."),
        "maxUnavailable*": number_or_percentage("Machines below the desired number while the pool is rolled."),
        "annotations": string_map("Annotations of the nodes."),
        "labels": string_map("Labels of the nodes."),
        "taints": array("Taints of the nodes.", _TAINT),
        "machineImage": struct(
            "Operating system of the machines.",
            {
                "name*": string("Name of the image.", at_least=1),
                "version*": string("Version of the image.", at_least=1),
            },
        ),
        "minimum*": integer("Machines at least."),
        "name*": string("Name of the pool.", at_least=1),
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
            "Resources of a node, for scaling from zero.",
            {
                "capacity*": mapping("Amounts by resource.", _CAPACITY),
                "virtualCapacity": mapping("Amounts of resources that only scaling knows.", _CAPACITY),
            },
        ),
        "architecture": string("Architecture of their CPUs.", enum=["amd64", "arm64"]),
        "clusterAutoscaler": _AUTOSCALER,
        "priority": integer("Pools with a higher one are scaled first."),
        "updateStrategy": string("Update strategy of machines: AutoRollingUpdate, AutoInPlaceUpdate, ..."),
        "userData": base64("User data of a machine, in place of a Secret; earlier releases wrote it. Base64."),
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
            "MachineDeployments, one for each pool and zone.",
            struct(
                "A MachineDeployment.",
                {
                    "name*": string("Name of the MachineDeployment."),
                    "minimum*": integer("Machines at least."),
                    "maximum*": integer("Machines at most."),
                    "priority": integer("Priority; MachineDeployments with a higher one are scaled first."),
                },
            ),
        ),
        "machineDeploymentsLastUpdateTime": time("Time of the last change of `machineDeployments`."),
        "inPlaceUpdates": struct(
            "Updates without replacement.",
            {"workerPoolToHashMap": string_map("Hash of the desired in-place update by pool.")},
        ),
    },
    columns=(REGION_COLUMN,),
    rules=[immutable("region")],
)
