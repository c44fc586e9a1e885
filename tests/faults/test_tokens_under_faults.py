"""Whatever the API server answers: no loop of TokenRequests, and no token is lost.

The API server's audit log counts the requests: those that were carried out, even if the client does not know.
"""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from agent.shared.token_requestor.tokens import Tokens
from devcluster.audit import Audit
from devcluster.testing.faults import (
    Answer,
    Fault,
    LateEvents,
    Reset,
    Rule,
    internal_error,
    throttled,
    unavailable,
)
from devcluster.testing.proxy import FaultProxy
from gardener import keys
from kit.eventually import soon
from kit.proxied import QUICK
from kit.tokens import (
    PATIENCE,
    MovableClock,
    TokenWorld,
    allowed_requests,
    kubeconfig,
    look_again,
    token_requestor,
    token_requests,
    until_idle,
)
from kube.clock import format_time
from kube.objects import annotations
from kube.runtime.client import Client

FORBIDDEN = Answer(name="forbidden", code=403, reason="Forbidden", message="you may not")
NONSENSE = Answer(name="nonsense", code=200, reason="", message="this is no TokenRequest")


@pytest.fixture
def world(admin: Client, namespace: str) -> TokenWorld:
    return TokenWorld(admin, namespace)


@pytest.fixture
def client(proxied_client: Client) -> Client:
    return proxied_client


# --- faults


@pytest.mark.parametrize(
    ("fault", "times"),
    [
        (internal_error(), 5),
        (internal_error(carried_out=True), 5),
        (unavailable(), 5),
        (throttled(), 3),
        (Reset(), 5),
        (Reset(carried_out=True), 5),
        (FORBIDDEN, 5),
    ],
    ids=lambda value: getattr(value, "name", None),
)
async def test_a_token_that_can_not_be_stored_is_requested_once(
    fault: Fault, times: int, world: TokenWorld, client: Client, proxy: FaultProxy, audit: Audit, user_agent: str
) -> None:
    proxy.rules.add(Rule(fault=fault, methods=("PATCH",), path="/secrets/", times=times))
    await world.ask()
    async with token_requestor(client, world.namespace, timings=QUICK) as loop:
        token = await world.until_token()
        await soon(lambda: _is_over(proxy, 1), what="a fault")
        await until_idle(loop)
        assert await world.is_accepted(token)
    assert token_requests(audit, user_agent) == 1


async def _is_over(proxy: FaultProxy, count: int) -> bool:
    return sum(proxy.injected.values()) >= count


@pytest.mark.parametrize(
    "fault",
    [internal_error(carried_out=True), Reset(carried_out=True), FORBIDDEN, NONSENSE],
    ids=lambda fault: fault.name,
)
async def test_an_api_server_that_gives_no_token_is_queried_ever_more_rarely(
    fault: Fault, world: TokenWorld, client: Client, proxy: FaultProxy
) -> None:
    """Some of these are carried out, so they count although no user has the token."""
    rule = Rule(fault=fault, methods=("POST",), path="/token$")
    proxy.rules.add(rule)
    await world.ask()
    clock = MovableClock()
    async with token_requestor(client, world.namespace, clock=clock, timings=QUICK) as loop:
        loop_time = asyncio.get_running_loop().time
        began = loop_time()
        await soon(lambda: _is_over(proxy, 1), what="a fault")
        await asyncio.sleep(5)
        requested = sum(proxy.injected.values())
        assert 1 <= requested <= allowed_requests(loop_time() - began)
        proxy.rules.remove(rule)
        clock.moved += timedelta(minutes=2)
        await look_again(loop, *[key for key, _ in loop._watches[0].store.items()])
        await world.until_token()


@pytest.mark.parametrize(
    "fault", [FORBIDDEN, internal_error(), unavailable(), Reset()], ids=lambda fault: getattr(fault, "name", "")
)
async def test_reviews_that_fail_are_no_reason_to_request_tokens(
    fault: Fault, world: TokenWorld, client: Client, proxy: FaultProxy, audit: Audit, user_agent: str
) -> None:
    clock = MovableClock()
    key = await world.ask()
    async with token_requestor(client, world.namespace, clock=clock, timings=QUICK) as loop:
        first = await world.until_token()
        await until_idle(loop)
        proxy.rules.add(Rule(fault=fault, path="tokenreviews"))
        clock.moved += timedelta(hours=2)
        await look_again(loop, key)
        await soon(lambda: _is_over(proxy, 1), what="a fault")
        assert await world.token() == first
        clock.moved += timedelta(hours=9)  # when it is due, nothing is requested
        await look_again(loop, key)
        await world.until_token(other_than=first)
    assert token_requests(audit, user_agent) == 2


@pytest.mark.parametrize(("fault", "is_repeated"), [(internal_error(), True), (Reset(), True), (FORBIDDEN, False)])
async def test_that_audiences_are_not_accepted_is_queried_again_unless_it_may_not_be_queried(
    fault: Fault, is_repeated: bool, client: Client, proxy: FaultProxy
) -> None:
    tokens = Tokens(client, audiences=("unused",), merge_labels=False)
    rule = Rule(fault=fault, path="tokenreviews")
    proxy.rules.add(rule)
    with capture_logs() as reported:
        await tokens.try_audiences("of no ServiceAccount")
        proxy.rules.remove(rule)
        assert not reported
        for _ in range(2):
            await tokens.try_audiences("of no ServiceAccount")
    assert len(reported) == is_repeated
    assert await _is_over(proxy, 1)


async def test_what_is_due_in_an_old_cache_is_read_before_a_token_is_requested(
    world: TokenWorld, client: Client, proxy: FaultProxy, audit: Audit, user_agent: str
) -> None:
    """Another process has renewed the token, and the news about that does not come."""
    key = await world.ask()
    async with token_requestor(world.client, world.namespace):
        token = await world.until_token()
    await world.annotate("t", TOKEN_RENEW_TIMESTAMP=format_time(datetime.now(UTC) + timedelta(minutes=10)))
    proxy.rules.add(Rule(fault=LateEvents(seconds=PATIENCE)))
    clock = MovableClock()
    async with token_requestor(client, world.namespace, clock=clock) as loop:
        await until_idle(loop)
        await world.annotate("t", TOKEN_RENEW_TIMESTAMP=format_time(datetime.now(UTC) + timedelta(hours=1)))
        clock.moved += timedelta(minutes=11)
        await look_again(loop, key)
    assert audit.count(user_agent=user_agent).get(("get", "secrets"), 0) >= 1
    assert token_requests(audit, user_agent) == 0
    assert await world.token() == token


async def test_a_token_in_memory_is_not_stored_over_that_of_another_client(
    world: TokenWorld, client: Client, proxy: FaultProxy
) -> None:
    """While storing failed, another process stored a token; ours must not replace it as if nothing had happened."""
    rule = Rule(fault=internal_error(), methods=("PATCH",), path="/secrets/")
    proxy.rules.add(rule)
    await world.ask()
    async with token_requestor(client, world.namespace, timings=QUICK) as loop:
        await soon(lambda: _is_over(proxy, 1), what="a fault")
        async with token_requestor(world.client, world.namespace):
            theirs = await world.until_token()
        proxy.rules.remove(rule)
        await look_again(loop, *[key for key, _ in loop._watches[0].store.items()])
    assert await world.token() == theirs


async def test_the_kubeconfig_that_a_user_changes_meanwhile_keeps_the_change(
    world: TokenWorld, client: Client, proxy: FaultProxy
) -> None:
    proxy.rules.add(Rule(fault=internal_error(), methods=("PATCH",), path="/secrets/", times=3))
    await world.ask(data={"kubeconfig": kubeconfig()})
    async with token_requestor(client, world.namespace, timings=QUICK) as loop:
        await soon(lambda: _is_over(proxy, 1), what="a fault")
        await world.set_data("t", kubeconfig=kubeconfig(**{"tls-server-name": "changed"}))

        async def is_stored() -> bool:
            return keys.TOKEN_RENEW_TIMESTAMP in annotations(await world.secret() or {})

        await soon(is_stored, what="the token to be stored")
        await until_idle(loop)
    assert "tls-server-name: changed" in (await world.data())["kubeconfig"]
    assert (await world.data()).keys() == {"kubeconfig"}


async def test_a_target_secret_that_goes_before_its_watch_begins_is_put_back(
    world: TokenWorld, client: Client, proxy: FaultProxy
) -> None:
    rule = Rule(fault=internal_error(), query="fieldSelector=metadata.name")
    proxy.rules.add(rule)
    await world.ask(TARGET_SECRET_NAME="out", TARGET_SECRET_NAMESPACE=world.namespace)
    async with token_requestor(client, world.namespace, timings=QUICK) as loop:
        first = await world.until_token("out")
        await until_idle(loop)
        await world.delete("Secret", "out")
        proxy.rules.remove(rule)
        await world.until_token("out", other_than=first)


async def test_without_the_right_to_watch_target_secrets_tokens_are_stored_there_all_the_same(
    world: TokenWorld, client: Client, proxy: FaultProxy
) -> None:
    proxy.rules.add(Rule(fault=FORBIDDEN, query="fieldSelector=metadata.name"))
    clock = MovableClock()
    key = await world.ask(TARGET_SECRET_NAME="out", TARGET_SECRET_NAMESPACE=world.namespace)
    async with token_requestor(client, world.namespace, clock=clock, timings=QUICK) as loop:
        first = await world.until_token("out")
        await world.delete("Secret", "out")
        clock.moved += timedelta(hours=2)
        await look_again(loop, key)
        await world.until_token("out", other_than=first)
