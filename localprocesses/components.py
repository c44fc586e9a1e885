"""The command lines of the components, and the files they read: plain functions from paths to text."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import yaml

from localprocesses.assets import Assets

AUDIENCES = ("https://kubernetes.default.svc", "gardener")
_SERVING_NAMES = ("127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
POD_CIDR, NODE_CIDR = "10.64.0.0/16", "10.65.0.0/16"
"""Addresses of simulated pods and nodes."""
STAGES = Path(__file__).with_name("controlplane") / "stages.yaml"
NODE_ANNOTATION = ("kwok.x-k8s.io/node", "fake")
"""KWOK simulates the nodes with this annotation, and their pods; a test's own nodes stay as the test made them."""

ETCD = "etcd"
APISERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KWOK = "kwok"
ORDER = (ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK)
"""Order of the start."""
_ETCD_ADDRESS, _PEER_ADDRESS = "etcd:0", "peer:0"
"""Sockets in the state directory, in which etcd runs; before 3.6 it takes no paths, only the form of host and port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Differences of clusters."""

    services: str = "10.96.0.0/16"
    """Addresses of Services, as CIDR."""
    played: tuple[str, ...] = ()
    """Controllers of kube-controller-manager that don't run, since another program simulates them."""
    scheduled: bool = True
    """Whether there is a scheduler."""

    @property
    def serving_names(self) -> tuple[str, ...]:
        """Names in the API server's certificate."""
        return *_SERVING_NAMES, str(ip_network(self.services)[1])


@dataclass(frozen=True, slots=True)
class Files:
    """Paths in the state directory."""

    state: Path

    @property
    def pki(self) -> Path:
        return self.state / "pki"

    @property
    def ca(self) -> Path:
        return self.pki / "ca.crt"

    @property
    def front_proxy_ca(self) -> Path:
        """Authority by which servers recognize the API server that passes requests on to them."""
        return self.pki / "front-proxy-ca.crt"

    @property
    def audit_log(self) -> Path:
        return self.state / "audit.log"

    @property
    def audit_policy(self) -> Path:
        return self.state / "audit-policy.yaml"

    @property
    def admission(self) -> Path:
        """Configuration with the credentials that the API server shows to webhooks."""
        return self.state / "admission.yaml"

    @property
    def authorization(self) -> Path:
        """Authorizers of requests, in order; the API server reads the file again when it changes."""
        return self.state / "authorization.yaml"

    @property
    def webhooks_kubeconfig(self) -> Path:
        return self.state / "webhooks.kubeconfig"

    @property
    def tokens(self) -> Path:
        return self.state / "tokens.csv"

    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def service_account_key(self) -> Path:
        return self.pki / "service-accounts.key"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def access(self) -> Path:
        """URL and token, JSON."""
        return self.state / "access.json"

    @property
    def ready(self) -> Path:
        """File that exists when the cluster was started completely."""
        return self.state / "ready"

    @property
    def etcd_data(self) -> Path:
        return self.state / "etcd"

    @property
    def etcd_socket(self) -> Path:
        return self.state / _ETCD_ADDRESS

    def log(self, component: str) -> Path:
        return self.logs / f"{component}.log"

    def component_kubeconfig(self, component: str) -> Path:
        return self.state / f"{component}.kubeconfig"


def etcd(assets: Assets, files: Files) -> list[str]:
    return [
        str(assets.etcd),
        f"--data-dir={files.etcd_data}",
        f"--listen-client-urls=unix://{_ETCD_ADDRESS}",
        # Must be host and port, although no client uses it.
        "--advertise-client-urls=http://localhost:1",
        f"--listen-peer-urls=unix://{_PEER_ADDRESS}",
        # The data live as long as the cluster; waiting for the disk would make every write ten times slower.
        "--unsafe-no-fsync",
        *([] if assets.etcd_has_gateway() else ["--enable-grpc-gateway=false"]),
        "--log-level=warn",
    ]


def apiserver(assets: Assets, files: Files, *, port: int, services: str) -> list[str]:
    pki = files.pki
    return [
        str(assets.apiserver),
        f"--etcd-servers=unix://{files.etcd_socket}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--client-ca-file={files.ca}",
        f"--token-auth-file={files.tokens}",
        "--enable-bootstrap-token-auth",
        f"--requestheader-client-ca-file={files.front_proxy_ca}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki}/{FRONT_PROXY}.crt",
        f"--proxy-client-key-file={pki}/{FRONT_PROXY}.key",
        _authorization(files),
        f"--service-account-issuer={AUDIENCES[0]}",
        f"--service-account-key-file={files.service_account_key}",
        f"--service-account-signing-key-file={files.service_account_key}",
        f"--api-audiences={','.join(AUDIENCES)}",
        f"--service-cluster-ip-range={services}",
        # No pod runs behind the service `kubernetes`, and 127.0.0.1 is refused as an endpoint.
        "--endpoint-reconciler-type=none",
        "--allow-privileged",
        # Without a controller-manager no ServiceAccount is made for the pods of a namespace.
        *([] if assets.controller_manager else ["--disable-admission-plugins=ServiceAccount"]),
        "--max-requests-inflight=2000",
        "--max-mutating-requests-inflight=1000",
        f"--admission-control-config-file={files.admission}",
        f"--audit-policy-file={files.audit_policy}",
        f"--audit-log-path={files.audit_log}",
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=100",
        "--audit-log-maxbackup=2",
    ]


def _authorization(files: Files) -> str:
    if files.authorization.exists():
        return f"--authorization-config={files.authorization}"
    return "--authorization-mode=Node,RBAC"


def authorization_configuration(*, api: str, webhook_kubeconfig: Path | None = None) -> str:
    """Configuration of the version `api`; a webhook authorizes gardenlets, before RBAC, if it has a kubeconfig."""
    webhook = {
        "timeout": "10s",
        "authorizedTTL": "10s",
        "unauthorizedTTL": "1s",
        "subjectAccessReviewVersion": "v1",
        "matchConditionSubjectAccessReviewVersion": "v1",
        "failurePolicy": "Deny",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(webhook_kubeconfig)},
        "matchConditions": [{"expression": "'gardener.cloud:system:seeds' in request.groups"}],
    }
    seeds = [{"type": "Webhook", "name": "seeds", "webhook": webhook}] if webhook_kubeconfig else []
    authorizers = [{"type": "Node", "name": "node"}, *seeds, {"type": "RBAC", "name": "rbac"}]
    api_version = f"apiserver.config.k8s.io/{api}"
    return json.dumps({"apiVersion": api_version, "kind": "AuthorizationConfiguration", "authorizers": authorizers})


def admission_configuration(files: Files) -> str:
    plugins = [
        {
            "name": f"{kind}AdmissionWebhook",
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "WebhookAdmissionConfiguration",
                "kubeConfigFile": str(files.webhooks_kubeconfig),
            },
        }
        for kind in ("Mutating", "Validating")
    ]
    configuration = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
    return json.dumps(configuration)


def webhooks_kubeconfig(credentials: dict[str, str]) -> str:
    """Kubeconfig with the credentials that the API server shows to webhooks at any address."""
    users = [{"name": "*", "user": credentials}]
    return json.dumps({"apiVersion": "v1", "kind": "Config", "users": users})


def controller_manager(binary: Path, files: Files, *, played: Iterable[str]) -> list[str]:
    pki = files.pki
    return [
        str(binary),
        f"--kubeconfig={files.component_kubeconfig(CONTROLLER_MANAGER)}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--root-ca-file={files.ca}",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--cluster-signing-cert-file={files.ca}",
        f"--cluster-signing-key-file={pki}/ca.key",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        f"--controllers={','.join(['*', *(f'-{name}' for name in played)])}",
    ]


def scheduler(binary: Path, files: Files) -> list[str]:
    return [
        str(binary),
        f"--kubeconfig={files.component_kubeconfig(SCHEDULER)}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def kwok(binary: Path, kubeconfig: Path, *, server: str = "") -> list[str]:
    """Command of KWOK; `server` is address and port of its health checks, empty for none."""
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--config={STAGES}",
        f"--manage-nodes-with-annotation-selector={'='.join(NODE_ANNOTATION)}",
        # Without leases the node lifecycle controller takes nodes for dead after 50 s.
        "--node-lease-duration-seconds=40",
        "--cidr=10.64.0.1/16",
        f"--server-address={server}",
        "--v=WARN",
    ]


WEBHOOK_CLIENT = "kube-apiserver-webhook-client"
"""Common name of the certificate that the API server shows to webhooks."""
FRONT_PROXY = "front-proxy"
"""Name of the certificate that the API server shows to servers to which it passes requests on."""

COMPONENT_USERS = {
    CONTROLLER_MANAGER: "system:kube-controller-manager",
    SCHEDULER: "system:kube-scheduler",
    KWOK: "kwok",
}
"""Users with tokens: the API server verifies a client certificate in each request, at a twentieth of its CPU."""
ADMINISTRATORS = "system:masters"
"""Group of all users: permissions of the control plane are not tested here."""

AUDIT_POLICY = yaml.safe_dump(
    {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
            # Omit reads of the control plane itself, and its heartbeats, but not its writes.
            {
                "level": "None",
                "users": ["system:apiserver", *COMPONENT_USERS.values()],
                "verbs": ["get", "list", "watch"],
            },
            {
                "level": "None",
                "users": ["system:apiserver", *COMPONENT_USERS.values()],
                "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}],
            },
            {"level": "Metadata"},
        ],
    }
)


def node(index: int) -> dict[str, Any]:
    """Simulated node; its name, zone and size follow from its number."""
    name = f"node-{index}"
    annotation, value = NODE_ANNOTATION
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {annotation: value},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/region": "local",
                "topology.kubernetes.io/zone": f"local-{'abc'[index % 3]}",
            },
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": f"10.65.{index // 250}.{index % 250 + 1}"},
                {"type": "Hostname", "address": name},
            ]
        },
    }
