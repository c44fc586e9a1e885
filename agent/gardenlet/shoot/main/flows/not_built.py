"""Tasks of the original flow that are not implemented: reports of the flow list them as skipped."""

from agent.gardenlet.flow.graph import Task
from agent.gardenlet.shoot.main.operation import ShootOperation


async def _nothing(_: ShootOperation) -> None: ...


def _task(its_id: str, name: str, *after: str) -> Task[ShootOperation]:
    return Task(its_id, name, _nothing, after=after, unless=lambda _: True)


ON_NODES = [
    _task("node-local-dns-system", "Reconcile node-local-dns system component", "resource-manager-ready"),
    _task("blackbox-exporter-system", "Deploying blackbox-exporter", "resource-manager-ready"),
    _task("node-exporter-system", "Deploying node-exporter", "resource-manager-ready"),
    _task("dashboard-system", "Deploying addon Kubernetes Dashboard", "resource-manager-ready"),
    _task("nginx-ingress-system", "Deploying addon Nginx Ingress Controller", "resource-manager-ready"),
    _task("dependency-watchdog", "Deploying dependency-watchdog shoot access resources", "resource-manager-ready"),
]
IN_SEED = [
    _task(
        "trusted-ingress",
        "Deploying Kubernetes API server ingress with trusted certificate in the Seed cluster",
        "secrets",
    ),
    _task("logging", "Deploying shoot logging stack in Seed", "secrets"),
    _task("logging-dashboards", "Reconciling Plutono for Shoot in Seed for the logging stack", "logging"),
    _task("alertmanager", "Reconciling Shoot Alertmanager", "connection"),
    _task("prometheus", "Reconciling Shoot Prometheus", "connection"),
    _task("blackbox-exporter", "Deploying control plane blackbox-exporter", "connection"),
    _task(
        "monitoring-dashboards",
        "Reconciling Plutono for Shoot in Seed for the monitoring stack",
        *("alertmanager", "prometheus"),
    ),
]
