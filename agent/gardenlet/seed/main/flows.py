"""Tasks of a seed, and their order: the tables of its two flows.

Definitions are deployed before the components that need them, and deleted after them. A seed that runs the garden
itself keeps shared objects. Operations that a user requests by annotation wait for as few tasks as possible: an expired
certificate may be the reason why everything else fails.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from agent.gardenlet.flow.graph import ONCE, Graph, Task
from agent.gardenlet.seed.main import definitions, ingress, optional, renewals, required, resource_manager
from agent.gardenlet.seed.main.operation import SeedOperation
from components import cluster_identity, gardenlet_autoscaling, system
from components.seed_component import SeedComponent
from components.seed_registry import COMPONENTS
from config.gardenlet.schema import GARDENLET_AUTOSCALING
from gardener import keys
from gardener.api.seed_definitions import Stage

Run = Callable[[SeedOperation], Awaitable[None]]


# --- components


def _deploys(component: SeedComponent) -> Run:
    return partial(optional.deploy, component=component)


def _destroys(component: SeedComponent) -> Run:
    return partial(optional.destroy, component=component)


# --- skipped tasks


def _is_garden(operation: SeedOperation) -> bool:
    return operation.is_garden


def _has_own_identity(operation: SeedOperation) -> bool:
    return operation.has_own_identity


def _installs_no_autoscaler(operation: SeedOperation) -> bool:
    return not operation.installs_autoscaler


def _need_not(stage: Stage) -> Callable[[SeedOperation], bool]:
    """Whether to skip the definitions, because nothing needs them, or a garden provides them."""
    return lambda operation: operation.is_garden or not optional.is_needed(stage, operation)


def _is_left_out(component: str) -> Callable[[SeedOperation], bool]:
    return lambda operation: component not in operation.components


def _is_not_asked(requested: str) -> Callable[[SeedOperation], bool]:
    return lambda operation: operation.requested != requested


# --- the flows


def _definitions(stage: Stage) -> Run:
    return partial(definitions.deploy, stage=stage)


_DEFINITIONS = [
    "machine-definitions",
    "extension-definitions",
    "etcd-definitions",
    "vpa-definitions",
    "istio-definitions",
    "monitoring-definitions",
]

RECONCILE: Graph[SeedOperation] = Graph(
    "Seed reconciliation",
    [
        Task(
            "machine-definitions",
            "Deploying machine-related custom resource definitions",
            _definitions(Stage.MACHINES),
        ),
        Task(
            "extension-definitions",
            "Deploying extensions-related custom resource definitions",
            _definitions(Stage.EXTENSIONS),
        ),
        Task(
            "etcd-definitions",
            "Deploying ETCD-related custom resource definitions",
            _definitions(Stage.DRUID),
            unless=_is_garden,
        ),
        Task(
            "vpa-definitions",
            "Deploying VPA-related custom resource definitions",
            _definitions(Stage.VERTICAL_POD_AUTOSCALER),
            unless=_installs_no_autoscaler,
        ),
        Task(
            "istio-definitions",
            "Deploying Istio-related custom resource definitions",
            _definitions(Stage.ISTIO),
            unless=_need_not(Stage.ISTIO),
        ),
        Task(
            "monitoring-definitions",
            "Deploying monitoring-related custom resource definitions",
            _definitions(Stage.MONITORING),
            unless=_need_not(Stage.MONITORING),
        ),
        Task(
            "gardenlet-autoscaling",
            "Deploying VPA for gardenlet",
            _deploys(gardenlet_autoscaling.COMPONENT),
            after=["vpa-definitions"],
            unless=_is_left_out(GARDENLET_AUTOSCALING),
        ),
        Task(
            "resource-manager",
            "Deploying and waiting for gardener-resource-manager to be healthy",
            resource_manager.deploy,
            after=_DEFINITIONS,
            unless=_is_garden,
            retry=ONCE,
        ),
        Task(
            "system",
            "Deploying system resources",
            _deploys(system.COMPONENT),
            after=[*_DEFINITIONS, "resource-manager"],
        ),
        Task(
            "extensions",
            "Waiting until required extensions are ready",
            required.until_extensions_are_ready,
            after=["system"],
            retry=ONCE,
        ),
        Task(
            "cluster-identity",
            "Deploying cluster-identity",
            _deploys(cluster_identity.COMPONENT),
            after=["extensions"],
            unless=_has_own_identity,
        ),
        Task("istio", "Deploying Istio", ingress.reconcile, after=["cluster-identity"]),
        Task(
            "ingress-address",
            "Waiting until istio LoadBalancer is ready and managed ingress DNS record is reconciled",
            ingress.until_reachable,
            after=["istio"],
            unless=_is_left_out("istio"),
            retry=ONCE,
        ),
        *(
            Task(
                each.name,
                f"Deploying {each.title}",
                partial(optional.reconcile, component=each),
                after=["cluster-identity", *each.after],
                unless=partial(optional.is_brought, each),
            )
            for each in COMPONENTS
        ),
        Task(
            "access-secrets",
            "Renewing garden access secrets",
            renewals.renew_access_secrets,
            after=["cluster-identity"],
            unless=_is_not_asked(keys.OPERATION_RENEW_ACCESS_SECRETS),
        ),
        Task(
            "workload-identity-tokens",
            "Renewing workload identity tokens",
            renewals.renew_workload_identity_tokens,
            after=["cluster-identity"],
            unless=_is_not_asked(keys.OPERATION_RENEW_WORKLOAD_IDENTITY_TOKENS),
        ),
        Task(
            "kubeconfig",
            "Renewing garden kubeconfig",
            renewals.renew_kubeconfig,
            unless=_is_not_asked(keys.OPERATION_RENEW_KUBECONFIG),
        ),
    ],
)


def _removed_definitions(stage: Stage) -> Run:
    return partial(definitions.destroy, stage=stage)


DELETE: Graph[SeedOperation] = Graph(
    "Seed deletion",
    [
        Task(
            "cluster-identity",
            "Destroying cluster-identity",
            _destroys(cluster_identity.COMPONENT),
            retry=ONCE,
        ),
        Task(
            "installations",
            "Ensuring all ControllerInstallations are gone",
            required.until_installations_are_gone,
            after=["cluster-identity"],
            retry=ONCE,
        ),
        Task(
            "system",
            "Destroying system resources",
            _destroys(system.COMPONENT),
            after=["installations"],
            retry=ONCE,
        ),
        *(
            Task(
                each.name,
                f"Destroying {each.title}",
                _destroys(each),
                after=["installations"],
                unless=partial(optional.is_brought, each),
                retry=ONCE,
            )
            for each in COMPONENTS
        ),
        Task(
            "istio",
            "Destroying Istio",
            ingress.destroy,
            after=[each.name for each in COMPONENTS if "istio" in each.after],
            retry=ONCE,
        ),
        Task(
            "managed-resources",
            "Ensuring all ManagedResources are gone",
            required.until_managed_resources_are_gone,
            after=["system", "istio", *(each.name for each in COMPONENTS)],
            unless=_is_garden,
            retry=ONCE,
        ),
        Task(
            "resource-manager",
            "Destroying gardener-resource-manager",
            resource_manager.destroy,
            after=["managed-resources"],
            unless=_is_garden,
            retry=ONCE,
        ),
        Task(
            "gardenlet-autoscaling",
            "Destroying VPA for gardenlet",
            _destroys(gardenlet_autoscaling.COMPONENT),
            after=["resource-manager"],
            retry=ONCE,
        ),
        *(
            Task(
                f"{stage}-definitions",
                f"Destroying {what}-related custom resource definitions",
                _removed_definitions(stage),
                after=["gardenlet-autoscaling"],
                unless=_is_garden,
                retry=ONCE,
            )
            for stage, what in (
                (Stage.MACHINES, "machine"),
                (Stage.DRUID, "ETCD"),
                (Stage.VERTICAL_POD_AUTOSCALER, "VPA"),
                (Stage.ISTIO, "Istio"),
                (Stage.MONITORING, "monitoring"),
                (Stage.EXTENSIONS, "extensions"),
            )
        ),
    ],
)
