"""Actions for a Worker: create and replace the Nodes of its pools step by step, until all exist and are ready."""

from collections.abc import Sequence

import orjson

from components.worker_roles import MACHINE_CONTROLLER_MANAGER
from extension.errors import Pending
from gardener.api.extensions import WORKERS
from gardener.api.kinds import OF_MACHINES
from kube.clock import format_micro_time, utc_now
from kube.objects import Key, Object, annotations, key, labels, mapping, mappings, metadata, spec, text
from kube.paths import mapping_at
from kube.resources import DEPLOYMENTS, LEASES, NODES, PODS, SECRETS
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import ReconcileError
from localprovider import shoots
from localprovider.extensions.machines import rules

_OF_SAVED = {each.kind: each for each in OF_MACHINES}
_CHECKSUM = "checksum/data-script"
"""Annotation of the Secret that the agents of a pool read."""
_LOOK_SECONDS, _LONGEST_SECONDS = 0.5, 120.0


async def make(seed: Client, worker: Object) -> Object:
    """Create the Nodes of a Worker; return fields of the status.

    Raises:
        ReconcileError: the Shoot is not reachable, or lacks the Secret of its agents.
        Pending: Nodes of a pool are not ready yet.
    """
    namespace, pools = key(worker).namespace, mappings(spec(worker).get("pools"))
    is_noted = rules.SIZES in annotations(worker)
    if await shoots.runs(seed, namespace):
        is_asleep = await shoots.is_asleep(seed, namespace)
        async with shoots.connected(seed, namespace) as shoot:
            await _delete_others(shoot, pools)
            nodes = await _nodes(shoot)
            is_noted |= any(rules.is_outdated(pool, nodes) for pool in pools)
            noted = await _noted(seed, worker) if is_noted else {}
            sizes = {} if is_asleep else rules.sizes_of(pools, nodes, noted)
            if is_noted and sizes != noted:
                await _note(seed, worker, sizes)
            ready = [await _have(shoot, worker, pool, nodes, size=sizes.get(text(pool.get("name")))) for pool in pools]
            if not all(ready):
                late = text(pools[ready.index(False)].get("name"))
                reason = f"not all Nodes of worker pool {late} are ready"
                raise Pending(reason, seconds=_LOOK_SECONDS, longest=_LONGEST_SECONDS)
    if is_noted:
        await _note(seed, worker, None)
    found = [each for pool in pools for each in rules.deployments(namespace, pool)]
    return {"machineDeployments": found, "machineDeploymentsLastUpdateTime": text(format_micro_time(utc_now()))}


async def restore(seed: Client, worker: Object) -> None:
    """Create the objects of machines again, as real providers do, and start their controller."""
    namespace = key(worker).namespace
    for each in rules.saved_machines(mapping_at(worker, "status", "state")):
        resource = _OF_SAVED.get(text(each.get("kind")))
        if resource is None:
            raise ReconcileError(f"the saved machines have an object of the kind {text(each.get('kind'))!r}")
        await seed.create_if_missing(resource, {**each, "metadata": {**metadata(each), "namespace": namespace}})
    manager = Key(namespace, MACHINE_CONTROLLER_MANAGER)
    if not await shoots.is_asleep(seed, manager.namespace):
        await seed.patch_if_exists(DEPLOYMENTS, manager, {"spec": {"replicas": 1}})


async def remove(seed: Client, worker: Object) -> None:
    """Delete the Nodes of a Worker.

    Raises:
        ReconcileError: the Shoot is not reachable.
    """
    namespace = key(worker).namespace
    if await shoots.runs(seed, namespace):
        async with shoots.connected(seed, namespace) as shoot:
            await _delete_others(shoot, ())


async def _delete_others(shoot: Client, pools: Sequence[Object]) -> None:
    """Delete Nodes of pools that no longer exist."""
    names = {text(each.get("name")) for each in pools}
    for each in await _nodes(shoot):
        if labels(each)[rules.POOL] not in names:
            await _delete(shoot, key(each).name)


async def _noted(seed: Client, worker: Object) -> Object:
    """Sizes of pools, recorded while Nodes are replaced: the number of Nodes differs in each of many passes."""
    live = await seed.get(WORKERS, key(worker))  # the cached one may predate the note
    try:
        return mapping(orjson.loads(annotations(live).get(rules.SIZES, "")))
    except orjson.JSONDecodeError:
        return {}


async def _note(seed: Client, worker: Object, sizes: dict[str, int] | None) -> None:
    note = None if sizes is None else orjson.dumps(sizes).decode()
    await seed.annotate(WORKERS, key(worker), {rules.SIZES: note})


async def _have(shoot: Client, worker: Object, pool: Object, nodes: list[Object], *, size: int | None) -> bool:
    """Whether all Nodes of the pool are ready; `nodes` are those of all pools, `size` is None if hibernated."""
    namespace, region = key(worker).namespace, text(spec(worker).get("region"))
    is_asleep = size is None
    checksum = "" if is_asleep else await _checksum(shoot, pool)
    while not (step := rules.next_step(namespace, pool, nodes, size=size or 0)).is_done:
        for name in step.create:
            await _create(shoot, rules.node(name, pool, region=region, checksum=checksum))
        for name in step.delete:
            await _delete(shoot, name)
        if not step.create and not step.delete:
            return False
        nodes = await _nodes(shoot)
    if not is_asleep:
        await _configure(shoot, pool, nodes, checksum)
    return True


async def _nodes(shoot: Client) -> list[Object]:
    return await shoot.list(NODES, Selection(label_selector=rules.POOL))


async def _checksum(shoot: Client, pool: Object) -> str:
    """Checksum of the configuration that the agents of a pool apply.

    Raises:
        ReconcileError: its Secret is not in the Shoot yet.
    """
    name = text(mapping(pool.get("labels")).get(rules.SECRET_NAME))
    secret = await shoot.find(SECRETS, Key("kube-system", name))
    if secret is None:
        raise ReconcileError(f"Secret kube-system/{name}, which node agents read, is not in the Shoot yet")
    return annotations(secret).get(_CHECKSUM, "")


async def _create(shoot: Client, node: Object) -> None:
    await shoot.create_if_missing(NODES, node)
    await shoot.create_if_missing(LEASES, rules.lease(key(node).name, now=text(format_micro_time(utc_now()))))


async def _configure(shoot: Client, pool: Object, nodes: Sequence[Object], checksum: str) -> None:
    """Change Nodes like the agents on them would."""
    for each in nodes:
        if labels(each)[rules.POOL] != text(pool.get("name")):
            continue
        name = key(each).name
        if change := rules.change_of(each, pool, checksum=checksum):
            await shoot.patch(NODES, name, change)
        if change := rules.version_change_of(each, pool):
            await shoot.patch(NODES, name, change, subresource="status")


async def _delete(shoot: Client, name: str) -> None:
    """Delete a Node with its pods, which are no longer simulated."""
    await shoot.delete_if_exists(NODES, name)
    pods = Selection(field_selector=f"spec.nodeName={name}")
    for each in await shoot.list(PODS, pods, form=Form.METADATA):
        await shoot.delete_if_exists(PODS, key(each), grace_seconds=0)
    await shoot.delete_if_exists(LEASES, Key("kube-system", f"gardener-node-agent-{name}"))
