"""What `why` shows of Shoots."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardener import conditions, error_codes
from gardener.garden.scheduling import Decision, Exclusion, Filter
from kit.garden_objects import shoot
from kube.objects import Key, Object
from kubectl.garden.why.finding import Finding, Level, ordered
from kubectl.garden.why.shoot import Around, findings

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
HOUR_AGO, SECONDS_AGO = "2026-01-10T11:00:00Z", "2026-01-10T11:59:50Z"
LOST: Object = {
    "metadata": {"name": "far"},
    "status": {"conditions": [{"type": "GardenletReady", "status": "Unknown"}]},
}
WINDOW = {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}}
PROFILE: Object = {"kubernetes": {"versions": [{"version": "1.30.1"}, {"version": "1.30.4"}]}}
FAILED = {"type": "Reconcile", "state": "Failed", "lastUpdateTime": HOUR_AGO, "description": "it broke"}


def on_far(*, status: Object | None = None, meta: Object | None = None, **spec: Any) -> Object:
    """A Shoot on the Seed `far`, whose gardenlet has seen all changes."""
    about = {"generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z", **(meta or {})}
    seen = {"observedGeneration": 2, "seedName": "far", **(status or {})}
    return shoot("n/s", status=seen, **about, **{"seedName": "far", **spec})


def deleted(*finalizers: str, confirmed: bool = True, **status: Any) -> Object:
    notes = {"confirmation.gardener.cloud/deletion": "true"} if confirmed else {}
    meta = {"deletionTimestamp": HOUR_AGO, "finalizers": list(finalizers), "annotations": notes}
    return on_far(meta=meta, status=status)


def of(obj: Object, **around: Any) -> list[Finding]:
    return ordered(findings(obj, Around(**around), now=NOW))


def only(obj: Object, **around: Any) -> Finding:
    (found,) = of(obj, **around)
    return found


def test_of_one_that_is_well_there_is_nothing_to_show() -> None:
    assert of(on_far(status={"lastOperation": {"type": "Reconcile", "state": "Succeeded"}})) == []


ASKED = "the deletion, requested at 2026-01-10T11:00:00Z (60m ago),"


@pytest.mark.parametrize(
    ("obj", "around", "text", "remedy"),
    [
        (
            deleted("gardener"),
            {},
            f"{ASKED} waits for the gardenlet of Seed far to remove the cluster",
            "",
        ),
        (
            deleted("gardener", lastOperation={"type": "Delete", "state": "Processing", "progress": 40}),
            {},
            f"{ASKED} waits for the gardenlet of Seed far to remove the cluster: 40 % done, processing",
            "",
        ),
        (
            deleted("gardener"),
            {"seed": LOST},
            f"{ASKED} waits for the gardenlet of Seed far, which is lost, to remove the cluster",
            "kubectl gardener why seed far",
        ),
        (
            deleted(confirmed=False),
            {},
            f"{ASKED} waits for a confirmation",
            "confirm it: kubectl annotate shoot s -n n --overwrite confirmation.gardener.cloud/deletion=true",
        ),
        (
            deleted("example.com/mine"),
            {},
            "waits for the owner of the finalizer example.com/mine",
            "check why that program does not remove it: kubectl describe shoot s -n n",
        ),
        (
            deleted("foregroundDeletion"),
            {},
            "waits for objects that it owns (finalizer foregroundDeletion)",
            "wait for the garbage collector; see objects whose ownerReferences name it",
        ),
        (
            deleted("gardener.cloud/reference-protection"),
            {},
            f"{ASKED} is about to end: its cluster is gone",
            "if it stays, see whether the controller manager runs",
        ),
        (
            deleted(),
            {"managed_seed": Key("n", "s")},
            "a Seed runs on it: a deletion is refused as long as ManagedSeed n/s exists",
            "to delete it, begin with: kubectl delete managedseed s -n n",
        ),
    ],
)
def test_who_holds_a_deletion(obj: Object, around: Any, text: str, remedy: str) -> None:
    found = [each for each in of(obj, **around) if each.level is Level.BLOCKED]
    assert (found[0].about, found[0].text, found[0].remedy) == ("deletion", text, remedy)


RETRY = "kubectl annotate shoot s -n n --overwrite gardener.cloud/operation=retry"


@pytest.mark.parametrize(
    ("operation", "meta", "errors", "comes", "remedy"),
    [
        (
            {**FAILED, "state": "Error"},
            {},
            [],
            "the gardenlet tries again by itself, for 12h (unless its configuration sets another time) from the first try",
            "",
        ),
        (
            FAILED,
            {},
            [{"description": "full", "codes": ["ERR_INFRA_QUOTA_EXCEEDED", "ERR_CLEANUP_CLUSTER_RESOURCES"]}],
            "it is not tried again by itself, since ERR_INFRA_QUOTA_EXCEEDED requires an action",
            f"remove the cause, then: {RETRY}",
        ),
        (
            FAILED,
            {},
            [],
            "it was given up after all attempts, and is not tried again by itself",
            f"remove the cause, then: {RETRY}",
        ),
        (FAILED, {"generation": 3}, [], "the spec has changed since, so the gardenlet tries again by itself", ""),
        (
            FAILED,
            {},
            [{"description": "slow down", "codes": ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]}],
            "it met a rate limit, and is tried again by itself after a while, up to ten times",
            f"or now: {RETRY}",
        ),
        (
            FAILED,
            {"annotations": {"maintenance.shoot.gardener.cloud/needs-retry-operation": "true"}},
            [],
            "it is tried again in the next maintenance",
            f"or now: {RETRY}",
        ),
    ],
)
def test_what_becomes_of_a_failure(operation: Object, meta: Object, errors: Any, comes: str, remedy: str) -> None:
    found = of(on_far(meta=meta, status={"lastOperation": operation, "lastErrors": errors}))
    assert found[0].level is Level.PROBLEM
    assert found[0].text == f"Reconcile failed at 2026-01-10T11:00:00Z (60m ago); {comes}"
    assert found[0].remedy == remedy


def test_errors_of_a_failure_are_shown_in_a_line_each() -> None:
    errors = [{"taskID": "Deploy it", "description": "no\n  quota", "codes": ["ERR_INFRA_QUOTA_EXCEEDED"]}]
    found = of(on_far(status={"lastOperation": FAILED, "lastErrors": errors}))
    assert found[1].text == "Deploy it: no quota (ERR_INFRA_QUOTA_EXCEEDED)"
    assert found[1].remedy == error_codes.remedy(["ERR_INFRA_QUOTA_EXCEEDED"])
    (_, broken) = of(on_far(status={"lastOperation": FAILED}))
    assert (broken.text, broken.remedy) == ("it broke", "correct its cause")
    (_, retried) = of(on_far(status={"lastOperation": {**FAILED, "state": "Error"}}))
    assert retried.remedy == error_codes.remedy([])
    missing = 'cloudprofiles.core.gardener.cloud "local" not found'
    (_, unusable) = of(on_far(status={"lastOperation": {**FAILED, "state": "Error", "description": missing}}))
    assert (unusable.text, unusable.remedy) == (missing, "create it, or correct the reference to it")
    many = of(on_far(status={"lastOperation": FAILED, "lastErrors": errors * 7}))
    assert many[-1].text == "... and 2 more"


def test_an_operation_goes_on() -> None:
    last = {"type": "Create", "state": "Processing", "progress": 30, "description": "Waiting"}
    found = only(on_far(status={"lastOperation": last}))
    assert (found.level, found.text, found.remedy) == (Level.NEXT, "Create is processing, 30 %: Waiting", "")
    found = only(on_far(status={"lastOperation": {**last, "lastUpdateTime": HOUR_AGO}}))
    assert found.level is Level.PROBLEM
    assert found.text.endswith("; nothing new was reported since 2026-01-10T11:00:00Z (60m ago)")
    assert found.remedy.endswith("kubectl gardener why shoot s -n n --seed-kubeconfig FILE")
    waits = {**last, "description": "Shoot cannot be synced with Seed: seed is not yet ready: condition x"}
    found = only(on_far(status={"lastOperation": waits}))
    assert (found.level, found.remedy) == (Level.BLOCKED, "kubectl gardener why seed far")


def lease(renewed: str) -> Object:
    return {"spec": {"renewTime": renewed}}


@pytest.mark.parametrize(
    ("obj", "around", "is_silent"),
    [
        (on_far(meta={"generation": 3}), {"lease": lease("2026-01-10T11:58:00.000000Z")}, True),
        (on_far(meta={"generation": 3}), {"lease": lease("2026-01-10T11:59:50.000000Z")}, False),
        (deleted("gardener"), {"lease": lease(HOUR_AGO)}, True),
        # The Seed reports so itself.
        (deleted("gardener"), {"lease": lease(HOUR_AGO), "seed": LOST}, False),
        # Nothing waits for it.
        (on_far(status={"lastOperation": {"state": "Succeeded"}}), {"lease": lease(HOUR_AGO)}, False),
        (on_far(meta={"generation": 3}), {}, False),
    ],
)
def test_a_gardenlet_that_is_silent_is_named_if_something_waits_for_it(
    obj: Object, around: Any, is_silent: bool
) -> None:
    found = [each for each in of(obj, **around) if "the last heartbeat of the gardenlet" in each.text]
    assert len(found) == is_silent
    assert {(each.level, each.remedy) for each in found} <= {(Level.BLOCKED, "kubectl gardener why seed far")}


@pytest.mark.parametrize(("namespace", "where"), [("garden", ""), ("n", ", if its configuration respects that")])
def test_one_that_is_ignored(namespace: str, where: str) -> None:
    notes = {"annotations": {"shoot.gardener.cloud/ignore": "true"}, "generation": 2, "namespace": namespace}
    seen = {"observedGeneration": 2, "seedName": "far", "lastOperation": {"state": "Succeeded"}}
    found = only({**on_far(), "metadata": {"name": "s", **notes}, "status": seen})
    assert found.text == (
        f"the annotation shoot.gardener.cloud/ignore makes the gardenlet ignore it{where}: no operation starts"
    )
    assert (
        found.remedy == f"to end that: kubectl annotate shoot s -n {namespace} --overwrite shoot.gardener.cloud/ignore-"
    )


@pytest.mark.parametrize(
    ("to_be", "is_on", "around", "level", "text"),
    [
        ("", "", {}, Level.BLOCKED, "it is on no Seed yet: it waits for the scheduler"),
        ("near", "far", {}, Level.NEXT, "it moves from Seed far to near"),
        (
            "far",
            "far",
            {"seed": LOST},
            Level.BLOCKED,
            "its Seed far is lost: nothing is done to it until the gardenlet is back, and its state is not known",
        ),
    ],
)
def test_where_it_is(to_be: str, is_on: str, around: Any, level: Level, text: str) -> None:
    found = only(on_far(seedName=to_be, status={"seedName": is_on}), **around)
    assert (found.level, found.about, found.text) == (level, "seed", text)


def test_one_that_waits_names_what_excludes_each_seed() -> None:
    excluded = {
        "a": Exclusion(Filter.USABLE, "it is being deleted"),
        "b": Exclusion(Filter.CAPACITY, "it is full"),
        **{f"c{number}": Exclusion(Filter.PROVIDER, "it is foreign") for number in range(60)},
    }
    waiting = on_far(seedName="", status={"seedName": ""})
    first, nearest, *others, last = of(waiting, decision=Decision(excluded=excluded))
    assert first.text == "it is on no Seed yet: it waits for the scheduler"
    assert (nearest.about, nearest.text) == ("seed capacity", "Seed b: it is full")
    assert {each.about for each in others} == {"seed provider"}
    assert last.text == "... and 12 more Seeds are left out"
    few = of(waiting, decision=Decision(excluded={"a": excluded["a"]}))
    assert [each.remedy for each in few[1:]] == ["kubectl gardener why seed a"]


FAILURE = {"type": "Create", "state": "Pending", "description": "Failed to schedule Shoot: no Seed for region a"}


@pytest.mark.parametrize(
    ("status", "created", "level", "text", "remedy"),
    [
        ({}, SECONDS_AGO, Level.NEXT, "it waits for the scheduler, which can choose Seed d", ""),
        ({}, HOUR_AGO, Level.BLOCKED, "which can choose Seed d", "see whether the scheduler runs; see Events: kubectl"),
        ({"lastOperation": FAILURE}, SECONDS_AGO, Level.BLOCKED, "no Seed for region a", "remove that cause; it tries"),
    ],
)
def test_a_seed_that_fits_does_not_contradict_the_scheduler(
    status: Object, created: str, level: Level, text: str, remedy: str
) -> None:
    waiting = on_far(seedName="", status={"seedName": "", **status}, meta={"creationTimestamp": created})
    decision = Decision(seed="d", excluded={"e": Exclusion(Filter.CAPACITY, "it is full")})
    found = [each for each in of(waiting, decision=decision) if each.about.startswith("seed")]
    assert [(each.level, each.about) for each in found] == [(level, "seed")]
    assert found[0].text.endswith(text)
    assert found[0].remedy.startswith(remedy)
    assert "Seed d" not in found[0].text or "reports" not in found[0].text


MISSING = {
    "type": "ControlPlaneHealthy",
    "status": "False",
    "reason": "DeploymentMissing",
    "message": "no kube-apiserver",
}
NOT_CHECKED = {"type": "HibernationPossible", "status": "Progressing", "reason": "ConstraintNotChecked", "message": "m"}


@pytest.mark.parametrize("type_", ["Create", "Restore", "Migrate", "Delete"])
def test_what_is_not_there_yet_is_no_problem(type_: str) -> None:
    last = {"type": type_, "state": "Processing", "progress": 30, "lastUpdateTime": SECONDS_AGO}
    built = on_far(status={"lastOperation": last, "constraints": [NOT_CHECKED], "conditions": [MISSING]})
    assert [(each.level, each.about, each.remedy) for each in of(built)] == [
        (Level.NEXT, "operation", ""),
        (Level.INFO, "condition", ""),
    ]
    assert of(built)[1].text == (f"not known or not good until {type_} ends: HibernationPossible, ControlPlaneHealthy")
    stuck = on_far(status={"lastOperation": {**last, "lastUpdateTime": HOUR_AGO}, "conditions": [MISSING]})
    assert [(each.level, each.about) for each in of(stuck)] == [
        (Level.PROBLEM, "operation"),
        (Level.PROBLEM, "condition"),
    ]


def test_the_operation_comes_before_what_it_may_correct() -> None:
    last = {"type": "Reconcile", "state": "Processing", "progress": 30, "lastUpdateTime": SECONDS_AGO}
    status = {"lastOperation": last, "conditions": [{**MISSING, "lastTransitionTime": SECONDS_AGO}]}
    assert [(each.level, each.about) for each in of(on_far(status=status))] == [
        (Level.NEXT, "operation"),
        (Level.NEXT, "condition"),
    ]
    status = {"lastOperation": last, "conditions": [{**MISSING, "lastTransitionTime": HOUR_AGO}]}
    assert [each.about for each in of(on_far(status=status)) if each.level is Level.PROBLEM] == ["condition"]
    sleepy = on_far(status={"lastOperation": last, "hibernated": False}, hibernation={"enabled": True})
    assert only(sleepy).about == "operation"


def test_a_lost_seed_is_the_one_cause() -> None:
    unknown = {"type": "ControlPlaneHealthy", "status": "Unknown", "reason": "StatusUnknown", "message": "m"}
    changed = on_far(meta={"generation": 3}, status={"conditions": [unknown]})
    assert [(each.level, each.about) for each in of(changed, seed=LOST)] == [
        (Level.BLOCKED, "seed"),
        (Level.INFO, "condition"),
    ]
    idle = on_far(status={"lastOperation": {"type": "Reconcile", "state": "Succeeded"}})
    assert only(idle, seed=LOST).level is Level.PROBLEM


def test_what_could_not_be_checked_has_no_remedy_for_a_failed_check() -> None:
    reasons = ("ConstraintNotChecked", "ConditionCheckError")
    for reason in reasons:
        status = {"status": "Unknown", "reason": reason, "message": "Shoot control plane is not running at the moment."}
        found = only(on_far(status={"conditions": [{"type": "SystemComponentsHealthy", **status}]}))
        assert found.remedy == "it is checked once the control plane runs"


def test_constraints_and_conditions_that_are_not_true() -> None:
    bad = {"status": "False", "reason": "Webhook", "message": "remove\nit", "lastTransitionTime": HOUR_AGO}
    status = {
        "constraints": [{"type": "HibernationPossible", **bad}, {"type": "Other", "status": "True"}],
        "conditions": [{"type": "EveryNodeReady", **bad, "status": "Progressing"}],
    }
    found = of(on_far(status=status))
    assert [(each.level, each.about, each.text) for each in found] == [
        (Level.PROBLEM, "constraint", "HibernationPossible is False for 60m: Webhook: remove it"),
        (Level.NEXT, "condition", "EveryNodeReady is Progressing for 60m: Webhook: remove it"),
    ]
    assert found[1].remedy.startswith("if it stays: ")


@pytest.mark.parametrize(
    "type_",
    [*conditions.SHOOT_CONDITIONS, conditions.HIBERNATION_POSSIBLE, conditions.MAINTENANCE_PRECONDITIONS_SATISFIED],
)
def test_each_condition_has_a_remedy(type_: str) -> None:
    assert only(on_far(status={"conditions": [{"type": type_, "status": "False"}]})).remedy


def test_a_change_that_waits() -> None:
    confined = {"maintenance": {**WINDOW, "confineSpecUpdateRollout": True}}
    found = of(on_far(meta={"generation": 3}, **confined))[0]
    assert found.text == "a change waits for the next maintenance window, at 2026-01-10T22:00:00Z (in 10h)"
    assert found.remedy == "or now: kubectl annotate shoot s -n n --overwrite gardener.cloud/operation=maintain"
    unconfined = only(on_far(meta={"generation": 3}))
    assert unconfined.text.startswith("a change waits for the gardenlet to take it up, at once or in its next")
    assert unconfined.remedy == (
        "now: kubectl annotate shoot s -n n --overwrite gardener.cloud/operation=reconcile; if it stays: kubectl gardener why seed far"
    )


@pytest.mark.parametrize(
    ("until", "days", "level", "text"),
    [
        ("2026-01-30T12:00:00Z", [], Level.NEXT, "at 2026-01-30T12:00:00Z (in 20d): 20 days left"),
        ("2026-01-12T12:00:00Z", [14], Level.PROBLEM, "(in 2d), by a Quota of 14 days: 2 days left"),
        (None, [30, 14], Level.PROBLEM, "at 2026-01-15T00:00:00Z (in 4d12h), by a Quota of 14 days: 4 days left"),
        ("2026-01-10T11:00:00Z", [], Level.PROBLEM, "(60m ago): 0 days left"),
        ("soon", [], Level.PROBLEM, "is not a valid time"),
    ],
)
def test_an_end_by_quota(until: str | None, days: list[int], level: Level, text: str) -> None:
    notes = {} if until is None else {"shoot.gardener.cloud/expiration-timestamp": until}
    quotas = [{"spec": {"clusterLifetimeDays": each}} for each in days]
    found = only(on_far(meta={"annotations": notes}), quotas=quotas)
    assert (found.level, found.about) == (level, "expiration")
    assert text in found.text
    assert "kubectl annotate shoot s -n n" in found.remedy


def test_what_maintenance_changes() -> None:
    wanted = {"maintenance": {**WINDOW, "autoUpdate": {"kubernetesVersion": True}}}
    old = on_far(kubernetes={"version": "1.30.1"}, **wanted)
    assert only(old, profile=PROFILE).text == (
        'begins at 2026-01-10T22:00:00Z (in 10h), and will report: Control Plane: Updated Kubernetes version from "1.30.1" to "1.30.4". '
        "Reason: Automatic update of Kubernetes version configured"
    )
    new = on_far(kubernetes={"version": "1.30.4"}, **wanted)
    assert only(new, profile=PROFILE).text.endswith(": no changes but for a reconciliation")
    assert only(new).text == "begins at 2026-01-10T22:00:00Z (in 10h)"
    requested = on_far(meta={"annotations": {"gardener.cloud/operation": "maintain"}}, **wanted)
    assert (only(requested).text, only(requested).remedy) == ("is due now", "")


def test_a_failed_maintenance_and_an_image_that_is_not_offered() -> None:
    worker = {"name": "w", "machine": {"image": {"name": "os", "version": "1.0.0"}}}
    failed = {"lastMaintenance": {"state": "Failed", "failureReason": "no version"}}
    version = {"version": "1.30.4"}
    wanted = on_far(status=failed, kubernetes=version, provider={"workers": [worker]}, maintenance=WINDOW)
    found = of(wanted, profile=PROFILE)
    assert found[0].text == "the last one failed: no version"
    assert found[1].text.startswith("machine images can't be maintained: ")


@pytest.mark.parametrize(
    ("hibernation", "text"),
    [
        (
            {"schedules": [{"start": "0 20 * * *"}]},
            "it is awake, and goes to sleep at 2026-01-10T20:00:00Z (in 8h) by its schedule",
        ),
        (
            {"enabled": True, "schedules": [{"start": "0 20 * * *", "location": "Europe/Berlin"}]},
            "it sleeps, and goes to sleep at 2026-01-10T19:00:00Z (in 7h) by its schedule, which changes nothing",
        ),
        (
            {"enabled": True, "schedules": [{"end": "0 8 * * *"}]},
            "it sleeps, and wakes up at 2026-01-11T08:00:00Z (in 20h) by its schedule",
        ),
        ({"enabled": True}, "it sleeps, and no schedule wakes it up"),
        (
            {"schedules": [{"start": "x"}]},
            "the schedules can't be followed: spec.hibernation.schedules[0].start: not a valid",
        ),
    ],
)
def test_sleep(hibernation: Object, text: str) -> None:
    found = only(on_far(hibernation=hibernation, status={"hibernated": hibernation.get("enabled") is True}))
    assert found.about == "hibernation"
    assert found.text.startswith(text)


@pytest.mark.parametrize(
    ("hibernation", "status", "text", "remedy"),
    [
        (
            {"enabled": True},
            {},
            "it should go to sleep, but the gardenlet has not done it yet",
            "kubectl gardener why seed far",
        ),
        (
            {"enabled": True},
            {"constraints": [{"type": "HibernationPossible", "status": "False", "message": "a webhook"}]},
            "it should go to sleep, but the gardenlet has not done it yet: a webhook",
            "kubectl gardener why seed far",
        ),
        (
            {},
            {"hibernated": True},
            "it should wake up, but the gardenlet has not done it yet",
            "kubectl gardener why seed far",
        ),
        (
            {"schedules": [{"start": "0 11 * * *"}]},
            {},
            "it had to go to sleep at 2026-01-10T11:00:00Z (60m ago) by its schedule, but did not",
            "see whether the controller manager runs, or do it: kubectl gardener hibernate s -n n",
        ),
    ],
)
def test_sleep_that_was_not_carried_out(hibernation: Object, status: Object, text: str, remedy: str) -> None:
    found = of(on_far(hibernation=hibernation, status=status))[0]
    assert (found.level, found.about, found.text, found.remedy) == (Level.BLOCKED, "hibernation", text, remedy)


@pytest.mark.parametrize(
    "status",
    [
        # The controller manager has done it, and a user has woken it up since.
        {"lastHibernationTriggerTime": "2026-01-10T11:00:01Z"},
        # Nothing at all is known of it.
        {"observedGeneration": None, "hibernated": None},
    ],
)
def test_a_schedule_that_was_followed_is_no_problem(status: Object) -> None:
    hibernation = {"schedules": [{"start": "0 11 * * *"}]} if "lastHibernationTriggerTime" in status else {}
    found = of(on_far(hibernation=hibernation, seedName="", status={"seedName": "", **status}))
    assert "hibernation" not in {each.about for each in found if each.level is Level.BLOCKED}


def test_a_gardenlet_that_has_not_begun() -> None:
    fresh = shoot("n/s", creationTimestamp=HOUR_AGO, generation=1, seedName="far")
    found = only(fresh)
    assert (found.level, found.about) == (Level.BLOCKED, "operation")
    assert found.text == "Seed far is chosen, but its gardenlet has not started its reconciliation; it exists for 60m"
    assert found.remedy == "kubectl gardener why seed far"
    assert only(fresh, seed=LOST).about == "seed"
    assert only({**fresh, "metadata": {**fresh["metadata"], "creationTimestamp": SECONDS_AGO}}).level is Level.NEXT


def test_the_most_important_comes_first() -> None:
    status = {"lastOperation": FAILED, "constraints": [{"type": "HibernationPossible", "status": "False"}]}
    levels = [each.level for each in of(on_far(status=status, seedName="near", maintenance=WINDOW))]
    assert levels == [Level.PROBLEM] * 3 + [Level.NEXT] * 2
