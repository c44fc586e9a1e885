"""What runs on the nodes of a Shoot for all its pods, and the tunnel to them.

Where the control plane is processes of this computer, pods have no network: only the DNS server is there.
"""

from agent.gardenlet.components import apiserver_proxy, coredns, kube_proxy, metrics_server, node_problem_detector
from agent.gardenlet.components.kube_proxy import Nodes
from agent.gardenlet.components.namespaces import KUBE_SYSTEM
from agent.gardenlet.components.vpn import client as vpn_client
from agent.gardenlet.components.vpn import server as vpn_server
from agent.gardenlet.components.vpn.parts import SERVER as VPN_SERVER
from agent.gardenlet.components.worker_pools.pools import POOL, VERSION
from agent.gardenlet.secrets_manager import tables
from agent.gardenlet.secrets_manager.rules.configs import BUNDLE
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks import exposure, foundation, infrastructure, workers
from agent.gardenlet.shoot.main.tasks.secrets import bundle_name_of, name_of
from kube.clock import format_time
from kube.objects import Object, key, labels, mapping, spec, text
from kube.paths import at
from kube.resources import DEPLOYMENTS, NODES, PODS
from kube.runtime.client import Form, Selection
from kube.runtime.controller import ReconcileError

_RESTARTS = "restartCoreAddons"


def _host(operation: ShootOperation) -> str:
    """Of the API server, as pods reach it from whatever domain they look it up."""
    return f"{operation.internal.host}."


async def dns(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    networks, is_restarted = infrastructure.networks(operation), operation.is_asked(_RESTARTS)
    now = format_time(operation.seed.clock())
    values = coredns.Values(
        namespace=operation.technical_id,
        image=operation.image_for_workers(coredns.NAME),
        address=workers.dns_address(operation),
        host=_host(operation),
        networks=[each for each in (networks.nodes, networks.pods) if each],
        restarted=now if is_restarted else await _restarted(operation),
    )
    await operation.deploy(coredns.NAME, coredns.objects(values))
    await operation.task_done(_RESTARTS)


async def _restarted(operation: ShootOperation) -> str:
    """When it was the last time."""
    async with operation.cluster() as cluster:
        live = await cluster.client.find(DEPLOYMENTS, coredns.NAME, namespace=KUBE_SYSTEM)
    return text(at(live or {}, "spec", "template", "metadata", "annotations", coredns.RESTARTED))


# --- Services


async def proxy(operation: ShootOperation) -> None:
    """For nodes that there are, and are to be. Raises ReconcileError, ComponentError, KubeError."""
    nodes = {Nodes(each.name, each.version) for each in workers.pools(operation)}
    async with operation.cluster() as cluster:
        living = await cluster.client.list(NODES, Selection(label_selector=POOL), form=Form.METADATA)
    nodes |= {Nodes(labels(each)[POOL], version) for each in living if (version := labels(each).get(VERSION))}
    values = kube_proxy.Values(
        namespace=operation.technical_id,
        images={each.version: operation.image_of_kubernetes(kube_proxy.NAME, each.version) for each in nodes},
        server=exposure.url(operation),
        ca_bundle=foundation.ca_bundle(operation),
        pod_network=infrastructure.networks(operation).pods,
        nodes=sorted(nodes),
        settings=_proxy_settings(operation),
    )
    await operation.deploy(kube_proxy.NAME, kube_proxy.objects(values))


def _proxy_settings(operation: ShootOperation) -> Object:
    return mapping(at(spec(operation.shoot), "kubernetes", "kubeProxy"))


def has_proxy(operation: ShootOperation) -> bool:
    return _proxy_settings(operation).get("enabled") is not False


def has_no_proxy(operation: ShootOperation) -> bool:
    return not has_proxy(operation)


async def remove_proxy(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    await operation.deploy(kube_proxy.NAME, [])


# --- metrics, and problems


async def metrics(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    authority = operation.keys.get(tables.CA_METRICS_SERVER.name).bundle
    assert authority is not None  # an authority has one
    values = metrics_server.Values(
        namespace=operation.technical_id,
        image=operation.image_for_workers(metrics_server.NAME),
        host=_host(operation),
        server=operation.keys.get(metrics_server.NAME).current.data,
        ca_bundle=authority.data[BUNDLE],
    )
    await operation.deploy(metrics_server.NAME, metrics_server.objects(values))


async def problem_detector(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    values = node_problem_detector.Values(
        namespace=operation.technical_id,
        image=operation.image_for_workers(node_problem_detector.NAME),
        host=_host(operation),
    )
    await operation.deploy(node_problem_detector.NAME, node_problem_detector.objects(values))


# --- ways to the API server, and from it


async def api_server_proxy(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    values = apiserver_proxy.Values(
        namespace=operation.technical_id,
        image=operation.image_for_workers("envoy"),
        sidecar_image=operation.image_for_workers(apiserver_proxy.NAME),
        address=operation.found.cluster_ip,
        host=_host(operation),
    )
    await operation.deploy(apiserver_proxy.NAME, apiserver_proxy.objects(values))


async def tunnel_server(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    values = vpn_server.Values(
        namespace=operation.technical_id,
        image=operation.image_for_workers(VPN_SERVER),
        proxy_image=operation.image_for_workers("envoy"),
        networks=infrastructure.networks(operation),
        ca_bundle=bundle_name_of(operation, tables.CA_VPN.name),
        certificate=name_of(operation, VPN_SERVER),
        key=name_of(operation, tables.TUNNEL_KEY.name),
        running=operation.running,
        autoscaled=operation.autoscaled,
    )
    await operation.deploy(VPN_SERVER, vpn_server.objects(values))


async def tunnel_client(operation: ShootOperation) -> None:
    """Raises ComponentError, KubeError."""
    authority = operation.keys.get(tables.CA_VPN.name).bundle
    assert authority is not None  # an authority has one
    values = vpn_client.Values(
        namespace=operation.technical_id,
        image=operation.image_for_workers("vpn-shoot-client"),
        host=_host(operation),
        seed_pods=text(at(spec(operation.seed_object), "networks", "pods")),
        ca_bundle=authority.data,
        certificate=operation.keys.get("vpn-shoot-client").current.data,
        key=operation.keys.get(tables.TUNNEL_KEY.name).current.data,
    )
    await operation.deploy(vpn_client.NAME, vpn_client.objects(values))


async def demand_tunnel(operation: ShootOperation) -> None:
    """What a pod has logged comes through it, from the kubelet. Raises ReconcileError, KubeError."""
    async with operation.cluster() as cluster:
        pods = await cluster.client.list(PODS, Selection(KUBE_SYSTEM, label_selector="type=tunnel"))
        running = [each for each in pods if at(each, "status", "phase") == "Running"]
        if not running:
            raise ReconcileError(f"no tunnel to the nodes: no pod of Deployment {KUBE_SYSTEM}/{vpn_client.NAME} runs")
        path = PODS.path(namespace=KUBE_SYSTEM, name=key(running[0]).name)
        await cluster.client.request("GET", f"{path}/log", params={"tailLines": "1"})
