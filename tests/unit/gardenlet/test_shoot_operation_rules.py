"""When a Shoot is reconciled, what is written of it, and which operation it is, by tables."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from agent.gardenlet.flow.graph import Graph, Snapshot, Task, TaskFailure, Walk
from agent.gardenlet.shoot.main import controller
from agent.gardenlet.shoot.main.rules import cluster, seed, status
from agent.gardenlet.shoot.main.rules.support import unsupported
from agent.gardenlet.shoot.main.rules.timing import Due, Timing
from config.gardenlet.controllers import Shoot as Settings
from config.gardenlet.schema import GardenletConfiguration, Images
from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import operation_of
from gardener.operations import PROGRAM_ENDED
from kit.clock import FakeClock
from kit.garden_objects import garden_object
from kube.clock import format_time
from kube.objects import Key, Object, key
from kube.runtime.cache import Change
from kube.runtime.controller import ReconcileError
from kube.runtime.priorities import CHANGE, LAST, RESYNC, Priority
from kube.runtime.queue import WorkQueue

NOW = datetime(2024, 1, 1, 22, 10, tzinfo=UTC)
GARDENER = {"id": "i", "name": "g", "version": "1"}
HOUR = 3600.0
WINDOW = {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}}
"""In effect until 22:45."""
CONFINED: Any = {"maintenance": {**WINDOW, "confineSpecUpdateRollout": True}}


def _shoot(*, deleting: bool = False, annotations: Any = None, namespace: str = "garden-dev", **given: Any) -> Object:
    shoot: Object = garden_object(SHOOTS)
    meta: Object = {"name": "s", "namespace": namespace, "generation": 3, "annotations": annotations or {}}
    status = {"observedGeneration": 3, "gardener": GARDENER, "lastOperation": _operation()} | given.pop("status", {})
    spec = shoot["spec"] | {"seedName": "here", "maintenance": WINDOW} | given
    gone = {"deletionTimestamp": format_time(NOW)} if deleting else {}
    return {**shoot, "metadata": meta | gone, "spec": spec, "status": status}


def _operation(kind: str = "Reconcile", state: str = "Succeeded", *, ago: float = HOUR) -> Object:
    return {
        "type": kind,
        "state": state,
        "progress": 47,
        "description": "before",
        "lastUpdateTime": format_time(NOW - timedelta(seconds=ago)),
    }


def _failed(version: str = "1") -> Object:
    return {"lastOperation": _operation(state="Failed"), "gardener": {**GARDENER, "version": version}}


# --- which operation


def _on(scheduled: str | None, present: str | None, last: Object | None = None, *, deleting: bool = False) -> Object:
    return _shoot(deleting=deleting, seedName=scheduled, status={"seedName": present, "lastOperation": last})


@pytest.mark.parametrize(
    ("shoot", "expected"),
    [
        (_on("a", None), "Create"),
        (_on("a", "a", _operation("Create", "Error")), "Create"),
        (_on("a", "a", _operation("Create")), "Reconcile"),
        (_on("a", "a", _operation(), deleting=True), "Delete"),
        (_on("b", "a", _operation()), "Migrate"),
        (_on("b", "a", _operation(), deleting=True), "Delete"),
        (_on("b", "a", _operation("Migrate", "Error"), deleting=True), "Migrate"),
        (_on("b", "a", _operation("Migrate")), "Migrate"),
        (_on("b", "b", _operation("Migrate")), "Restore"),
        (_on("a", "a", _operation("Migrate", "Aborted")), "Restore"),
        (_on("b", "b", _operation("Migrate", "Processing")), "Migrate"),
        (_on("b", "b", _operation("Restore", "Error")), "Restore"),
        (_on("b", "", _operation()), "Reconcile"),
    ],
)
def test_operation(shoot: Object, expected: str) -> None:
    assert operation_of(shoot) == expected


@pytest.mark.parametrize(
    ("workers", "kind", "reported"),
    [
        ([], "Create", ""),
        ([], "Delete", ""),
        (
            [{"name": "w"}],
            "Create",
            "images.workers in the configuration of the gardenlet lacks apiserver-proxy, cluster-autoscaler",
        ),
        ([], "Migrate", ""),
        ([], "Restore", ""),
    ],
)
def test_what_is_not_supported_is_refused_as_a_whole(workers: list[Object], kind: str, reported: str) -> None:
    config = GardenletConfiguration(images=Images(resource_manager="image", kubernetes="k8s"))
    found = unsupported(config, _shoot(provider={"type": "local", "workers": workers}), kind)
    assert found.startswith(reported) if reported else not found


@pytest.mark.parametrize(
    ("config", "kind", "is_refused"),
    [
        (GardenletConfiguration(), "Create", True),
        (GardenletConfiguration(), "Delete", False),
    ],
)
def test_nothing_is_begun_without_an_image_of_the_resource_manager(
    config: GardenletConfiguration, kind: str, is_refused: bool
) -> None:
    assert ("images.resourceManager" in unsupported(config, _shoot(), kind)) == is_refused


# --- when


def _timing(**settings: Any) -> Timing:
    return Timing(
        settings=Settings(**settings),
        version="1",
        is_asked=lambda shoot: shoot["status"]["observedGeneration"] == 2,
        uniform=lambda least, most: (least + most) / 2,
    )


TO_NEXT_WINDOW = 24 * HOUR - 600 + 45 * 60 / 2
ASKED = {"observedGeneration": 2}
WAITING = {"observedGeneration": 1}
"""The generation has changed, but what it changes is confined."""
CONFINES = {"confineSpecUpdateRollout": True}
ELSEWHEN = {"timeWindow": {"begin": "010000+0000", "end": "020000+0000"}}
IGNORED = {"shoot.gardener.cloud/ignore": "true"}
PERIOD = {"shoot.gardener.cloud/sync-period": "2h"}


@pytest.mark.parametrize(
    ("settings", "shoot", "due", "first", "following"),
    [
        pytest.param({}, _shoot(), Due.NOW, 0, HOUR, id="plain"),
        pytest.param({}, _shoot(status=_failed()), Due.CLUSTER_ONLY, 0, None, id="failed"),
        pytest.param({}, _shoot(status=_failed("0")), Due.NOW, 0, HOUR, id="failed with another version"),
        pytest.param({}, _shoot(status=_failed() | ASKED), Due.NOW, 0, HOUR, id="failed, and retried"),
        pytest.param({}, _shoot(annotations=IGNORED), Due.NOW, 0, HOUR, id="may not be ignored"),
        pytest.param({}, _shoot(annotations=PERIOD), Due.NOW, 0, HOUR, id="may not have a period"),
        pytest.param(
            {"respect_sync_period_overwrite": True},
            _shoot(annotations=IGNORED),
            Due.CLUSTER_ONLY,
            0,
            None,
            id="ignored",
        ),
        pytest.param(
            {}, _shoot(annotations=IGNORED, namespace="garden"), Due.CLUSTER_ONLY, 0, None, id="ignored in the garden"
        ),
        pytest.param(
            {"respect_sync_period_overwrite": True}, _shoot(annotations=PERIOD), Due.NOW, 0, 2 * HOUR, id="period"
        ),
        pytest.param(
            {"respect_sync_period_overwrite": True},
            _shoot(annotations={"shoot.gardener.cloud/sync-period": "1m"}),
            Due.NOW,
            0,
            HOUR,
            id="shorter period",
        ),
        pytest.param(
            {"reconcile_in_maintenance_only": True},
            _shoot(),
            Due.NOW,
            35 * 60 / 2,
            TO_NEXT_WINDOW,
            id="in its window",
        ),
        pytest.param(
            {"reconcile_in_maintenance_only": True},
            _shoot(status={"lastOperation": _operation(ago=300)}),
            Due.LATER,
            TO_NEXT_WINDOW,
            TO_NEXT_WINDOW,
            id="done in its window",
        ),
        pytest.param(
            {}, _shoot(**CONFINED, status=ASKED), Due.NOW, 0, TO_NEXT_WINDOW, id="confined, with work that is due"
        ),
        pytest.param(
            {},
            _shoot(
                maintenance={"timeWindow": {"begin": "010000+0000", "end": "020000+0000"}},
                status={"lastOperation": _operation("Create", "Error")},
            ),
            Due.NOW,
            0,
            HOUR,
            id="another operation",
        ),
        pytest.param(
            {"reconcile_in_maintenance_only": True},
            _shoot(maintenance={"timeWindow": {"begin": "010000+0000", "end": "020000+0000"}}),
            Due.LATER,
            (2 * 60 + 50 + 45 / 2) * 60,
            (2 * 60 + 50 + 45 / 2) * 60,
            id="outside its window",
        ),
        pytest.param({}, _shoot(deleting=True, **CONFINED), Due.NOW, 0, TO_NEXT_WINDOW, id="deleted"),
        *(
            pytest.param(
                {},
                _shoot(
                    maintenance={**ELSEWHEN, **CONFINES}, status=WAITING | {"lastOperation": _operation(state=state)}
                ),
                Due.LATER,
                (2 * 60 + 50 + 45 / 2) * 60,
                (2 * 60 + 50 + 45 / 2) * 60,
                id=f"confined, changed after {state}",
            )
            for state in ("Error", "Failed", "Aborted", "Processing")
        ),
        pytest.param(
            {},
            _shoot(**CONFINED, status=WAITING | {"lastOperation": _operation(state="Failed", ago=300)}),
            Due.NOW,
            0,
            TO_NEXT_WINDOW,
            id="confined, changed after Failed, in its window",
        ),
        pytest.param(
            {},
            _shoot(maintenance={**ELSEWHEN, **CONFINES}, status={"lastOperation": _operation(state="Error")}),
            Due.NOW,
            0,
            (2 * 60 + 50 + 45 / 2) * 60,
            id="confined, in Error, and unchanged",
        ),
        pytest.param(
            {},
            _shoot(
                maintenance={**ELSEWHEN, **CONFINES}, status=WAITING | {"lastOperation": _operation("Create", "Error")}
            ),
            Due.NOW,
            0,
            (2 * 60 + 50 + 45 / 2) * 60,
            id="confined, changed in its creation",
        ),
    ],
)
def test_when(settings: Any, shoot: Object, due: Due, first: float, following: float | None) -> None:
    timing = _timing(**settings)
    assert (timing.due(shoot, NOW), timing.first_delay(shoot, NOW)) == (due, first)
    assert timing.next_delay(shoot, NOW) == following


def test_a_restart_in_the_window_spreads_what_is_not_done_over_its_rest() -> None:
    """300 Shoots with the same window, half of which are done: these come again in the next one."""
    dice = Random(1)
    timing = Timing(
        settings=Settings(reconcile_in_maintenance_only=True),
        version="1",
        is_asked=lambda _: False,
        uniform=dice.uniform,
    )
    due = [timing.first_delay(_shoot(), NOW) for _ in range(150)]
    done = [timing.first_delay(_shoot(status={"lastOperation": _operation(ago=300)}), NOW) for _ in range(150)]
    rest = 35 * 60
    assert all(0 <= delay <= rest for delay in due)
    assert all(delay > 20 * HOUR for delay in done)
    # No fifth of the time has much more than a fifth of them.
    fifths = Counter(int(delay // (rest / 5)) for delay in due)
    assert max(fifths.values()) < 50


# --- whether the Seed is ready


def _seed(**status: Any) -> Object:
    conditions = [
        {"type": each, "status": "True", "reason": "r", "message": "m"}
        for each in ("GardenletReady", "SeedSystemComponentsHealthy")
    ]
    return {
        "metadata": {"generation": 2},
        "status": {"gardener": GARDENER, "observedGeneration": 2, "conditions": conditions} | status,
    }


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (_seed(), ""),
        (_seed(gardener={**GARDENER, "version": "0"}), "observing Gardener version not up to date (0/1)"),
        (_seed(gardener={**GARDENER, "id": "other"}), "observing Gardener version not up to date (1/1)"),
        (_seed(observedGeneration=1), "observed generation outdated (1/2)"),
        (_seed(conditions=[]), 'condition "GardenletReady" is missing'),
    ],
)
def test_seed_is_ready(found: Object, problem: str) -> None:
    assert seed.problem(found, gardener=GARDENER) == problem


@pytest.mark.parametrize("state", ["Processing", "Error", "Succeeded"])
@pytest.mark.parametrize("version", ["0", "1", "2"], ids=["an older one", "the same", "a newer one"])
def test_what_another_version_has_reconciled_waits_until_its_seed_is_done(state: str, version: str) -> None:
    """Whichever is the newer: a version that goes back waits as one that goes on."""
    own = _seed() | {"status": _seed()["status"] | {"lastOperation": {"type": "Reconcile", "state": state}}}
    shoot = _shoot(status={"gardener": GARDENER | {"version": version}})
    waits = state == "Processing" and version != "1"
    assert bool(seed.problem_of_repetition(own, shoot, gardener=GARDENER)) == waits
    assert seed.problem(own, gardener=GARDENER) == "", "what is requested does not wait"


class _Added(dict[Key, Priority]):
    """A queue that notes what is added."""

    def add(self, key: Key, priority: Priority = CHANGE) -> None:
        self[key] = priority


ASLEEP: Any = {"hibernation": {"enabled": True}}
SLEEPS: Any = {"status": {"hibernated": True}}


@pytest.mark.parametrize(
    ("shoot", "priority"),
    [
        pytest.param(_shoot(), RESYNC, id="once more"),
        pytest.param(_shoot(status={"observedGeneration": 2}), CHANGE, id="requested"),
        pytest.param(_shoot(**ASLEEP, **SLEEPS), LAST, id="asleep"),
        pytest.param(_shoot(**ASLEEP, status={"observedGeneration": 2}), CHANGE, id="to be put to sleep"),
        pytest.param(_shoot(**ASLEEP), RESYNC, id="still awake"),
        pytest.param(_shoot(status=_failed()), LAST, id="failed"),
        pytest.param(_shoot(status=_failed("0")), LAST, id="failed with another version"),
        pytest.param(_shoot(status=_failed() | ASKED), CHANGE, id="failed, and retried"),
        pytest.param(_shoot(status={"lastOperation": _operation("Create", "Processing")}), CHANGE, id="cut off"),
        pytest.param(None, CHANGE, id="gone"),
    ],
)
def test_in_which_order_what_waits_for_the_seed_comes(shoot: Object | None, priority: Priority) -> None:
    assert controller._after_waiting(_timing(), shoot) == priority


@pytest.mark.parametrize(
    ("name", "found", "released"),
    [("own", _seed(), True), ("own", _seed(conditions=[]), False), ("other", _seed(), False), ("own", None, False)],
)
def test_what_waits_for_the_seed_comes_when_that_is_ready(name: str, found: Object | None, released: bool) -> None:
    held, waiting = {Key("garden-dev", "s")}, {Key("garden-dev", "s")}
    queue: Any = _Added()
    handle = controller.released(held, "own", GARDENER, lambda _: LAST)
    handle(queue, Change(key=Key("", name), old=None, new=found, initial=False))
    assert (queue, held) == ((dict.fromkeys(waiting, LAST), set()) if released else ({}, waiting))


async def _after_many_failures(name: Key, clock: FakeClock) -> WorkQueue[Key]:
    queue: WorkQueue[Key] = WorkQueue("failures", now=clock, call_later=clock.call_later)
    for _ in range(20):
        queue.add_rate_limited(name)
        clock.advance(1000.0)
        queue.done(await queue.get())
    return queue


@pytest.mark.parametrize(
    ("changed", "is_forgotten"),
    [
        pytest.param(_shoot(deleting=True), True, id="deleted"),
        pytest.param({**_shoot(), "metadata": {"generation": 4}}, True, id="requested something"),
        pytest.param(_shoot(annotations={"a": "b"}), False, id="annotated"),
    ],
)
async def test_pauses_after_failures_start_again_with_what_is_requested(changed: Object, is_forgotten: bool) -> None:
    name, clock = Key("garden-dev", "s"), FakeClock()
    queue = await _after_many_failures(name, clock)
    handle = controller.spread(_timing(), lambda: NOW)
    handle(queue, Change(key=name, old=_shoot(), new=changed, initial=False))
    if is_forgotten:
        queue.done(await queue.get())
    queue.add_rate_limited(name)
    clock.advance(1.0)
    assert len(queue) == is_forgotten


@pytest.mark.parametrize(
    ("before", "after", "comes"),
    [
        pytest.param({"seedName": "there"}, {"seedName": "here"}, True, id="from another Seed"),
        pytest.param({}, {"lastOperation": _operation("Migrate", "Aborted")}, True, id="to begin with what was saved"),
        pytest.param(
            {"lastOperation": _operation("Migrate", "Aborted")},
            {"lastOperation": _operation("Restore", "Error")},
            False,
            id="does so",
        ),
        pytest.param({"lastOperation": _operation("Restore", "Processing")}, {}, False, id="has done so"),
    ],
)
async def test_what_is_given_to_the_seed_comes_in_a_moment(before: Object, after: Object, comes: bool) -> None:
    """However often it has failed."""
    name, clock = Key("garden-dev", "s"), FakeClock()
    queue = await _after_many_failures(name, clock)
    queue.add_rate_limited(name)
    handle = controller.spread(_timing(), lambda: NOW)
    handle(queue, Change(key=name, old=_shoot(status=before), new=_shoot(status=after), initial=False))
    clock.advance(5.0)
    assert len(queue) == comes


@pytest.mark.parametrize(
    ("shoot", "is_added"),
    [
        (_shoot(annotations={keys.SHOOT_IGNORE: "true"}, status={"technicalID": "t"}), True),
        (_shoot(status={"technicalID": "t"}), False),
    ],
)
def test_extensions_see_an_ignored_shoot_once_it_has_a_namespace(shoot: Object, is_added: bool) -> None:
    queue: Any = _Added()
    handle = controller.spread(_timing(respect_sync_period_overwrite=True), lambda: NOW)
    before = {**shoot, "status": {**shoot["status"], "technicalID": None}}
    handle(queue, Change(key=key(shoot), old=before, new=shoot, initial=False))
    assert queue == ({key(shoot): CHANGE} if is_added else {})


# --- the status


def _begun(shoot: Object, kind: str = "Reconcile") -> Object:
    return status.begun(shoot, kind, gardener=GARDENER, technical_id="shoot--dev--s", now=NOW)


@pytest.mark.parametrize(
    ("shoot", "kind", "description", "is_new_cycle", "seed"),
    [
        (_shoot(), "Create", "Reconciliation of Shoot cluster initialized.", True, "here"),
        (
            _shoot(status={"retryCycleStartTime": format_time(NOW)}),
            "Reconcile",
            "Reconciliation of Shoot cluster initialized.",
            False,
            "here",
        ),
        (
            _shoot(status={"retryCycleStartTime": format_time(NOW), **ASKED}),
            "Restore",
            "Restoration of Shoot cluster initialized.",
            True,
            "here",
        ),
        (
            _shoot(status={"retryCycleStartTime": format_time(NOW), "gardener": {"version": "0"}}),
            "Migrate",
            "Preparation of Shoot cluster for migration initialized.",
            True,
            None,
        ),
        (
            _shoot(status={"retryCycleStartTime": format_time(NOW)}),
            "Delete",
            "Deletion of Shoot cluster in progress.",
            True,
            None,
        ),
    ],
)
def test_begin(shoot: Object, kind: str, description: str, is_new_cycle: bool, seed: str | None) -> None:
    fields = _begun(shoot, kind)
    operation = fields["lastOperation"]
    assert (operation["type"], operation["state"], operation["progress"]) == (kind, "Processing", 0)
    assert operation["description"] == description
    assert ("retryCycleStartTime" in fields, fields.get("seedName")) == (is_new_cycle, seed)
    assert (fields["observedGeneration"], fields["technicalID"]) == (3, "shoot--dev--s")


def test_begin_keeps_errors_of_tasks() -> None:
    errors = [{"taskID": "initializeOperation"}, {"taskID": "a"}]
    assert _begun(_shoot(status={"lastErrors": errors}))["lastErrors"] == [{"taskID": "a"}]


def test_waiting_for_the_seed_is_written_once() -> None:
    shoot = _shoot()
    fields = status.waiting_for_seed(shoot, "seed is not yet ready: x", now=NOW)
    assert fields["lastOperation"]["description"] == "Shoot cannot be synced with Seed: seed is not yet ready: x"
    shoot["status"] |= fields
    assert status.waiting_for_seed(shoot, "seed is not yet ready: x", now=NOW + timedelta(minutes=1)) == {}


class _Coded(ReconcileError):
    codes = ("ERR_INFRA_QUOTA_EXCEEDED",)


def _fail(error: Exception, *, started: float = 0) -> Object:
    failure = status.failure('flow "f" failed', [TaskFailure("t", error, str(error))], now=NOW)
    before = {"retryCycleStartTime": format_time(NOW - timedelta(seconds=started)), "lastOperation": _operation()}
    return status.failed(before, "Create", failure, retry_duration=HOUR, now=NOW)


def test_failure_is_retried() -> None:
    ended = _fail(ReconcileError("x"))
    assert ended["lastOperation"]["state"] == "Error"
    assert ended["lastOperation"]["progress"] == 47
    assert ended["lastOperation"]["description"] == 'Flow "f" failed Operation will be retried.'
    error = {"description": 'task "t" failed: x', "taskID": "t", "lastUpdateTime": format_time(NOW)}
    assert ended["lastErrors"] == [error]
    assert ended["retryCycleStartTime"]


def test_failure_that_only_its_user_can_help_is_final() -> None:
    ended = _fail(_Coded("x"))
    assert ended["lastOperation"]["state"] == "Failed"
    assert ended["lastOperation"]["description"] == 'Flow "f" failed'
    assert ended["lastErrors"][0]["codes"] == ["ERR_INFRA_QUOTA_EXCEEDED"]
    assert ended["retryCycleStartTime"] is None


def test_failure_is_given_up_in_the_end() -> None:
    ended = _fail(ReconcileError("x"), started=HOUR + 1)
    assert ended["lastOperation"]["state"] == "Failed"
    assert ended["lastOperation"]["description"] == 'Flow "f" failed (retry duration of 1h0m0s exceeded)'


def test_progress_drops_errors_that_are_over() -> None:
    before = {"lastErrors": [{"taskID": "a"}, {"taskID": "b"}]}
    snapshot = Snapshot("f", 4, frozenset({"a"}), frozenset({"c"}), (), frozenset({"b"}))
    running = status.progressing(before, "Create", snapshot, now=NOW)
    assert running["lastErrors"] == [{"taskID": "b"}]
    assert (running["lastOperation"]["progress"], running["lastOperation"]["description"]) == (25, "c")


def test_the_error_of_a_program_is_listed_while_its_task_waits() -> None:
    """Instead of that of the attempt before; its time is that when it became known."""
    walk = Walk(Graph("f", [Task("a", "A", _nothing), Task("b", "B", _nothing)]), failed_before=["A"])
    tasks = walk.start()
    walk.note("a", f"Deployment x: {PROGRAM_ENDED}: no such plugin")
    walk.note("b", "Deployment y: it does not exist")
    before = {"lastErrors": [{"taskID": "A", "description": "late"}]}
    listed = status.progressing(before, "Create", walk.snapshot(), now=NOW)["lastErrors"]
    described = f'task "A" waits: {PROGRAM_ENDED}: no such plugin'
    assert listed == [{"description": described, "taskID": "A", "lastUpdateTime": format_time(NOW)}]
    later = {"now": NOW + timedelta(minutes=1)}
    assert status.progressing({"lastErrors": listed}, "Create", walk.snapshot(), **later)["lastErrors"] == listed
    walk.end(tasks[0])
    assert status.progressing({"lastErrors": listed}, "Create", walk.snapshot(), **later)["lastErrors"] is None


async def _nothing(_: object) -> None:
    pass


@pytest.mark.parametrize(
    ("kind", "description", "seed", "is_checked_again"),
    [
        ("Create", "Shoot cluster has been successfully reconciled.", "here", True),
        ("Restore", "Shoot cluster has been successfully restored.", "here", True),
        ("Migrate", "Shoot cluster has been successfully prepared for migration.", "here", False),
        ("Delete", "Shoot cluster has been successfully deleted.", None, True),
    ],
)
def test_success(kind: str, description: str, seed: str | None, is_checked_again: bool) -> None:
    shoot = _shoot(hibernation={"enabled": False})
    before = {
        "conditions": [{"type": "APIServerAvailable", "status": "True"}],
        "constraints": [{"type": "HibernationPossible", "status": "False"}],
        "lastErrors": [{"taskID": "a"}],
    }
    rolled_out = _shoot(hibernation={"enabled": True})
    ended = status.succeeded(shoot, before, kind, rolled_out=rolled_out, now=NOW)
    assert (ended["lastOperation"]["state"], ended["lastOperation"]["progress"]) == ("Succeeded", 100)
    assert ended["lastOperation"]["description"] == description
    assert (ended.get("seedName"), ended["hibernated"], ended["lastErrors"]) == (seed, True, None)
    assert ended["conditions"][0]["status"] == ("Progressing" if is_checked_again else "True")
    assert ended["constraints"][0]["status"] == "False"


def test_an_operation_that_changes_nothing_changes_no_condition() -> None:
    before = {
        "conditions": [{"type": "APIServerAvailable", "status": "True"}],
        "constraints": [{"type": "HibernationPossible", "status": "Unknown"}],
    }
    shoot = _shoot()
    ended = status.succeeded(shoot, before, "Reconcile", rolled_out=shoot, has_changed=False, now=NOW)
    assert {name: ended[name] for name in before} == before
    assert ended["lastOperation"]["state"] == "Succeeded"


# --- the Cluster


def test_cluster_has_whole_objects() -> None:
    shoot = _shoot()
    shoot["metadata"]["managedFields"] = [{}]
    seen = cluster.cluster("shoot--dev--s", shoot=shoot, seed=_seed(), profile={})
    assert seen["metadata"] == {"name": "shoot--dev--s"}
    assert {name: each["kind"] for name, each in seen["spec"].items()} == {
        "cloudProfile": "CloudProfile",
        "seed": "Seed",
        "shoot": "Shoot",
    }
    assert "managedFields" not in seen["spec"]["shoot"]["metadata"]
    assert seen["spec"]["shoot"]["status"] == shoot["status"]
