"""What two people have to delete, one alone does not: by no detour, and not by changing the rule."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardener.api import garden as resources
from gardener.garden import dual_approval
from kit.webhooks.garden import Asked
from kit.webhooks.shoots import BINDING, NAMESPACE, PROJECT, of, requested, stored, submitted, with_fields
from kube.clock import format_time
from kube.objects import Object, annotations
from webhooks.garden.kinds.project import PROJECT as PROJECTS

CONFIRMED, CONFIRMED_BY = "confirmation.gardener.cloud/deletion", "deletion.gardener.cloud/confirmed-by"
CONFIRMED_RULE, RULE_CONFIRMED_BY = (
    "confirmation.gardener.cloud/dual-approval",
    "dual-approval.gardener.cloud/confirmed-by",
)
EXPIRATION = "shoot.gardener.cloud/expiration-timestamp"
ROBOT = "system:serviceaccount:garden-dev:robot"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
MANAGER = "system:serviceaccount:garden:gardener-controller-manager"
NOW = datetime.now(UTC)


def approval(selector: Object | None = None, **more: Any) -> Object:
    return {"resource": "shoots", "selector": selector or {}, **more}


def project(*approvals: Object) -> Object:
    return with_fields(PROJECT, spec__dualApprovalForDeletion=list(approvals))


def confirmed(by: str = "ann", **fields: Any) -> Object:
    by_whom = {CONFIRMED_BY: by} if by else {}
    return stored(submitted(meta__labels={"a": "b"}), meta__annotations={CONFIRMED: "true", **by_whom}, **fields)


def in_days(days: float) -> str:
    return format_time(NOW + timedelta(days=days))


# --- the deletion


@pytest.mark.parametrize(
    ("rule", "confirmed_by", "by", "denied"),
    [
        (approval(), "ann", "ann", True),
        (approval(), "ann", "bob", False),
        (approval({"matchLabels": {}}), "ann", "ann", True),
        (approval({"matchLabels": {"a": "b"}}), "ann", "ann", True),
        (approval({"matchLabels": {"a": "x"}}), "ann", "ann", False),
        (approval({"matchExpressions": [{"key": "a", "operator": "Near"}]}), "ann", "ann", True),
        (approval(), ROBOT, ROBOT, True),
        (approval(includeServiceAccounts=True), ROBOT, ROBOT, True),
        (approval(includeServiceAccounts=False), ROBOT, ROBOT, False),
        # Who is no person counts neither as the one nor as the other.
        (approval(), "ann", ROBOT, True),
        (approval(), ROBOT, "ann", True),
        (approval(), "ann", COLLECTOR, True),
        (approval(includeServiceAccounts=False), "ann", COLLECTOR, True),
        (approval(), "ann", "system:kube-controller-manager", True),
        (approval(), "ann", "gardener.cloud:system:seed:s", True),
        (approval(), MANAGER, "ann", True),
        (approval(), "ann", MANAGER, True),
        # It was confirmed while no webhook wrote down by whom.
        (approval(), "", "ann", True),
    ],
)
def test_two_people_delete_where_the_project_states_so(
    rule: Object, confirmed_by: str, by: str, *, denied: bool
) -> None:
    obj = confirmed(confirmed_by)
    outcome = requested(project(rule), user=by).delete(obj)
    assert outcome.code == (403 if denied else 200), outcome.message
    assert requested(user=by).delete(obj).code == 200


def test_controllers_delete_what_has_reached_its_end() -> None:
    quota = of(resources.QUOTAS, "q", namespace=NAMESPACE, spec={"scope": {}, "clusterLifetimeDays": 7})
    limited = with_fields(BINDING, quotas=[{"name": "q", "namespace": NAMESPACE}])
    garden = (project(approval()), limited, quota)
    old, new = (confirmed(MANAGER, **{f"meta__annotations__{EXPIRATION}": in_days(days)}) for days in (-1, 1))
    assert requested(*garden, user=MANAGER).delete(old).code == 200
    assert requested(*garden, user=MANAGER).delete(new).code == 403
    assert requested(project(approval()), user=MANAGER).delete(old).code == 403, "no Quota limits its life"
    assert requested(*garden, user="ann").delete(old).code == 403


@pytest.mark.parametrize(
    ("wanted", "name", "owner", "denied"),
    [(1, "set-1", "u", False), (2, "set-1", "u", True), (1, "other", "u", True), (1, "set-1", "invented", True)],
)
def test_controllers_delete_replicas_of_a_set_that_shrinks(wanted: int, name: str, owner: str, *, denied: bool) -> None:
    seed_set = of(resources.MANAGED_SEED_SETS, "set", namespace=NAMESPACE, meta={"uid": "u"})
    seed_set = {**seed_set, "spec": {"replicas": wanted}, "status": {"replicas": 2}}
    reference = {**resources.MANAGED_SEED_SETS.reference(name="set", uid=owner), "controller": True}
    notes = {CONFIRMED: "true", CONFIRMED_BY: MANAGER}
    replica = stored(submitted(name), meta__ownerReferences=[reference], meta__annotations=notes)
    garden = (project(approval()), seed_set)
    assert requested(*garden, user=MANAGER).delete(replica).code == (403 if denied else 200)
    assert requested(*garden, user="ann").delete(replica).code == 403


# --- what comes to the same


@pytest.mark.parametrize(
    ("before", "after", "by", "denied"),
    [
        (3, 2, "ann", True),
        (3, 2, ROBOT, True),
        (3, 2, "bob", False),
        (3, 4, "ann", False),
        (None, -1, "ann", True),
        (None, 3, "ann", True),
        (None, 6.9, MANAGER, False),
        (3, None, "ann", True),
        (3, None, "bob", False),
    ],
)
def test_one_person_does_not_bring_the_end_of_a_shoot_forward(
    before: float | None, after: float | None, by: str, *, denied: bool
) -> None:
    quota = of(resources.QUOTAS, "q", namespace=NAMESPACE, spec={"scope": {}, "clusterLifetimeDays": 7})
    limited = with_fields(BINDING, quotas=[{"name": "q", "namespace": NAMESPACE}])
    old, new = (
        confirmed("ann", **({} if days is None else {f"meta__annotations__{EXPIRATION}": in_days(days)}))
        for days in (before, after)
    )
    outcome = requested(project(approval()), limited, quota, user=by).update(old, new)
    assert outcome.code == (403 if denied else 200), outcome.message
    assert requested(limited, quota, user=by).update(old, new).code == 200


def test_an_unlimited_shoot_loses_a_needless_end() -> None:
    old = confirmed("ann", **{f"meta__annotations__{EXPIRATION}": in_days(3)})
    assert requested(project(approval()), user=MANAGER).update(old, confirmed("ann")).code == 200


@pytest.mark.parametrize(
    ("labels", "by", "denied"),
    [
        ({"a": "x"}, "ann", True),
        ({}, "ann", True),
        ({}, ROBOT, True),
        ({"a": "x"}, "bob", False),
        ({"a": "b", "c": "d"}, "ann", False),
    ],
)
def test_one_person_does_not_take_a_shoot_from_under_the_rule(labels: Object, by: str, *, denied: bool) -> None:
    garden = project(approval({"matchLabels": {"a": "b"}}))
    outcome = requested(garden, user=by).update(confirmed("ann"), confirmed("ann", meta__labels=labels))
    assert outcome.code == (403 if denied else 200), outcome.message


def test_controllers_keep_labels_that_the_rule_selects_by() -> None:
    status = "shoot.gardener.cloud/status"
    old, new = (confirmed("", meta__labels={status: value}) for value in ("healthy", "unhealthy"))
    rule = project(approval({"matchLabels": {status: "healthy"}}))
    assert requested(rule, user=MANAGER).update(old, new).code == 200
    assert requested(rule, user="ann").update(old, new).code == 403


# --- the rule


@pytest.mark.parametrize(
    ("before", "after", "loosened"),
    [
        ([], [approval()], False),
        ([approval()], [approval()], False),
        ([approval({"matchLabels": {"a": "b"}})], [approval()], False),
        ([approval(includeServiceAccounts=False)], [approval()], False),
        ([approval({"matchLabels": {"a": "b"}})],
         [approval({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]})], False),
        ([approval()], [], True),
        ([approval()], [approval({"matchLabels": {"a": "b"}})], True),
        ([approval({"matchLabels": {"a": "b"}})], [approval({"matchLabels": {"a": "c"}})], True),
        ([approval()], [approval(includeServiceAccounts=False)], True),
        ([approval(includeServiceAccounts=True)], [approval(includeServiceAccounts=False)], True),
    ],
)  # fmt: skip
def test_a_rule_is_loosened_by_two_people_and_tightened_by_one(
    before: list[Object], after: list[Object], *, loosened: bool
) -> None:
    assert dual_approval.is_loosened(*({"dualApprovalForDeletion": each} for each in (before, after))) == loosened

    old = Asked(PROJECTS, user="ann").create({"metadata": {"name": "p"}, "spec": {"dualApprovalForDeletion": before}})
    new = with_fields(old.object, spec__dualApprovalForDeletion=after)
    alone = Asked(PROJECTS, user="ann").update(old.object, new)
    assert alone.code == (403 if loosened else 200), alone.message
    assert not loosened or CONFIRMED_RULE in alone.message

    noted = Asked(PROJECTS, user="ann").update(
        old.object, with_fields(old.object, metadata__annotations={CONFIRMED_RULE: "true", RULE_CONFIRMED_BY: "bob"})
    )
    assert annotations(noted.object)[RULE_CONFIRMED_BY] == "ann"
    new = with_fields(noted.object, spec__dualApprovalForDeletion=after)
    for user in ("ann", ROBOT):
        assert Asked(PROJECTS, user=user).update(noted.object, new).code == (403 if loosened else 200)
    together = Asked(PROJECTS, user="bob").update(noted.object, new)
    assert together.code == 200, together.message
    assert (CONFIRMED_RULE in annotations(together.object)) != loosened, "one confirmation is for one change"


def test_a_rule_is_stored_as_it_was_sent() -> None:
    sent = [{"resource": "shoots", "selector": {}}]
    stored_rule = Asked(PROJECTS).create({"metadata": {"name": "p"}, "spec": {"dualApprovalForDeletion": sent}})
    assert stored_rule.spec["dualApprovalForDeletion"] == sent
