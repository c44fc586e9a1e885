"""The controllers of tokens at work in a namespace, in this process and with any client, and Secrets for them.

Time is that of a `MovableClock`: that of the machine, moved at will.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from agent.resource_manager.context import Context
from agent.shared.token_requestor.controller import declare
from agent.shared.token_requestor.memory import Pace
from agent.shared.token_requestor.metrics import TokenCollector
from agent.shared.token_requestor.reconcile import Clock
from config.resource_manager.controllers import Controllers
from config.shared import TokenRequestor
from devcluster.audit import Audit
from gardener import keys
from kit.controllers import run_controller
from kit.eventually import soon
from kit.objects import decoded, encoded, secret
from kit.world import World
from kube.clock import parse_time
from kube.objects import Key, Object, annotations
from kube.resources import TOKEN_REVIEWS
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop
from kube.runtime.watch import Timings

PATIENCE = 300.0


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
    timings: Timings | None = None,
    **settings: Any,
) -> AsyncIterator[ControlLoop]:
    controllers = Controllers(token_requestor=TokenRequestor(enabled=True, **settings))

    def requestor(context: Context) -> ControlLoop:
        return declare(
            context.config.controllers.token_requestor,
            source=context.source,
            target=context.target,
            recorder=context.recorder,
            metrics=TokenCollector("test"),
            clock=(clock or MovableClock()).clock(),
        )

    async with run_controller(requestor, client, namespace, controllers=controllers, timings=timings) as loop:
        yield loop


class TokenWorld(World):
    """Secrets that ask for tokens."""

    # --- writing

    async def ask(
        self, name: str = "t", *, account: str = "sa", data: Mapping[str, str] | None = None, **annotated: str
    ) -> Key:
        """A Secret that requests a token; annotations by the names of their constants."""
        wanted = {keys.SERVICE_ACCOUNT_NAME: account, keys.SERVICE_ACCOUNT_NAMESPACE: self.namespace}
        wanted |= {getattr(keys, constant): value for constant, value in annotated.items()}
        annotations = {annotation: value for annotation, value in wanted.items() if value}
        marks = {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR}
        await self.create(secret(name, data, labels=marks, annotations=annotations))
        return Key(self.namespace, name)

    async def annotate(self, name: str, **annotated: str | None) -> None:
        changes = {getattr(keys, constant): value for constant, value in annotated.items()}
        await self.patch("Secret", name, {"metadata": {"annotations": changes}})

    async def set_data(self, name: str, **data: str | None) -> None:
        given = encoded({key: text for key, text in data.items() if text is not None})
        await self.patch("Secret", name, {"data": {**dict.fromkeys(data), **given}})

    # --- reading

    async def secret(self, name: str = "t") -> Object | None:
        return await self.find("Secret", name)

    async def data(self, name: str = "t") -> dict[str, str]:
        return decoded(await self.secret(name))

    async def token(self, name: str = "t") -> str:
        return (await self.data(name)).get("token", "")

    async def account(self, name: str = "sa") -> Object | None:
        return await self.find("ServiceAccount", name)

    async def renew_in(self, name: str = "t") -> float:
        """Seconds from now."""
        text = annotations(await self.secret(name) or {})[keys.TOKEN_RENEW_TIMESTAMP]
        return (parse_time(text) - datetime.now(UTC)).total_seconds()

    async def is_accepted(self, token: str, audience: str = "gardener") -> bool:
        review = await self.client.create(TOKEN_REVIEWS, {"spec": {"token": token, "audiences": [audience]}})
        return bool(review["status"].get("authenticated"))

    async def warnings(self) -> dict[str, str]:
        """Messages by reason."""
        return {event["reason"]: event["message"] for event in await self.events(event_type="Warning")}

    # --- waiting

    async def until_token(self, name: str = "t", *, other_than: str = "") -> str:
        async def new() -> str:
            token = await self.token(name)
            return token if token != other_than else ""

        found: str = await soon(new, f"a new token in {name}")
        return found


async def until_idle(loop: ControlLoop) -> None:
    """Returns when the loop has nothing to do for a moment; looks are counted, as time passes while nothing runs."""
    deadline = time.monotonic() + PATIENCE
    quiet = 0
    while quiet < 15:
        await asyncio.sleep(0.02)
        quiet = quiet + 1 if loop.controller.queue.is_idle else 0
        assert time.monotonic() < deadline, "it is never idle"


async def look_again(loop: ControlLoop, *names: Key) -> None:
    """Have Secrets looked at, as at a resync, and wait for what comes of it."""
    for name in names:
        loop.controller.queue.add(name)
    await until_idle(loop)


def token_requests(audit: Audit, agent: str) -> int:
    """How often the API server was requested a token, with whatever success."""
    return audit.count(user_agent=agent).get(("create", "serviceaccounts/token"), 0)


def allowed_requests(seconds: float) -> int:
    """How many requests the pace lets through in this time."""
    pace, now, count = Pace(), 0.0, 0
    while (now := now + pace.wait(now)) <= seconds:
        pace.note(now)
        count += 1
    return count


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
