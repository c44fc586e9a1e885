"""The end: readiness goes first, and no client that looks at it loses a request."""

import asyncio
import signal

import aiohttp
from multidict import CIMultiDictProxy

from devcluster.cluster import Cluster
from kit.processes.webhooks import POD_REVIEW, SECCOMP, SECCOMP_PROFILE, Load, WebhookProcess, client

JSON = {"Content-Type": "application/json"}


async def test_clients_that_heed_readiness_lose_no_request(cluster: Cluster) -> None:
    ready = True
    server = WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig, gracefulShutdownTimeout="30s")
    with server:
        await server.until_ready()
        async with client() as session:
            async with Load(session, server, clients=8, may_ask=lambda: ready) as load:
                await load.more(100)
                server.signal(signal.SIGTERM)
                status, text = await asyncio.to_thread(_until_unready, server)
                answered = load.answered
                await load.more(20)
                assert load.answered > answered, "it still answers when readiness is gone"
                ready = False
                await load.finish()
            assert load.failures == []
        assert status == 500
        assert "[-]webhook-server failed: reason withheld" in text
        assert await asyncio.to_thread(server.wait) == 0


def _until_unready(server: WebhookProcess) -> tuple[int, str]:
    """The first answer that is not good."""
    return server.wait_for(lambda: None if (found := server.probe())[0] in {0, 200} else found, what="not to be ready")


async def test_answers_ask_the_client_to_close_the_connection(cluster: Cluster) -> None:
    server = WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig, gracefulShutdownTimeout="30s")
    with server:
        await server.until_ready()
        async with client() as session:
            assert "Connection" not in await _headers(session, server)
            server.signal(signal.SIGTERM)
            await asyncio.to_thread(_until_unready, server)
            assert (await _headers(session, server))["Connection"] == "close"
        assert await asyncio.to_thread(server.wait) == 0


async def _headers(session: aiohttp.ClientSession, server: WebhookProcess) -> "CIMultiDictProxy[str]":
    async with session.post(server.url + SECCOMP, data=POD_REVIEW, headers=JSON) as answer:
        assert answer.status == 200
        return answer.headers
