"""From a request to its answer: readiness, shapes, waiting for references, rights, operations, deletions."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from gardener.api.garden import PROJECTS, quota
from kit.objects import obj
from kit.webhooks.garden import Asked, Reviews
from kit.webhooks.mutating import state_of
from kube.errors import Unreachable
from kube.objects import Key, Object
from kube.validation import not_found, required
from webhooks.admission import Allowed, Denied, Errored, Failure, Request, User
from webhooks.garden.access import BELIEVED_SECONDS, MOST_ANSWERS, Access
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.operations import keep_sequence, on
from webhooks.garden.common.write import Right, Write
from webhooks.garden.engine import NOT_READY, mutator, validator
from webhooks.garden.lookups import VIEWS, Lookups

QUOTA: Object = {"metadata": {"name": "q", "namespace": "n"}, "spec": {"scope": {"apiVersion": "v1", "kind": "Secret"}, "metrics": {}}}  # fmt: skip
PROJECT = obj("core.gardener.cloud/v1beta1 Project", "p")


def names_a_project(write: Write) -> Iterator[Finding]:
    if write.garden.need(PROJECTS, "p") is None:
        yield not_found("spec.scope.name", "p")


def mark(write: Write) -> None:
    write.new["spec"]["metrics"]["marked"] = "1"


def mark_project(write: Write) -> None:
    write.new["spec"]["metrics"]["marked"] = str(write.garden.need(PROJECTS, "p") is not None)


KIND = Kind(definition=quota.QUOTA, mutations=(mark,), references=(names_a_project,), reads=(PROJECTS,))


def request(operation: str = "CREATE", new: Any = None, old: Any = None) -> Request:
    return Asked(KIND).request(operation, new or QUOTA, old)


class Silent(Reviews):
    async def list(self, *_: object, **_options: object) -> Sequence[Object]:
        raise Unreachable("no answer")


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)


def test_before_the_caches_are_filled_and_when_they_start_over_everything_is_refused() -> None:
    state = state_of(PROJECT)
    lookups = Lookups(state, KIND.reads)
    synced = state.lister(VIEWS[PROJECTS]).store.synced
    access = Access(cast("Any", Reviews()))
    for handler in (mutator(KIND, lookups, access), validator(KIND, lookups, access)):
        synced.clear()
        assert run(handler(request())) == Denied(NOT_READY)
        synced.set()
        assert run(handler(request())) != Denied(NOT_READY)
        synced.clear()
        assert run(handler(request())) == Denied(NOT_READY)


def test_what_is_of_another_shape_is_left_to_the_api_server() -> None:
    outcome = Asked(KIND, garden=[PROJECT]).create({**QUOTA, "spec": {**QUOTA["spec"], "metrics": "many"}})
    assert outcome.code == 422
    assert outcome.fields >= {"spec.metrics"}
    assert outcome.spec["metrics"] == "many"


def test_what_was_stored_in_another_shape_can_be_mended() -> None:
    old = {**QUOTA, "spec": {**QUOTA["spec"], "metrics": "many"}}
    assert Asked(KIND, garden=[PROJECT]).update(old, QUOTA).code == 200


@pytest.mark.parametrize("stored", ["boom", 3, [], {}, {"metadata": "boom"}])
def test_what_is_stored_in_no_shape_at_all_can_be_mended_and_deleted(stored: Any) -> None:
    lookups = Lookups(state_of(PROJECT), KIND.reads)
    handler = validator(KIND, lookups, Access(cast("Any", Reviews())))
    for operation, new in (("UPDATE", QUOTA), ("DELETE", None)):
        named = request()
        requested = Request(
            uid="u", kind=named.kind, resource=named.resource, operation=operation, name="q", namespace="n",
            object=new, old_object=stored,
        )  # fmt: skip
        assert isinstance(run(handler(requested)), Allowed)


def test_what_the_caches_do_not_know_is_requested_before_it_counts_as_missing() -> None:
    stored = {**PROJECT, "metadata": {"name": "p", "resourceVersion": "9"}}
    lookups, access = Lookups(state_of(), KIND.reads), Access(cast("Any", Reviews(stored=[stored])))
    assert isinstance(run(validator(KIND, lookups, access)(request())), Allowed)
    assert lookups.store(PROJECTS).get(Key("", "p")), "it is known from then on"


def test_without_an_answer_of_the_api_server_nothing_counts_as_missing() -> None:
    lookups, access = Lookups(state_of(), KIND.reads), Access(cast("Any", Silent()))
    mutating = Kind(definition=quota.QUOTA, mutations=(mark_project,), reads=(PROJECTS,))
    for handler in (validator(KIND, lookups, access), mutator(mutating, lookups, access)):
        answer = run(handler(request()))
        assert isinstance(answer, Errored)
        assert (answer.code, "no answer" in answer.message) == (503, True)


def test_a_reference_that_is_not_there_is_refused_and_one_that_has_gone_is_kept() -> None:
    requested = Asked(KIND)
    assert requested.create(QUOTA).fields == {"spec.scope.name"}
    assert requested.update(QUOTA, {**QUOTA, "metadata": {**QUOTA["metadata"], "labels": {"a": "b"}}}).code == 200
    deleting = {**QUOTA["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert (
        requested.update({**QUOTA, "metadata": deleting}, {**QUOTA, "metadata": {**deleting, "finalizers": []}}).code
        == 200
    )


def test_an_update_that_changes_nothing_is_not_looked_at() -> None:
    outcome = Asked(KIND).update(QUOTA, {**QUOTA, "status": {"x": 1}})
    assert outcome.code == 200
    assert "marked" not in outcome.spec["metrics"]


# --- rights


def reading(_: Write) -> Iterator[Right]:
    yield Right(verb="get", resource=PROJECTS, name="p", denial="you may not read it", path="spec.scope.name")


def test_who_may_not_read_an_object_does_not_learn_whether_it_exists() -> None:
    kind = Kind(definition=quota.QUOTA, references=(names_a_project,), rights=(reading,), reads=(PROJECTS,))
    missing = Asked(kind, denied=["get projects"]).create(QUOTA)
    existing = Asked(kind, denied=["get projects"], garden=[PROJECT]).create(QUOTA)
    assert missing == existing
    assert (missing.code, "you may not read it" in missing.message) == (403, True)


RIGHT = Right(verb="get", resource=PROJECTS, name="p", denial="")


def test_an_answer_about_rights_is_believed_for_a_while_for_each_user_and_group() -> None:
    reviews, now = Reviews(), [0.0]
    access = Access(cast("Any", reviews), clock=lambda: now[0])
    for user in (User("ann"), User("ann"), User("bob"), User("ann", ("g",))):
        assert run(access.allows(user, RIGHT))
    assert len(reviews.requested) == 3
    now[0] += BELIEVED_SECONDS
    assert run(access.allows(User("ann"), RIGHT))
    assert len(reviews.requested) == 4


def test_answers_about_rights_do_not_pile_up() -> None:
    reviews = Reviews()
    access, users = Access(cast("Any", reviews)), [User(f"u{number}") for number in range(MOST_ANSWERS + 10)]

    async def ask() -> int:
        """How many of these were remembered."""
        for user in users:
            await access.allows(user, RIGHT)
        before = len(reviews.requested)
        for user in reversed(users):
            await access.allows(user, RIGHT)
        return len(users) - (len(reviews.requested) - before)

    assert run(ask()) <= MOST_ANSWERS


# --- operations


def annotated(operation: str = "", sequence: int = 0) -> Object:
    annotations = {"annotations": {"gardener.cloud/operation": operation}} if operation else {}
    counted = {"operation": {"sequence": sequence}} if sequence else {}
    return {"metadata": {"name": "x", **annotations}, **counted}


ASKS = on(consumed=("reconcile",), kept=("renew",))


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (annotated(), annotated("reconcile"), annotated(sequence=1)),
        (annotated(sequence=3), annotated("reconcile"), annotated(sequence=4)),
        (annotated(), annotated("renew"), annotated("renew", sequence=1)),
        (annotated("renew", sequence=1), annotated("renew"), annotated("renew", sequence=1)),
        (annotated(), annotated("other"), annotated("other")),
        (annotated(sequence=3), annotated(sequence=9), annotated(sequence=3)),
        (annotated(sequence=3), annotated(), annotated(sequence=3)),
    ],
)  # fmt: skip
def test_an_operation_raises_the_sequence_which_users_cannot_set(old: Object, new: Object, kept: Object) -> None:
    write = Write(operation="UPDATE", user=User(), new=new, old=old)
    keep_sequence(write, ASKS)
    assert new == kept


def test_a_new_object_has_no_sequence() -> None:
    new = annotated("reconcile", sequence=7)
    keep_sequence(Write(operation="CREATE", user=User(), new=new, old={}), ASKS)
    assert new == annotated("reconcile")


# --- deletions


def guarded(write: Write) -> Iterator[Finding]:
    yield required("spec.x", f"{write.operation} {write.namespace}/{write.name}")


def test_a_deletion_is_checked_on_the_stored_object_also_in_a_collection() -> None:
    kind = Kind(definition=quota.QUOTA, deletions=(guarded,))
    lookups = Lookups(state_of(), ())
    requested = Request(
        uid="u", kind=request().kind, resource=request().resource, operation="DELETE", name="", namespace="", old_object=QUOTA
    )  # fmt: skip
    answer = run(validator(kind, lookups, Access(cast("Any", Reviews())))(requested))
    assert isinstance(answer, Failure)
    assert "DELETE n/q" in answer.status["message"]
