"""What the manifests deploy, applied by kubectl as an operator does; the Pods are run by `kit.processes.deployed_pods`."""

import subprocess
from functools import partial
from pathlib import Path

from devcluster.cluster import Cluster
from kit.eventually import PATIENCE, eventually
from kit.world import Place
from kube.errors import KubeError
from kube.objects import Object, condition
from kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

MANIFESTS = Path(__file__).parents[2] / "manifests"


def kubectl(kubeconfig: Path, *arguments: str, stdin: str = "") -> str:
    command = ["kubectl", "--kubeconfig", str(kubeconfig), *arguments]
    done = subprocess.run(command, input=stdin, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def apply(cluster: Cluster, overlay: str) -> str:
    """First as a trial of everything, then really."""
    directory = str(MANIFESTS / "overlays" / overlay)
    kubectl(cluster.kubeconfig, "apply", "--server-side", "--dry-run=server", "-k", directory)
    return kubectl(cluster.kubeconfig, "apply", "--server-side", "-k", directory)


until = partial(eventually, seconds=PATIENCE, passing=(KubeError,))


def pod_of(place: Place, app: str, *, role: str = "") -> Object:
    """A running one.

    Args: role: where several programs have the same `app`.
    """
    selector = f"app%3D{app}" + (f",role%3D{role}" if role else "")

    def running() -> Object | None:
        pods = place.api.get(f"{place.path('Pod')}?labelSelector={selector}")["items"]
        return next((pod for pod in pods if (condition(pod, "Ready") or {}).get("status") == "True"), None)

    return until(running, f"a pod of {app}")


def is_available(place: Place, deployment: str) -> bool:
    live = place.get("Deployment", deployment)
    return (condition(live, "Available") or {}).get("status") == "True" and live["status"]["readyReplicas"] == 2


def serve_at(place: Place, port: int, *, name: str) -> None:
    """The Service leads to a port of this machine, as kube-proxy would see to.

    Args: name: of the Service and the configurations of webhooks.
    """
    external = {"type": "ExternalName", "externalName": "127.0.0.1", "clusterIP": None, "clusterIPs": None}
    place.patch("Service", name, {"spec": {**external, "selector": None}})
    for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        webhooks = place.get(kind, name)["webhooks"]
        for webhook in webhooks:
            webhook["clientConfig"]["service"]["port"] = port
        place.patch(kind, name, {"webhooks": webhooks})


def reported_bundle(cluster: Cluster, name: str) -> bool:
    return all(
        webhook["clientConfig"].get("caBundle")
        for webhook in Place(cluster, "").get(MUTATING_WEBHOOKS, name)["webhooks"]
    )
