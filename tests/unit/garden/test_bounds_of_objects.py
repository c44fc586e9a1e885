"""What a review of the garden API may cost: objects have the bounds of the schema before any rule sees them."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, cast

import orjson
import pytest

from gardener.api.garden import CREDENTIALS_BINDINGS, MANAGED_SEED_SETS, QUOTAS, SHOOTS
from gardener.api.schema import Schema
from gardener.api.structural import with_defaults
from kit.garden_objects import garden_object
from kit.webhooks.garden import Asked, Reviews
from kit.webhooks.mutating import state_of
from kube.objects import Object
from webhooks.admission import Allowed, Answer, Errored, Refusal, User
from webhooks.bounds import MAX_VALUES_OF_OBJECT
from webhooks.garden.access import MOST_AT_ONCE, MOST_RIGHTS, MOST_WAITING, Access
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.write import Right
from webhooks.garden.engine import mutator, validator
from webhooks.garden.kinds.credentials_binding import CREDENTIALS_BINDING
from webhooks.garden.kinds.managed_seed_set import MANAGED_SEED_SET
from webhooks.garden.kinds.shoot.kind import SHOOT
from webhooks.garden.lookups import Lookups
from webhooks.garden.registry import KINDS
from webhooks.generic import copied
from webhooks.review import Reviewer, dumped
from webhooks.rules.registration import WRITE

OF_GARDEN = [kind for kind in KINDS if kind.resource.group and kind.validated[:2] == WRITE]

Path = tuple[str | int, ...]


def beyond(schema: Schema, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Each field with a bound, and a value that exceeds it."""
    if (most := schema.get("maxItems")) is not None:
        yield path, [None] * (most + 1)
    if (most := schema.get("maxLength")) is not None:
        yield path, "x" * (most + 1)
    if (most := schema.get("maxProperties")) is not None:
        yield path, {f"k{number}": None for number in range(most + 1)}
    if schema.get("format") == "int32":
        yield path, 2**31
    if "items" in schema:
        yield from beyond(schema["items"], (*path, 0))
    for name, inner in schema.get("properties", {}).items():
        if path or name not in {"apiVersion", "kind", "metadata", "status"}:
            yield from beyond(inner, (*path, name))


def with_value(path: Path, value: Any, into: Any) -> Any:
    if not path:
        return value
    first, *rest = path
    if isinstance(first, int):
        return [with_value(tuple(rest), value, {})]
    known = into if isinstance(into, dict) else {}
    return {**known, first: with_value(tuple(rest), value, known.get(first))}


def written(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, of Python and of C."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def answers(kind: Kind, obj: Object, old: Object | None = None) -> tuple[Answer, Answer]:
    requested = Asked(kind)
    request = requested.request("CREATE" if old is None else "UPDATE", obj, old)
    return requested.mutate(request), requested.validate(request)


@pytest.mark.parametrize("kind", OF_GARDEN, ids=lambda kind: kind.resource.kind)
def test_no_rule_of_any_kind_sees_what_exceeds_the_schema(kind: Kind) -> None:
    base = Asked(kind).complete(garden_object(kind.resource))
    for path, value in beyond(kind.definition.schema):
        obj = with_value(path, value, base)
        mutated, validated = answers(kind, obj)
        assert mutated == Allowed(), path  # the API server compares it with its schema next
        assert isinstance(validated, Errored), path
        assert validated.code == 400
        assert f"`${written(path)}`" in validated.message


def test_a_hundred_thousand_pools_cost_nothing() -> None:
    shoot = garden_object(SHOOTS)
    shoot["spec"]["provider"]["workers"] = [{}] * 110_000
    complete = Asked(SHOOT).complete(shoot)
    assert calls(lambda: answers(SHOOT, complete)) < 110_000


def test_what_was_stored_while_the_schema_permitted_more_can_be_labelled_and_deleted_but_not_changed() -> None:
    requested = Asked(SHOOT)
    stored = requested.complete(garden_object(SHOOTS))
    stored["spec"]["seedSelector"] = {"matchLabels": {f"l{number}": "v" for number in range(1000)}}
    stored = with_defaults(SHOOT.definition.schema, stored)
    confirmed = copied(stored)
    confirmed["metadata"]["annotations"] = {"confirmation.gardener.cloud/deletion": "true"}
    mutated, validated = answers(SHOOT, confirmed, stored)
    assert isinstance(validated, Allowed)
    noted = mutated.after["metadata"]["annotations"]  # type: ignore[union-attr]
    assert noted["deletion.gardener.cloud/confirmed-by"] == "admin"
    changed = copied(stored)
    changed["spec"]["region"] = "other"
    assert isinstance(answers(SHOOT, changed, stored)[1], Errored)
    assert requested.delete(confirmed).code == 200


def test_many_mistakes_in_one_field_are_compared_in_one_go() -> None:
    """By identity of field and value: each with each took a quarter of a minute with thirty thousand."""

    def cost(mistakes: int) -> int:
        seed_set = garden_object(MANAGED_SEED_SETS)
        seed_set["spec"]["template"]["metadata"]["labels"] |= {f"-{number}": "" for number in range(mistakes)}
        stored = Asked(MANAGED_SEED_SET).complete(seed_set)
        labelled = copied(stored)
        labelled["spec"]["replicas"] = 2

        def update() -> None:
            assert isinstance(answers(MANAGED_SEED_SET, labelled, stored)[1], Allowed)

        return calls(update)

    assert cost(2_000) < 2.5 * cost(1_000)


# --- what can be created can be updated


def endpoints(kind: Kind) -> tuple[Reviewer, Reviewer]:
    lookups = Lookups(state_of(), kind.reads)
    access = Access(cast("Any", Reviews()))
    return tuple(
        Reviewer("r", each, path="/r") for each in (mutator(kind, lookups, access), validator(kind, lookups, access))
    )  # type: ignore[return-value]


def codes(kind: Kind, operation: str, new: Object, old: Object | None) -> set[int]:
    request = {"uid": "u", "operation": operation, "name": "x", "object": new, "oldObject": old}
    body = dumped({"request": request})
    found = [orjson.loads(asyncio.run(each(body, "application/json"))) for each in endpoints(kind)]
    assert all(each["response"]["uid"] == "u" for each in found)
    return {each["response"]["status"]["code"] for each in found}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.kind)
@pytest.mark.parametrize("share", [0.9, 1.1])
def test_what_can_be_created_can_be_updated_by_many_clients_and_with_a_status(kind: Kind, share: float) -> None:
    values = round(share * MAX_VALUES_OF_OBJECT)
    bare = {**kind.resource.type_meta, "metadata": {"name": "x"}}
    obj = {**bare, "more": [[]] * (values // 2)}
    created = 413 not in codes(kind, "CREATE", obj, None)
    assert created is (share < 1)
    if created:
        managed = [{"manager": f"m{number}", "fieldsV1": {"f:a": [{}] * 40_000}} for number in range(2)]
        meta: Object = {"name": "x", "managedFields": managed}
        stored: Object = {**obj, "metadata": meta, "status": {"a": [0] * 20_000}}
        changed = {**stored, "metadata": {**meta, "annotations": {"a": "b"}}}
        assert 413 not in codes(kind, "UPDATE", changed, stored)
        assert 413 in codes(kind, "UPDATE", {**changed, "grown": [[]] * (values // 8)}, stored)


# --- rights


def binding(quotas: int) -> Object:
    found = garden_object(CREDENTIALS_BINDINGS)
    found["quotas"] = [{"name": f"q{number}", "namespace": "n"} for number in range(quotas)]
    return found


def test_thousands_of_quotas_are_refused_without_asking_for_rights() -> None:
    requested = Asked(CREDENTIALS_BINDING)
    request = requested.request("CREATE", requested.complete(binding(4000)))
    answer = requested.validate(request)
    assert isinstance(answer, Errored)
    assert requested.reviews.requested == []


class SlowReviews(Reviews):
    """They are answered when they may be."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()

    async def create(self, resource: object, review: Object) -> Object:
        answer = await super().create(resource, review)
        await self.may_answer.wait()
        return answer


async def test_rights_of_one_user_are_queried_a_few_at_a_time_and_others_do_not_wait() -> None:
    reviews = SlowReviews()
    access = Access(cast("Any", reviews))
    rights = [Right(verb="get", resource=QUOTAS, name=f"q{number}", denial="") for number in range(100)]
    asking = [asyncio.create_task(access.missing(User("many"), rights)) for _ in range(MOST_WAITING // 100)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(reviews.requested) == MOST_AT_ONCE
    other = asyncio.create_task(access.missing(User("one"), rights[:1]))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(reviews.requested) == MOST_AT_ONCE + 1
    with pytest.raises(Refusal) as refused:
        await access.missing(User("many"), [Right(verb="get", resource=QUOTAS, name="more", denial="")])
    assert refused.value.answer.code == 429  # type: ignore[union-attr]
    reviews.may_answer.set()
    assert await other == []
    assert await asyncio.gather(*asking) == [[]] * len(asking)
    with pytest.raises(Refusal) as refused:
        await access.missing(
            User("one"),
            [Right(verb="get", resource=QUOTAS, name=f"m{n}", denial="") for n in range(MOST_RIGHTS + 1)],
        )
    assert refused.value.answer.code == 413  # type: ignore[union-attr]
