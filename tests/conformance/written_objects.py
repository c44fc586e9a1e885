"""What objects of ours become on their way to an API server, and how they are sorted for a comparison."""

import base64

from config.resource_manager.webhooks import HighAvailabilityConfig
from kube.objects import Object, annotations, metadata
from webhooks.handlers.high_availability_config.rules import (
    ClusterState,
    highly_available,
    requirements_of,
    with_enough_replicas,
)

_MOST_API_SERVERS = 6


def with_availability(obj: Object, *, namespace: Object) -> Object:
    """As the webhook for highly available workloads leaves it. Args: namespace: its Namespace."""
    if obj["kind"] not in {"Deployment", "HorizontalPodAutoscaler"}:
        return obj
    requirements = requirements_of(annotations(namespace))
    if obj["kind"] == "HorizontalPodAutoscaler":
        return with_enough_replicas(obj, bounds_at=("spec",), requirements=requirements)
    most = _MOST_API_SERVERS if metadata(obj)["name"] == "kube-apiserver" else None
    return highly_available(
        obj,
        kind=obj["kind"],
        requirements=requirements,
        cluster=ClusterState(max_replicas=most),
        settings=HighAvailabilityConfig(),
    )


def is_of_managed_resource(obj: Object) -> bool:
    name: str = metadata(obj)["name"]
    return obj["kind"] == "ManagedResource" or name.startswith(("managedresource-", "referenced-resources"))


def readable(obj: Object) -> Object:
    """With the data of a Secret as they are recorded."""
    if obj["kind"] != "Secret" or "data" not in obj:
        return obj
    return {**obj, "data": {name: base64.b64decode(each).decode() for name, each in obj["data"].items()}}
