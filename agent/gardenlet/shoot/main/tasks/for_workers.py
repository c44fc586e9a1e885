"""Programs of a control plane, and of the cluster, that only a Shoot with workers has."""

from agent.gardenlet.components import kube_scheduler, machine_controllers
from agent.gardenlet.components.control_plane import in_shoot
from agent.gardenlet.components.worker_roles import CLUSTER_AUTOSCALER, MACHINE_CONTROLLER_MANAGER
from agent.gardenlet.secrets_manager import tables
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks import control_plane, workers
from agent.gardenlet.shoot.main.tasks.secrets import bundle_name_of, name_of
from gardener.api.seed_definitions import Stage, custom_resource_definitions
from kube.objects import Object, mapping, mappings, spec, uid
from kube.paths import at
from kube.resources import NAMESPACES
from kube.runtime.client import Form


async def scheduler(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    values = kube_scheduler.Values(
        namespace=operation.technical_id,
        image=operation.image_of_kubernetes(kube_scheduler.NAME),
        version=operation.version,
        secrets=kube_scheduler.Secrets(
            ca_client_bundle=bundle_name_of(operation, tables.CA_CLIENT.name),
            server=name_of(operation, "kube-scheduler-server"),
            generic_token_kubeconfig=name_of(operation, tables.TOKEN_KUBECONFIG),
        ),
        settings=mapping(at(spec(operation.shoot), "kubernetes", "kubeScheduler")),
        running=operation.running,
        autoscaled=operation.autoscaled,
    )
    await operation.deploy(kube_scheduler.NAME, kube_scheduler.objects(values))


# --- machines


async def _values(operation: ShootOperation, program: str, *, replicas: int) -> dict[str, object]:
    namespace = await operation.seed.client.get(NAMESPACES, operation.technical_id, form=Form.METADATA)
    return {
        "namespace": operation.technical_id,
        "namespace_uid": uid(namespace),
        "image": operation.image_for_workers(program),
        "token_kubeconfig": name_of(operation, tables.TOKEN_KUBECONFIG),
        "replicas": replicas,
        "autoscaled": operation.autoscaled,
    }


async def machine_controller_manager(operation: ShootOperation) -> None:
    """It runs until the machines of what is to sleep are gone. Raises ComponentError, KubeError."""
    await control_plane.deploy(operation, MACHINE_CONTROLLER_MANAGER, await _manager(operation, replicas=1))


async def stop_machine_controller_manager(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    await operation.deploy(MACHINE_CONTROLLER_MANAGER, await _manager(operation, replicas=0))


async def _manager(operation: ShootOperation, *, replicas: int) -> list[Object]:
    values = await _values(operation, MACHINE_CONTROLLER_MANAGER, replicas=replicas)
    return machine_controllers.manager(machine_controllers.Values(**values))  # type: ignore[arg-type]


async def cluster_autoscaler(operation: ShootOperation) -> None:
    """None of it where no pool can grow or shrink. Raises ComponentError, KubeError."""
    await _deploy_autoscaler(operation, replicas=1)


async def stop_cluster_autoscaler(operation: ShootOperation) -> None:
    """So that it makes no machines while those that there are go. Raises ComponentError, KubeError."""
    await _deploy_autoscaler(operation, replicas=0)


async def remove_cluster_autoscaler(operation: ShootOperation) -> None:
    """Before the machines go. Raises ComponentError, KubeError."""
    await operation.deploy(CLUSTER_AUTOSCALER, [])


async def _deploy_autoscaler(operation: ShootOperation, *, replicas: int) -> None:
    if not workers.has_autoscaling(operation):
        await operation.deploy(CLUSTER_AUTOSCALER, [])
        return
    deployments = mappings(mapping(operation.found.worker.get("status")).get("machineDeployments"))
    values = machine_controllers.AutoscalerValues(
        **await _values(operation, CLUSTER_AUTOSCALER, replicas=replicas),  # type: ignore[arg-type]
        groups=machine_controllers.groups_of(deployments),
        settings=mapping(at(spec(operation.shoot), "kubernetes", "clusterAutoscaler")),
    )
    await operation.deploy(CLUSTER_AUTOSCALER, machine_controllers.cluster_autoscaler(values))


# --- in the cluster


async def vertical_pod_autoscaler(operation: ShootOperation) -> None:
    """Its kinds, if the Shoot asks for it: on this computer nothing reads them but gardenlets of Shoots that are seeds.

    Raises ComponentError, KubeError.
    """
    enabled = at(spec(operation.shoot), "kubernetes", "verticalPodAutoscaler", "enabled") is True
    definitions = custom_resource_definitions(Stage.VERTICAL_POD_AUTOSCALER) if enabled else []
    objects = in_shoot("shoot-core-vpa", definitions, namespace=operation.technical_id) if enabled else []
    await operation.deploy("vpa", objects)
