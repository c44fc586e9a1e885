"""The bare reference for admission: `python -m benchmarks.bare_webhook DIRECTORY PORT`.

It is written in the usual way in Python, with the same libraries: it parses a review and answers with one patch, always
the same, knows one path or any, and counts nothing. DIRECTORY holds `tls.crt` and `tls.key`.
"""

import asyncio
import base64
import ssl
import sys
from pathlib import Path

import orjson
import uvloop
from aiohttp import web

_PATCH = [{"op": "add", "path": "/metadata/labels/bare", "value": "true"}]


async def answer(request: web.Request) -> web.Response:
    review = orjson.loads(await request.read())
    response = {
        "uid": review["request"]["uid"],
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(orjson.dumps(_PATCH)).decode(),
        "status": {"code": 200},
    }
    body = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
    return web.Response(body=orjson.dumps(body), content_type="application/json")


async def serve(directory: Path, port: int) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    application = web.Application()
    application.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
