"""The controllers of tokens at work in a namespace, in this process and with any client, and Secrets for them.

Time is what a `MovableClock` says: that of the machine, moved at will.
"""

import asyncio
import base64
import json
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from agent_clusters import at_work, cluster_of, context_of

from agent.token_requestor import keys
from agent.token_requestor.controller import TokenRequestorLoop
from agent.token_requestor.reconcile import Clock
from agent.token_requestor.tokens import TOKEN_REVIEWS
from config.schema import ClientConnection
from config.schema_controllers import Controllers, TokenRequestor
from devcluster.audit import Audit
from kube.client import Client
from kube.errors import NotFound
from kube.objects import Key, Object, annotations, parse_time
from kube.resources import EVENTS, SECRETS, SERVICE_ACCOUNTS
from kube.watch import Timings

T = TypeVar("T")
PATIENCE = 60.0


class MovableClock:
    """`moved` shifts all time, `jumped` only the clock on the wall."""

    def __init__(self) -> None:
        self.moved = timedelta(0)
        self.jumped = timedelta(0)

    def clock(self) -> Clock:
        return Clock(
            now=lambda: time.monotonic() + self.moved.total_seconds(),
            today=lambda: datetime.now(UTC) + self.moved + self.jumped,
            jitter=lambda: 0.0,
        )


@asynccontextmanager
async def token_requestor(
    client: Client,
    namespace: str,
    *,
    clock: MovableClock | None = None,
    kubeconfig: str = "",
    timings: Timings | None = None,
    **settings: Any,
) -> AsyncIterator[TokenRequestorLoop]:
    controllers = Controllers(token_requestor=TokenRequestor(enabled=True, **settings))
    made = context_of(cluster_of(client, namespace, timings=timings), controllers)
    made = replace(made, config=replace(made.config, source_client_connection=ClientConnection(kubeconfig=kubeconfig)))
    loop = TokenRequestorLoop(made, clock=(clock or MovableClock()).clock())
    async with at_work(made, loop):
        yield loop


def user_agent() -> str:
    """To tell the calls of one loop from those of all others."""
    return f"token-requestor-test/{uuid.uuid4().hex[:12]}"


class World:
    """Secrets in a namespace, written and read by somebody who may do everything."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    # --- writing

    async def ask(
        self, name: str = "t", *, account: str = "sa", data: Mapping[str, str] | None = None, **annotated: str
    ) -> Key:
        """A Secret that asks for a token; annotations by the names of their constants."""
        wanted = {keys.NAME: account, keys.NAMESPACE: self.namespace}
        wanted |= {getattr(keys, constant): value for constant, value in annotated.items()}
        meta = {
            "namespace": self.namespace,
            "name": name,
            "labels": {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR},
            "annotations": {annotation: value for annotation, value in wanted.items() if value},
        }
        content = {key: base64.b64encode(text.encode()).decode() for key, text in (data or {}).items()}
        await self.client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": content})
        return Key(self.namespace, name)

    async def annotate(self, name: str, **annotated: str | None) -> None:
        changes = {getattr(keys, constant): value for constant, value in annotated.items()}
        await self.client.patch(SECRETS, name, {"metadata": {"annotations": changes}}, namespace=self.namespace)

    async def set_data(self, name: str, **data: str | None) -> None:
        content = {
            key: None if text is None else base64.b64encode(text.encode()).decode() for key, text in data.items()
        }
        await self.client.patch(SECRETS, name, {"data": content}, namespace=self.namespace)

    # --- reading

    async def secret(self, name: str = "t") -> Object | None:
        try:
            return await self.client.get(SECRETS, name, namespace=self.namespace)
        except NotFound:
            return None

    async def data(self, name: str = "t") -> dict[str, str]:
        found = (await self.secret(name) or {}).get("data") or {}
        return {key: base64.b64decode(text).decode() for key, text in found.items()}

    async def token(self, name: str = "t") -> str:
        return (await self.data(name)).get("token", "")

    async def account(self, name: str = "sa") -> Object | None:
        try:
            return await self.client.get(SERVICE_ACCOUNTS, name, namespace=self.namespace)
        except NotFound:
            return None

    async def renew_in(self, name: str = "t") -> float:
        """Seconds from now."""
        text = annotations(await self.secret(name) or {})[keys.RENEW_TIMESTAMP]
        return (parse_time(text) - datetime.now(UTC)).total_seconds()

    async def is_accepted(self, token: str, audience: str = "gardener") -> bool:
        review = await self.client.create(TOKEN_REVIEWS, {"spec": {"token": token, "audiences": [audience]}})
        return bool(review["status"].get("authenticated"))

    async def warnings(self) -> dict[str, str]:
        """Messages by reason."""
        events = await self.client.request("GET", EVENTS.path(namespace=self.namespace))
        return {
            event["reason"]: event["message"] for event in json.loads(events)["items"] if event["type"] == "Warning"
        }

    # --- waiting

    async def until(self, found: Callable[[], Awaitable[T]], *, what: str) -> T:
        """What `found` returns once it is true."""
        deadline = time.monotonic() + PATIENCE
        while not (result := await found()):
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            await asyncio.sleep(0.05)
        return result

    async def until_token(self, name: str = "t", *, other_than: str = "") -> str:
        async def new() -> str:
            token = await self.token(name)
            return token if token != other_than else ""

        return await self.until(new, what=f"a new token in {name}")


async def at_rest(loop: TokenRequestorLoop) -> None:
    """Returns when the loop has nothing to do for a moment; looks are counted, as time passes while nothing runs."""
    deadline = time.monotonic() + PATIENCE
    quiet = 0
    while quiet < 15:
        await asyncio.sleep(0.02)
        quiet = 0 if len(loop.controller.queue) or loop.controller.queue._running else quiet + 1
        assert time.monotonic() < deadline, "it is never at rest"


async def look_again(loop: TokenRequestorLoop, *names: Key) -> None:
    """Have Secrets looked at, as at a resync, and wait for what comes of it."""
    for name in names:
        loop.controller.queue.add(name)
    await at_rest(loop)


def token_requests(audit: Audit, agent: str) -> int:
    """How often the API server was asked for a token, with whatever success."""
    return audit.count(user_agent=agent).get(("create", "serviceaccounts/token"), 0)


def kubeconfig(token: str = "", *, user: str = "u", **cluster: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": "https://s", **cluster}}],
            "users": [{"name": user, "user": {"token": token}}, {"name": "v", "user": {"token": "of-somebody-else"}}],
        }
    )
