from collections.abc import Iterator
from typing import Annotated

from gardener.api.extensions import WORKERS
from kube.validation import FieldError, invalid, not_supported
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource, SecretReference, need
from webhooks.handlers.extension_validation.rules.typed import Duration, GoName, Quantity, Raw, Time, Typed
from webhooks.rules.shapes import Int32

_ARCHITECTURES = ("amd64", "arm64")
_COUNTED = frozenset(
    (
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
        *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    )
)

IntOrString = Int32 | str


class Taint(Typed):
    package = "v1"

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: Time | None = None


class MachineImage(Typed):
    name: str = ""
    version: str = ""


class LocalObjectReference(Typed):
    name: str = ""


class SecretKeySelector(LocalObjectReference):
    key: str = ""
    optional: bool | None = None


class Volume(Typed):
    name: str | None = None
    type: str | None = None
    size: str = ""
    encrypted: bool | None = None


class DataVolume(Typed):
    name: str = ""
    type: str | None = None
    size: str = ""
    encrypted: bool | None = None


class MachineControllerManagerSettings(Typed):
    package = "v1beta1"

    machine_drain_timeout: Duration | None = None
    machine_health_timeout: Duration | None = None
    machine_creation_timeout: Duration | None = None
    max_evict_retries: Int32 | None = None
    node_conditions: list[str] | None = None
    machine_in_place_update_timeout: Duration | None = None
    disable_health_timeout: bool | None = None


class NodeTemplate(Typed):
    capacity: dict[str, Quantity] | None = None
    virtual_capacity: dict[str, Quantity] | None = None


class ClusterAutoscalerOptions(Typed):
    scale_down_utilization_threshold: str | None = None
    scale_down_gpu_utilization_threshold: str | None = None
    scale_down_unneeded_time: Duration | None = None
    scale_down_unready_time: Duration | None = None
    max_node_provision_time: Duration | None = None


class WorkerPool(Typed):
    machine_type: str = ""
    maximum: Int32 = 0
    max_surge: IntOrString = 0
    max_unavailable: IntOrString = 0
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    taints: list[Taint] | None = None
    machine_image: MachineImage = MachineImage()
    minimum: Int32 = 0
    name: str = ""
    node_agent_secret_name: str | None = None
    provider_config: Raw = None
    user_data_secret_ref: SecretKeySelector = SecretKeySelector()
    volume: Volume | None = None
    data_volumes: list[DataVolume] | None = None
    kubelet_data_volume_name: str | None = None
    zones: list[str] | None = None
    machine_controller_manager: Annotated[
        MachineControllerManagerSettings | None,
        GoName("MachineControllerManagerSettings", "v1beta1.MachineControllerManagerSettings"),
    ] = None
    kubernetes_version: str | None = None
    node_template: NodeTemplate | None = None
    architecture: str | None = None
    cluster_autoscaler: ClusterAutoscalerOptions | None = None
    priority: Int32 | None = None
    update_strategy: Annotated[str | None, GoName(type="v1beta1.MachineUpdateStrategy")] = None


class WorkerSpec(DefaultSpec):
    infrastructure_provider_status: Raw = None
    region: str = ""
    secret_ref: SecretReference = SecretReference()
    ssh_public_key: bytes | None = None
    pools: list[WorkerPool] | None = None


class Worker(Resource):
    spec: WorkerSpec = WorkerSpec()


def _errors(worker: Worker) -> Iterator[FieldError]:
    spec = worker.spec
    for index, pool in enumerate(spec.pools or ()):
        yield from _pool_errors(f"spec.pools[{index}]", pool)


def _pool_errors(path: str, pool: WorkerPool) -> Iterator[FieldError]:
    yield from need(f"{path}.machineType", pool.machine_type)
    yield from need(f"{path}.machineImage.name", pool.machine_image.name)
    yield from need(f"{path}.machineImage.version", pool.machine_image.version)
    if pool.architecture is not None and pool.architecture not in _ARCHITECTURES:
        yield not_supported(f"{path}.architecture", pool.architecture, _ARCHITECTURES)
    yield from need(f"{path}.name", pool.name)
    if pool.node_template is not None:
        for resource, quantity in sorted((pool.node_template.capacity or {}).items(), key=lambda item: item[0]):
            yield from _quantity_errors(f"{path}.nodeTemplate.capacity.{resource}", resource, quantity)


def _quantity_errors(path: str, resource: str, quantity: Quantity) -> Iterator[FieldError]:
    if quantity.value < 0:
        yield invalid(path, quantity.text, "must be greater than or equal to 0")
    if _is_counted(resource) and quantity.value != quantity.value.to_integral_value():
        yield invalid(path, quantity.text, "must be an integer")


def _is_counted(resource: str) -> bool:
    """Of a Pod there is no half; nor is there of what extends a Node, such as a GPU."""
    extended = "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")
    return extended or resource in _COUNTED


WORKER = Kind(
    typed=Worker,
    resource=WORKERS,
    noun="worker",
    required=("spec.type", "spec.region", "spec.secretRef.name"),
    errors=_errors,
    immutable=("spec.type", "spec.region"),
)
