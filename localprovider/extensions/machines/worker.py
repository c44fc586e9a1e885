"""What is done for a Worker: its pools get their Nodes, one step after the other, until all are there and ready."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from kube.clock import format_micro_time, utc_now
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object, annotations, key, labels, mapping, mappings, spec, text
from kube.resources import LEASES, NODES, PODS, SECRETS
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import ReconcileError
from localprovider import shoots
from localprovider.extensions.machines import rules

_CHECKSUM = "checksum/data-script"
"""An annotation of the Secret that the agents of a pool read."""
_LOOK_SECONDS, _LONGEST_SECONDS = 0.5, 120.0


async def make(seed: Client, worker: Object) -> Object:
    """Fields of the status. Raises ReconcileError, KubeError."""
    namespace, pools = key(worker).namespace, mappings(spec(worker).get("pools"))
    if await shoots.runs(seed, namespace):
        is_asleep = await shoots.is_asleep(seed, namespace)
        async with shoots.connected(seed, namespace) as shoot:
            await _delete_others(shoot, pools)
            for pool in pools:
                await _have(shoot, worker, pool, is_asleep=is_asleep)
    found = [each for pool in pools for each in rules.deployments(namespace, pool)]
    return {"machineDeployments": found, "machineDeploymentsLastUpdateTime": text(format_micro_time(utc_now()))}


async def remove(seed: Client, worker: Object) -> None:
    """Raises ReconcileError, KubeError."""
    namespace = key(worker).namespace
    if await shoots.runs(seed, namespace):
        async with shoots.connected(seed, namespace) as shoot:
            await _delete_others(shoot, ())


async def _delete_others(shoot: Client, pools: Sequence[Object]) -> None:
    """Nodes of pools that are not there any more."""
    names = {text(each.get("name")) for each in pools}
    for each in await _nodes(shoot):
        if labels(each)[rules.POOL] not in names:
            await _delete(shoot, key(each).name)


async def _have(shoot: Client, worker: Object, pool: Object, *, is_asleep: bool) -> None:
    namespace, region = key(worker).namespace, text(spec(worker).get("region"))
    nodes = await _nodes(shoot)
    size = rules.size_of(pool, nodes, is_asleep=is_asleep)
    checksum = "" if is_asleep else await _checksum(shoot, pool)
    until = asyncio.get_running_loop().time() + _LONGEST_SECONDS
    while not (step := rules.next_step(namespace, pool, nodes, size=size)).is_done:
        for name in step.create:
            await _create(shoot, rules.node(name, pool, region=region, checksum=checksum))
        for name in step.delete:
            await _delete(shoot, name)
        if not step.create and not step.delete:
            if asyncio.get_running_loop().time() > until:
                raise ReconcileError(f"not all Nodes of worker pool {text(pool.get('name'))} have become ready in time")
            await asyncio.sleep(_LOOK_SECONDS)
        nodes = await _nodes(shoot)
    if not is_asleep:
        await _configure(shoot, pool, nodes, checksum)


async def _nodes(shoot: Client) -> list[Object]:
    return await shoot.list(NODES, Selection(label_selector=rules.POOL))


async def _checksum(shoot: Client, pool: Object) -> str:
    """Of what the agents of a pool apply. Raises ReconcileError."""
    name = text(mapping(pool.get("labels")).get(rules.SECRET_NAME))
    secret = await shoot.find(SECRETS, name, namespace="kube-system")
    if secret is None:
        raise ReconcileError(f"Secret kube-system/{name}, which node agents read, is not in the Shoot yet")
    return annotations(secret).get(_CHECKSUM, "")


async def _create(shoot: Client, node: Object) -> None:
    with suppress(AlreadyExists):
        await shoot.create(NODES, node)
    with suppress(AlreadyExists):
        await shoot.create(LEASES, rules.lease(key(node).name, now=text(format_micro_time(utc_now()))))


async def _configure(shoot: Client, pool: Object, nodes: Sequence[Object], checksum: str) -> None:
    """As the agents on the Nodes would."""
    for each in nodes:
        if labels(each)[rules.POOL] != text(pool.get("name")):
            continue
        name = key(each).name
        if change := rules.change_of(each, pool, checksum=checksum):
            await shoot.patch(NODES, name, change)
        if change := rules.version_change_of(each, pool):
            await shoot.patch(NODES, name, change, subresource="status")


async def _delete(shoot: Client, name: str) -> None:
    """With its pods, which nothing plays any more."""
    with suppress(NotFound):
        await shoot.delete(NODES, name)
    pods = Selection(field_selector=f"spec.nodeName={name}")
    for each in await shoot.list(PODS, pods, form=Form.METADATA):
        with suppress(NotFound):
            await shoot.delete(PODS, key(each).name, namespace=key(each).namespace, grace_seconds=0)
    with suppress(NotFound):
        await shoot.delete(LEASES, f"gardener-node-agent-{name}", namespace="kube-system")
