"""What clients can't do to the server: hold it up, fill it, or get anything but an AdmissionReview out of a webhook."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from devcluster.cluster import Cluster
from kit.processes.webhooks import (
    HOST,
    POD_REVIEW,
    SECCOMP,
    SECCOMP_PROFILE,
    WebhookProcess,
    ask,
    client,
    drop,
    trusting,
)

LIMIT = 7 * 1024**2
TOO_LARGE = {"code": 413, "message": f"request entity is too large; limit is {LIMIT} bytes"}


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[WebhookProcess]:
    with WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig) as process:
        yield process.wait_until_ready()


async def test_a_body_of_nearly_seven_mebibytes_is_reviewed_and_a_larger_one_is_not(server: WebhookProcess) -> None:
    filled = POD_REVIEW.replace(b'"image": "i"', b'"image": "' + b"i" * (LIMIT - 1 - len(POD_REVIEW) + 1) + b'"')
    assert len(filled) == LIMIT - 1
    async with client() as session:
        assert (await ask(session, server.url + SECCOMP, filled))["allowed"]
        for body in (filled + b" ", filled + b" " * 1000, filled * 2):
            response = await ask(session, server.url + SECCOMP, body)
            assert response == {"uid": "", "allowed": False, "status": TOO_LARGE}
        assert (await ask(session, server.url + SECCOMP))["allowed"]


async def test_a_body_in_chunks_is_read_up_to_the_same_limit(server: WebhookProcess) -> None:
    async def chunks(size: int) -> AsyncIterator[bytes]:
        yield POD_REVIEW
        for _ in range(size // 65536):
            yield b" " * 65536

    async with client() as session:
        assert (await ask(session, server.url + SECCOMP, chunks(1 << 20)))["allowed"]
        assert (await ask(session, server.url + SECCOMP, chunks(LIMIT)))["status"] == TOO_LARGE


async def test_five_hundred_connections_are_served(server: WebhookProcess) -> None:
    async with client() as session:
        # Not all handshakes at once: each has ten seconds, and on a busy machine hundreds of them take longer.
        for count in (*range(50, 501, 50), 500):
            answers = await asyncio.gather(*(ask(session, server.url + SECCOMP) for _ in range(count)))
            assert all(answer["allowed"] for answer in answers)


async def test_clients_that_report_nothing_are_cut_off_while_others_are_served(server: WebhookProcess) -> None:
    """Without a TLS handshake after ten seconds; a header that never ends is tried in the server's own tests."""
    silent = [await asyncio.open_connection(HOST, server.port) for _ in range(100)]
    slow = await asyncio.open_connection(HOST, server.port, ssl=trusting())
    slow[1].write(b"POST / HTTP/1.1\r\nHost: ")
    async with client() as session:
        assert (await ask(session, server.url + SECCOMP))["allowed"]
        async with asyncio.timeout(90):
            for reader, writer in silent:
                await _until_closed(reader)
                await drop(writer)
        assert (await ask(session, server.url + SECCOMP))["allowed"]
    async with asyncio.timeout(90):
        await _until_closed(slow[0])
    await drop(slow[1])


async def _until_closed(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(4096):
            pass
    except ConnectionError:
        pass


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
async def test_the_method_does_not_matter(server: WebhookProcess, method: str) -> None:
    headers = {"Content-Type": "application/json"}
    async with (
        client() as session,
        session.request(method, server.url + SECCOMP, data=POD_REVIEW, headers=headers) as answer,
    ):
        assert answer.status == 200
        assert (await answer.json())["response"]["allowed"]


async def test_no_body_is_answered(server: WebhookProcess) -> None:
    async with client() as session:
        response = await ask(session, server.url + SECCOMP, None)
        assert response["status"] == {"code": 400, "message": "request body is empty"}


async def test_several_requests_at_once_on_a_connection_are_answered_in_turn(server: WebhookProcess) -> None:
    reader, writer = await asyncio.open_connection(HOST, server.port, ssl=trusting())
    head = f"POST {SECCOMP} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {len(POD_REVIEW)}"
    request = f"{head}\r\n\r\n".encode() + POD_REVIEW
    writer.write(request * 5)
    async with asyncio.timeout(60):
        for _ in range(5):
            headers = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            length = next(int(line.partition(":")[2]) for line in headers if line.startswith("Content-Length"))
            assert json.loads(await reader.readexactly(length))["response"]["uid"] == "u1"
    await drop(writer)


# --- garbage

# Longer on request: WEBHOOK_FUZZ_EXAMPLES=100000 makes it run for minutes.
EXAMPLES = int(os.environ.get("WEBHOOK_FUZZ_EXAMPLES", "200"))

texts = st.text(max_size=8)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


def mutated(review: Any, path: list[int], value: Any) -> bytes:
    """The review with something else at a place in it."""
    parent: Any = {"": review}
    place: Any = ""
    current: Any = review
    for step in path:
        if not isinstance(current, dict | list) or not current:
            break
        keys = list(current) if isinstance(current, dict) else list(range(len(current)))
        parent, place = current, keys[step % len(keys)]
        current = parent[place]
    parent[place] = value
    return json.dumps(review).encode()


bodies = st.binary(max_size=300) | st.builds(
    lambda path, value: mutated(json.loads(POD_REVIEW), path, value),
    st.lists(st.integers(min_value=0, max_value=9), max_size=6),
    values,
)


def test_garbage_is_answered_by_a_review_with_a_code(server: WebhookProcess) -> None:
    with asyncio.Runner() as runner:
        opened = client()
        session = runner.run(opened.__aenter__())

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            phases=[Phase.explicit, Phase.generate, Phase.target, Phase.shrink],
        )
        @given(bodies)
        def send(body: bytes) -> None:
            response = runner.run(ask(session, server.url + SECCOMP, body))
            assert isinstance(response["status"]["code"], int)
            assert response["allowed"] is (response["status"]["code"] == 200)
            assert "panic" not in response["status"].get("message", "")

        try:
            send()
        finally:
            runner.run(opened.__aexit__(None, None, None))
    assert server.metric("controller_runtime_webhook_panics_total") == 0
