"""Lookups for the rules: always at the API server itself.

A wrong answer would show an agent objects of others, or block its work, so no object is cached here. API servers cache
our decisions, which keeps lookups rare.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gardener.api.kinds import MACHINES
from gardener.keys import NODE_AGENT_SECRET_NAME
from kube.errors import KubeError, NotFound
from kube.objects import Key, Object, labels, metadata, uid
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, NODES, PODS, SECRETS
from kube.runtime.client import Client, Form
from webhooks.handlers.node_agent_authorizer.files import Reference, references
from webhooks.handlers.node_agent_authorizer.rules import NAMESPACE, LookupFailed

_MOST_REMEMBERED = 256


class Lookups:
    """Sources of the rules.

    `machines` is the client of the cluster with Machines; None if there are none, so that a machine has the name of its
    Node.
    """

    def __init__(self, *, machines: Client | None, machine_namespace: str, target: Client) -> None:
        self._machines = machines
        self._machine_namespace = machine_namespace
        self._target = target
        self._read: OrderedDict[tuple[str, str], tuple[Reference, ...]] = OrderedDict()
        """References by uid and version of the Secret: these are large, and rarely change."""

    async def node_of(self, machine: str) -> str | None:
        name = machine if self._machines is None else node_name(await self._machine(self._machines, machine))
        if not name:
            return None
        with _getting("node", name):
            try:
                await self._target.get(NODES, name, form=Form.METADATA)
            except NotFound:
                return None
        return name

    async def configs_of(self, machine: str) -> Sequence[str] | None:
        return None if self._machines is None else own_configs(await self._machine(self._machines, machine))

    async def secrets_of(self, machine: str) -> Sequence[str] | None:
        if self._machines is None:
            return None
        live = await self._machine(self._machines, machine)
        names = list(own_configs(live))
        for secret in [await self._config(name) for name in names]:
            files = await self._references(secret) if secret is not None else ()
            names += [file.secret for file in files if is_for(file, node_name(live))]
        return list(dict.fromkeys(names))

    async def user_of_request(self, name: str) -> str:
        request = await self._target.get(CERTIFICATE_SIGNING_REQUESTS, _named(name, "certificatesigningrequests"))
        return (request.get("spec") or {}).get("username") or ""

    async def node_name_of_pod(self, namespace: str, name: str) -> str:
        with _getting("pod", f"{namespace}/{name}"):
            pod = await self._target.get(PODS, Key(namespace, _named(name, "pods")))
        return (pod.get("spec") or {}).get("nodeName") or ""

    async def _machine(self, client: Client, name: str) -> Object:
        with _getting("machine", name):
            return await client.get(MACHINES, Key(self._machine_namespace, name))

    async def _config(self, name: str) -> Object | None:
        with _getting("secret", f"{NAMESPACE}/{name}"):
            return await self._target.find(SECRETS, Key(NAMESPACE, name))

    async def _references(self, secret: Object) -> tuple[Reference, ...]:
        version = uid(secret), metadata(secret)["resourceVersion"]
        found = self._read.get(version)
        if found is None:
            found = self._read[version] = await asyncio.to_thread(references, secret)
            if len(self._read) > _MOST_REMEMBERED:
                self._read.popitem(last=False)
        return found


def node_name(machine: Object) -> str:
    """Name of the Node of a Machine; empty if it has none yet."""
    return labels(machine).get("node") or ""


def own_configs(machine: Object) -> Sequence[str]:
    """Name of the Secret with the configuration of the Node."""
    template: Object = (machine.get("spec") or {}).get("nodeTemplate") or {}
    own = labels(template).get(NODE_AGENT_SECRET_NAME)
    return [own] if own else []


def is_for(file: Reference, node: str) -> bool:
    """Whether a file may be for a Node; only its name identifies the host, as the agent may write the label."""
    return not (file.hostname and node) or file.hostname == node


@contextmanager
def _getting(what: str, name: str) -> Iterator[None]:
    """Name the missing object in errors of the API server, in the words of the original."""
    try:
        yield
    except KubeError as error:
        raise LookupFailed(f'error getting {what} "{name}": {error}') from error


def _named(name: str, plural: str) -> str:
    if not name:
        raise NotFound(404, message=f'{plural} "" not found', reason="NotFound")
    return name
