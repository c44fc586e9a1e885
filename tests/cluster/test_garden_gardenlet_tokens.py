"""Tokens that a gardenlet requests in the garden, for Secrets of its seed. Both are one cluster here."""

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from agent.gardenlet.context import Context
from agent.gardenlet.tokens import token_requestor
from agent.gardenlet.tokens.workload_identities import controller as workload_identities
from agent.gardenlet.tokens.workload_identities.reconcile import AWAY_SECONDS
from config.gardenlet.controllers import Controllers, WorkloadIdentityTokens
from devcluster.testing.faults import STRANGERS, Answer, Delay, Foreign, Rule, Truncated
from devcluster.testing.proxy import FaultProxy
from gardener import keys
from gardener.api.garden import CREDENTIALS_BINDINGS, SHOOTS, WORKLOAD_IDENTITIES
from gardener.garden.seeds import namespace_of
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.objects import decoded, encoded
from kit.proxied import proxy_to
from kit.tokens import look_again, until_idle
from kit.world import connected
from kube.clock import format_time, parse_time, utc_now
from kube.errors import NotFound
from kube.objects import Key, Object, annotations, uid
from kube.resources import NAMESPACES, SECRETS, SERVICE_ACCOUNTS, TOKEN_REVIEWS

pytestmark = pytest.mark.timeout(600)

HOURS = timedelta(hours=1)
NO_TOKENS = Answer(name="away", code=503, reason="", message="no healthy upstream", plain=True)
TOKENS = "/workloadidentities/.*/token$"


@dataclass
class Tokens:
    """Controllers at work for a Seed, with a clock that can be moved."""

    place: ShootPlace
    proxy: FaultProxy
    moved: timedelta = field(default=timedelta(0))
    context: Context = field(init=False)

    def now(self) -> datetime:
        return utc_now() + self.moved

    def secret(self, name: str = "t", *, labels: Object, data: dict[str, str] | None = None, **annotated: str) -> Key:
        named = {getattr(keys, constant): value for constant, value in annotated.items()}
        meta = {"labels": labels, "annotations": named}
        self.place.create(SECRETS, name, metadata=meta, data=encoded(data or {}))
        return self.place.key(name)

    def read(self, name: str = "t") -> Object:
        return self.place.get(SECRETS, name)

    def data(self, name: str = "t") -> dict[str, str]:
        return decoded(self.read(name))

    async def until_token(self, name: str = "t", *, other_than: str = "") -> str:
        def found() -> str:
            token = self.data(name).get("token", "")
            return token if token != other_than else ""

        token: str = await soon(found, f"a token in {name}")
        return token

    # --- of WorkloadIdentities

    def identity_secret(self, name: str = "t", *, identity: str = "wi", **options: Any) -> Key:
        return self.secret(
            name,
            labels={keys.SECURITY_PURPOSE: keys.PURPOSE_WORKLOAD_IDENTITY_TOKEN_REQUESTOR},
            **{"WORKLOAD_IDENTITY_NAME": identity, "WORKLOAD_IDENTITY_NAMESPACE": self.place.namespace, **options},
        )

    def renew_at(self, name: str = "t") -> datetime:
        return parse_time(annotations(self.read(name))[keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP])

    def requested(self, since: int = 0) -> list[str]:
        """The WorkloadIdentities for which tokens were requested from the garden."""
        paths = [each.request.path for each in [*self.proxy.log][since:] if each.request.method == "POST"]
        return [path.split("/")[-2] for path in paths if path.endswith("/token") and "/workloadidentities/" in path]


@pytest.fixture
async def tokens(garden: Garden, tmp_path: Path) -> AsyncIterator[Tokens]:
    place = ShootPlace(garden)
    place.seed()
    garden.create(NAMESPACES, namespace_of(place.name))
    place.create(WORKLOAD_IDENTITIES, "wi", spec={"audiences": ["cloud"], "targetSystem": {"type": "local"}})
    async with proxy_to(garden.cluster) as proxy:
        proxy.write_kubeconfig(tmp_path / "garden", token=garden.cluster.token)
        async with (
            connected(tmp_path / "garden", f"garden-of-{place.name}") as client,
            connected(garden.cluster, f"seed-of-{place.name}") as seed,
        ):
            tokens = Tokens(place, proxy)
            one = Controllers(token_requestor_workload_identity=WorkloadIdentityTokens(concurrent_syncs=1))
            tokens.context = await gardenlet_context(
                garden=client,
                seed=seed,
                config=gardenlet_config(place.name, controllers=one),
                clock=tokens.now,
                namespaces=(place.namespace,),
            )
            yield tokens


def claims_in(token: str) -> Object:
    claims: Object = orjson.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    return claims


def lasting_until(moment: datetime) -> str:
    """What looks like a token."""
    claims = base64.urlsafe_b64encode(orjson.dumps({"exp": int(moment.timestamp())})).rstrip(b"=").decode()
    return f"e30.{claims}.e30"


# --- of ServiceAccounts

GARDEN_CLASS = {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR, keys.CLASS: "garden"}


async def test_a_token_is_for_an_account_in_the_namespace_of_the_seed(tokens: Tokens) -> None:
    names: Any = {"SERVICE_ACCOUNT_NAME": "sa", "SERVICE_ACCOUNT_NAMESPACE": "default"}
    place = tokens.place
    tokens.secret(labels=GARDEN_CLASS, **names)
    tokens.secret("other", labels={**GARDEN_CLASS, keys.CLASS: "shoot"}, **names)
    tokens.secret("none", labels={keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR}, **names)
    async with gardenlet_at_work(tokens.context, token_requestor.declare) as (loop,):
        token = await tokens.until_token()
        await until_idle(loop)
    account = place.garden.get(SERVICE_ACCOUNTS, "sa", namespace=namespace_of(place.name))
    assert account["automountServiceAccountToken"] is False
    with pytest.raises(NotFound):
        place.garden.get(SERVICE_ACCOUNTS, "sa", namespace="default")
    assert not tokens.data("other")
    assert not tokens.data("none")
    review = await tokens.context.garden.client.create(TOKEN_REVIEWS, {"spec": {"token": token}})
    assert review["status"]["user"]["username"] == f"system:serviceaccount:{namespace_of(place.name)}:sa"


async def test_the_authority_of_the_garden_comes_with_a_token(tokens: Tokens) -> None:
    tokens.secret(labels=GARDEN_CLASS, SERVICE_ACCOUNT_NAME="sa", INJECT_CA_BUNDLE="true")
    async with gardenlet_at_work(tokens.context, token_requestor.declare):
        await tokens.until_token()
    assert tokens.data()["bundle.crt"] == tokens.place.garden.cluster.ca


async def test_an_account_is_there_before_its_secret_can_get_a_token(tokens: Tokens) -> None:
    tokens.secret(labels=GARDEN_CLASS, SERVICE_ACCOUNT_NAME="one", TOKEN_EXPIRATION_DURATION="1m")
    tokens.secret("u", labels=GARDEN_CLASS, SERVICE_ACCOUNT_NAME="two", data={"kubeconfig": "nonsense: ["})
    place = tokens.place
    async with gardenlet_at_work(tokens.context, token_requestor.declare) as (loop,):
        await until_idle(loop)
        for name in ("one", "two"):
            assert place.garden.get(SERVICE_ACCOUNTS, name, namespace=namespace_of(place.name))
        assert not tokens.data()
        place.patch(SECRETS, "t", {"metadata": {"annotations": {keys.TOKEN_EXPIRATION_DURATION: "30m"}}})
        await tokens.until_token()


@pytest.mark.parametrize("timestamp", ["2100-01-01T00:00:00Z", "nonsense"])
async def test_a_token_is_kept_until_it_is_due(tokens: Tokens, timestamp: str) -> None:
    tokens.secret(
        labels=GARDEN_CLASS, data={"token": "old"}, SERVICE_ACCOUNT_NAME="sa", TOKEN_RENEW_TIMESTAMP=timestamp
    )
    async with gardenlet_at_work(tokens.context, token_requestor.declare) as (loop,):
        await until_idle(loop)
        assert tokens.data() == {"token": "old"}
        tokens.place.patch(SECRETS, "t", {"metadata": {"annotations": {keys.TOKEN_RENEW_TIMESTAMP: None}}})
        await tokens.until_token(other_than="old")


# --- with the rights of a gardenlet


async def test_a_gardenlet_has_the_rights_to_tokens_and_needs_no_others(tokens: Tokens, garden: Garden) -> None:
    """The accounts are watched in its own namespace, so that nothing is refused again and again."""
    place, cluster = tokens.place, garden.cluster
    wi = {**WORKLOAD_IDENTITIES.type_meta, "namespace": place.namespace, "name": "wi"}
    place.create(CREDENTIALS_BINDINGS, "wi", provider={"type": place.name}, credentialsRef=wi)
    shoot = place.shoot("s", seedName=place.name, secretBindingName=None, credentialsBindingName="wi")
    context = orjson.dumps({**SHOOTS.type_meta, "namespace": place.namespace, "name": "s", "uid": uid(shoot)}).decode()
    user = f"{keys.SEED_USER_PREFIX}{place.name}"
    audit = cluster.audit()
    async with connected(cluster.kubeconfig_for(user, [keys.SEEDS_GROUP]), f"gardenlet-{place.name}") as client:
        own = await gardenlet_context(
            garden=client,
            seed=tokens.context.seed.client,
            config=tokens.context.config,
            namespaces=(place.namespace,),
        )
        tokens.secret("sa", labels=GARDEN_CLASS, SERVICE_ACCOUNT_NAME="sa")
        tokens.identity_secret(WORKLOAD_IDENTITY_CONTEXT_OBJECT=context)
        async with gardenlet_at_work(own, token_requestor.declare, workload_identities.declare) as loops:
            await tokens.until_token("sa")
            named = claims_in(await tokens.until_token())["gardener.cloud"]
            for loop in loops:
                await until_idle(loop)
    assert named["shoot"]["name"] == "s"
    assert named["seed"]["name"] == place.name
    calls = audit.calls(user_agent=f"gardenlet-{place.name}", watches=True)
    assert calls
    assert [each for each in calls if each.status == 403] == []
    audit.close()


# --- of WorkloadIdentities


async def test_a_token_of_an_identity_is_stored_and_renewed_after_half_of_its_life(tokens: Tokens) -> None:
    key = tokens.identity_secret(data={"config": "c"})
    async with gardenlet_at_work(tokens.context, workload_identities.declare) as (loop,):
        first = await tokens.until_token()
        claims = claims_in(first)
        assert claims["exp"] - claims["iat"] == 6 * 3600
        assert tokens.data() == {"config": "c", "token": first}
        assert 3 * HOURS - timedelta(minutes=1) < tokens.renew_at() - tokens.now() < 3.15 * HOURS
        tokens.moved = 2.9 * HOURS
        await look_again(loop, key)
        assert len(tokens.requested()) == 1
        tokens.moved = 3.2 * HOURS
        await look_again(loop, key)
        await tokens.until_token(other_than=first)
        assert tokens.data()["config"] == "c"


async def test_a_secret_without_the_label_keeps_what_it_has(tokens: Tokens) -> None:
    tokens.identity_secret()
    async with gardenlet_at_work(tokens.context, workload_identities.declare) as (loop,):
        first = await tokens.until_token()
        tokens.place.patch(SECRETS, "t", {"metadata": {"labels": {keys.SECURITY_PURPOSE: None}}})
        await until_idle(loop)
        tokens.place.patch(SECRETS, "t", {"metadata": {"annotations": {keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP: None}}})
        await until_idle(loop)
    assert tokens.data()["token"] == first
    assert len(tokens.requested()) == 1


@pytest.mark.parametrize(
    ("wrong", "mended"),
    [
        ({"WORKLOAD_IDENTITY_CONTEXT_OBJECT": "nonsense"}, {keys.WORKLOAD_IDENTITY_CONTEXT_OBJECT: None}),
        ({"WORKLOAD_IDENTITY_CONTEXT_OBJECT": "[]"}, {keys.WORKLOAD_IDENTITY_CONTEXT_OBJECT: None}),
        ({"WORKLOAD_IDENTITY_NAME": ""}, {keys.WORKLOAD_IDENTITY_NAME: "wi"}),
        ({"WORKLOAD_IDENTITY_RENEW_TIMESTAMP": "x"}, {keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP: None}),
    ],
)
async def test_a_secret_that_requests_something_impossible_is_left_alone(
    tokens: Tokens, wrong: dict[str, str], mended: Object
) -> None:
    tokens.identity_secret(data={"token": "old"}, **wrong)
    async with gardenlet_at_work(tokens.context, workload_identities.declare) as (loop,):
        await until_idle(loop)
        assert tokens.data() == {"token": "old"}
        assert not tokens.requested()
        tokens.place.patch(SECRETS, "t", {"metadata": {"annotations": mended}})
        await tokens.until_token(other_than="old")


async def test_an_identity_that_comes_later_is_found(tokens: Tokens) -> None:
    key = tokens.identity_secret(identity="late")
    async with gardenlet_at_work(tokens.context, workload_identities.declare) as (loop,):
        await soon(tokens.requested, "a request")
        late = {"audiences": ["x"], "targetSystem": {"type": "local"}}
        tokens.place.create(WORKLOAD_IDENTITIES, "late", spec=late)
        loop.queue.add(key)
        assert claims_in(await tokens.until_token())["aud"] == ["x"]


async def test_after_an_outage_of_the_garden_tokens_that_end_first_are_renewed_first(tokens: Tokens) -> None:
    """The garden issues none for eight hours; all have to be renewed when it is back."""
    names = ["d", "b", "a", "c"]
    start, place = tokens.now(), tokens.place
    for name in names:
        place.create(WORKLOAD_IDENTITIES, name, spec={"audiences": [name], "targetSystem": {"type": "local"}})
        token = lasting_until(start + HOURS * (9 + names.index(name) if name != "a" else 8.5))
        due = format_time(start + HOURS)
        tokens.identity_secret(name, identity=name, data={"token": token}, WORKLOAD_IDENTITY_RENEW_TIMESTAMP=due)
    by_expiry = ["a", "d", "b", "c"]
    async with gardenlet_at_work(tokens.context, workload_identities.declare) as (loop,):
        await until_idle(loop)
        tokens.proxy.rules.add(Rule(fault=NO_TOKENS, path=TOKENS))
        for hours in range(2, 9):
            tokens.moved = HOURS * hours
            await look_again(loop, *(place.key(name) for name in names))
        asked = tokens.requested()
        assert set(asked[1:]) == {"a"}, "only for the most urgent one"
        assert len(asked) <= 7, "once for each time that all were looked at"
        shortest = next(iter(tokens.context.metrics.identity_tokens.collect())).samples[0].value
        assert shortest < 9 * 3600
        tokens.proxy.rules.clear()
        since = len(tokens.proxy.log)
        tokens.moved += timedelta(seconds=AWAY_SECONDS)
        loop.queue.add(place.key("c"))
        for name in names:
            assert claims_in(await tokens.until_token(name, other_than=lasting_until(start)))["exp"]
        await soon(lambda: len(tokens.requested(since)) >= len(names), "all tokens")
        assert tokens.requested(since) == by_expiry


@pytest.mark.parametrize("fault", [*STRANGERS, Truncated()], ids=lambda fault: fault.name)
async def test_what_is_no_answer_of_the_garden_changes_nothing(tokens: Tokens, fault: Foreign | Truncated) -> None:
    due = format_time(tokens.now() - HOURS)
    key = tokens.identity_secret(data={"token": "old"}, WORKLOAD_IDENTITY_RENEW_TIMESTAMP=due)
    tokens.proxy.rules.add(Rule(fault=fault, path=TOKENS))
    async with gardenlet_at_work(tokens.context, workload_identities.declare) as (loop,):
        await soon(tokens.requested, "a request")
        assert tokens.data() == {"token": "old"}
        tokens.proxy.rules.clear()
        tokens.moved = timedelta(seconds=AWAY_SECONDS)
        loop.queue.add(key)
        await tokens.until_token(other_than="old")


async def test_a_token_for_what_is_not_wanted_any_more_is_not_stored(tokens: Tokens) -> None:
    """The Secret changes between the request and the write; what another client has written stays."""
    place = tokens.place
    place.create(WORKLOAD_IDENTITIES, "other", spec={"audiences": ["other"], "targetSystem": {"type": "local"}})
    tokens.identity_secret(data={"config": "old"})
    tokens.proxy.rules.add(Rule(fault=Delay(seconds=2.0), path="/workloadidentities/wi/token$"))
    async with gardenlet_at_work(tokens.context, workload_identities.declare):
        await soon(tokens.requested, "a request")
        changed = {"metadata": {"annotations": {keys.WORKLOAD_IDENTITY_NAME: "other"}}}
        place.patch(SECRETS, "t", {**changed, "data": encoded({"config": "new"})})
        assert claims_in(await tokens.until_token())["aud"] == ["other"]
    assert tokens.data()["config"] == "new"


async def test_one_identity_that_is_missing_keeps_no_other_waiting(tokens: Tokens) -> None:
    tokens.identity_secret("missing", identity="missing")
    tokens.identity_secret("t")
    async with gardenlet_at_work(tokens.context, workload_identities.declare):
        await tokens.until_token()
    assert not tokens.data("missing")


async def test_steady_state_costs_nothing(tokens: Tokens) -> None:
    key = tokens.identity_secret()
    audit = tokens.place.garden.cluster.audit()
    count = partial(audit.count, user_agent=f"seed-of-{tokens.place.name}")
    async with gardenlet_at_work(tokens.context, workload_identities.declare) as (loop,):
        await tokens.until_token()
        await until_idle(loop)
        since = audit.mark()
        await look_again(loop, key)
        assert count(since=since) == {}
    assert count()[("patch", "secrets")] == 1
    assert len(tokens.requested()) == 1
    audit.close()
