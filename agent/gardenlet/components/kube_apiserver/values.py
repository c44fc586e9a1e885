"""What the API server of a Shoot depends on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.gardenlet.components.control_plane import Running
from agent.gardenlet.components.kubernetes_versions import version_of
from gardener.garden.versions import Version
from kube.objects import Object, mapping

NAME = "kube-apiserver"
PORT = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Names of Secrets of the secrets manager, as `secrets_manager.tables` calls their configs."""

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
    """The last two: of a Shoot with workers."""
    ca_vpn_bundle: str = ""
    http_proxy: str = ""
    """The last two: of one whose nodes are reached through a tunnel."""


@dataclass(frozen=True, slots=True)
class Key:
    """For encryption of etcd. Attributes: secret: base64."""

    name: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encryption:
    """What is encrypted in etcd, and with what.

    Attributes:
        keys: the first encrypts, all decrypt.
        resources: that are encrypted.
        removed: that are to be decrypted with the next write of each object.
    """

    keys: Sequence[Key]
    resources: Sequence[str] = ("secrets",)
    removed: Sequence[str] = ()


def encryption_keys(current: Key, old: Key | None, *, encrypts_by_current: bool) -> list[Key]:
    """In the order of `Encryption.keys`.

    Args:
        current: the newest one.
        old: the one before; there while the key is rotated.
        encrypts_by_current: whether all API servers were seen with both keys: before that, one could meet what it can't
            decrypt.
    """
    if old is None:
        return [current]
    return [current, old] if encrypts_by_current else [old, current]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What it depends on.

    Attributes:
        version: of Kubernetes, such as `1.30.14`.
        health_token: of the user `health-check`; in the probes.
        settings: `spec.kubernetes.kubeAPIServer` of the Shoot.
        host: its name in the internal domain; also issuer of tokens, unless the settings name another one.
        advertised: the address that is advertised to the Shoot; that of its Service.
        audit_policy: content of the ConfigMap that the settings refer to, as YAML.
        authentication: the same of structured authentication.
        admission_kubeconfigs: content of the Secrets that admission plugins refer to, by plugin.
        least_replicas: while it is awake; autoscalers may ask for more.
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
        """Whether nodes, pods and Services are reached through one."""
        return bool(self.secrets.http_proxy)

    @property
    def kubernetes(self) -> Version:
        return version_of(self.version)

    def setting(self, name: str) -> Object:
        """A part of the settings; empty: it is not there."""
        return mapping(self.settings.get(name))
