"""The bare reference: cost of a client that only creates, replaces and deletes the objects.

`python -m benchmarks.bare KUBECONFIG NAMESPACE COUNT SIZE` does that with aiohttp, uvloop and orjson, 16 at once, and
prints as JSON the seconds of CPU and of time of each step. It is a process of its own so that its CPU can be measured.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import orjson

from benchmarks.workload import objects_of
from kube.objects import Object
from kube.runtime.connection import load_kubeconfig

_AT_ONCE = 16
_SECONDS = 900.0
_COLLECTIONS = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Service": "/api/v1/namespaces/{}/services",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
}


@dataclass(frozen=True, slots=True)
class Cost:
    seconds: float
    cpu: float


async def reference(kubeconfig: Path, namespace: str, count: int, size: int) -> dict[str, Cost]:
    """Costs of `create`, `replace` and `delete`, each of count * size objects."""
    command = [sys.executable, "-m", "benchmarks.bare", str(kubeconfig), namespace, str(count), str(size)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(_SECONDS):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError(f"the bare reference ended with {process.returncode}")
    return {name: Cost(**cost) for name, cost in json.loads(output).items()}


async def _main(kubeconfig: Path, namespace: str, count: int, size: int) -> None:
    connection = load_kubeconfig(kubeconfig)
    headers = {"Authorization": await connection.credentials.authorization() or "", "User-Agent": "bare"}
    connector = aiohttp.TCPConnector(ssl=connection.tls or False, limit=_AT_ONCE)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def call(method: str, obj: Object, *, named: bool) -> None:
            path = _COLLECTIONS[obj["kind"]].format(namespace)
            url = connection.server + (f"{path}/{obj['metadata']['name']}" if named else path)
            body = None if method == "DELETE" else orjson.dumps(obj)
            async with session.request(method, url, data=body, headers={"Content-Type": "application/json"}) as answer:
                answer.raise_for_status()
                orjson.loads(await answer.read())

        def manifests(version: str) -> list[Object]:
            return [
                obj for number in range(count) for obj in objects_of(number, size, namespace=namespace, version=version)
            ]

        costs = {
            "create": await _cost(manifests("1"), lambda obj: call("POST", obj, named=False)),
            "replace": await _cost(manifests("2"), lambda obj: call("PUT", obj, named=True)),
            "delete": await _cost(manifests("2"), lambda obj: call("DELETE", obj, named=True)),
        }
    sys.stdout.write(json.dumps(costs))


async def _cost(objects: Sequence[Object], call: Callable[[Object], Awaitable[None]]) -> dict[str, float]:
    rest = iter(objects)
    began, cpu = time.monotonic(), time.process_time()

    async def work() -> None:
        for obj in rest:
            await call(obj)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    return {"seconds": time.monotonic() - began, "cpu": time.process_time() - cpu}


if __name__ == "__main__":
    import uvloop

    uvloop.run(_main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
