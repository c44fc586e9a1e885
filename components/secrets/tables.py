"""Configs of Gardener's components, in a Seed and for a Shoot: pure.

Common names identify the owner of a certificate to its peer. Clients get certificates of the current CA, servers of the
old one as long as it is in use; the few servers whose only clients get the bundle in the same step get the current one
at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from components.secrets.configs import (
    Authority,
    BasicAuth,
    Config,
    EncryptionKey,
    RSAKey,
    SignedCertificate,
    Signer,
    StaticTokens,
    TokenKubeconfig,
    TokenUser,
    TunnelKey,
)
from kube.x509 import Profile

_TOKEN_FILE = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/token"

# --- CAs


def _authority(name: str, *, has_plain_name: bool = True) -> Authority:
    return Authority(name=name, persist=True, has_plain_name=has_plain_name)


CA_SEED = Authority(name="ca-seed", lifetime=timedelta(days=30))

CA = _authority("ca")
CA_CLIENT = _authority("ca-client", has_plain_name=False)
CA_ETCD = _authority("ca-etcd")
CA_ETCD_PEER = _authority("ca-etcd-peer")
CA_FRONT_PROXY = _authority("ca-front-proxy")
CA_KUBELET = _authority("ca-kubelet")
CA_METRICS_SERVER = _authority("ca-metrics-server")
CA_VPN = _authority("ca-vpn")


def authorities_of_a_shoot(*, has_workers: bool) -> tuple[Authority, ...]:
    of_all = (CA, CA_CLIENT, CA_ETCD, CA_ETCD_PEER, CA_FRONT_PROXY)
    return (*of_all, CA_KUBELET, CA_METRICS_SERVER, CA_VPN) if has_workers else of_all


def rotated(*, has_workers: bool, has_static_kubeconfig: bool) -> tuple[Config, ...]:
    """All configs of a Shoot that are rotated."""
    tokens = static_tokens(has_cluster_admin=has_static_kubeconfig)
    authorities = authorities_of_a_shoot(has_workers=has_workers)
    return (*authorities, SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY, SSH_KEY, OBSERVER, tokens)


# --- keys and tokens

SSH_KEY = RSAKey(name="ssh-keypair", persist=True, keeps_old=True, has_public_key=True)
SERVICE_ACCOUNT_KEY = RSAKey(name="service-account-key", persist=True, keeps_old=True, has_bundle=True)
OBSERVER = BasicAuth(name="observability-ingress-users", persist=True, user="admin")
"""Login for the monitoring of a Shoot."""
TUNNEL_KEY = TunnelKey(name="vpn-seed-server-tlsauth")
TOKEN_KUBECONFIG = "generic-token-kubeconfig"
ENCRYPTION_KEY = EncryptionKey(name="kube-apiserver-etcd-encryption-key", persist=True)


def static_tokens(*, has_cluster_admin: bool) -> StaticTokens:
    admin = [TokenUser("system:cluster-admin", ("system:masters",))] if has_cluster_admin else []
    users = (TokenUser("health-check"), *admin)
    return StaticTokens(name="kube-apiserver-static-token", persist=True, users=users)


def generic_token_kubeconfig(namespace: str, ca_bundle: bytes, *, server: str = "kube-apiserver") -> TokenKubeconfig:
    """Kubeconfig for all components with their own token. `server` is the host of the API server in the Seed."""
    return TokenKubeconfig(
        name=TOKEN_KUBECONFIG,
        context=namespace,
        server=f"https://{server}",
        ca_bundle=ca_bundle,
        token_file=_TOKEN_FILE,
    )


# --- servers and clients


def service_names(name: str, namespace: str) -> tuple[str, ...]:
    """DNS names of a Service, short and fully qualified."""
    in_cluster = f"{name}.{namespace}.svc"
    return (name, f"{name}.{namespace}", in_cluster, f"{in_cluster}.cluster.local")


def server(
    name: str,
    common_name: str,
    authority: Authority,
    names: Iterable[str],
    *,
    signer: Signer = Signer.OLD,
    is_client: bool = False,
    has_chain: bool = False,
) -> SignedCertificate:
    profile = Profile(common_name=common_name, names=tuple(names), is_server=True, is_client=is_client)
    return SignedCertificate(name=name, authority=authority.name, profile=profile, signer=signer, has_chain=has_chain)


def client(
    name: str, common_name: str, authority: Authority, *, groups: Sequence[str] = (), signer: Signer = Signer.CURRENT
) -> SignedCertificate:
    profile = Profile(common_name=common_name, organizations=tuple(groups), is_client=True)
    return SignedCertificate(name=name, authority=authority.name, profile=profile, signer=signer)


def ingress_server(name: str, host: str) -> SignedCertificate:
    """Certificate of the seed's ingress controller for browsers, which reject certificates of ten years."""
    profile = Profile(
        common_name=name, organizations=("gardener.cloud:monitoring:ingress",), names=(host,), is_server=True
    )
    return SignedCertificate(
        name=f"{name}-tls",
        authority=CA_SEED.name,
        profile=profile,
        signer=Signer.OLD,
        lifetime=timedelta(days=730),
    )


def resource_manager_server(namespace: str, authority: Authority) -> SignedCertificate:
    """Certificate for webhooks of the API server, which gets the CA bundle in the same step."""
    name = "gardener-resource-manager"
    names = service_names(name, namespace)
    return server(f"{name}-server", name, authority, names, signer=Signer.CURRENT)


_ETCDS = ("main", "events")


def name_of_peers(role: str) -> str:
    """Name of the config for members of an etcd."""
    return f"etcd-peer-server-{role}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """Certificates of a Shoot.

    Attributes:
        namespace: in the Seed; the technical ID.
        domains: external domains of the API server.
        service_addresses: of the Service `kubernetes` in the Shoot.
        has_workers: whether Pods in the Shoot reach the API server.
        has_several_etcds: whether each etcd has several members.
        etcd_names: further names of etcds.
    """

    namespace: str
    domains: Sequence[str] = ()
    service_addresses: Sequence[str] = ()
    has_workers: bool = False
    has_several_etcds: bool = False
    etcd_names: Sequence[str] = ()

    def api_server(self) -> SignedCertificate:
        inside = service_names("kubernetes", "default") if self.has_workers else ()
        names = (
            *service_names("kube-apiserver", self.namespace),
            *(self.namespace, *self.domains, *inside, *self.service_addresses),
            *("127.0.0.1", "::1"),
        )
        return server("kube-apiserver", "kube-apiserver", CA, names, has_chain=True)

    def etcd_server(self, role: str) -> SignedCertificate:
        name = f"etcd-{role}"
        names = (
            *(f"{name}-local", *service_names(f"{name}-client", self.namespace)),
            *(f"*.{each}" for each in service_names(f"{name}-peer", self.namespace)),
            *self.etcd_names,
        )
        return server(f"etcd-server-{role}", "etcd-server", CA_ETCD, names, is_client=True)

    def etcd_peer_server(self, role: str) -> SignedCertificate:
        """Certificate of an etcd with several members, whose only peer clients are the members."""
        names = service_names(f"etcd-{role}-peer", self.namespace)
        return server(
            name_of_peers(role),
            "etcd-server",
            CA_ETCD_PEER,
            (*names, *(f"*.{each}" for each in names)),
            signer=Signer.CURRENT,
            is_client=True,
        )

    def component_server(self, component: str) -> SignedCertificate:
        """Certificate of the controller manager or the scheduler."""
        return server(f"{component}-server", component, CA, service_names(component, self.namespace))

    def certificates(self) -> tuple[SignedCertificate, ...]:
        """All certificates of a Shoot's control plane."""
        return (
            self.api_server(),
            *(self.etcd_server(role) for role in _ETCDS),
            *(self.etcd_peer_server(role) for role in _ETCDS if self.has_several_etcds),
            client("etcd-client", "etcd-client", CA_ETCD),
            client("kube-aggregator", "system:kube-aggregator", CA_FRONT_PROXY),
            *(self._for_workers() if self.has_workers else ()),
        )

    def _for_workers(self) -> tuple[SignedCertificate, ...]:
        return (
            # Kubelets verify with the CA that they got at their start.
            client("kube-apiserver-kubelet", "system:kube-apiserver:kubelet", CA_KUBELET, signer=Signer.OLD),
        )
