"""Credentials of the processes, and who renews them: kubelets and the like.

Each replica is a ServiceAccount of its own in each cluster it talks to, so that the audit log reports who wrote. Its token
is in a file that its kubeconfig names. A token ends early by recreating its ServiceAccount: the API server then
refuses it, as it does when the time has run out, after some seconds for which it caches its answer.
"""

import asyncio
import base64
import contextlib
import datetime
from pathlib import Path

from campaign.world import World
from devcluster.cluster import Cluster
from kit.processes.webhooks import HOST, MountedSecret, make_certificate
from kit.webhook_installation import CA_SECRET, NAMESPACE, SECRETS
from kube.errors import NotFound
from kube.x509 import load_pair, make_serving
from localprocesses.pki import kubeconfig, write_private

_LIFETIME_SECONDS = 3600
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"


class Account:
    """Of one replica in one cluster, which it reaches by way of `url`."""

    def __init__(self, name: str, cluster: Cluster, world: World, *, url: str, directory: Path) -> None:
        self.name = name
        self.user = f"system:serviceaccount:{NAMESPACE}:{name}"
        self.kubeconfig = directory / f"{name}.kubeconfig"
        self._cluster = cluster
        self._world = world
        self._token_file = directory / f"{name}.token"
        text = kubeconfig(name=name, url=url, ca=cluster.ca, user={"tokenFile": str(self._token_file)})
        write_private(self.kubeconfig, text.encode())

    async def create(self) -> None:
        account = {"metadata": {"name": self.name, "namespace": NAMESPACE}}
        await self._world.persist(lambda: self._cluster.api.apply(f"{_ACCOUNTS}/{self.name}", _account(account)))
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": self.name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": NAMESPACE}],
        }
        await self._world.persist(lambda: self._cluster.api.apply(f"{_BINDINGS}/{self.name}", binding))
        await self.rotate()

    async def rotate(self) -> None:
        """A new token; the old one stays good."""
        request = {"spec": {"expirationSeconds": _LIFETIME_SECONDS}}
        path = f"{_ACCOUNTS}/{self.name}/token"
        answer = await self._world.persist(lambda: self._cluster.api.create(path, request))
        new = self._token_file.with_suffix(".new")
        write_private(new, answer["status"]["token"].encode())
        new.rename(self._token_file)

    async def expire(self) -> None:
        """The token is no longer good, and has not been renewed yet."""

        def delete() -> None:
            with contextlib.suppress(NotFound):
                self._cluster.api.delete(f"{_ACCOUNTS}/{self.name}")

        await self._world.persist(delete)

    async def renew(self) -> None:
        """Whatever became of the account."""
        await self.create()


def _account(obj: dict[str, dict[str, str]]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", **obj}


class Certificates:
    """Of the webhook servers, all of which have the same."""

    def __init__(self, cluster: Cluster, world: World, mounts: list[MountedSecret]) -> None:
        self._cluster = cluster
        self._world = world
        self._mounts = mounts

    async def rotate(self) -> None:
        """A new pair, by the CA that API servers trust."""
        data = await self._world.persist(lambda: self._cluster.api.get(f"{SECRETS}/{CA_SECRET}")["data"])
        ca = load_pair(*(base64.b64decode(data[name]) for name in ("ca.crt", "ca.key")))
        assert ca is not None, "the Secret of the CA holds none"
        now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
        serving = make_serving(ca, [HOST], now=now, lifetime=day)
        await asyncio.to_thread(self._write, serving.certificate_pem, serving.key_pem)

    async def break_(self) -> None:
        """A certificate and the key of another one."""
        certificate, key = make_certificate("broken")[0], make_certificate("other")[1]
        await asyncio.to_thread(self._write, certificate, key)

    def _write(self, certificate: bytes, key: bytes) -> None:
        for mount in self._mounts:
            mount.write(certificate, key)
