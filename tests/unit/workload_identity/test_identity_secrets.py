"""What a Secret requests, when its token is due, and which of several comes first."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from agent.gardenlet.common.metrics import IdentityTokenCollector
from agent.gardenlet.tokens.workload_identities.identity_secret import IdentitySecret, InvalidSecret, renew_after
from agent.gardenlet.tokens.workload_identities.urgency import Due
from gardener import keys
from kit.objects import encoded
from kube.objects import Key

HOUR = timedelta(hours=1)
NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
NAMED = {keys.WORKLOAD_IDENTITY_NAME: "wi", keys.WORKLOAD_IDENTITY_NAMESPACE: "garden-p"}
MARK = {keys.SECURITY_PURPOSE: keys.PURPOSE_WORKLOAD_IDENTITY_TOKEN_REQUESTOR}


def token(claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(orjson.dumps(claims)).rstrip(b'=').decode()}.e30"


def secret(
    annotations: dict[str, str], *, data: dict[str, str] | None = None, labels: dict[str, str] = MARK, **meta: Any
) -> IdentitySecret:
    whole = {"namespace": "n", "name": "t", "uid": "u", "labels": labels, "annotations": annotations, **meta}
    return IdentitySecret.of({"metadata": whole, "data": encoded(data or {})})


def test_an_identity_and_a_context_are_requested() -> None:
    context = '{"kind": "Shoot", "name": "s"}'
    wanted = secret({**NAMED, keys.WORKLOAD_IDENTITY_CONTEXT_OBJECT: context}).wanted()
    assert wanted.identity == Key("garden-p", "wi")
    assert wanted.context == {"kind": "Shoot", "name": "s"}
    assert secret(NAMED).wanted().context is None


@pytest.mark.parametrize("name", NAMED)
def test_an_annotation_that_is_missing_is_named(name: str) -> None:
    with pytest.raises(InvalidSecret, match=f'annotation "{name}" is missing'):
        secret({**NAMED, name: ""}).wanted()


@pytest.mark.parametrize("context", ["nonsense", "[]", "1", '"x"'])
def test_a_context_that_is_no_object_is_named(context: str) -> None:
    with pytest.raises(InvalidSecret, match='context-object" is not a JSON object'):
        secret({**NAMED, keys.WORKLOAD_IDENTITY_CONTEXT_OBJECT: context}).wanted()


@pytest.mark.parametrize(
    ("timestamp", "data", "due"),
    [
        ("", {"token": "t"}, None),
        ("2026-05-01T13:00:00Z", {}, None),
        ("2026-05-01T13:00:00Z", {"token": ""}, None),
        ("2026-05-01T13:00:00Z", {"token": "t"}, NOW + HOUR),
        ("nonsense", {}, None),
    ],
)
def test_a_token_is_due(timestamp: str, data: dict[str, str], due: datetime | None) -> None:
    assert secret({keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP: timestamp}, data=data).renew_at() == due


def test_a_time_that_is_none_is_named() -> None:
    with pytest.raises(InvalidSecret, match='token-renew-timestamp" is not a valid time; remove it'):
        secret({keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP: "soon"}, data={"token": "t"}).renew_at()


@pytest.mark.parametrize(
    ("lifetime", "jitter", "expected"),
    [
        (6 * HOUR, 0.0, 3 * HOUR),
        (6 * HOUR, 1.0, 3.15 * HOUR),
        (HOUR, 0.5, timedelta(minutes=30, seconds=45)),
        (47 * HOUR, 0.0, 23.5 * HOUR),
        (48 * HOUR, 0.0, 24 * HOUR),
        (48 * HOUR, 1.0, 24 * HOUR),
        (1000 * HOUR, 0.0, 24 * HOUR),
    ],
)
def test_half_of_a_life_is_used(lifetime: timedelta, jitter: float, expected: timedelta) -> None:
    assert renew_after(lifetime, jitter=jitter) == expected


@pytest.mark.parametrize(
    ("text", "expires"),
    [
        (token({"exp": 1700000000}), 1.7e9),
        (token({"exp": "soon"}), None),
        (token({"exp": True}), None),
        (token([]), None),
        (token({}), None),
        ("", None),
        ("no token", None),
        ("a.b", None),
        ("a.\xff.c", None),
        ("a.e30", None),
    ],
)
def test_the_end_of_a_token_is_read_if_there_is_one(text: str, expires: float | None) -> None:
    assert secret(NAMED, data={"token": text}).expires == expires


def test_a_secret_without_the_label_or_that_goes_wants_none() -> None:
    assert secret(NAMED).wants_token
    assert not secret(NAMED, labels={}).wants_token
    assert not secret(NAMED, labels={keys.SECURITY_PURPOSE: "other"}).wants_token
    assert not secret(NAMED, deletionTimestamp="2026-05-01T12:00:00Z").wants_token


def test_a_token_is_not_kept() -> None:
    assert "sesame" not in repr(secret(NAMED, data={"token": "sesame"}))


def test_what_ends_first_comes_first() -> None:
    due, (a, b, c) = Due(), (Key("n", each) for each in "abc")
    due.add(a, 30.0)
    due.add(b, 10.0)
    due.add(c, 20.0)
    due.add(a, 5.0)
    due.discard(c)
    assert c not in due
    assert [due.take(), due.take(), due.take()] == [a, b, None]
    due.add(a, 30.0)
    due.add(a, 30.0)
    assert [due.take(), due.take()] == [a, None]


def test_the_shortest_rest_of_life_is_shown_while_there_is_a_token() -> None:
    collector, ends = IdentityTokenCollector(today=lambda: NOW), [NOW.timestamp() + 90, NOW.timestamp() - 30]

    def shown() -> list[float]:
        return [sample.value for family in collector.collect() for sample in family.samples]

    assert shown() == []
    unfollow = collector.follow(lambda: ends)
    assert shown() == [-30]
    ends.pop()
    assert shown() == [90]
    ends.clear()
    assert shown() == []
    ends.append(NOW.timestamp())
    unfollow()
    assert shown() == []
