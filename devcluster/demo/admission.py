"""The webhooks in the demo: their registration at the API server, and their effects on an object.

They are shown on the objects of two YAML files next to this one, which are applied unchanged.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from devcluster.cluster import Cluster
from devcluster.program import Program
from kube.objects import Object, key
from localprocesses.local import HOST
from localprocesses.ports import free_port

BAKERY, TREASURES = (Path(__file__).parent / name for name in ("bakery.yaml", "treasures.yaml"))
NAMESPACE = "bakery"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/oven"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
TREASURE_DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/treasures.example.com"

_COLLECTIONS = {
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
}
_ENABLED = (
    "crdDeletionProtection",
    "highAvailabilityConfig",
    "podTopologySpreadConstraints",
    "projectedTokenMount",
    "seccompProfile",
)


class Webhooks:
    """The admission server.

    Args:
        namespace: namespace of the Secrets with the certificates.
    """

    def __init__(self, cluster: Cluster, *, namespace: str) -> None:
        port = free_port()
        self._url = f"https://{HOST}:{port}"
        self._namespace = namespace
        self._certificates = cluster.state / "certificates"
        tls = {"serverCertDir": str(self._certificates), **cluster.webhook_clients}
        server = {"bindAddress": HOST, "port": port, "tls": tls}
        config = {
            "leaderElection": {"resourceNamespace": namespace},
            # No API server has to find another replica meanwhile.
            "gracefulShutdownTimeout": "1s",
            "webhooks": {name: {"enabled": True} for name in _ENABLED},
        }
        self.program = Program("webhooks", cluster, config, servers={"webhooks": server})

    def make_certificates(self) -> None:
        """Create a CA and a certificate for the server: in Secrets, and as the files that the server reads."""
        self.program.run("certificates", "--once", "--dns-name", HOST, "--directory", str(self._certificates))

    def install(self) -> None:
        """Register the webhooks at the API server, with their address and CA."""
        ca = f"{self._namespace}/gardener-resource-manager-ca"
        self.program.run("configurations", "--url", self._url, "--ca-secret", ca, "--install")


def objects(file: Path) -> Iterator[tuple[str, Object]]:
    """Objects in a file, each with the path of its collection."""
    for obj in yaml.safe_load_all(file.read_bytes()):
        yield _COLLECTIONS[obj["kind"]], obj


def changes(file: Path, stored: Object, pod: Object) -> list[list[str]]:
    """Table of changes by webhooks in the Deployment of a file, and in a pod of it."""
    given = next(obj for _, obj in objects(file) if key(obj) == key(stored) and obj["kind"] == "Deployment")
    template = given["spec"]["template"]["spec"]
    return [
        ["FIELD", "IN THE FILE", "IN THE CLUSTER"],
        ["replicas", str(given["spec"]["replicas"]), str(stored["spec"]["replicas"])],
        ["spread over", _spread(template), _spread(stored["spec"]["template"]["spec"])],
        ["counting only pods with", _counted(template), _counted(pod["spec"])],
        ["token mounted from", _tokens(template), _tokens(pod["spec"])],
        ["seccomp profile", _seccomp(template), _seccomp(pod["spec"])],
    ]


def _spread(spec: Object) -> str:
    return _listed(constraint["topologyKey"] for constraint in spec.get("topologySpreadConstraints", ()))


def _counted(spec: Object) -> str:
    constraints = spec.get("topologySpreadConstraints", ())
    return _listed({label for each in constraints for label in each["labelSelector"]["matchLabels"]})


def _tokens(spec: Object) -> str:
    return _listed(volume["name"] for volume in spec.get("volumes", ()) if "projected" in volume)


def _seccomp(spec: Object) -> str:
    return str(spec.get("securityContext", {}).get("seccompProfile", {}).get("type", "<none>"))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "<none>"
