"""Which tokens the webhook takes out of use, and which invalid ones it takes away."""

import copy
from typing import Any, cast

import pytest

from config.resource_manager.webhooks import Webhook
from gardener.keys import TOKEN_INVALIDATOR_CONSIDER
from kit import objects
from kit.webhooks.mutating import request
from kube.objects import Object
from webhooks.admission import Allowed, Changed, Errored, Kind, Request
from webhooks.generic import defaulter
from webhooks.handlers.token_invalidator import invalidate, mutation
from webhooks.rules.patch import difference

VALID, INVALID = "dG9rZW4=", "AAAA"


def secret(data: Any, **labels: str) -> Object:
    return objects.secret("s", labels=labels, type="x", **({} if data is None else {"data": data}))


def requested(obj: Any, operation: str = "UPDATE") -> Request:
    return request(obj, kind=Kind("", "v1", "Secret"), name="s", operation=operation)


def invalidated(obj: Object) -> Object:
    """A copy."""
    after = copy.deepcopy(obj)
    invalidate(after)
    return after


@pytest.mark.parametrize("label", ["true", "false", ""])
@pytest.mark.parametrize(
    ("data", "operations"),
    [
        ({"token": VALID, "ca.crt": "Yw=="}, [{"op": "replace", "path": "/data/token", "value": INVALID}]),
        ({"ca.crt": "Yw=="}, [{"op": "add", "path": "/data/token", "value": INVALID}]),
        ({"token": None}, [{"op": "replace", "path": "/data/token", "value": INVALID}]),
        ({"token": INVALID}, []),
        (None, []),
    ],
)
def test_a_secret_that_is_considered_has_an_invalid_token(label: str, data: Any, operations: list[Object]) -> None:
    before = secret(data, **{TOKEN_INVALIDATOR_CONSIDER: label})
    after = invalidated(before)
    assert difference(before, after) == operations
    assert invalidated(after) == after


@pytest.mark.parametrize(
    ("data", "operations"),
    [
        ({"token": INVALID, "ca.crt": "Yw=="}, [{"op": "remove", "path": "/data/token"}]),
        ({"token": VALID}, []),
        ({"token": "AAA="}, []),
        ({"token": "AAAAAAAA"}, []),
        ({"ca.crt": "Yw=="}, []),
        (None, []),
    ],
)
def test_an_invalid_token_goes_when_the_secret_is_not_considered_any_more(data: Any, operations: list[Object]) -> None:
    before = secret(data, other="label")
    assert difference(before, invalidated(before)) == operations


handle = defaulter(mutation(Webhook(enabled=True), cast("Any", None)))


async def test_the_handler_answers_with_what_is_changed() -> None:
    obj = secret({"token": VALID}, **{TOKEN_INVALIDATOR_CONSIDER: "true"})
    assert await handle(requested(copy.deepcopy(obj))) == Changed(obj, {**obj, "data": {"token": INVALID}})
    assert await handle(requested(None, "DELETE")) == Allowed()


@pytest.mark.parametrize(
    "obj", [{"kind": "Pod", "apiVersion": "v1"}, {"data": []}, {"data": {"token": 1}}, {"metadata": {"labels": 1}}, []]
)
async def test_what_is_no_secret_is_an_error(obj: Any) -> None:
    answer = await handle(requested(obj))
    assert isinstance(answer, Errored)
    assert answer.code == 400
