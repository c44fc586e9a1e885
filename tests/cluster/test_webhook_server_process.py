"""The admission server as a process: how it starts, what it reports of itself, what it answers where nothing is served."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from kit.processes.agent import PROJECT
from kit.processes.webhooks import POD_REVIEW, SECCOMP, SECCOMP_PROFILE, WebhookProcess, ask, client, make_certificate
from localprocesses.ports import free_port


@pytest.fixture
def server(cluster: Cluster) -> Iterator[WebhookProcess]:
    with WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig) as process:
        yield process.wait_until_ready()


async def test_it_answers_and_reports_how_it_is_doing(server: WebhookProcess) -> None:
    series = 'controller_runtime_webhook_requests_total{code="200",webhook="/webhooks/seccomp-profile"}'
    assert (await asyncio.to_thread(server.metrics))[series] == 0
    async with client() as session:
        response = await ask(session, f"{server.url}{SECCOMP}?timeout=10s")
        assert response["uid"] == "u1"
        assert response["patchType"] == "JSONPatch"
    metrics = await asyncio.to_thread(server.metrics)
    labels = 'webhook="/webhooks/seccomp-profile"'
    assert metrics[series] == 1
    assert metrics[f'controller_runtime_webhook_requests_total{{code="500",{labels}}}'] == 0
    assert metrics[f"controller_runtime_webhook_requests_in_flight{{{labels}}}"] == 0
    assert metrics[f"controller_runtime_webhook_latency_seconds_count{{{labels}}}"] == 1
    assert metrics[f'controller_runtime_webhook_latency_seconds_bucket{{le="1000.0",{labels}}}'] == 1
    assert metrics["controller_runtime_webhook_panics_total"] == 0
    assert metrics["certwatcher_read_certificate_total"] >= 1
    assert metrics["certwatcher_read_certificate_errors_total"] == 0


async def test_probes_name_what_they_look_at(server: WebhookProcess) -> None:
    ready = "[+]source-informer-sync ok\n[+]target-informer-sync ok\n[+]webhook-server ok\nhealthz check passed\n"
    for path, text in (
        ("/readyz?verbose", ready),
        ("/readyz/webhook-server", "ok"),
        ("/healthz?verbose", "[+]ping ok\nhealthz check passed\n"),
    ):
        # A check may fail while the API server, or the server itself, does not answer for some seconds.
        await server.until(lambda path=path, text=text: server.probe(path) == (200, text), what=f"{path} to be good")  # type: ignore[misc]


async def test_it_lives_is_ready_and_answers_without_the_source(cluster: Cluster, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text(cluster.kubeconfig.read_text().replace(cluster.url, f"https://127.0.0.1:{free_port()}"))
    target = {"kubeconfig": str(cluster.kubeconfig)}
    with WebhookProcess(SECCOMP_PROFILE, kubeconfig=source, targetClientConnection=target) as server:
        await server.until_ready()
        for path in ("/healthz", "/readyz"):
            assert await asyncio.to_thread(server.probe, path) == (200, "ok")
        async with client() as session:
            assert (await ask(session, server.url + SECCOMP))["allowed"]


async def test_a_path_that_is_not_served_is_not_found_and_its_setting_is_logged_once(server: WebhookProcess) -> None:
    path = "/webhooks/high-availability-config"
    async with client() as session:
        for _ in range(3):
            async with session.post(server.url + path, data=POD_REVIEW) as answer:
                assert answer.status == 404
        for number in range(3):
            async with session.post(f"{server.url}/unknown/{number}", data=POD_REVIEW) as answer:
                assert answer.status == 404
    entry = await asyncio.to_thread(
        server.wait_for_log,
        "Received a request for a disabled webhook; enable it, or remove it from the webhook configurations",
    )
    assert entry["webhook"] == "high-availability-config"
    assert entry["setting"] == "webhooks.highAvailabilityConfig.enabled"
    await asyncio.to_thread(server.wait_for_log, "Received a request with an unknown path")
    requested = [message for message in server.messages() if message.startswith("Received a request")]
    assert len(requested) == 2


async def test_reviews_are_not_logged_one_by_one(server: WebhookProcess) -> None:
    before = len(server.entries)
    async with client() as session:
        for _ in range(200):
            await ask(session, server.url + SECCOMP)
    assert len(server.entries) - before < 20


async def test_a_certificate_that_comes_late_is_waited_for(cluster: Cluster) -> None:
    late = make_certificate("late")
    with WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig, certificate=False) as server:
        message = "Could not read the TLS certificate, waiting for one"
        entry = await asyncio.to_thread(server.wait_for_log, message)
        assert "tls.crt of server.webhooks.tls.serverCertDir: No such file or directory" in entry["error"]
        server.secret.write(*late)
        await server.until_ready()


def test_without_a_certificate_it_ends_and_names_file_and_setting(cluster: Cluster) -> None:
    with WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig, certificate=False) as server:
        assert server.wait() == 1
    expected = f"cannot read {server.secret.directory}/tls.crt of server.webhooks.tls.serverCertDir"
    assert expected in server.output
    assert server.output.rstrip().endswith("create one with `python -m webhooks certificates`")
    assert "stacktrace" not in server.log


def test_an_address_that_is_taken_ends_it(cluster: Cluster) -> None:
    with WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig) as first:
        first.wait_until_ready()
        kubeconfig, port = cluster.kubeconfig, first.port
        with WebhookProcess(SECCOMP_PROFILE, kubeconfig=kubeconfig, port=port) as second:
            assert second.wait() == 1
        assert f"cannot listen on 127.0.0.1:{first.port} for webhooks: Address already in use" in second.output


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "webhooks", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False)


def test_the_commands_beside_the_server_have_their_own_help() -> None:
    for command in ("configurations", "certificates"):
        done = run(command, "--help")
        assert done.returncode == 0
        assert f"python -m webhooks {command}" in done.stdout
    help_text = run("--help").stdout
    assert "--config FILE" in help_text
    for command in ("configurations", "certificates", "garden"):
        assert f"see {command} --help" in help_text
