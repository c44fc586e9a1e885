"""What happens to tokens and certificates."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from campaign import manifests
from campaign.stage import Stage
from gardener.keys import TOKEN_RENEW_TIMESTAMP
from kube.errors import KubeError
from kube.objects import Key


@contextlib.asynccontextmanager
async def token_rotated(stage: Stage, *, cluster: str, replica: int) -> AsyncIterator[None]:
    await stage.accounts[cluster, replica].rotate()
    yield


@contextlib.asynccontextmanager
async def token_expired(stage: Stage, *, cluster: str, replica: int) -> AsyncIterator[None]:
    """It is not renewed until the end of the strike."""
    account = stage.accounts[cluster, replica]
    await account.expire()
    try:
        yield
    finally:
        await account.renew()


@contextlib.asynccontextmanager
async def certificates_rotated(stage: Stage) -> AsyncIterator[None]:
    await stage.certificates.rotate()
    yield


@contextlib.asynccontextmanager
async def certificate_broken(stage: Stage) -> AsyncIterator[None]:
    """Certificate and key do not belong together; servers go on with what they had."""
    await stage.certificates.break_()
    try:
        yield
    finally:
        await stage.certificates.rotate()


_MOVED = {"past": "2001-01-01T00:00:00Z", "future": "2999-01-01T00:00:00Z", "garbled": "soon"}


@contextlib.asynccontextmanager
async def renewal_times_moved(stage: Stage, *, how: str) -> AsyncIterator[str]:
    """As by an agent with another clock, or by hand, in all Secrets that ask for tokens."""
    done = 0
    for place in manifests.expected(stage.world.model).tokens:
        if place.cluster != "source" and how != "token lost":
            continue
        change: dict[str, object] = {"data": {"token": None}}
        if how != "token lost":
            change = {"metadata": {"annotations": {TOKEN_RENEW_TIMESTAMP: _MOVED[how]}}}
        with contextlib.suppress(KubeError, asyncio.TimeoutError):
            client = stage.world.clients[place.cluster]
            await client.patch(place.resource, Key(place.namespace, place.name), change, timeout=5)
            done += 1
    yield f"{done} Secrets"
