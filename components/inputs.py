"""Inputs of a Shoot's components, from its operation. Pure: nothing is read from a cluster."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Protocol

from components.control_plane import Running
from components.results import ADDRESS, CLUSTER_IP, INFRASTRUCTURE, NAMESPACE, WORKER, Results
from components.secrets.configs import BUNDLE
from components.secrets.stored import Stored
from components.secrets.tables import CA
from config.gardenlet.schema import TUNNEL
from gardener.garden.shoots import workers
from kube.addresses import canonical_cidr
from kube.objects import Object, mapping, spec, text
from kube.paths import at

HTTPS = 443
_DNS_NUMBER = 10
"""Index of the DNS server's address in the network of Services."""


class InputError(ValueError):
    """An input of a component is unknown or invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks:
    """Networks of a Shoot, as canonical CIDRs; empty if unknown."""

    pods: str
    services: str
    nodes: str


class Secrets(Protocol):
    """Generated Secrets; a SecretsError is raised if one was not generated."""

    def current(self, config: str, /) -> Stored: ...
    def bundle(self, config: str, /) -> Stored:
        """Bundle of an authority, or of a key for tokens, that verifies."""


class Images(Protocol):
    def of(self, name: str, /) -> str:
        """Image of a program that is not part of Kubernetes."""

    def of_kubernetes(self, program: str, version: str, /) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Attributes:
    namespace: of the Shoot, in the seed.
    host: of the API server, for clients outside the seed.
    garden_identity: of the garden cluster.
    patience: how long pods stay on failing nodes.
    omitted: components that are not deployed.
    mutates_pods: whether the resource manager has webhooks for Pods.
    autoscaled: whether there are VerticalPodAutoscalers in the seed.
    results: of earlier tasks.
    bootstrap_secret: with a kubeconfig for the resource manager; empty if it has a token.
    tasks: requested by the annotation of the Shoot.
    now: current time, as in objects.
    live: objects that the component reads, by the name that it gives them.
    """

    shoot: Object
    seed: Object
    profile: Object
    namespace: str
    host: str
    running: Running
    autoscaled: bool
    images: Images
    secrets: Secrets
    garden_identity: str = ""
    patience: Mapping[str, int] = field(default_factory=dict)
    omitted: Collection[str] = ()
    mutates_pods: bool = True
    results: Results = field(default_factory=Results)
    bootstrap_secret: str = ""
    tasks: Collection[str] = ()
    now: str = ""
    live: Mapping[str, Sequence[Object]] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """Version of Kubernetes, such as `1.30.2`."""
        return text(at(spec(self.shoot), "kubernetes", "version"))

    @property
    def project(self) -> str:
        """Name of the project."""
        return self.namespace.split("--")[1]

    @property
    def identity(self) -> str:
        """Identity of the cluster, which never changes."""
        made = f"{self.namespace}-{text(at(self.shoot, 'status', 'uid'))}-{self.garden_identity}"
        return text(at(self.shoot, "status", "clusterIdentity")) or made

    @property
    def has_workers(self) -> bool:
        return bool(workers(spec(self.shoot)))

    @property
    def has_tunnel(self) -> bool:
        """Whether the control plane reaches nodes through a tunnel."""
        return self.has_workers and TUNNEL not in self.omitted

    def settings(self, program: str) -> Mapping[str, Any]:
        """Args: program: a field of `spec.kubernetes`."""
        return mapping(at(spec(self.shoot), "kubernetes", program))

    # --- results of earlier tasks

    @property
    def namespace_uid(self) -> str:
        return self.results[NAMESPACE].uid

    @property
    def address(self) -> str:
        return self.results[ADDRESS].host

    @property
    def cluster_ip(self) -> str:
        return self.results[CLUSTER_IP]

    @property
    def infrastructure(self) -> Object:
        return self.results[INFRASTRUCTURE]

    @property
    def worker(self) -> Object:
        return self.results[WORKER]

    # --- images

    def image(self, name: str) -> str:
        return self.images.of(name)

    def image_of_kubernetes(self, program: str, version: str = "") -> str:
        """Args: version: if it differs from the Shoot's."""
        return self.images.of_kubernetes(program, version or self.version)

    # --- Secrets

    @property
    def ca_bundle(self) -> bytes:
        """Bundle that verifies the API server."""
        return self.secrets.bundle(CA.name).data[BUNDLE]

    # --- networks

    @property
    def host_in_pods(self) -> str:
        """Host of the API server for pods: absolute, and thus independent of their search domains."""
        return f"{self.host}."

    @property
    def url(self) -> str:
        """URL of the API server for all clients; its names lead to the usual port only."""
        port = self.results[ADDRESS].port
        return f"https://{self.host}" if port == HTTPS else f"https://{self.address}:{port}"

    @property
    def service_network(self) -> str:
        """Network of Services.

        Raises:
            InputError: it is not set.
        """
        return self._network("services")

    @property
    def pod_network(self) -> str:
        """Network of pods.

        Raises:
            InputError: it is not set.
        """
        return self._network("pods")

    @property
    def networks(self) -> Networks:
        """Networks; the one of nodes may be chosen by the Infrastructure. Raises InputError."""
        chosen = text(at(self.infrastructure, "status", "nodesCIDR"))
        nodes = chosen or text(at(spec(self.shoot), "networking", "nodes"))
        return Networks(pods=self.pod_network, services=self.service_network, nodes=canonical_cidr(nodes))

    @property
    def provider_status(self) -> object:
        """Provider status of the Infrastructure; None if it has none."""
        return at(self.infrastructure, "status", "providerStatus")

    @property
    def dns_address(self) -> str:
        """Address of the DNS server.

        Raises:
            InputError: the network of Services is not set.
        """
        return str(ip_network(self.service_network)[_DNS_NUMBER])

    def _network(self, what: str) -> str:
        found = text(at(spec(self.shoot), "networking", what))
        found = found or text(at(spec(self.seed), "networks", "shootDefaults", what))
        if not found:
            raise InputError(
                f"neither spec.networking.{what} of the Shoot nor spec.networks.shootDefaults.{what} of the Seed is"
                " set; set one of them"
            )
        return canonical_cidr(found)
