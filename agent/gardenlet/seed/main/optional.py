"""Components of a seed that may be left out: one line each says how it is deployed, and what it needs for that.

One that is left out is removed if it was deployed before. What another gardenlet has deployed is not touched then.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from agent.gardenlet.components import (
    etcd_druid,
    kube_state_metrics,
    nginx_ingress,
    plutono,
    prometheus,
    prometheus_operator,
    vertical_pod_autoscaler,
    vpn_authorization_server,
    worker_roles,
)
from agent.gardenlet.components.parts import in_seed
from agent.gardenlet.components.vertical_pod_autoscaler.roles import ADMISSION
from agent.gardenlet.secrets_manager import tables
from agent.gardenlet.secrets_manager.rules.configs import BUNDLE, Signer
from agent.gardenlet.seed.main import monitoring
from agent.gardenlet.seed.main.definitions import are_served
from agent.gardenlet.seed.main.operation import GARDEN, SeedOperation
from gardener.api.kinds import POD_MONITORS, SCRAPE_CONFIGS, SERVICE_MONITORS
from gardener.api.seed_definitions import Stage
from kube.objects import Object
from kube.resources import CONFIG_MAPS, Resource

_GONE_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """Attributes:
    name: in the configuration, and of its ManagedResource.
    what: as people know it.
    kinds: of objects that it has outside its ManagedResource.
    is_of_garden: whether a garden in the same cluster brings it.
    is_wanted: what else has to be so.
    needs: definitions, of those that not every seed has.
    after: tasks of the flow.
    """

    name: str
    what: str
    objects: Callable[[SeedOperation], Awaitable[list[Object]]]
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
            await operation.objects.deploy(self.name, await self.objects(operation))
        else:
            await self.destroy(operation)

    async def destroy(self, operation: SeedOperation) -> None:
        """Returns when it is gone. Raises ReconcileError, KubeError."""
        kinds = [*in_seed(self.name, []), *(each.type_meta for each in self.kinds)]
        await operation.objects.destroy(self.name, kinds, seconds=_GONE_SECONDS)


def _has_ingress_domain(operation: SeedOperation) -> bool:
    return bool(operation.ingress_domain)


async def _cluster_autoscaler(_: SeedOperation) -> list[Object]:
    return worker_roles.cluster_autoscaler()


async def _machine_controller_manager(_: SeedOperation) -> list[Object]:
    return worker_roles.machine_controller_manager()


async def _kube_state_metrics(operation: SeedOperation) -> list[Object]:
    values = kube_state_metrics.Values(
        image=operation.config.images.kube_state_metrics, monitored=await are_served(operation, SCRAPE_CONFIGS)
    )
    return kube_state_metrics.objects(values)


async def _nginx_ingress(operation: SeedOperation) -> list[Object]:
    images = operation.config.images
    values = nginx_ingress.Values(
        image=images.nginx_ingress_controller,
        backend_image=images.ingress_default_backend,
        domain=operation.ingress_domain,
        gateway=operation.config.sni.ingress.labels,
    )
    return nginx_ingress.objects(values)


async def _vpn_authorization_server(operation: SeedOperation) -> list[Object]:
    image = operation.config.images.vpn_authorization_server
    return vpn_authorization_server.objects(vpn_authorization_server.Values(image=image))


async def _etcd_druid(operation: SeedOperation) -> list[Object]:
    values = etcd_druid.Values(
        image=operation.config.images.etcd_druid,
        config=operation.config.etcd_config or {},
        monitored=await are_served(operation, SERVICE_MONITORS),
    )
    return etcd_druid.objects(values)


async def _vertical_pod_autoscaler(operation: SeedOperation) -> list[Object]:
    images = operation.config.images
    webhook = tables.server(
        f"{ADMISSION}-server",
        f"{vertical_pod_autoscaler.WEBHOOK_SERVICE}.{GARDEN}.svc",
        tables.CA_SEED,
        tables.service_names(vertical_pod_autoscaler.WEBHOOK_SERVICE, GARDEN),
        signer=Signer.CURRENT,
    )
    server = await operation.keys.generate(webhook)
    bundle = operation.keys.get(tables.CA_SEED.name).bundle
    assert bundle is not None  # an authority has one
    return vertical_pod_autoscaler.objects(
        vertical_pod_autoscaler.Values(
            admission_image=images.vpa_admission_controller,
            recommender_image=images.vpa_recommender,
            updater_image=images.vpa_updater,
            server_secret=server.current.name,
            ca_secret=bundle.name,
            ca_bundle=bundle.data[BUNDLE].decode(),
            monitored=await are_served(operation, POD_MONITORS, SERVICE_MONITORS),
        )
    )


COMPONENTS = (
    Component(name=worker_roles.CLUSTER_AUTOSCALER, what="cluster-autoscaler", objects=_cluster_autoscaler),
    Component(
        name=worker_roles.MACHINE_CONTROLLER_MANAGER,
        what="machine-controller-manager",
        objects=_machine_controller_manager,
    ),
    Component(
        name=vertical_pod_autoscaler.NAME,
        what="Kubernetes vertical pod autoscaler",
        objects=_vertical_pod_autoscaler,
        is_of_garden=True,
        is_wanted=lambda operation: operation.installs_autoscaler,
    ),
    Component(name=etcd_druid.NAME, what="ETCD Druid", objects=_etcd_druid, is_of_garden=True),
    Component(name=kube_state_metrics.NAME, what="kube-state-metrics", objects=_kube_state_metrics),
    Component(
        name=prometheus_operator.NAME,
        what="Prometheus operator",
        objects=monitoring.prometheus_operator_of,
        is_of_garden=True,
        needs=(Stage.MONITORING,),
    ),
    *(
        Component(
            name=prometheus.name_of(server),
            what=f"{server} Prometheus",
            objects=partial(monitoring.server_of, server),
            needs=(Stage.MONITORING,),
        )
        for server in monitoring.SERVERS
    ),
    Component(
        name=plutono.NAME,
        what="Plutono",
        objects=monitoring.plutono_of,
        kinds=(CONFIG_MAPS,),
        is_of_garden=True,
        is_wanted=_has_ingress_domain,
    ),
    Component(
        name=nginx_ingress.NAME,
        what="nginx-ingress",
        objects=_nginx_ingress,
        is_of_garden=True,
        is_wanted=_has_ingress_domain,
        needs=[Stage.ISTIO],
        after=["istio"],
    ),
    Component(
        name="vpn-authorization-server",
        what="VPN authorization server",
        objects=_vpn_authorization_server,
        kinds=vpn_authorization_server.KINDS,
        needs=[Stage.ISTIO],
        after=["istio"],
    ),
)


def is_needed(stage: Stage, operation: SeedOperation) -> bool:
    """Whether a component that is deployed needs these definitions."""
    needing = {each.name for each in COMPONENTS if stage in each.needs} | ({"istio"} if stage is Stage.ISTIO else set())
    return not needing.isdisjoint(operation.components)
