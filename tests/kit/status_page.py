"""An agent with its status page, and ManagedResources in every state that there is, for tests and for pictures.

with filled(cluster) as world:
    assert "coredns" in world.page("/")
"""

import contextlib
import http.client
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from devcluster.cluster import Cluster
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.overview.states import ResourceState, state_of
from kit import objects
from kit.eventually import PATIENCE, eventually
from kit.managed_resources import install_crd
from kit.objects import placed
from kit.processes.agent import HEAD, AgentProcess
from kit.world import Place
from kube.errors import NotFound
from kube.objects import Object
from kube.resources import CONFIG_MAPS, NAMESPACES
from localprocesses.ports import free_port

MARKER = "pearl-diver-7Yq2"
"""Is in every Secret and in values of objects, and on no page."""
SCRIPT = "<script>alert('hostile')</script>"
IGNORE = "resources.gardener.cloud/ignore"


class PageWorld:
    """Args: prefix: of the names of namespaces and of the class, so that tests share a cluster."""

    def __init__(self, cluster: Cluster, *, prefix: str | None = None) -> None:
        unique = f"t{uuid.uuid4().hex[:6]}-"
        self.prefix = unique if prefix is None else prefix
        self.cluster = cluster
        self.resource_class = f"{self.prefix}seed"
        self.garden, self.berlin, self.paris = (
            f"{self.prefix}{name}" for name in ("garden", "shoot--shop--berlin", "shoot--shop--paris")
        )
        self.page_port = free_port()
        install_crd(cluster)
        for name in self.namespaces:
            cluster.api.create(NAMESPACES.path(), {"metadata": {"name": name}})

    @property
    def namespaces(self) -> tuple[str, ...]:
        return self.garden, self.berlin, self.paris

    @property
    def url(self) -> str:
        return f"http://localhost:{self.page_port}"

    def agent(self, *, page_port: int = 0) -> AgentProcess:
        """With leases in the garden."""
        config = {
            **HEAD,
            "leaderElection": {
                "resourceNamespace": self.garden,
                "leaseDuration": "60s",
                "renewDeadline": "40s",
                "retryPeriod": "200ms",
            },
            # Those of other tests in this cluster are not to be seen.
            "sourceClientConnection": {"namespaces": [*self.namespaces], "qps": 1000, "burst": 1000},
            "targetClientConnection": {"qps": 1000, "burst": 1000},
            "server": {"statusPage": {"port": page_port or self.page_port}},
            "controllers": {
                "resourceClass": self.resource_class,
                "managedResource": {"managedByLabelValue": self.resource_class},
            },
        }
        return AgentProcess(config, kubeconfig=self.cluster.kubeconfig)

    # --- writing

    def manage(self, namespace: str, name: str, *content: Object | str, annotated: Mapping[str, str] = {}) -> None:
        """A ManagedResource with a Secret `<name>-manifests`; a string is a document as it is."""
        documents = [obj if isinstance(obj, str) else yaml.safe_dump(placed(obj, namespace)) for obj in content]
        data = {"objects.yaml": "---\n".join(documents)}
        Place(self.cluster, namespace).create(objects.secret(f"{name}-manifests", data))
        self.put(namespace, name, annotated)

    def put(self, namespace: str, name: str, annotated: Mapping[str, str] = {}) -> None:
        """Only the ManagedResource."""
        spec: dict[str, Any] = {"class": self.resource_class, "secretRefs": [{"name": f"{name}-manifests"}]}
        Place(self.cluster, namespace).create(objects.managed_resource(name, annotations=annotated, spec=spec))

    def drift(self, namespace: str, name: str, patch: Object) -> None:
        self.cluster.api.patch(CONFIG_MAPS.path(namespace=namespace, name=name), patch)

    def fill(self) -> None:
        """ManagedResources in all states."""
        self.manage(self.garden, "storage-classes", config_map("defaults"), config_map("zones"))
        self.manage(self.garden, "dns-policies", *(config_map(f"policy-{number}") for number in range(4)))
        self.manage(self.berlin, "coredns", config_map("corefile"), deployment("coredns", replicas=2), secret("keys"))
        self.manage(self.berlin, "metrics-server", deployment("metrics-server", replicas=1), config_map("metrics"))
        gpu = deployment("gpu-operator", replicas=1, node="of-gold"), deployment("gpu-exporter", replicas=1)
        self.manage(self.berlin, "gpu-operator", *gpu, config_map("gpu-drivers"))
        self.manage(self.paris, "coredns", config_map("corefile"), deployment("coredns", replicas=2))
        self.manage(self.paris, "monitoring", "apiVersion: example.com/v1\nkind: Prometheus\nmetadata: {name: shop}\n")
        self.put(self.paris, "vpn")
        self.manage(
            self.paris,
            "node-local-dns",
            config_map("node-local-dns"),
            annotated={
                IGNORE: "true",
                f"{IGNORE}-reason": "migration of the zone, see the run book",
                "resources.gardener.cloud/ignored-by": "jane",
            },
        )
        self.manage(self.paris, "old-dashboard", config_map("dashboard", finalizers=["example.com/keep"]))

    def fill_hostile(self) -> None:
        """What a user writes who wants more than to be shown."""
        document = f'apiVersion: example.com/v1\nkind: "{SCRIPT}"\nmetadata: {{name: x}}\n'
        self.manage(self.garden, "hostile-kind", document)
        self.manage(
            self.garden,
            "hostile-reason",
            annotated={IGNORE: "true", f"{IGNORE}-reason": SCRIPT, "resources.gardener.cloud/ignored-by": '"><b>'},
        )

    def states(self) -> dict[tuple[str, str], ResourceState]:
        found = {}
        for namespace in self.namespaces:
            for obj in self.cluster.api.get(MANAGED_RESOURCES.path(namespace=namespace))["items"]:
                found[namespace, obj["metadata"]["name"]] = state_of(obj)
        return found

    def settle(self, *, seconds: float = PATIENCE) -> None:
        """Wait until all that `fill` wrote is as it will stay, and have one deleted and one changed by hand."""
        wanted = {
            (self.garden, "storage-classes"): ResourceState.READY,
            (self.garden, "dns-policies"): ResourceState.READY,
            (self.berlin, "coredns"): ResourceState.READY,
            (self.berlin, "metrics-server"): ResourceState.READY,
            (self.berlin, "gpu-operator"): ResourceState.UNHEALTHY,
            (self.paris, "coredns"): ResourceState.READY,
            (self.paris, "monitoring"): ResourceState.FAILED,
            (self.paris, "vpn"): ResourceState.FAILED,
            (self.paris, "node-local-dns"): ResourceState.SUSPENDED,
            (self.paris, "old-dashboard"): ResourceState.READY,
        }
        eventually(lambda: self.states() == wanted, "all states", seconds=seconds, state=self.states)
        self.cluster.api.delete(MANAGED_RESOURCES.path(namespace=self.paris, name="old-dashboard"))
        self.drift(self.berlin, "corefile", {"data": {"zone": f"changed {MARKER}"}})
        self.cluster.api.delete(CONFIG_MAPS.path(namespace=self.garden, name="policy-2"))

    def empty(self) -> None:
        """Take finalizers away that would keep a namespace."""
        path = CONFIG_MAPS.path(namespace=self.paris, name="dashboard")
        self.cluster.api.patch(path, {"metadata": {"finalizers": None}})
        for namespace, name in self.states():
            with contextlib.suppress(NotFound):
                self.cluster.api.delete(MANAGED_RESOURCES.path(namespace=namespace, name=name))
        eventually(lambda: not self.states(), "ManagedResources to go", state=self.states)
        for name in self.namespaces:
            self.cluster.api.delete(NAMESPACES.path(name=name))

    # --- asking

    def get(
        self, path: str, *, method: str = "GET", host: str = "localhost", port: int = 0
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.page_port, timeout=30)
        try:
            connection.request(method, path, headers={"Host": host})
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode()
        finally:
            connection.close()

    def page(self, path: str, *, port: int = 0) -> str:
        status, _, body = self.get(path, port=port)
        assert status == 200, (path, status)
        return body

    def changes(self) -> str:
        """The table of them: above it the page speaks of what was repaired in any case."""
        page = self.page("/changes")
        return page[page.index("<table") :]


@contextlib.contextmanager
def filled(cluster: Cluster, *, prefix: str | None = None) -> Iterator[PageWorld]:
    """A world with an agent that leads, settled."""
    world = PageWorld(cluster, prefix=prefix)
    world.fill()
    with world.agent() as agent:
        agent.wait_until_leading()
        world.settle()
        reported = ("repaired", "made again", "deleted")
        eventually(
            lambda: all(word in world.changes() for word in reported), "changes to be shown", state=world.changes
        )
        yield world
        world.empty()


# --- objects


def config_map(name: str, **meta: Any) -> Object:
    return objects.config_map(name, {"zone": "home", "note": MARKER}, **meta)


def secret(name: str) -> Object:
    return objects.secret(name, stringData={"key": MARKER})


def deployment(name: str, *, replicas: int, node: str = "") -> Object:
    container = {"name": name, "image": "example.com/image:1", "env": [{"name": "NOTE", "value": MARKER}]}
    pod = {"containers": [container], **({"nodeSelector": {"node": node}} if node else {})}
    return objects.deployment(name, replicas=replicas, pod=pod)
