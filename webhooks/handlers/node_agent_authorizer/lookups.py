"""What the rules ask the clusters: always the API server itself.

A wrong answer would let an agent see what is not its own, or keep it from its work, so no object is remembered here.
API servers remember our decisions, which keeps look-ups rare.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from kube.client import Client, Form, Selection
from kube.errors import NotFound
from kube.objects import Object, labels, metadata, uid
from kube.resources import NODES, PODS, SECRETS, Resource
from webhooks.handlers.node_agent_authorizer.files import Reference, references
from webhooks.handlers.node_agent_authorizer.rules import AGENT_SECRET_LABEL, NAMESPACE, Node

MACHINES = Resource("machine.sapcloud.io", "v1alpha1", "Machine", "machines", namespaced=True)
REQUESTS = Resource(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)
POOL_LABEL = "worker.gardener.cloud/pool"
HOSTNAME_LABEL = "kubernetes.io/hostname"
_MOST_REMEMBERED = 256


class Lookups:
    """Knowledge of the rules.

    Args:
        machines: of the cluster with Machines, None if there are none: then a machine is called as its Node.
    """

    def __init__(self, *, machines: Client | None, machine_namespace: str, target: Client) -> None:
        self._machines = machines
        self._machine_namespace = machine_namespace
        self._target = target
        self._read: OrderedDict[tuple[str, str], tuple[Reference, ...]] = OrderedDict()
        """What was read from which version of which Secret: these are large, and rarely change."""

    async def node_of(self, machine: str) -> Node | None:
        name = machine
        if self._machines is not None:
            name = labels(await self._machine(self._machines, machine)).get("node") or ""
        return await self._node(name)

    async def secrets_of(self, machine: str) -> Sequence[str]:
        if self._machines is not None:
            return await self._secrets_of_machine(self._machines, machine)
        node = await self._node(machine)
        if node is None:  # it is about to join, of whichever pool
            found = await self._target.list(SECRETS, Selection(namespace=NAMESPACE, label_selector=POOL_LABEL))
            return await self._with_references({metadata(secret)["name"]: secret for secret in found}, "")
        own = node.labels.get(AGENT_SECRET_LABEL) or ""
        secret = await self._secret(own) if own else None
        if secret is None or POOL_LABEL not in labels(secret):
            return []
        return await self._with_references({own: secret}, node.labels.get(HOSTNAME_LABEL) or "")

    async def user_of_request(self, name: str) -> str:
        request = await self._target.get(REQUESTS, _named(name, "certificatesigningrequests"))
        return (request.get("spec") or {}).get("username") or ""

    async def node_name_of_pod(self, namespace: str, name: str) -> str:
        pod = await self._target.get(PODS, _named(name, "pods"), namespace=namespace)
        return (pod.get("spec") or {}).get("nodeName") or ""

    async def _machine(self, client: Client, name: str) -> Object:
        return await client.get(MACHINES, name, namespace=self._machine_namespace)

    async def _node(self, name: str) -> Node | None:
        if not name:
            return None
        try:
            return Node(name, labels(await self._target.get(NODES, name, form=Form.METADATA)))
        except NotFound:
            return None

    async def _secrets_of_machine(self, client: Client, name: str) -> Sequence[str]:
        machine = await self._machine(client, name)
        template = (machine.get("spec") or {}).get("nodeTemplate") or {}
        own = labels(template).get(AGENT_SECRET_LABEL) or ""
        if not own:
            return []
        secret = await self._secret(own)
        if secret is None:
            return [own]
        node = await self._node(labels(machine).get("node") or "")
        return await self._with_references({own: secret}, (node.labels.get(HOSTNAME_LABEL) or "") if node else "")

    async def _secret(self, name: str) -> Object | None:
        try:
            return await self._target.get(SECRETS, name, namespace=NAMESPACE)
        except NotFound:
            return None

    async def _with_references(self, configs: Mapping[str, Object], hostname: str) -> Sequence[str]:
        """The names of these Secrets and of those that their files refer to, but for files of other hosts."""
        names = list(configs)
        for secret in configs.values():
            found = await self._references(secret)
            names += [file.secret for file in found if not (hostname and file.hostname) or file.hostname == hostname]
        return list(dict.fromkeys(names))

    async def _references(self, secret: Object) -> tuple[Reference, ...]:
        version = uid(secret), metadata(secret)["resourceVersion"]
        found = self._read.get(version)
        if found is None:
            found = self._read[version] = await asyncio.to_thread(references, secret)
            if len(self._read) > _MOST_REMEMBERED:
                self._read.popitem(last=False)
        return found


def _named(name: str, plural: str) -> str:
    if not name:
        raise NotFound(404, message=f'{plural} "" not found', reason="NotFound")
    return name
