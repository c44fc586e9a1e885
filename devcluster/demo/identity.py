"""As whom the agent of the demo works: a ServiceAccount whose token it requests and renews itself.

It starts with a token that somebody gave it, and asks for its own by a Secret as any other program could. What a
kubelet does in a real cluster, writing the Secret's token to the file that the program reads, is done here.
"""

import base64
from pathlib import Path
from typing import Any

import yaml

from devcluster.cluster import Cluster
from gardener import keys

LIFETIME = "10m"
_SECONDS = 600
_NAME = "gardener-resource-manager"
_SECRET = "agent-token"


class Identity:
    """Made before the cluster runs.

    Args:
        namespace: of the ServiceAccount and the Secret.
    """

    def __init__(self, cluster: Cluster, *, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._core = f"/api/v1/namespaces/{namespace}"
        self._written = ""

    @property
    def kubeconfig(self) -> Path:
        return self._cluster.state / "agent.kubeconfig"

    @property
    def _file(self) -> Path:
        return self._cluster.state / "agent-token"

    @property
    def _api(self) -> Any:
        return self._cluster.api

    def create(self) -> None:
        """The ServiceAccount with its rights and a first token, and the Secret that asks for the next ones."""
        self._api.create(f"{self._core}/serviceaccounts", {"metadata": {"name": _NAME}})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        subject = {"kind": "ServiceAccount", "name": _NAME, "namespace": self._namespace}
        binding = {"metadata": {"name": _NAME}, "roleRef": role, "subjects": [subject]}
        self._api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        request = {"spec": {"expirationSeconds": _SECONDS}}
        self._write(self._api.create(f"{self._core}/serviceaccounts/{_NAME}/token", request)["status"]["token"])
        document = yaml.safe_load(self._cluster.kubeconfig.read_text())
        for entry in document["users"]:
            entry["user"] = {"tokenFile": str(self._file)}
        self.kubeconfig.write_text(yaml.safe_dump(document))
        annotations = {
            keys.SERVICE_ACCOUNT_NAME: _NAME,
            keys.SERVICE_ACCOUNT_NAMESPACE: self._namespace,
            keys.TOKEN_EXPIRATION_DURATION: LIFETIME,
        }
        labels = {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR}
        self._api.create(
            f"{self._core}/secrets", {"metadata": {"name": _SECRET, "labels": labels, "annotations": annotations}}
        )

    def follow(self) -> bool:
        """Keeps the file like the Secret; returns whether there was a new token."""
        data = self._api.get(f"{self._core}/secrets/{_SECRET}").get("data") or {}
        token = base64.b64decode(data.get("token") or "").decode()
        if not token or token == self._written:
            return False
        self._write(token)
        return True

    def ask_for_renewal(self) -> None:
        """As if most of the token's life were over."""
        long_ago = {keys.TOKEN_RENEW_TIMESTAMP: "2020-01-01T00:00:00Z"}
        self._api.patch(f"{self._core}/secrets/{_SECRET}", {"metadata": {"annotations": long_ago}})

    def _write(self, token: str) -> None:
        self._file.touch(mode=0o600)
        self._file.write_text(token)
        self._written = token
