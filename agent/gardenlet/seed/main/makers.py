"""What components of a seed are deployed with; see `optional`, which imports this when one of them is.

Each function makes the objects of one component.
"""

from agent.gardenlet.components import (
    etcd_druid,
    kube_state_metrics,
    nginx_ingress,
    vertical_pod_autoscaler,
    vpn_authorization_server,
    worker_roles,
)
from agent.gardenlet.components.vertical_pod_autoscaler.roles import ADMISSION
from agent.gardenlet.secrets_manager import tables
from agent.gardenlet.secrets_manager.rules.configs import BUNDLE, Signer
from agent.gardenlet.seed.main.definitions import are_served
from agent.gardenlet.seed.main.operation import GARDEN, SeedOperation
from gardener.api.kinds import POD_MONITORS, SCRAPE_CONFIGS, SERVICE_MONITORS
from kube.objects import Object


async def cluster_autoscaler_of(_: SeedOperation) -> list[Object]:
    return worker_roles.cluster_autoscaler()


async def machine_controller_manager_of(_: SeedOperation) -> list[Object]:
    return worker_roles.machine_controller_manager()


async def kube_state_metrics_of(operation: SeedOperation) -> list[Object]:
    values = kube_state_metrics.Values(
        image=operation.config.images.kube_state_metrics, monitored=await are_served(operation, SCRAPE_CONFIGS)
    )
    return kube_state_metrics.objects(values)


async def nginx_ingress_of(operation: SeedOperation) -> list[Object]:
    images = operation.config.images
    values = nginx_ingress.Values(
        image=images.nginx_ingress_controller,
        backend_image=images.ingress_default_backend,
        domain=operation.ingress_domain,
        gateway=operation.config.sni.ingress.labels,
    )
    return nginx_ingress.objects(values)


async def vpn_authorization_server_of(operation: SeedOperation) -> list[Object]:
    image = operation.config.images.vpn_authorization_server
    return vpn_authorization_server.objects(vpn_authorization_server.Values(image=image))


async def etcd_druid_of(operation: SeedOperation) -> list[Object]:
    values = etcd_druid.Values(
        image=operation.config.images.etcd_druid,
        config=operation.config.etcd_config or {},
        monitored=await are_served(operation, SERVICE_MONITORS),
    )
    return etcd_druid.objects(values)


async def vertical_pod_autoscaler_of(operation: SeedOperation) -> list[Object]:
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
