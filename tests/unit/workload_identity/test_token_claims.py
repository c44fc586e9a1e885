"""What a request for a token may ask for, and what is in the token."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardener.api.garden import SEEDS, SHOOTS
from kube.objects import Key, Object
from webhooks.tokens.claims import ContextObject, InvalidRequest, claims, parse

HOUR = timedelta(hours=1)
NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
SHOOT = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "namespace": "garden-p", "name": "s", "uid": "u"}


def request(**spec: Any) -> Object:
    return {"spec": spec}


@pytest.mark.parametrize(
    ("seconds", "lifetime"),
    [
        (None, HOUR),
        (600, HOUR),
        (3600, HOUR),
        (21600, 6 * HOUR),
        (48 * 3600, 48 * HOUR),
        (48 * 3600 + 1, 48 * HOUR),
        (1 << 32, 48 * HOUR),
    ],
)
def test_a_lifetime_is_bounded(seconds: int | None, lifetime: timedelta) -> None:
    assert parse(request(expirationSeconds=seconds)).lifetime == lifetime


@pytest.mark.parametrize("seconds", [0, 599, (1 << 32) + 1, -3600, "3600", 3600.0, True, [], {}])
def test_an_impossible_lifetime_is_refused(seconds: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^spec\.expirationSeconds: must be a number of seconds from 600"):
        parse(request(expirationSeconds=seconds))


@pytest.mark.parametrize("body", [{}, {"spec": None}, {"spec": {}}, {"spec": {"contextObject": None}}])
def test_nothing_has_to_be_requested(body: Object) -> None:
    wanted = parse(body)
    assert (wanted.lifetime, wanted.context) == (HOUR, None)


def test_a_context_object_is_read() -> None:
    context = parse(request(contextObject=SHOOT)).context
    assert context == ContextObject("core.gardener.cloud", "Shoot", Key("garden-p", "s"), "u")
    assert context.is_a(SHOOTS)
    assert not context.is_a(SEEDS)


@pytest.mark.parametrize("field", ["apiVersion", "kind", "name", "uid"])
@pytest.mark.parametrize("value", ["", None, 1, {}])
def test_a_context_object_without_a_field_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=rf"^spec\.contextObject\.{field}: is required$"):
        parse(request(contextObject={**SHOOT, field: value}))


@pytest.mark.parametrize("context", ["nonsense", 1, [SHOOT]])
def test_a_context_object_that_is_none_is_refused(context: object) -> None:
    with pytest.raises(InvalidRequest):
        parse(request(contextObject=context))


def test_a_shoot_without_namespace_and_a_seed_with_one_are_neither() -> None:
    shoot, seed = ContextObject(SHOOTS.group, "Shoot", Key("", "s"), "u"), Key("garden", "s")
    assert not shoot.is_a(SHOOTS)
    assert not ContextObject(SEEDS.group, "Seed", seed, "u").is_a(SEEDS)
    assert not ContextObject("other.example.com", "Seed", Key("", "s"), "u").is_a(SEEDS)


def test_claims() -> None:
    identity = {
        "metadata": {"namespace": "garden-p", "name": "wi", "uid": "wi-uid"},
        "spec": {"audiences": ["a", "b"]},
    }
    shoot = {"metadata": {"namespace": "garden-p", "name": "s", "uid": "s-uid"}}
    seed = {"metadata": {"name": "soil", "uid": "soil-uid"}}
    made = claims(identity, issuer="https://i", now=NOW, lifetime=6 * HOUR, context={"shoot": shoot, "seed": seed})
    assert made.pop("jti")
    begin = int(NOW.timestamp())
    assert made == {
        "iss": "https://i",
        "sub": "gardener.cloud:workloadidentity:garden-p:wi:wi-uid",
        "aud": ["a", "b"],
        "iat": begin,
        "nbf": begin,
        "exp": begin + 6 * 3600,
        "gardener.cloud": {
            "workloadIdentity": {"name": "wi", "namespace": "garden-p", "uid": "wi-uid"},
            "shoot": {"name": "s", "namespace": "garden-p", "uid": "s-uid"},
            "seed": {"name": "soil", "uid": "soil-uid"},
        },
    }


def test_two_tokens_differ() -> None:
    identity = {"metadata": {"namespace": "n", "name": "wi", "uid": "u"}, "spec": {}}
    one, other = (claims(identity, issuer="https://i", now=NOW, lifetime=HOUR, context={}) for _ in range(2))
    assert one["jti"] != other["jti"]
