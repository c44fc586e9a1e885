"""Makes a garden of a cluster: its API, its roles, and the admission server, which ends with the cluster.

The admission server works with the rights of the manifests, so that a missing right shows here.
"""

import base64
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from config import controller_manager, scheduler, webhooks
from devcluster.cluster import Cluster
from devcluster.garden import objects
from devcluster.garden.objects import (
    ADMISSION_ACCOUNT,
    CONTROLLER_MANAGER_ACCOUNT,
    NAMESPACE,
    SCHEDULER_ACCOUNT,
)
from devcluster.program import Program
from gardener.api.garden import AUTHENTICATION_API, PROJECTS
from gardener.garden.seeds import LEASE_NAMESPACE
from gardener.keys import SEED_USER_PREFIX, SEEDS_GROUP
from kube.errors import ApiError, KubeError
from kube.objects import Object
from kube.resources import SUBJECT_ACCESS_REVIEWS
from localprocesses.local import HOST, PATIENT, LocalProcessError, wait_until
from localprocesses.pki import kubeconfig, token_credentials, write_private
from localprocesses.ports import free_ports
from process.configuration.component import Component
from webhooks.authorizers.seed.webhook import PATH as AUTHORIZER_PATH
from webhooks.garden.conversion import PATH as CONVERSION_PATH

WEBHOOKS = "webhooks"
_CA_SECRET = "gardener-resource-manager-ca"
_PATIENCE_SECONDS = 900.0
_NOTICED_SECONDS = 5.0
_CONTROLLERS: dict[str, Component[Any]] = {
    CONTROLLER_MANAGER_ACCOUNT: controller_manager.COMPONENT,
    SCHEDULER_ACCOUNT: scheduler.COMPONENT,
}


class GardenBox:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._installed = cluster.state / "garden"
        """File that exists when the garden was installed completely."""

    def is_installed(self, *, authorizes: bool = True) -> bool:
        """Whether it was installed completely, and its admission server serves."""
        serves = self._installed.exists() and Program.is_serving(self._cluster, WEBHOOKS)
        return serves and (not authorizes or self._is_authorized())

    def install(self, *, authorizes: bool = True) -> Program:
        """Install the garden, and return the admission server when API servers call it.

        Args:
            authorizes: whether it also authorizes gardenlets.

        Raises:
            LocalProcessError: a program fails, or the time is over.
        """
        self._installed.unlink(missing_ok=True)
        for obj in objects.roles():
            self._apply(obj)
        server = Admission(self._cluster)
        server.make_certificates()
        definitions = objects.definitions(server.conversion())
        for obj in definitions:
            self._apply(obj)
        for obj in definitions:
            self._wait_for(f"{obj['metadata']['name']} to be served", partial(self._is_served, obj))
        server.program.start()
        server.register()
        server.write_kubeconfig()
        if self._cluster.api.raw("GET", objects.path(issuer := objects.issuer()))[0] != 200:
            self._apply(issuer)
        for obj in objects.tokens(server.tokens_port, server.ca()):
            self._apply(obj)
        self._wait_for("the API server to ask the webhooks", self._is_defaulted)
        self._wait_for("the API server to pass on requests for tokens", self._has_tokens)
        if authorizes:
            self._cluster.authorize_by(server.url + AUTHORIZER_PATH, base64.b64decode(server.ca()).decode())
            self._wait_for_authorizer()
        self._installed.touch()
        return server.program

    def start_controllers(self) -> list[Program]:
        """Start the controller manager and the scheduler, unless they serve.

        Raises:
            LocalProcessError: one does not become ready.
        """
        programs = [
            Program("agent", self._cluster, _of(component), name=name, kubeconfig=account_of(self._cluster, name))
            for name, component in _CONTROLLERS.items()
            if not Program.is_serving(self._cluster, name)
        ]
        for program in programs:
            program.start()
        return programs

    def add_demo_data(self) -> None:
        for obj in objects.demo_data():
            objects.apply(self._cluster.api, obj)

    def _apply(self, obj: Object) -> None:
        self._cluster.api.apply(objects.path(obj), obj)

    def _is_served(self, definition: Object) -> bool:
        """Whether its objects can be listed: the definition is established a moment before."""
        spec = definition["spec"]
        group, plural = spec["group"], spec["names"]["plural"]
        versions = [version["name"] for version in spec["versions"] if version["served"]]
        paths = (f"/apis/{group}/{version}/{plural}?limit=1" for version in versions)
        return all(self._cluster.api.raw("GET", path)[0] == 200 for path in paths)

    def _is_defaulted(self) -> bool:
        """Whether the webhooks are called: a Project gets a creator from them."""
        project = {
            **PROJECTS.type_meta,
            "metadata": {"name": "probe"},
            "spec": {"namespace": "garden-probe"},
        }
        try:
            created = self._cluster.api.create(f"{PROJECTS.path()}?dryRun=All", project)
        except ApiError:
            return False
        return "createdBy" in created["spec"]

    def _has_tokens(self) -> bool:
        return self._cluster.api.raw("GET", f"/apis/{AUTHENTICATION_API}")[0] == 200

    def _wait_for_authorizer(self) -> None:
        """Wait until the API server has reloaded its file, unless the computer has run out of inotify instances."""
        what = "the API server to ask the authorizer"
        try:
            wait_until(self._is_authorized, what=what, within=_NOTICED_SECONDS)
        except LocalProcessError:
            self._cluster.stop_apiserver()
            self._cluster.start_apiserver()
            self._wait_for(what, self._is_authorized)

    def _is_authorized(self) -> bool:
        """Whether the authorizer answers: RBAC alone would let a gardenlet read the Lease of another one, and without
        an answer it could not read its own.
        """
        try:
            return self._may_read_lease("probe") and not self._may_read_lease("another")
        except KubeError:
            return False

    def _may_read_lease(self, name: str) -> bool:
        """Whether the gardenlet of the Seed `probe` may do that."""
        requested = {"verb": "get", "group": "coordination.k8s.io", "resource": "leases", "name": name}
        who = {"user": f"{SEED_USER_PREFIX}probe", "groups": [SEEDS_GROUP]}
        attributes = {**requested, "namespace": LEASE_NAMESPACE}
        review = {**SUBJECT_ACCESS_REVIEWS.type_meta, "spec": {**who, "resourceAttributes": attributes}}
        answer = self._cluster.api.create(SUBJECT_ACCESS_REVIEWS.path(), review)
        return answer["status"]["allowed"] is True

    def _wait_for(self, what: str, holds: Callable[[], bool]) -> None:
        wait_until(holds, what=what, within=_PATIENCE_SECONDS)


def front_proxy_kubeconfig(cluster: Cluster) -> Path:
    """Path of the administrator's kubeconfig for the front proxy of a garden."""
    return cluster.state / "front-proxy.kubeconfig"


def account_of(cluster: Cluster, name: str) -> Path:
    """Kubeconfig of a ServiceAccount in the namespace `garden`."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated")
    return cluster.kubeconfig_for(f"system:serviceaccount:{NAMESPACE}:{name}", groups)


def _of(component: Component[Any]) -> Object:
    return {"apiVersion": component.api_version, "kind": component.kind, "leaderElection": PATIENT}


class Admission:
    """The admission server, with certificates in Secrets of the garden, and in a directory of the cluster's."""

    def __init__(self, cluster: Cluster) -> None:
        port, self.tokens_port, proxy_port = free_ports(3)
        self._cluster = cluster
        self.url = f"https://{HOST}:{port}"
        self._proxy_url = f"https://{HOST}:{proxy_port}"
        self._certificates = cluster.state / "certificates"
        tls = {"serverCertDir": str(self._certificates), **cluster.webhook_clients}
        server = {"bindAddress": HOST, "port": port, "tls": tls}
        component = webhooks.COMPONENT
        config = {
            "apiVersion": component.api_version,
            "kind": component.kind,
            "gracefulShutdownTimeout": "1s",
        }
        account = account_of(cluster, ADMISSION_ACCOUNT)
        tokens = {"bindAddress": HOST, "port": self.tokens_port}
        proxy_certificate = str(cluster.front_proxy_certificate())
        proxy = {"bindAddress": HOST, "port": proxy_port, "clientCertDir": proxy_certificate}
        servers = {"webhooks": server, "tokens": tokens, "frontProxy": proxy}
        self.program = Program(WEBHOOKS, cluster, config, servers=servers, kubeconfig=account)

    def make_certificates(self) -> None:
        self.program.run("certificates", "--once", "--dns-name", HOST, "--directory", str(self._certificates))

    def ca(self) -> str:
        """CA by which the API server verifies it, in base64."""
        secret = self._cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{_CA_SECRET}")
        return str(secret["data"]["bundle.crt"])

    def write_kubeconfig(self) -> None:
        """Write the administrator's kubeconfig for the front proxy."""
        ca, user = base64.b64decode(self.ca()).decode(), token_credentials(self._cluster.token)
        text = kubeconfig(name="garden", url=self._proxy_url, ca=ca, user=user)
        write_private(front_proxy_kubeconfig(self._cluster), text.encode())

    def conversion(self) -> Object:
        """Webhook by which the API server converts objects to other versions."""
        client_config = {"url": self.url + CONVERSION_PATH, "caBundle": self.ca()}
        return {"clientConfig": client_config, "conversionReviewVersions": ["v1"]}

    def register(self) -> None:
        """Register the webhooks with the API server, with their address and CA."""
        self.program.run("configurations", "--url", self.url, "--ca-secret", f"{NAMESPACE}/{_CA_SECRET}", "--install")
