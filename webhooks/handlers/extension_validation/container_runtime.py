from collections.abc import Iterator

from kube.validation import FieldError
from webhooks.handlers.extension_validation.rules import DefaultSpec, Kind, Resource, immutable, need
from webhooks.handlers.extension_validation.typed import Typed


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


def _errors(runtime: ContainerRuntime) -> Iterator[FieldError]:
    yield from need("spec.type", runtime.spec.type)
    yield from need("spec.binaryPath", runtime.spec.binary_path)
    yield from need("spec.workerPool.name", runtime.spec.worker_pool.name)


def _changes(new: ContainerRuntime, old: ContainerRuntime) -> Iterator[FieldError]:
    yield from immutable("spec.type", new.spec.type, old.spec.type)
    yield from immutable("spec.workerPool.name", new.spec.worker_pool.name, old.spec.worker_pool.name)


CONTAINER_RUNTIME = Kind(
    typed=ContainerRuntime,
    resource="containerruntimes",
    noun="container runtime",
    errors=_errors,
    changes=_changes,
)
