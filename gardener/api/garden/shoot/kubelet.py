"""`spec.kubernetes.kubelet` of a Shoot, which its worker pools may replace."""

from collections.abc import Mapping

from gardener.api.garden.common import signals
from gardener.api.schema import Schema, boolean, duration, integer, mapping, quantity, string, struct

MOST_FEATURE_GATES = 256


def feature_gates(component: str) -> Schema:
    text = f"Feature gates of the {component} by name. Others have the default of the Kubernetes version."
    return mapping(text, boolean("True turns the feature on, false turns it off."), at_most=MOST_FEATURE_GATES)


def _amount(description: str) -> Schema:
    return string(f"{description} A quantity such as `100Mi`, or a percentage such as `5%`.")


def _reserved(description: str, *, defaults: bool) -> Schema:
    filled_in = {"cpu": " 80m.", "memory": " 1Gi.", "pid": " 20k."} if defaults else {}

    def default(resource: str) -> str:
        return f" The webhooks fill in{filled_in[resource]}" if resource in filled_in else ""

    return struct(
        description,
        {
            "cpu": quantity(f"CPU time; cores, such as 80m.{default('cpu')}"),
            "memory": quantity(f"Size of memory; bytes.{default('memory')}"),
            "ephemeralStorage": quantity("Size of local storage; bytes."),
            "pid": quantity(f"Number of process ids.{default('pid')}"),
        },
    )


_CONTAINERS: Mapping[str, Schema] = {
    "featureGates": feature_gates("kubelet"),
    "containerLogMaxFiles": integer("Files that are kept of the log of a container; at least 2."),
    "containerLogMaxSize": quantity("Size at which the log of a container is rotated; bytes."),
    "cpuCFSQuota": boolean(
        "Whether limits of CPU are enforced by the scheduler of the kernel. Kubelet's default is true."
    ),
    "cpuManagerPolicy": string(
        "Policy for the assignment of CPUs to containers: none, or static (whole cores for guaranteed Pods)."
    ),
}
_EVICTION: Mapping[str, Schema] = {
    "evictionHard": signals("Pods are evicted at once when one of these falls below its value.", "Available", _amount),
    "evictionSoft": signals(
        "Pods are evicted when one of these was below its value for the time in `evictionSoftGracePeriod`.",
        "Available",
        _amount,
    ),
    "evictionSoftGracePeriod": signals(
        "Maximum time for which a value may be below `evictionSoft`.", "Grace period for available", duration
    ),
    "evictionMinimumReclaim": signals("Minimum amount that an eviction frees.", "Minimum for available", quantity),
    "evictionMaxPodGracePeriod": integer("Time that an evicted Pod has to end at most; seconds."),
    "evictionPressureTransitionPeriod": duration(
        "Time for which a node's condition of pressure lasts after the pressure has ended."
    ),
}
_RESOURCES: Mapping[str, Schema] = {
    "failSwapOn": boolean(
        "Whether kubelet refuses to start while the node has swap. The webhooks fill in true for Shoots with workers."
    ),
    "imageGCHighThresholdPercent": integer(
        "Usage of the disk at which images that are not used are removed; percent. The webhooks fill in 50.",
        at_least=0,
        at_most=100,
    ),
    "imageGCLowThresholdPercent": integer(
        "Usage of the disk down to which images are removed; percent, less than the high threshold. The"
        " webhooks fill in 40.",
        at_least=0,
        at_most=100,
    ),
    "kubeReserved": _reserved(
        "Resources reserved for kubelet, the container runtime and other parts of Kubernetes.", defaults=True
    ),
    "systemReserved": _reserved(
        "Resources reserved for the operating system. Deprecated in Kubernetes 1.31: use kubeReserved.",
        defaults=False,
    ),
    "maxPods": integer(
        "Pods on a node at most. Kubelet's default is 110. The mask of the nodes' networks follows from it."
    ),
    "memorySwap": struct(
        "Use of swap by containers; needs the feature gate NodeSwap, and failSwapOn false.",
        {
            "swapBehavior": string(
                "NoSwap: not at all. LimitedSwap: up to what their memory requests are of the node."
                " UnlimitedSwap: all there is. The webhooks fill in LimitedSwap where swap is on.",
                enum=["NoSwap", "LimitedSwap", "UnlimitedSwap"],
            )
        },
    ),
    "podPidsLimit": integer("Process ids in a Pod at most; at least 100. Kubelet's default is no limit.", bits=64),
}
_RUNTIME: Mapping[str, Schema] = {
    "protectKernelDefaults": boolean(
        "Whether kubelet refuses to start if parameters of the kernel are not as it wants them."
    ),
    "registryBurst": integer(
        "Number of image pulls at once, as long as registryPullQPS is kept on average.", at_least=0
    ),
    "registryPullQPS": integer("Number of image pulls a second; 0: no limit.", at_least=0),
    "seccompDefault": boolean(
        "Whether containers without a profile of seccomp run with that of the container runtime."
    ),
    "serializeImagePulls": boolean(
        "Whether images are pulled one after the other. The webhooks fill in true for Shoots with workers."
    ),
    "streamingConnectionIdleTimeout": duration(
        "Maximum idle time of a connection of exec, attach or port-forward; 30s to 4h."
    ),
}


def kubelet(description: str) -> Schema:
    return struct(description, {**_CONTAINERS, **_EVICTION, **_RESOURCES, **_RUNTIME})
