"""Parameters of the API server of a Shoot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.control_plane import Running, least_api_servers
from components.inputs import Inputs
from components.kubernetes_versions import version_of
from components.secrets import tables
from gardener.garden.versions import Version
from kube.objects import Object, mapping

NAME = "kube-apiserver"
PORT = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Names of Secrets of the secrets manager, by the names of configs in `secrets_manager.tables`."""

    ca_bundle: str
    ca_client_bundle: str
    ca_front_proxy_bundle: str
    ca_etcd_bundle: str
    etcd_client: str
    server: str
    aggregator: str
    service_account_key: str
    service_account_key_bundle: str
    static_token: str
    ca_kubelet_bundle: str = ""
    kubelet: str = ""
    """The last two: only of a Shoot with workers."""
    ca_vpn_bundle: str = ""
    http_proxy: str = ""
    """The last two: only of a Shoot with a tunnel to its nodes."""


@dataclass(frozen=True, slots=True)
class Key:
    """Encryption key of etcd. Attributes: secret: base64."""

    name: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encryption:
    """Encryption of resources in etcd.

    Attributes:
        keys: the first encrypts, all decrypt.
        resources: encrypted resources.
        removed: resources to be decrypted with the next write of each object.
    """

    keys: Sequence[Key]
    resources: Sequence[str] = ("secrets",)
    removed: Sequence[str] = ()


def encryption_keys(current: Key, old: Key | None, *, encrypts_by_current: bool) -> list[Key]:
    """Return keys in the order of `Encryption.keys`.

    Args:
        current: the newest one.
        old: the previous one, during a rotation.
        encrypts_by_current: whether all API servers have both keys, so that each can decrypt what another writes.
    """
    if old is None:
        return [current]
    return [current, old] if encrypts_by_current else [old, current]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Parameters of the API server.

    Attributes:
        version: of Kubernetes, such as `1.30.14`.
        health_token: of the user `health-check`; in the probes.
        settings: `spec.kubernetes.kubeAPIServer` of the Shoot.
        host: its name in the internal domain; also the default issuer of tokens.
        advertised: the address advertised to the Shoot: the one of its Service.
        audit_policy: YAML, as written by `gardener.tenant_files`; empty: no auditing.
        authentication: structured authentication, likewise; empty: flags configure authentication.
        admission_kubeconfigs: of admission plugins, likewise, by plugin.
        least_replicas: minimum unless hibernated; autoscalers may request more.
        autoscaled: whether there are VerticalPodAutoscalers.
        has_workers: whether there are nodes, and pods on them.
    """

    namespace: str
    image: str
    version: str
    secrets: Secrets
    encryption: Encryption
    health_token: str = field(repr=False)
    host: str
    service_network: str
    advertised: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    audit_policy: str = ""
    authentication: str = ""
    admission_kubeconfigs: Mapping[str, str] = field(default_factory=dict, repr=False)
    running: Running = Running.AWAKE
    least_replicas: int = 2
    autoscaled: bool = True
    has_workers: bool = False

    @property
    def has_tunnel(self) -> bool:
        """Whether a tunnel leads to nodes, pods and Services."""
        return bool(self.secrets.http_proxy)

    @property
    def kubernetes(self) -> Version:
        return version_of(self.version)

    def setting(self, name: str) -> Object:
        """A part of the settings; empty if it is missing."""
        return mapping(self.settings.get(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Inputs that are read from clusters, or depend on the progress of a rotation: see `Values`."""

    encryption: Encryption = Encryption(keys=())
    health_token: str = field(default="", repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict)
    audit_policy: str = ""
    authentication: str = ""
    admission_kubeconfigs: Mapping[str, str] = field(default_factory=dict, repr=False)


def values_of(inputs: Inputs, given: Given) -> Values:
    """Combine all inputs.

    Raises:
        InputError: an input is unknown or invalid.
    """
    secrets = inputs.secrets
    return Values(
        namespace=inputs.namespace,
        image=inputs.image_of_kubernetes(NAME),
        version=inputs.version,
        secrets=Secrets(
            ca_bundle=secrets.bundle(tables.CA.name).name,
            ca_client_bundle=secrets.bundle(tables.CA_CLIENT.name).name,
            ca_front_proxy_bundle=secrets.bundle(tables.CA_FRONT_PROXY.name).name,
            ca_etcd_bundle=secrets.bundle(tables.CA_ETCD.name).name,
            etcd_client=secrets.current("etcd-client").name,
            server=secrets.current(NAME).name,
            aggregator=secrets.current("kube-aggregator").name,
            service_account_key=secrets.current(tables.SERVICE_ACCOUNT_KEY.name).name,
            service_account_key_bundle=secrets.bundle(tables.SERVICE_ACCOUNT_KEY.name).name,
            static_token=secrets.current("kube-apiserver-static-token").name,
            **(_of_kubelets(inputs) if inputs.has_workers else {}),
        ),
        encryption=given.encryption,
        health_token=given.health_token,
        host=inputs.host,
        service_network=inputs.service_network,
        advertised=inputs.cluster_ip,
        settings=given.settings,
        audit_policy=given.audit_policy,
        authentication=given.authentication,
        admission_kubeconfigs=given.admission_kubeconfigs,
        running=inputs.running,
        least_replicas=least_api_servers(inputs.shoot),
        autoscaled=inputs.autoscaled,
        has_workers=inputs.has_workers,
    )


def _of_kubelets(inputs: Inputs) -> dict[str, str]:
    secrets = inputs.secrets
    found = {
        "ca_kubelet_bundle": secrets.bundle(tables.CA_KUBELET.name).name,
        "kubelet": secrets.current("kube-apiserver-kubelet").name,
    }
    if inputs.has_tunnel:
        found["ca_vpn_bundle"] = secrets.bundle(tables.CA_VPN.name).name
        found["http_proxy"] = secrets.current("kube-apiserver-http-proxy").name
    return found
