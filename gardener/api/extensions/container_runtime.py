"""ContainerRuntime: a further container runtime on the nodes of a worker pool."""

from gardener.api.definition import Column
from gardener.api.extensions import CONTAINER_RUNTIMES
from gardener.api.extensions.common import definition
from gardener.api.garden.common import label_selector
from gardener.api.schema import immutable, string, struct

CONTAINER_RUNTIME = definition(
    CONTAINER_RUNTIMES,
    "A container runtime on the nodes of a worker pool, besides their own.",
    spec={
        "binaryPath*": string("Directory on the nodes for its programs.", at_least=1),
        "workerPool*": struct(
            "The worker pool.",
            {
                "name*": string("Name of the worker pool. Immutable.", at_least=1),
                "selector": label_selector("Selects its nodes."),
            },
        ),
    },
    columns=(Column("Worker Pool", ".spec.workerPool.name"),),
    rules=[immutable("workerPool.name")],
)
