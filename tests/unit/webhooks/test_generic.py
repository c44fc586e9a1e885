from typing import Any

import pytest

from kit.webhooks import mutating
from kube.errors import NotFound, Unreachable
from kube.objects import Object
from webhooks.admission import Allowed, Answer, Changed, Denied, Errored, Failure, Mutation, Refusal, Request
from webhooks.generic import copied, defaulter, validator

NOTHING = Errored(400, "there is no content to decode")
MISSING: Object = {"message": 'serviceaccounts "a" not found', "reason": "NotFound", "details": {"name": "a"}}
NOT_FOUND = NotFound(404, **MISSING)
NOT_FOUND_STATUS = {"status": "Failure", "code": 404, **MISSING}


def request(operation: str = "CREATE", *, obj: Any = None, old: Any = None) -> Request:
    return mutating.request(obj, old=old, operation=operation)


async def label(_: Request, obj: Any) -> None:
    obj.setdefault("metadata", {}).setdefault("labels", {})["seen"] = "true"


def raising(error: Exception) -> Mutation:
    async def mutate(_: Request, obj: Any) -> None:
        obj["touched"] = True
        raise error

    return mutate


# --- defaulter


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "CONNECT", ""])
async def test_a_mutation_is_applied_to_a_copy(operation: str) -> None:
    obj: Any = {"metadata": {"labels": {}}}
    answer = await defaulter(label)(request(operation, obj=obj))
    assert answer == Changed({"metadata": {"labels": {}}}, {"metadata": {"labels": {"seen": "true"}}})
    assert obj == {"metadata": {"labels": {}}}


async def test_a_deletion_is_allowed_unseen() -> None:
    assert await defaulter(raising(AssertionError()))(request("DELETE", obj={}, old={})) == Allowed()


async def test_without_an_object_there_is_nothing_to_change() -> None:
    assert await defaulter(label)(request(obj=None)) == NOTHING


def caused_by(cause: Exception) -> Exception:
    error = RuntimeError("failed to look it up")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (Refusal(Denied("no")), Denied("no")),
        (Refusal(Errored(400, "what?")), Errored(400, "what?")),
        (NOT_FOUND, Failure(NOT_FOUND_STATUS)),
        (caused_by(NOT_FOUND), Failure(NOT_FOUND_STATUS)),
        (caused_by(caused_by(NOT_FOUND)), Failure(NOT_FOUND_STATUS)),
        (Unreachable("connection refused"), Denied("connection refused")),
    ],
)
async def test_what_a_rule_raises_is_its_answer(error: Exception, answer: Answer) -> None:
    assert await defaulter(raising(error))(request(obj={})) == answer


@pytest.mark.parametrize("mistake", [KeyError("spec"), TypeError("None"), ValueError("?"), RecursionError()])
async def test_a_mistake_of_a_rule_is_not_an_answer(mistake: Exception) -> None:
    with pytest.raises(type(mistake)):
        await defaulter(raising(mistake))(request(obj={}))


def test_a_copy_is_independent_all_the_way_down() -> None:
    original: Any = {"a": [{"b": {"c": [1, 2.5, None, True, "text", 10**25]}}], "": {}}
    copy = copied(original)
    assert copy == original
    copy["a"][0]["b"]["c"].append(3)
    copy[""]["new"] = 1
    assert original == {"a": [{"b": {"c": [1, 2.5, None, True, "text", 10**25]}}], "": {}}


# --- validator


class Calls:
    """Rules that tell what they were asked."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def create(self, _: Request, obj: Any) -> None:
        self.seen.append(("create", obj))

    def update(self, _: Request, obj: Any, old: Any) -> None:
        self.seen.append(("update", obj, old))

    def delete(self, _: Request, old: Any) -> None:
        self.seen.append(("delete", old))


@pytest.mark.parametrize(
    ("asked", "answer", "seen"),
    [
        (request("CREATE", obj=1), Allowed(), [("create", 1)]),
        (request("CREATE"), NOTHING, []),
        (request("UPDATE", obj=1, old=2), Allowed(), [("update", 1, 2)]),
        (request("UPDATE", obj=1), NOTHING, []),
        (request("UPDATE", old=2), NOTHING, []),
        (request("DELETE", old=2), Allowed(), [("delete", 2)]),
        (request("DELETE", obj=1), NOTHING, []),
        (request("CONNECT"), Allowed(), []),
        (request("PATCH", obj=1), Errored(400, 'unknown operation "PATCH"'), []),
        (request("", obj=1), Errored(400, 'unknown operation ""'), []),
    ],
)
async def test_each_operation_has_its_rule(asked: Request, answer: Answer, seen: list[Any]) -> None:
    calls = Calls()
    assert await validator(calls.create, calls.update, calls.delete)(asked) == answer
    assert calls.seen == seen


async def test_a_rule_refuses_by_raising() -> None:
    def refuse(_: Request, __: Any) -> None:
        raise Refusal(Failure({"code": 422}))

    assert await validator(refuse, Calls().update)(request(obj={})) == Failure({"code": 422})


async def test_a_deletion_without_a_rule_is_allowed() -> None:
    assert await validator(Calls().create, Calls().update)(request("DELETE", old={})) == Allowed()
