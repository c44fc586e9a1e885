"""The control loops and an HTTP handler on one event loop, as when agent and webhooks share a process.

`python -m benchmarks.shared_loop KUBECONFIG NAMESPACE PORT` runs until its standard input ends.
"""

import asyncio
import sys
from functools import partial
from pathlib import Path

import orjson
from aiohttp import web

from agent.controllers import compose_controllers, hold_ready
from agent.parts import Controllers
from benchmarks.program import USER_AGENT
from config.schema import ClientConnection, ResourceManagerConfiguration
from kube.events import EventRecorder
from process.clusters import Line, endpoints
from process.runner import let_threads_give_way


async def _answer(request: web.Request) -> web.Response:
    review = orjson.loads(await request.read())
    body = orjson.dumps({"response": {"uid": review["request"]["uid"], "allowed": True}})
    return web.Response(body=body, content_type="application/json")


async def _main(kubeconfig: Path, namespace: str, port: int) -> None:
    connection = ClientConnection(kubeconfig=str(kubeconfig), namespaces=(namespace,), qps=1000, burst=1300)
    line = Line.to(endpoints(connection, connection, environment={}).source)
    cluster = line.cluster(user_agent=f"{USER_AGENT}shared-loop", write_guard=None)
    controllers = Controllers(
        config=ResourceManagerConfiguration(),
        source=cluster,
        target=cluster,
        recorder=EventRecorder(cluster.client, component="benchmark"),
        target_recorder=EventRecorder(cluster.client, component="benchmark"),
        compose=partial(compose_controllers, held=hold_ready(cluster)),
    )
    application = web.Application()
    application.router.add_post("/", _answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await controllers.start()
    try:
        await asyncio.to_thread(sys.stdin.read)
    finally:
        await controllers.stop()
        await cluster.caches.close()
        await runner.cleanup()
        await line.transport.close()


if __name__ == "__main__":
    let_threads_give_way()
    import uvloop

    uvloop.run(_main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
