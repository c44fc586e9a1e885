"""Several worker processes: one port, one scrape, one life."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator

import pytest
from webhook_process import SECCOMP, SECCOMP_PROFILE, WebhookProcess, ask, client

from devcluster.cluster import Cluster

COUNT = 3
SERIES = 'controller_runtime_webhook_requests_total{code="200",webhook="/webhooks/seccomp-profile"}'


@pytest.fixture
def server(cluster: Cluster) -> Iterator[WebhookProcess]:
    with WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig, workers=COUNT) as process:
        yield process.wait_until_ready(seconds=90)


def exists(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


async def test_all_serve_at_one_port_and_are_scraped_as_one(server: WebhookProcess) -> None:
    assert len(server.children()) == COUNT
    before = (await asyncio.to_thread(server.metrics))["process_cpu_seconds_total"]
    async with client(force_close=True) as session:
        await asyncio.gather(*(ask(session, server.url + SECCOMP) for _ in range(100)))
    metrics = await asyncio.to_thread(server.metrics)
    assert metrics[SERIES] == 100
    assert metrics['controller_runtime_webhook_latency_seconds_count{webhook="/webhooks/seccomp-profile"}'] == 100
    assert metrics["certwatcher_read_certificate_total"] == COUNT
    assert metrics["process_cpu_seconds_total"] >= before
    assert [value for name, value in metrics.items() if name.startswith("resource_manager_build_info")] == [1]


def refusal(server: WebhookProcess) -> str | None:
    status, text = server.probe("/readyz")
    return text if status == 500 else None


async def test_readiness_is_that_of_all(server: WebhookProcess) -> None:
    lines = "[+]source-informer-sync ok\n[+]target-informer-sync ok\n[+]webhook-server ok\n"
    good = (200, f"{lines}healthz check passed\n")
    await server.until(lambda: server.probe("/readyz?verbose") == good, what="all checks to be good")
    worker = server.children()[0]
    os.kill(worker, signal.SIGSTOP)
    try:
        # The answer takes nearly as long as a probe waits for it.
        text = await server.until(lambda: refusal(server), what="an answer that not all are ready")
        assert "[-]webhook-server failed" in text
    finally:
        os.kill(worker, signal.SIGCONT)


async def test_they_end_together(server: WebhookProcess) -> None:
    workers = server.children()
    server.signal(signal.SIGTERM)
    assert await asyncio.to_thread(server.wait, seconds=60) == 0
    assert not any(map(exists, workers))


async def test_the_end_of_one_is_the_end_of_all(server: WebhookProcess) -> None:
    victim, *others = server.children()
    os.kill(victim, signal.SIGKILL)
    assert await asyncio.to_thread(server.wait, seconds=60) == 1
    assert f"(process {victim}) ended with exit code -9" in server.output
    assert not any(map(exists, others))


async def test_workers_do_not_outlive_the_first_process(server: WebhookProcess) -> None:
    workers = server.children()
    await asyncio.to_thread(server.kill)
    async with asyncio.timeout(60):
        while any(map(exists, workers)):
            await asyncio.sleep(0.1)


async def test_a_worker_that_cannot_start_ends_the_program(cluster: Cluster) -> None:
    with WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig, workers=2, certificate=False) as server:
        assert await asyncio.to_thread(server.wait, seconds=90) == 1
    assert "tls.crt of server.webhooks.tls.serverCertDir" in server.output
