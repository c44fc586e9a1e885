"""The webhooks of the garden API: whatever comes in, there is an answer with a code, and no rule raises.

The first byte chooses kind and webhook, the second the operation, the rest is the new and the old object, as a list. To
begin with there are the objects of the recorded requests.
"""

import asyncio
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import orjson

from fuzz import driver
from kit.webhooks.garden import Reviews
from kit.webhooks.mutating import state_of
from kube.objects import Object, metadata
from webhooks.garden import conversion
from webhooks.garden.access import Access
from webhooks.garden.engine import mutator, validator
from webhooks.garden.lookups import VIEWS, Lookups
from webhooks.garden.registry import KINDS
from webhooks.metrics import panics
from webhooks.review import Endpoint, Reviewer

_RECORDED = Path(__file__).resolve().parents[1] / "conformance" / "garden_requests.json.gz"
_OPERATIONS = ("CREATE", "UPDATE", "DELETE")

_recorded = json.loads(gzip.decompress(_RECORDED.read_bytes()))
_in_garden = [obj for obj in _recorded["prelude"] if obj["kind"] in {of.kind for of in VIEWS}]
_state = state_of(*_in_garden)
_access = Access(cast("Any", Reviews()))


def _endpoints() -> Iterator[tuple[str, Endpoint]]:
    for kind in KINDS:
        lookups = Lookups(_state, kind.reads)
        name = kind.resource.kind
        yield name, Reviewer(name, mutator(kind, lookups, _access), path=f"/{name}/mutate")
        yield name, Reviewer(name, validator(kind, lookups, _access), path=f"/{name}/validate")


_ENDPOINTS = list(_endpoints())
_runner = asyncio.Runner()


def _objects() -> Iterator[Object]:
    for case in _recorded["cases"]:
        yield from case.get("setup", ())
        if "object" in case["request"]:
            yield case["request"]["object"]


def seeds() -> Iterator[bytes]:
    """The first objects of each kind, as they are and as updates of one another."""
    for index, (name, _) in enumerate(_ENDPOINTS):
        found = [obj for obj in _objects() if obj["kind"] == name][:6]
        for old, new in zip([*found[1:], *found[:1]], found, strict=True):
            for operation in range(len(_OPERATIONS)):
                yield bytes([index, operation]) + orjson.dumps([new, old])


def target(data: bytes) -> None:
    if len(data) < 2:
        return
    _, endpoint = _ENDPOINTS[data[0] % len(_ENDPOINTS)]
    body = driver.unfolded(data[2:])
    json.loads(_runner.run(conversion.answer(body, "application/json")))
    try:
        objects = orjson.loads(body)
        new, old = objects if isinstance(objects, list) and len(objects) == 2 else (objects, None)
        review = {"request": _request(_OPERATIONS[data[1] % 3], new, old)}
        sent = orjson.dumps(review)
    except (orjson.JSONDecodeError, TypeError):
        sent = body
    before = panics._value.get()
    response = json.loads(_runner.run(endpoint(sent, "application/json")))["response"]
    code = response["status"]["code"]
    assert isinstance(code, int)
    assert response["allowed"] is (code == 200)
    assert panics._value.get() == before, response


def _request(operation: str, new: Any, old: Any) -> Object:
    meta = metadata(new) if isinstance(new, dict) else {}
    request = {"operation": operation, "name": meta.get("name"), "namespace": meta.get("namespace")}
    user = {"username": "ann", "groups": ["system:authenticated"]}
    return {**request, "userInfo": user, "object": None if operation == "DELETE" else new, "oldObject": old}
