from typing import Any
from unittest.mock import ANY, Mock, call

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


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "CONNECT", ""])
async def test_a_mutation_is_applied_to_a_copy(operation: str) -> None:
    obj: Any = {"metadata": {"labels": {}}}
    answer = await defaulter(label)(request(operation, obj=obj))
    assert answer == Changed({"metadata": {"labels": {}}}, {"metadata": {"labels": {"seen": "true"}}})
    assert obj == {"metadata": {"labels": {}}}


@pytest.mark.parametrize(
    ("requested", "answer"), [(request("DELETE", obj={}, old={}), Allowed()), (request(obj=None), NOTHING)]
)
async def test_a_deletion_is_allowed_unseen_and_without_an_object_there_is_nothing_to_change(
    requested: Request, answer: Answer
) -> None:
    assert await defaulter(raising(AssertionError()))(requested) == answer


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
    original, same = ({"a": [{"b": {"c": [1, 2.5, None, True, "text", 10**25]}}], "": {}} for _ in range(2))
    copy: Any = copied(original)
    assert copy == original
    copy["a"][0]["b"]["c"].append(3)
    copy[""]["new"] = 1
    assert original == same


@pytest.mark.parametrize(
    ("requested", "answer", "seen"),
    [
        (request("CREATE", obj=1), Allowed(), [call.create(ANY, 1)]),
        (request("CREATE"), NOTHING, []),
        (request("UPDATE", obj=1, old=2), Allowed(), [call.update(ANY, 1, 2)]),
        (request("UPDATE", obj=1), NOTHING, []),
        (request("UPDATE", old=2), NOTHING, []),
        (request("DELETE", old=2), Allowed(), [call.delete(ANY, 2)]),
        (request("DELETE", obj=1), NOTHING, []),
        (request("CONNECT"), Allowed(), []),
        (request("PATCH", obj=1), Errored(400, 'unknown operation "PATCH"'), []),
        (request("", obj=1), Errored(400, 'unknown operation ""'), []),
    ],
)
async def test_each_operation_has_its_rule(requested: Request, answer: Answer, seen: list[Any]) -> None:
    rules = Mock()
    assert await validator(rules.create, rules.update, rules.delete)(requested) == answer
    assert rules.mock_calls == seen


async def test_a_rule_refuses_by_raising() -> None:
    create = Mock(side_effect=Refusal(Failure({"code": 422})))
    assert await validator(create, Mock())(request(obj={})) == Failure({"code": 422})


async def test_a_deletion_without_a_rule_is_allowed() -> None:
    assert await validator(Mock(), Mock())(request("DELETE", old={})) == Allowed()
