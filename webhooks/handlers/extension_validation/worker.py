from collections.abc import Iterator
from typing import Any

from gardener.api.extensions.worker import WORKER as DEFINITION
from kube.validation import FieldError, invalid, not_supported
from webhooks.handlers.extension_validation.kind import Kind, need
from webhooks.handlers.extension_validation.rules.go_types import typed
from webhooks.handlers.extension_validation.rules.typed import Quantity

_ARCHITECTURES = ("amd64", "arm64")
_COUNTED = frozenset(
    (
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
        *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    )
)

_DECLARED = {
    "pools[].clusterAutoscaler": "*ClusterAutoscalerOptions",
    "pools[].kubeletConfig": "-",
    "pools[].machineControllerManager": "MachineControllerManagerSettings *v1beta1.MachineControllerManagerSettings",
    "pools[].machineControllerManager.inPlaceUpdateTimeout": "MachineInPlaceUpdateTimeout",
    "pools[].machineImage": "value",
    "pools[].nodeTemplate": "*NodeTemplate",
    "pools[].taints[].value": "value",
    "pools[].updateStrategy": "*v1beta1.MachineUpdateStrategy",
    "pools[].userData": "-",
    "pools[].userDataSecretRef": "value",
    "pools[].userDataSecretRef.name": "LocalObjectReference.Name value",
    "pools[].volume": "*Volume",
}


def _errors(worker: Any) -> Iterator[FieldError]:
    spec = worker.spec
    for index, pool in enumerate(spec.pools or ()):
        yield from _pool_errors(f"spec.pools[{index}]", pool)


def _pool_errors(path: str, pool: Any) -> Iterator[FieldError]:
    yield from need(f"{path}.machineType", pool.machineType)
    yield from need(f"{path}.machineImage.name", pool.machineImage.name)
    yield from need(f"{path}.machineImage.version", pool.machineImage.version)
    if pool.architecture is not None and pool.architecture not in _ARCHITECTURES:
        yield not_supported(f"{path}.architecture", pool.architecture, _ARCHITECTURES)
    yield from need(f"{path}.name", pool.name)
    if pool.nodeTemplate is not None:
        for resource, quantity in sorted((pool.nodeTemplate.capacity or {}).items(), key=lambda item: item[0]):
            yield from _quantity_errors(f"{path}.nodeTemplate.capacity.{resource}", resource, quantity)


def _quantity_errors(path: str, resource: str, quantity: Quantity) -> Iterator[FieldError]:
    if quantity.value < 0:
        yield invalid(path, quantity.text, "must be greater than or equal to 0")
    if _is_counted(resource) and quantity.value != quantity.value.to_integral_value():
        yield invalid(path, quantity.text, "must be an integer")


def _is_counted(resource: str) -> bool:
    """Whether a resource has only whole units, such as Pods, or extensions of a Node like a GPU."""
    extended = "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")
    return extended or resource in _COUNTED


WORKER = Kind(
    typed=typed(DEFINITION, _DECLARED),
    resource=DEFINITION.resource,
    noun="worker",
    required=("spec.type", "spec.region", "spec.secretRef.name"),
    errors=_errors,
    immutable=("spec.type", "spec.region"),
)
