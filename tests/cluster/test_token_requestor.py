"""Tokens are requested, stored and renewed, once a lifetime, and nothing makes the controller request them in a loop."""

import asyncio
import base64
import time
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.shared.token_requestor.reconcile import FAILED, INVALID, KUBECONFIG_REMOVED
from agent.shared.token_requestor.watches import MOST_BY_NAME
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from gardener import keys
from kit.eventually import soon
from kit.objects import obj
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
from kit.world import connected
from kube.objects import annotations, labels, uid
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop

PAST = "2020-01-01T00:00:00Z"
FUTURE = "2099-01-01T00:00:00Z"


class RequestorWorld(TokenWorld):
    """And the controller, with the calls that it makes."""

    def __init__(self, admin: Client, namespace: str, client: Client, audit: Audit, user_agent: str) -> None:
        super().__init__(admin, namespace)
        self._client = client
        self.audit = audit
        self.user_agent = user_agent

    def requestor(self, **settings: Any) -> AbstractAsyncContextManager[ControlLoop]:
        return token_requestor(self._client, self.namespace, **settings)

    def requests(self) -> int:
        return token_requests(self.audit, self.user_agent)

    def calls(self, *, since: int) -> dict[tuple[str, str], int]:
        return self.audit.count(since=since, user_agent=self.user_agent)


@pytest.fixture
def world(admin: Client, namespace: str, client: Client, audit: Audit, user_agent: str) -> RequestorWorld:
    return RequestorWorld(admin, namespace, client, audit, user_agent)


# --- issuing


async def test_a_secret_gets_a_token_for_an_account_that_is_made(world: RequestorWorld) -> None:
    await world.ask(SERVICE_ACCOUNT_LABELS='{"team":"a"}', TOKEN_EXPIRATION_DURATION="10m")
    async with world.requestor() as loop:
        token = await world.until_token()
        await until_idle(loop)
    assert await world.is_accepted(token)
    account = await world.account()
    assert account is not None
    assert labels(account) == {"team": "a"}
    assert account["automountServiceAccountToken"] is False
    assert 380 < await world.renew_in() <= 480
    assert world.requests() == 1


async def test_an_account_that_exists_keeps_everything_but_its_labels(world: RequestorWorld) -> None:
    existing = obj(
        "ServiceAccount",
        "sa",
        labels={"old": "1"},
        annotations={"keep": "1"},
        automountServiceAccountToken=True,
        imagePullSecrets=[{"name": "pull"}],
    )
    before = await world.create(existing)
    await world.ask(SERVICE_ACCOUNT_LABELS='{"new":"1"}')
    async with world.requestor():
        await world.until_token()
    after = await world.account()
    assert after is not None
    assert (labels(after), annotations(after)["keep"], uid(after)) == ({"new": "1"}, "1", uid(before))
    assert after["imagePullSecrets"] == [{"name": "pull"}]


async def test_labels_can_be_merged(world: RequestorWorld) -> None:
    await world.create(obj("ServiceAccount", "sa", labels={"old": "1"}))
    await world.ask(SERVICE_ACCOUNT_LABELS='{"new":"1"}')
    async with world.requestor(merge_service_account_labels=True):
        await world.until_token()
    assert labels(await world.account() or {}) == {"old": "1", "new": "1"}


async def test_only_secrets_of_the_class_get_a_token(world: RequestorWorld) -> None:
    await world.ask("without")
    await world.ask("with")
    await world.patch("Secret", "with", {"metadata": {"labels": {keys.CLASS: "shoot"}}})
    async with world.requestor(class_="shoot") as loop:
        await world.until_token("with")
        await until_idle(loop)
    assert not await world.token("without")


async def test_a_kubeconfig_gets_token_and_ca(world: RequestorWorld, cluster: Cluster) -> None:
    await world.ask(INJECT_CA_BUNDLE="true", data={"kubeconfig": kubeconfig()})
    async with world.requestor():
        await soon(lambda: _is_written(world), what="the kubeconfig")
    data = await world.data()
    written = yaml.safe_load(data["kubeconfig"])
    assert data.keys() == {"kubeconfig"}
    assert await world.is_accepted(written["users"][0]["user"]["token"])
    assert written["users"][1] == {"name": "v", "user": {"token": "of-somebody-else"}}
    assert base64.b64decode(written["clusters"][0]["cluster"]["certificate-authority-data"]).decode() == cluster.ca


async def _is_written(world: TokenWorld) -> bool:
    return keys.TOKEN_RENEW_TIMESTAMP in annotations(await world.secret() or {})


async def test_a_bare_token_comes_with_the_ca_that_is_requested(world: RequestorWorld, cluster: Cluster) -> None:
    key = await world.ask(INJECT_CA_BUNDLE="true")
    async with world.requestor() as loop:
        first = await world.until_token()
        assert (await world.data())["bundle.crt"] == cluster.ca
        await look_again(loop, key)
        assert world.requests() == 1
        await world.annotate("t", INJECT_CA_BUNDLE=None, TOKEN_RENEW_TIMESTAMP=None)
        await world.until_token(other_than=first)
        assert "bundle.crt" not in await world.data()


async def test_a_ca_that_is_not_known_is_no_reason_to_request_tokens(
    world: RequestorWorld, cluster: Cluster, tmp_path: Path
) -> None:
    key = await world.ask(INJECT_CA_BUNDLE="true", data={"bundle.crt": "somebody's"})
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["clusters"][0]["cluster"] = {"server": cluster.url, "insecure-skip-tls-verify": True}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    async with (
        connected(tmp_path / "kubeconfig", world.user_agent) as client,
        token_requestor(client, world.namespace) as loop,
    ):
        await world.until_token()
        await look_again(loop, key)
    assert (await world.data())["bundle.crt"] == "somebody's"
    assert world.requests() == 1


async def test_a_target_secret_holds_what_the_source_then_does_not(world: RequestorWorld) -> None:
    await world.ask(TARGET_SECRET_NAME="out", TARGET_SECRET_NAMESPACE=world.namespace, data={"token": "old", "x": "y"})
    async with world.requestor() as loop:
        first = await world.until_token("out")
        await until_idle(loop)
        assert await world.data() == {"x": "y"}
        await world.annotate("t", TARGET_SECRET_NAME=None, TARGET_SECRET_NAMESPACE=None)
        await world.until_token()
    assert await world.token("out") == first


async def test_a_target_secret_that_a_user_deletes_is_put_back(world: RequestorWorld) -> None:
    await world.ask(TARGET_SECRET_NAME="out", TARGET_SECRET_NAMESPACE=world.namespace)
    async with world.requestor() as loop:
        first = await world.until_token("out")
        await until_idle(loop)
        await world.delete("Secret", "out")
        second = await world.until_token("out", other_than=first)
        await until_idle(loop)
        mark = world.audit.mark()
        await until_idle(loop)
        assert world.calls(since=mark) == {}
    assert await world.is_accepted(second)
    assert world.requests() == 2
    listed = [call.uri for call in world.audit.calls(user_agent=world.user_agent, verbs=("list",))]
    lists = [uri for uri in listed if "labelSelector" not in uri and "/secrets" in uri]
    assert all("metadata.name%3Dout" in uri for uri in lists), lists


async def test_a_token_that_a_user_takes_out_of_a_target_secret_is_replaced(world: RequestorWorld) -> None:
    await world.ask(TARGET_SECRET_NAME="out", TARGET_SECRET_NAMESPACE=world.namespace)
    async with world.requestor() as loop:
        first = await world.until_token("out")
        await until_idle(loop)
        await world.set_data("out", token=None)
        await world.until_token("out", other_than=first)


async def test_many_target_secrets_share_a_watch_and_each_is_put_back(world: RequestorWorld) -> None:
    names = [f"out-{number}" for number in range(MOST_BY_NAME + 1)]
    for name in names:
        await world.ask(f"t-{name}", TARGET_SECRET_NAME=name, TARGET_SECRET_NAMESPACE=world.namespace)
    async with world.requestor() as loop:
        firsts = {name: await world.until_token(name) for name in names}
        await until_idle(loop)
        for name in names:
            await world.delete("Secret", name)
        for name in names:
            await world.until_token(name, other_than=firsts[name])
        # One less: from now on each is watched by itself.
        firsts = {name: await world.token(name) for name in names[1:]}
        await world.delete("Secret", f"t-{names[0]}")
        await until_idle(loop)
        await world.delete("Secret", names[0])
        for name in names[1:]:
            await world.delete("Secret", name)
        for name in names[1:]:
            await world.until_token(name, other_than=firsts[name])
        await until_idle(loop)
    assert await world.secret(names[0]) is None
    assert world.requests() == 3 * len(names) - 1


@pytest.mark.parametrize("restored", [False, True])
async def test_the_kubeconfig_of_the_source_goes_to_the_target_if_that_is_wanted(
    restored: bool, world: RequestorWorld
) -> None:
    await world.ask(
        TARGET_SECRET_NAME="out", TARGET_SECRET_NAMESPACE=world.namespace, data={"kubeconfig": kubeconfig()}
    )
    async with world.requestor(restore_target_kubeconfig=restored) as loop:
        await soon(lambda: _is_written(world), what="the token to be stored")
        if not restored:
            warnings = await soon(world.warnings, what="a warning")
            assert warnings.keys() == {KUBECONFIG_REMOVED}
        await until_idle(loop)
    assert await world.data() == {}
    assert (await world.data("out")).keys() == ({"kubeconfig"} if restored else {"token"})


# --- user errors


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        ({"account": ""}, 'the annotation "serviceaccount.resources.gardener.cloud/name" is missing'),
        ({"TOKEN_EXPIRATION_DURATION": "90s"}, "must be at least 10m"),
        ({"TOKEN_EXPIRATION_DURATION": "soon"}, 'time: invalid duration "soon"'),
        ({"SERVICE_ACCOUNT_LABELS": "[]"}, "failed unmarshalling service account labels"),
        ({"data": {"kubeconfig": "abc"}}, "could not check whether token exists in secret data"),
        ({"data": {"kubeconfig": kubeconfig(user="w")}}, "did not find authInfo of current context named u"),
    ],
)
async def test_what_can_not_be_is_reported_before_anything_is_done(
    requested: dict[str, str], message: str, world: RequestorWorld
) -> None:
    await world.ask(**requested)  # type: ignore[arg-type]
    async with world.requestor() as loop:
        warnings = await soon(world.warnings, what="a warning")
        await until_idle(loop)
    assert message in warnings[INVALID]
    assert await world.account() is None
    assert world.requests() == 0


async def test_a_target_secret_must_be_another_one(world: RequestorWorld) -> None:
    await world.ask(TARGET_SECRET_NAME="t", TARGET_SECRET_NAMESPACE=world.namespace)
    async with world.requestor() as loop:
        warnings = await soon(world.warnings, what="a warning")
        await until_idle(loop)
    assert "the target Secret is this Secret itself" in warnings[INVALID]
    assert world.requests() == 0


async def test_a_refusal_of_the_api_server_is_reported(world: RequestorWorld) -> None:
    await world.ask(TARGET_SECRET_NAME="out", TARGET_SECRET_NAMESPACE=f"{world.namespace}-none")
    async with world.requestor():
        warnings = await soon(world.warnings, what="a warning")
    assert warnings[FAILED].startswith("could not update Secret with token: namespaces ")


# --- once a lifetime


async def test_a_restart_requests_nothing_that_is_still_good(world: RequestorWorld) -> None:
    requested = [await world.ask(f"t-{number}") for number in range(5)]
    async with world.requestor() as loop:
        for key in requested:
            await world.until_token(key.name)
        await until_idle(loop)
    mark = world.audit.mark()
    for _ in range(2):
        async with world.requestor() as loop:
            await look_again(loop, *requested)
    calls = world.calls(since=mark)
    assert world.requests() == len(requested)
    assert calls.get(("patch", "secrets"), 0) == 0
    assert calls[("create", "tokenreviews")] >= len(requested)


async def test_own_writes_and_other_news_lead_to_no_requests(world: RequestorWorld) -> None:
    key = await world.ask()
    async with world.requestor() as loop:
        await world.until_token()
        await until_idle(loop)
        mark = world.audit.mark()
        for number in range(5):
            body = {"metadata": {"annotations": {"other": str(number)}}, "data": {"other": "eA=="}}
            await world.patch("Secret", "t", body)
        await look_again(loop, key)
        assert world.calls(since=mark) == {}


@pytest.mark.parametrize("text", [PAST, "soon", ""])
async def test_a_token_is_renewed_when_its_time_has_come(text: str, world: RequestorWorld) -> None:
    await world.ask()
    async with world.requestor():
        first = await world.until_token()
        await world.annotate("t", TOKEN_RENEW_TIMESTAMP=text)
        await world.until_token(other_than=first)
    assert await world.renew_in() > 9 * 3600


@pytest.mark.parametrize("data", [{"token": None}, {"token": ""}])
async def test_a_token_that_a_user_removes_is_replaced(data: dict[str, str | None], world: RequestorWorld) -> None:
    await world.ask()
    async with world.requestor():
        await world.until_token()
        await world.set_data("t", **data)
        await world.until_token()


async def test_jumps_of_the_clock_neither_renew_nor_delay(world: RequestorWorld) -> None:
    clock = MovableClock()
    requested = [await world.ask(f"t-{number}", TOKEN_EXPIRATION_DURATION="10m") for number in range(20)]
    async with world.requestor(clock=clock) as loop:
        for key in requested:
            await world.until_token(key.name)
        await until_idle(loop)
        for jump in (timedelta(days=1), timedelta(days=-1)):
            clock.jumped = jump
            await look_again(loop, *requested)
            assert world.requests() == len(requested)
        clock.moved += timedelta(minutes=5)  # of 8, and some have passed
        await look_again(loop, *requested)
        assert world.requests() == len(requested)
        clock.moved += timedelta(minutes=3, seconds=1)
        await look_again(loop, *requested)
        assert world.requests() == 2 * len(requested)


async def test_a_secret_in_deletion_gets_no_token(world: RequestorWorld) -> None:
    await world.ask()
    finalizers = {"metadata": {"finalizers": ["example.com/wait"]}}
    await world.patch("Secret", "t", finalizers)
    await world.delete("Secret", "t")
    async with world.requestor() as loop:
        await until_idle(loop)
    assert not await world.token()
    assert world.requests() == 0
    await world.patch("Secret", "t", {"metadata": {"finalizers": None}})


# --- reviews


async def test_a_token_whose_account_is_deleted_is_replaced_at_once(world: RequestorWorld) -> None:
    await world.ask()
    async with world.requestor():
        first = await world.until_token()
        await world.delete("ServiceAccount", "sa")
        second = await world.until_token(other_than=first)
        assert await world.is_accepted(second)
    assert world.requests() == 2


async def test_a_restart_finds_a_token_that_is_not_accepted(world: RequestorWorld) -> None:
    await world.ask(TOKEN_RENEW_TIMESTAMP=FUTURE, data={"token": "not-a-token"})
    async with world.requestor():
        token = await world.until_token(other_than="not-a-token")
    assert await world.is_accepted(token)


async def test_audiences_that_the_api_server_does_not_know_lead_to_no_loop(world: RequestorWorld) -> None:
    clock = MovableClock()
    key = await world.ask()
    async with world.requestor(clock=clock, audiences=("others",)) as loop:
        token = await world.until_token()
        for _ in range(3):
            clock.moved += timedelta(hours=2)
            await look_again(loop, key)
    assert await world.is_accepted(token, "others")
    assert world.requests() == 1


async def test_without_audiences_tokens_are_for_the_api_server(world: RequestorWorld) -> None:
    await world.ask()
    async with world.requestor(audiences=()):
        token = await world.until_token()
    assert await world.is_accepted(token, "https://kubernetes.default.svc")


# --- quarrels


async def test_a_quarrel_about_a_token_becomes_slow(world: RequestorWorld) -> None:
    """A user, or a webhook, removes each token as soon as it is there."""
    await world.ask()
    began, removed = time.monotonic(), 0
    async with world.requestor():
        while time.monotonic() - began < (8 if removed > 1 else PATIENCE):
            if await world.token():
                await world.set_data("t", token=None)
                removed += 1
            await asyncio.sleep(0.02)
    requests, elapsed = world.requests(), time.monotonic() - began
    assert 2 <= requests <= allowed_requests(elapsed)
