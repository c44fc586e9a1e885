"""A gardenlet that is about to enter a garden: its Seed, its bootstrap credentials, and where it keeps what it gets.

Garden and seed are two real clusters; the garden's controller manager signs.
"""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from agent.controller_manager.bootstrap import cluster_identity
from agent.gardenlet.app import IDENTITY
from agent.gardenlet.bootstrap.access import GardenAccess
from agent.gardenlet.bootstrap.pace import Pace
from agent.gardenlet.bootstrap.rules.registration import new_seed
from agent.gardenlet.bootstrap.stored import Kubeconfig, of_content
from config.gardenlet.schema import GardenClientConnection, SecretReference
from devcluster.cluster import Cluster
from devcluster.garden import objects
from gardener import keys
from gardener.api.garden import CONTROLLER_REGISTRATIONS, SEEDS
from gardener.garden.seeds import (
    BOOTSTRAP_ACCOUNT_PREFIX,
    BOOTSTRAP_ROLE,
    LEASE_NAMESPACE,
    BootstrapToken,
    bootstrap_token_id,
    namespace_of,
)
from kit.garden import Garden
from kit.garden_objects import garden_object
from kit.kubeconfigs import kubeconfig
from kit.processes.agent import AgentProcess
from kube.errors import AlreadyExists
from kube.objects import Key, Object
from kube.resources import CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, NAMESPACES, SECRETS, SERVICE_ACCOUNTS
from kube.runtime.connection import load_kubeconfig
from kube.x509 import Pair, make_client
from localprocesses.components import Shape
from process.clusters import Clusters, Endpoint

KUBECONFIG, BOOTSTRAP = "gardenlet-kubeconfig", "gardenlet-kubeconfig-bootstrap"


async def quick(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.05))


QUICK = Pace(sleep=quick)
_EXTENSIONS = ("BackupBucket", "BackupEntry", "ControlPlane", "DNSRecord")


@dataclass
class Entry:
    """Its Secrets are in a namespace of the seed cluster that is called as the Seed.

    Args:
        server: address of the garden, if not its own.
        has_namespace: whether that of the Seed is there already.
    """

    garden: Garden
    seed: Cluster
    server: str = ""
    name: str = field(default_factory=lambda: f"e{secrets.token_hex(4)}")
    has_namespace: bool = True

    def __post_init__(self) -> None:
        for name in ("garden", self.name):
            with suppress(AlreadyExists):
                self.seed.api.create(NAMESPACES.path(), {"metadata": {"name": name}})
        provided = [{"kind": kind, "type": self.name} for kind in _EXTENSIONS]
        with suppress(AlreadyExists):
            self.garden.create(CONTROLLER_REGISTRATIONS, self.name, spec={"resources": provided})
        for name in (LEASE_NAMESPACE, *([namespace_of(self.name)] if self.has_namespace else [])):
            self.make_namespace(name)
        self.make_namespace("garden")
        objects.confirm(self.garden.cluster.api, self.seed_config)
        with suppress(AlreadyExists):
            identity = cluster_identity("garden")
            self.garden.create(CONFIG_MAPS, IDENTITY, namespace="kube-system", data=identity["data"])

    def make_namespace(self, name: str) -> None:
        with suppress(AlreadyExists):
            self.garden.create(NAMESPACES, name)

    @property
    def token_id(self) -> str:
        return bootstrap_token_id(Key("garden", self.name))

    @property
    def namespace(self) -> str:
        return self.name

    @property
    def user(self) -> str:
        return f"{keys.SEED_USER_PREFIX}{self.name}"

    @property
    def seed_config(self) -> Object:
        spec = garden_object(SEEDS)["spec"]
        spec["provider"]["type"] = spec["dns"]["provider"]["type"] = self.name
        spec["ingress"]["domain"] = f"ingress.{self.name}.example.com"
        spec["networks"] = {"pods": "10.64.0.0/16", "services": Shape().services}
        del spec["taints"]
        return {"metadata": {"name": self.name}, "spec": spec}

    # --- kubeconfigs of the garden

    def kubeconfig(self, user: Object, *, ca: str = "") -> bytes:
        """Args: ca: PEM, if not that of the garden."""
        authority = base64.b64encode((ca or self.garden.cluster.ca).encode()).decode()
        cluster = {"certificate-authority-data": authority}
        document = kubeconfig(user, cluster=cluster, server=self.server or self.garden.cluster.url)
        return yaml.safe_dump(document).encode()

    def with_token(self, identity: str = "") -> bytes:
        """With a new bootstrap token."""
        identity, secret = identity or secrets.token_hex(3), secrets.token_hex(8)
        data = {"token-id": identity, "token-secret": secret, "usage-bootstrap-authentication": "true"}
        data["auth-extra-groups"] = BootstrapToken(self.name).extra_groups
        kind, name = "bootstrap.kubernetes.io/token", f"bootstrap-token-{identity}"
        self.garden.create(SECRETS, name, namespace="kube-system", type=kind, stringData=data)
        return self.kubeconfig({"token": f"{identity}.{secret}"})

    def with_account(self) -> bytes:
        """With a token of a new ServiceAccount, which may bootstrap."""
        account, namespace = f"{BOOTSTRAP_ACCOUNT_PREFIX}{self.name}", "garden"
        self.make_namespace(namespace)
        self.garden.create(SERVICE_ACCOUNTS, account, namespace=namespace)
        role = {"apiGroup": CLUSTER_ROLE_BINDINGS.group, "kind": "ClusterRole", "name": BOOTSTRAP_ROLE}
        subjects = [{"kind": "ServiceAccount", "namespace": namespace, "name": account}]
        self.garden.create(CLUSTER_ROLE_BINDINGS, self.account_binding, roleRef=role, subjects=subjects)
        path = SERVICE_ACCOUNTS.path(namespace=namespace, name=account, subresource="token")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
        return self.kubeconfig({"token": self.garden.cluster.api.create(path, request)["status"]["token"]})

    @property
    def account_binding(self) -> str:
        return f"{BOOTSTRAP_ROLE}:garden:{BOOTSTRAP_ACCOUNT_PREFIX}{self.name}"

    def has_account(self) -> bool:
        """Or its binding."""
        account = SERVICE_ACCOUNTS.path(namespace="garden", name=f"{BOOTSTRAP_ACCOUNT_PREFIX}{self.name}")
        paths = account, CLUSTER_ROLE_BINDINGS.path(name=self.account_binding)
        return any(self.garden.cluster.api.raw("GET", path)[0] == 200 for path in paths)

    def with_certificate(self, *, since: datetime, lifetime: timedelta, ca: str = "") -> bytes:
        """With a certificate of the garden's authority, however old it is."""
        authority = self.garden.cluster.authority
        signer = Pair(authority.certificate, authority.key)
        pair = make_client(signer, self.user, [keys.SEEDS_GROUP], now=since, lifetime=lifetime, slack=timedelta(0))
        return self.kubeconfig(user_of(pair), ca=ca)

    # --- Secrets of the seed

    def put(self, name: str, content: bytes, **meta: Any) -> Object:
        """Into the Secret, which may be there already."""
        body = {"metadata": {"name": name, **meta}, "data": {"kubeconfig": base64.b64encode(content).decode()}}
        path = SECRETS.path(namespace=self.namespace)
        try:
            return self.seed.api.create(path, body)
        except AlreadyExists:
            return self.patch(name, body)

    def patch(self, name: str, body: Object) -> Object:
        path = SECRETS.path(namespace=self.namespace, name=name)
        answer: Object = self.seed.api.request("PATCH", path, body, content_type="application/merge-patch+json")
        return answer

    def secret(self, name: str) -> Object:
        """Raises NotFound."""
        found: Object = self.seed.api.get(SECRETS.path(namespace=self.namespace, name=name))
        return found

    def exists(self, name: str) -> bool:
        status: int = self.seed.api.raw("GET", SECRETS.path(namespace=self.namespace, name=name))[0]
        return status == 200

    def stored(self) -> Kubeconfig:
        content = base64.b64decode(self.secret(KUBECONFIG)["data"]["kubeconfig"])
        return of_content(content, origin="of the test")

    def has_token(self, identity: str) -> bool:
        path = SECRETS.path(namespace="kube-system", name=f"bootstrap-token-{identity}")
        status: int = self.garden.cluster.api.raw("GET", path)[0]
        return status == 200

    # --- the gardenlet

    def settings(self, **fields: Any) -> GardenClientConnection:
        return GardenClientConnection(
            bootstrap_kubeconfig=SecretReference(name=BOOTSTRAP, namespace=self.namespace),
            kubeconfig_secret=SecretReference(name=KUBECONFIG, namespace=self.namespace),
            **fields,
        )

    def put_config_map(self, name: str, **data: str) -> None:
        """Into the namespace `garden` of the seed."""
        self.seed.api.create(CONFIG_MAPS.path(namespace="garden"), {"metadata": {"name": name}, "data": data})

    def config_map(self, name: str) -> bool:
        """Whether it is there."""
        status: int = self.seed.api.raw("GET", CONFIG_MAPS.path(namespace="garden", name=name))[0]
        return status == 200

    def register(self) -> Object:
        made = new_seed(self.seed_config)
        return self.garden.create(SEEDS, self.name, metadata=made["metadata"], spec=made["spec"])

    def registered(self) -> Object:
        return self.garden.get(SEEDS, self.name)

    @asynccontextmanager
    async def access(
        self, *, pace: Pace | None = None, seed_kubeconfig: Path | None = None, **settings: Any
    ) -> AsyncIterator[GardenAccess]:
        clusters = Clusters(user_agent="gardenlet/test", component="gardenlet")
        connection = load_kubeconfig(seed_kubeconfig or self.seed.kubeconfig)
        seed = clusters.open(Endpoint(("seed",), connection, self.settings()))
        try:
            yield GardenAccess(
                seed=seed,
                clusters=clusters,
                settings=self.settings(**settings),
                seed_name=self.name,
                pace=pace or Pace(),
            )
        finally:
            await clusters.close_all()

    def process(self, *, seed_kubeconfig: Path | None = None, **sections: Any) -> AgentProcess:
        connection = {
            "qps": 200,
            "burst": 300,
            "bootstrapKubeconfig": {"name": BOOTSTRAP, "namespace": self.namespace},
            "kubeconfigSecret": {"name": KUBECONFIG, "namespace": self.namespace},
            **sections.pop("gardenClientConnection", {}),
        }
        config = {
            "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
            "kind": "GardenletConfiguration",
            "gardenClientConnection": connection,
            "leaderElection": {"leaderElect": False, "resourceNamespace": self.namespace},
            "logFormat": "json",
            "seedConfig": self.seed_config,
            **sections,
        }
        return AgentProcess(config, kubeconfig=seed_kubeconfig or self.seed.kubeconfig)


def user_of(pair: Pair) -> Object:
    """Of a kubeconfig."""
    pem = {"client-certificate-data": pair.certificate_pem, "client-key-data": pair.key_pem}
    return {field: base64.b64encode(content).decode() for field, content in pem.items()}
