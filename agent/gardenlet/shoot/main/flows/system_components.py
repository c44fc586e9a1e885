"""What the flows of a Shoot with workers deploy for its nodes and pods.

On this computer, no pod would use most of it: there is no network between pods.
"""

from agent.gardenlet.shoot.main.flows.when import asleep, local, not_built
from agent.gardenlet.shoot.main.flows.when import for_workers as _task
from agent.gardenlet.shoot.main.tasks import system_components

_NOT_BUILT = [
    not_built(f"{its_id}-system", name, after=["resource-manager-ready", "namespaces-ready", "scheduler"])
    for its_id, name in (
        ("node-local-dns", "Reconcile node-local-dns system component"),
        ("blackbox-exporter", "Deploying blackbox-exporter"),
        ("node-exporter", "Deploying node-exporter"),
        ("dashboard", "Deploying addon Kubernetes Dashboard"),
        ("nginx-ingress", "Deploying addon Nginx Ingress Controller"),
    )
]
_ON_NODES = ["resource-manager-ready", "connection", "namespaces-ready", "scheduler"]

SYSTEM_COMPONENTS = [
    _task(
        "dns",
        "Deploying CoreDNS system component",
        system_components.dns,
        [*_ON_NODES, "systems-ready"],
        asleep,
    ),
    _task(
        "metrics-server",
        "Deploying metrics-server system component",
        system_components.metrics,
        [*_ON_NODES, "systems-ready"],
        asleep,
        local,
    ),
    _task(
        "vpn-seed-server",
        "Deploying vpn-seed-server",
        system_components.tunnel_server,
        ["secrets", "namespace", "infrastructure-ready", "api-server-ready"],
        local,
    ),
    _task(
        "vpn-shoot",
        "Deploying vpn-shoot system component",
        system_components.tunnel_client,
        [*_ON_NODES, "vpn-seed-server"],
        asleep,
        local,
    ),
    _task(
        "node-problem-detector",
        "Deploying node-problem-detector system component",
        system_components.problem_detector,
        [*_ON_NODES, "systems-ready"],
        asleep,
        local,
    ),
    _task(
        "kube-proxy",
        "Deploying kube-proxy system component",
        system_components.proxy,
        [*_ON_NODES, "identity"],
        asleep,
        local,
        system_components.has_no_proxy,
    ),
    _task(
        "kube-proxy-gone",
        "Deleting kube-proxy system component",
        system_components.remove_proxy,
        [*_ON_NODES, "identity"],
        asleep,
        local,
        system_components.has_proxy,
    ),
    _task(
        "apiserver-proxy",
        "Deploying apiserver-proxy",
        system_components.api_server_proxy,
        [*_ON_NODES, "identity"],
        asleep,
        local,
    ),
    *_NOT_BUILT,
]
