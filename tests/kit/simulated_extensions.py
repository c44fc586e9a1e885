"""An extension that a Seed installs from its chart, and what a cloud does for Services.

    registry.tag("v1.0.0", CHART)
    tasks.create_task(extension(seed, tmp_path, "provider-example"))

The pods of the chart do nothing: the extension answers for them, with the token and the rights of their ServiceAccount.
"""

import asyncio
import contextlib
import math
from functools import partial
from pathlib import Path

from devcluster.cluster import Cluster
from gardener.api import extensions
from gardener.extension_contract import last_operation
from kit.chart_archives import packed
from kit.eventually import soon
from kit.kubeconfigs import with_token_file, written
from kit.played_shoots import Player, answers, say
from kit.world import connected
from kube.errors import AlreadyExists, Forbidden, KindNotServed, KubeError, Unauthorized
from kube.objects import Object, key, spec
from kube.paths import at
from kube.resources import SECRETS, SERVICE_ACCOUNTS, SERVICES, Resource
from kube.runtime.client import Client

_ACCOUNT = "extension"
_KINDS = (
    *(extensions.BACKUP_BUCKETS, extensions.CONTROL_PLANES, extensions.DNS_RECORDS, extensions.INFRASTRUCTURES),
    extensions.WORKERS,
)
_TEMPLATE = f"""\
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {_ACCOUNT}, namespace: {{{{ .Release.Namespace }}}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {{{{ .Release.Namespace }}}}}}
rules:
- apiGroups: [extensions.gardener.cloud]
  resources: ["*"]
  verbs: [get, list, watch, patch, update]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {{{{ .Release.Namespace }}}}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{{{ .Release.Namespace }}}}}}
subjects:
- {{kind: ServiceAccount, name: {_ACCOUNT}, namespace: {{{{ .Release.Namespace }}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {_ACCOUNT}, namespace: {{{{ .Release.Namespace }}}}}}
spec:
  selector: {{matchLabels: {{app: {_ACCOUNT}}}}}
  template:
    metadata: {{labels: {{app: {_ACCOUNT}}}}}
    spec:
      serviceAccountName: {_ACCOUNT}
      containers: [{{name: extension, image: extension}}]
"""
CHART = packed({"templates/extension.yaml": _TEMPLATE})


async def extension(seed: Cluster, directory: Path, name: str) -> None:
    """Answer objects of the kinds of a provider, once the extension is installed, until cancelled.

    Args:
        seed: where it is installed.
        directory: for its kubeconfig.
        name: of its ControllerRegistration.
    """
    # It may be installed late: the timeout of the test limits that.
    account = await soon(partial(_account, seed, name), f"the ServiceAccount of {name}", seconds=math.inf)
    path = SERVICE_ACCOUNTS.path(namespace=key(account).namespace, name=_ACCOUNT, subresource="token")
    requested = await asyncio.to_thread(seed.api.create, path, {"spec": {"expirationSeconds": 3600}})
    token = written(directory / f"{name}.token", requested["status"]["token"])
    kubeconfig = with_token_file(seed.url, ca=seed.ca.encode(), file=token)
    async with connected(written(directory / f"{name}.kubeconfig", kubeconfig), name) as client:
        await soon(partial(_may_answer, client), f"the rights of {name}", passing=(KubeError,))
        with contextlib.suppress(Forbidden, Unauthorized, KindNotServed):  # until it is uninstalled
            await Player(client, played={**dict.fromkeys(_KINDS, answers), extensions.BACKUP_ENTRIES: _backs_up}).play()


async def _may_answer(client: Client) -> bool:
    for each in _KINDS:
        await client.list(each)
    return True


async def _backs_up(client: Client, resource: Resource, entry: Object) -> None:
    """Answer, with credentials of the bucket for etcd."""
    if not last_operation(entry):
        meta = {"name": "etcd-backup", "namespace": key(entry).name.rpartition("--")[0]}
        with contextlib.suppress(AlreadyExists):
            await client.create(SECRETS, {"metadata": meta, "stringData": {"bucketName": "bucket"}})
    await answers(client, resource, entry)


async def _account(seed: Cluster, name: str) -> Object | None:
    listed = (await asyncio.to_thread(seed.api.get, SERVICE_ACCOUNTS.path()))["items"]
    own = (each for each in listed if key(each).namespace.startswith(f"extension-{name}"))
    return next((each for each in own if key(each).name == _ACCOUNT), None)


async def load_balancers(seed: Cluster, address: str) -> None:
    """Give Services of type LoadBalancer an address, until cancelled."""

    async def balance(client: Client, resource: Resource, service: Object) -> None:
        if spec(service).get("type") == "LoadBalancer" and not at(service, "status", "loadBalancer", "ingress"):
            await say(client, resource, service, {"loadBalancer": {"ingress": [{"ip": address}]}})

    async with connected(seed, "cloud-controller-manager") as client:
        await Player(client, played={SERVICES: balance}).play()
