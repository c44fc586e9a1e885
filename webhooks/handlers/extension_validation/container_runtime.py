from gardener.api.extensions import CONTAINER_RUNTIMES
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource
from webhooks.handlers.extension_validation.rules.typed import Typed


class LabelSelectorRequirement(Typed):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Typed):
    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class ContainerRuntimeWorkerPool(Typed):
    name: str = ""
    selector: LabelSelector = LabelSelector()


class ContainerRuntimeSpec(DefaultSpec):
    binary_path: str = ""
    worker_pool: ContainerRuntimeWorkerPool = ContainerRuntimeWorkerPool()


class ContainerRuntime(Resource):
    spec: ContainerRuntimeSpec = ContainerRuntimeSpec()


CONTAINER_RUNTIME = Kind(
    typed=ContainerRuntime,
    resource=CONTAINER_RUNTIMES,
    noun="container runtime",
    required=("spec.type", "spec.binaryPath", "spec.workerPool.name"),
    immutable=("spec.type", "spec.workerPool.name"),
)
