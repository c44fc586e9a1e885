"""A mutating webhook as an extension registers it: a server in the test's own process that API servers really call.

async with served(world) as webhook:
webhook.patches["Deployment"] = [{"op": "add", "path": "/spec/minReadySeconds", "value": 5}]
await webhook.register()
"""

import base64
import contextlib
import ssl
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
from aiohttp import web

from kit.eventually import soon
from kit.http import serving
from kit.objects import config_map, placed
from kit.world import World
from kube.objects import Object
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, MUTATING_WEBHOOKS
from localprocesses.pki import Authority

_HOST = "127.0.0.1"


class MutatingWebhook:
    """For Deployments and ConfigMaps of the world's namespace.

    Attributes:
        patches: JSON patches by kind; objects of other kinds stay as they are.
        calls: number of reviews.
    """

    def __init__(self, world: World, *, authority: Authority) -> None:
        self._world, self.authority = world, authority
        self._name = f"{world.namespace}.example.com"
        self.patches: dict[str, list[Object]] = {}
        self.calls = 0
        self.port = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        review = orjson.loads(await request.read())
        self.calls += 1
        asked = review["request"]
        patch = orjson.dumps(self.patches.get(asked["kind"]["kind"], []))
        response = {"uid": asked["uid"], "allowed": True}
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
        return web.json_response({**review, "response": response})

    async def register(self) -> None:
        """Return when the API server calls it."""
        webhook = {
            "name": self._name,
            "clientConfig": {
                "url": f"https://{_HOST}:{self.port}/",
                "caBundle": base64.b64encode(self.authority.bundle).decode(),
            },
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._world.namespace}},
            "rules": [
                {
                    "operations": ["CREATE", "UPDATE"],
                    "apiGroups": [each.group],
                    "apiVersions": ["v1"],
                    "resources": [each.plural],
                }
                for each in (CONFIG_MAPS, DEPLOYMENTS)
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        named = {**MUTATING_WEBHOOKS.type_meta, "metadata": {"name": self._name}}
        await self._world.create({**named, "webhooks": [webhook]})
        await soon(self._is_called, "the webhook to be called")

    async def remove(self) -> None:
        """Return when the API server no longer calls it."""
        await self._world.remove(MUTATING_WEBHOOKS, self._name)

        async def is_left_out() -> bool:
            return not await self._is_called()

        await soon(is_left_out, "the webhook not to be called")

    async def _is_called(self) -> bool:
        before = self.calls
        probe = placed(config_map("probe", labels={"is": "probe"}), self._world.namespace)
        await self._world.client.dry_run().create(CONFIG_MAPS, probe)
        return self.calls > before


@contextlib.asynccontextmanager
async def served(world: World) -> AsyncIterator[MutatingWebhook]:
    """The webhook, not registered yet; its registration goes with it."""
    webhook = MutatingWebhook(world, authority=Authority.create("webhook"))
    async with serving(webhook.answer, tls=_context(webhook.authority)) as server:
        webhook.port = server.port
        try:
            yield webhook
        finally:
            await webhook.remove()


def _context(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        files = authority.issue_server([_HOST]).write(Path(directory), "server")
        context.load_cert_chain(files.certificate, files.key)
    return context
