"""Clocks and memory."""

import asyncio
import base64
import time

import brotli

from attacks.decoding import memory_limit
from devcluster.cluster import Cluster
from gardener.api.kinds import MANAGED_RESOURCES
from kube.resources import SECRETS
from outages.stage import NAMESPACE, Outcome, Stage, persist

_LARGE, _MANY = 900_000, 10


async def clock_jumped(stage: Stage, jump: float, seconds: float) -> Outcome:
    """Of the agent alone; it stays as it is then, for longer than a lease lasts."""
    mark = stage.mark()
    await stage.move_clock(jump)
    await asyncio.sleep(seconds)
    return await stage.outcome(time.monotonic(), mark=mark)


async def memory_short(stage: Stage, seconds: float) -> Outcome:
    """ManagedResources with many large objects, all at once; above the limit of the manifest, the kernel kills."""
    mark = stage.mark()
    limit, most = memory_limit(), 0
    for number in range(6):
        await persist(lambda number=number: _large(stage.source, f"large-{number}"))  # type: ignore[misc]

    async def watch() -> None:
        nonlocal most
        while True:
            if stage.agent.is_running:
                resident = stage.agent.process.resident_bytes
                most = max(most, resident)
                if resident > limit:
                    stage.agent.kill()
            await asyncio.sleep(0.05)

    watching = asyncio.ensure_future(watch())
    try:
        await asyncio.sleep(seconds)
        outcome = await stage.outcome(time.monotonic(), mark=mark)
        await stage.until_all_are_applied()
    finally:
        watching.cancel()
    return Outcome(outcome.recovered, f"{most >> 20} MiB of {limit >> 20} MiB at most; {stage.logged_since(mark)}")


def _large(cluster: Cluster, name: str) -> None:
    documents = [
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}-{number}, namespace: default}}\n"
        f"data:\n  large: {'a' * _LARGE}\n"
        for number in range(_MANY)
    ]
    text = "---\n".join(documents)
    data = {"objects.yaml.br": base64.b64encode(brotli.compress(text.encode(), quality=5)).decode()}
    cluster.api.apply(f"{SECRETS.path(namespace=NAMESPACE)}/{name}", _secret(name, data))
    managed = {
        **MANAGED_RESOURCES.type_meta,
        "metadata": {"name": name},
        "spec": {"secretRefs": [{"name": name}]},
    }
    cluster.api.apply(f"{MANAGED_RESOURCES.path(namespace=NAMESPACE)}/{name}", managed)


def _secret(name: str, data: dict[str, str]) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
