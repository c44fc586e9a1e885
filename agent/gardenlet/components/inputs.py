"""What components of a Shoot are made from: its operation, as they see it. Pure: nothing is read from a cluster."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Protocol

from agent.gardenlet.components.control_plane import Running
from agent.gardenlet.secrets_manager.rules.configs import BUNDLE
from agent.gardenlet.secrets_manager.rules.stored import Stored
from agent.gardenlet.secrets_manager.tables import CA
from gardener.garden.shoots import workers
from kube.objects import Object, mapping, spec, text
from kube.paths import at

_DNS_NUMBER = 10
"""Of the address of the DNS server, in the network of Services."""


class InputError(ValueError):
    """Something is unknown, or wrong, that a component needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Networks:
    """Of a Shoot, as CIDRs; empty: it is not known."""

    pods: str
    services: str
    nodes: str


class Secrets(Protocol):
    """Those that were generated; a SecretsError is raised if one was not."""

    def current(self, config: str, /) -> Stored: ...
    def bundle(self, config: str, /) -> Stored:
        """Of an authority, or of a key for tokens: by which is verified."""


class Images(Protocol):
    def of(self, name: str, /) -> str:
        """Of what is no program of Kubernetes."""

    def of_kubernetes(self, program: str, version: str, /) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Attributes:
    namespace: of the Shoot, in the seed; its uid is not known before it is there.
    host: of the API server, for all who are not in the seed.
    address, port: where the API server is reached; empty: it is not known yet.
    cluster_ip: of its Service.
    garden_identity: of the garden cluster.
    patience: for how long pods stay on nodes that fail.
    is_local: whether the control plane is processes of this computer.
    autoscaled: whether there are VerticalPodAutoscalers in the seed.
    infrastructure, worker: extension objects, once they have been answered; else empty.
    bootstrap_secret: with a kubeconfig for the resource manager; empty: it has a token.
    tasks: that the Shoot asks for by its annotation.
    now: as objects have it.
    live: what the component reads, by the name that it gives it.
    """

    shoot: Object
    seed: Object
    profile: Object
    namespace: str
    host: str
    running: Running
    autoscaled: bool
    is_local: bool
    images: Images
    secrets: Secrets
    garden_identity: str = ""
    patience: Mapping[str, int] = field(default_factory=dict)
    namespace_uid: str = ""
    address: str = ""
    port: int = 443
    cluster_ip: str = ""
    infrastructure: Object = field(default_factory=dict)
    worker: Object = field(default_factory=dict)
    bootstrap_secret: str = ""
    tasks: Collection[str] = ()
    now: str = ""
    live: Mapping[str, Sequence[Object]] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """Of Kubernetes, such as `1.30.2`."""
        return text(at(spec(self.shoot), "kubernetes", "version"))

    @property
    def project(self) -> str:
        """Its name."""
        return self.namespace.split("--")[1]

    @property
    def identity(self) -> str:
        """Of the cluster; it never changes."""
        made = f"{self.namespace}-{text(at(self.shoot, 'status', 'uid'))}-{self.garden_identity}"
        return text(at(self.shoot, "status", "clusterIdentity")) or made

    @property
    def has_workers(self) -> bool:
        return bool(workers(spec(self.shoot)))

    @property
    def has_tunnel(self) -> bool:
        """Whether the control plane reaches nodes through one; those of this computer have no network."""
        return self.has_workers and not self.is_local

    def settings(self, program: str) -> Mapping[str, Any]:
        """Args: program: a field of `spec.kubernetes`."""
        return mapping(at(spec(self.shoot), "kubernetes", program))

    # --- images

    def image(self, name: str) -> str:
        return self.images.of(name)

    def image_of_kubernetes(self, program: str, version: str = "") -> str:
        """Args: version: if it is not the Shoot's."""
        return self.images.of_kubernetes(program, version or self.version)

    # --- Secrets

    @property
    def ca_bundle(self) -> bytes:
        """By which the API server is verified."""
        return self.secrets.bundle(CA.name).data[BUNDLE]

    # --- networks

    @property
    def host_in_pods(self) -> str:
        """As pods reach the API server, from whatever domain they look it up."""
        return f"{self.host}."

    @property
    def url(self) -> str:
        """Under which the API server is reached by everybody; on this computer names are not resolved."""
        return f"https://{self.address}:{self.port}" if self.is_local else f"https://{self.host}"

    @property
    def service_network(self) -> str:
        """Raises InputError."""
        return self._network("services")

    @property
    def pod_network(self) -> str:
        """Raises InputError."""
        return self._network("pods")

    @property
    def networks(self) -> Networks:
        """Once the Infrastructure has been answered, which may choose that of nodes. Raises InputError."""
        chosen = text(at(self.infrastructure, "status", "nodesCIDR"))
        nodes = chosen or text(at(spec(self.shoot), "networking", "nodes"))
        return Networks(pods=self.pod_network, services=self.service_network, nodes=nodes)

    @property
    def provider_status(self) -> object:
        """Of the Infrastructure; None: it has none."""
        return at(self.infrastructure, "status", "providerStatus")

    @property
    def dns_address(self) -> str:
        """Raises InputError."""
        return str(ip_network(self.service_network)[_DNS_NUMBER])

    def _network(self, what: str) -> str:
        found = text(at(spec(self.shoot), "networking", what))
        found = found or text(at(spec(self.seed), "networks", "shootDefaults", what))
        if not found:
            raise InputError(
                f"neither spec.networking.{what} of the Shoot nor spec.networks.shootDefaults.{what} of the Seed is"
                " set; set one of them"
            )
        return found
