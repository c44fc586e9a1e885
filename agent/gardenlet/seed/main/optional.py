"""Components of a seed that may be left out: one line each says how it is deployed, and what it needs for that.

One that is left out is removed if it was deployed before. What another gardenlet has deployed is not touched then.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module

from agent.gardenlet.components.parts import in_seed
from agent.gardenlet.seed.main.operation import SeedOperation
from gardener.api.kinds import DESTINATION_RULES, VERTICAL_POD_AUTOSCALERS, VIRTUAL_SERVICES
from gardener.api.seed_definitions import Stage
from kube.objects import Object
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, POD_DISRUPTION_BUDGETS, SERVICES, Resource

_GONE_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Attributes:
    name: in the configuration, and of its ManagedResource.
    what: as people know it.
    made_by: the function that makes its objects, which is imported when there are to be any.
    kinds: of objects that it has outside its ManagedResource.
    is_of_garden: whether a garden in the same cluster brings it.
    is_wanted: what else has to be so.
    needs: definitions, of those that not every seed has.
    after: tasks of the flow.
    """

    name: str
    what: str
    made_by: str
    kinds: Sequence[Resource] = ()
    is_of_garden: bool = False
    is_wanted: Callable[[SeedOperation], bool] = lambda _: True
    needs: Collection[Stage] = ()
    after: Collection[str] = ()

    def is_brought(self, operation: SeedOperation) -> bool:
        """By the garden: then it is not touched."""
        return self.is_of_garden and operation.is_garden

    async def reconcile(self, operation: SeedOperation) -> None:
        """Deploy it, or remove it. Raises ReconcileError, KubeError."""
        if self.name in operation.components and self.is_wanted(operation):
            await operation.objects.deploy(self.name, await self._objects(operation))
        else:
            await self.destroy(operation)

    async def _objects(self, operation: SeedOperation) -> list[Object]:
        module, _, function = self.made_by.partition(":")
        make: Callable[[SeedOperation], Awaitable[list[Object]]] = getattr(
            import_module(f"{__package__}.{module}"), function
        )
        return await make(operation)

    async def destroy(self, operation: SeedOperation) -> None:
        """Returns when it is gone. Raises ReconcileError, KubeError."""
        kinds = [*in_seed(self.name, []), *(each.type_meta for each in self.kinds)]
        await operation.objects.destroy(self.name, kinds, seconds=_GONE_SECONDS)


def _has_ingress_domain(operation: SeedOperation) -> bool:
    return bool(operation.ingress_domain)


COMPONENTS = (
    Component(name="cluster-autoscaler", what="cluster-autoscaler", made_by="makers:cluster_autoscaler_of"),
    Component(
        name="machine-controller-manager",
        what="machine-controller-manager",
        made_by="makers:machine_controller_manager_of",
    ),
    Component(
        name="vpa",
        what="Kubernetes vertical pod autoscaler",
        made_by="makers:vertical_pod_autoscaler_of",
        is_of_garden=True,
        is_wanted=lambda operation: operation.installs_autoscaler,
    ),
    Component(name="etcd-druid", what="ETCD Druid", made_by="makers:etcd_druid_of", is_of_garden=True),
    Component(name="kube-state-metrics-seed", what="kube-state-metrics", made_by="makers:kube_state_metrics_of"),
    Component(
        name="prometheus-operator",
        what="Prometheus Operator",
        made_by="monitoring:prometheus_operator_of",
        is_of_garden=True,
        needs=(Stage.MONITORING,),
    ),
    *(
        Component(
            name=f"prometheus-{server}",
            what=f"{server} Prometheus",
            made_by=f"monitoring:{server}_of",
            needs=(Stage.MONITORING,),
        )
        for server in ("cache", "seed", "aggregate")
    ),
    Component(
        name="plutono",
        what="Plutono",
        made_by="monitoring:plutono_of",
        kinds=(CONFIG_MAPS,),
        is_of_garden=True,
        is_wanted=_has_ingress_domain,
    ),
    Component(
        name="nginx-ingress",
        what="nginx-ingress",
        made_by="makers:nginx_ingress_of",
        is_of_garden=True,
        is_wanted=_has_ingress_domain,
        needs=[Stage.ISTIO],
        after=["istio"],
    ),
    Component(
        name="vpn-authorization-server",
        what="VPN authorization server",
        made_by="makers:vpn_authorization_server_of",
        kinds=(
            DEPLOYMENTS,
            DESTINATION_RULES,
            POD_DISRUPTION_BUDGETS,
            SERVICES,
            VERTICAL_POD_AUTOSCALERS,
            VIRTUAL_SERVICES,
        ),
        needs=[Stage.ISTIO],
        after=["istio"],
    ),
)


def is_needed(stage: Stage, operation: SeedOperation) -> bool:
    """Whether a component that is deployed needs these definitions."""
    needing = {each.name for each in COMPONENTS if stage in each.needs} | ({"istio"} if stage is Stage.ISTIO else set())
    return not needing.isdisjoint(operation.components)
