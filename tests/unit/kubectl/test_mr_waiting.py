"""What is shown while a command waits, and what is advised."""

from typing import Any

import pytest

from gardener.keys import ORIGIN
from gardener.managed_resource.messages import pending_message, pending_text
from gardener.overview.hints import hints, is_elsewhere
from gardener.overview.objects import Health, HealthStatus, Live, health_status
from kit.objects import conditions, config_map, managed_resource, obj
from kube.objects import Object
from kubectl.errors import UserError
from kubectl.mr.commands.reconcile import demand_reconcilable
from kubectl.mr.waiting import Goal, picture, progress_of
from kubectl.options import seconds_of
from kubectl.style import rendered

READY: Object = {"observedGeneration": 1, "conditions": conditions()}
WARNED: Object = {
    "observedGeneration": 1,
    "conditions": [
        {**each, "message": 'All resources are applied, with warnings: v1/Pod/a/b: unknown field "spec.replica"'}
        for each in conditions()
    ],
}
DELETED: Object = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
MISSING = Live({"kind": "ConfigMap", "namespace": "shop", "name": "a"}, None, HealthStatus(Health.MISSING))
UNKNOWN = Live({"kind": "ConfigMap", "namespace": "shop", "name": "b"}, None, HealthStatus(Health.UNKNOWN))


def managed(status: dict[str, Any] | None = None, **metadata: Any) -> Object:
    return managed_resource("garden/shop", generation=1, status=status or {}, **metadata)


def failed(message: str, reason: str = "ApplyFailed", **metadata: Any) -> Object:
    applied = {"type": "ResourcesApplied", "status": "False", "reason": reason, "message": message}
    return managed({"conditions": [applied]}, **metadata)


def held(name: str, *finalizers: str, **metadata: Any) -> Live:
    live = config_map(f"shop/{name}", finalizers=list(finalizers), **DELETED, **metadata)
    return Live({"kind": "ConfigMap", "namespace": "shop", "name": name}, live, health_status(live))


def test_ready_is_reached_when_all_conditions_are_good() -> None:
    assert progress_of("shop", managed(READY), [], Goal.READY).reached
    assert not progress_of("shop", managed(), [], Goal.READY).reached


def test_a_pass_that_was_requested_and_not_begun_is_waited_for() -> None:
    requested = managed(READY, annotations={"gardener.cloud/operation": "reconcile"})
    assert not progress_of("shop", requested, [], Goal.READY).reached


@pytest.mark.parametrize(("applied", "is_reached"), [("new", True), ("old", False), (None, False)])
def test_what_has_to_be_applied_is_waited_for_though_all_was_well_before(applied: str | None, is_reached: bool) -> None:
    status = {**READY, **({"secretsDataChecksum": applied} if applied else {})}
    assert progress_of("shop", managed(status), [], Goal.READY, checksum="new").reached is is_reached
    assert progress_of("shop", managed(status), [], Goal.READY).reached


def test_warnings_come_with_what_is_reached() -> None:
    assert 'unknown field "spec.replica"' in progress_of("shop", managed(WARNED), [], Goal.READY).warnings
    assert progress_of("shop", managed(READY), [], Goal.READY).warnings == ""


@pytest.mark.parametrize(
    ("obj", "goal", "why"),
    [
        (managed(READY, annotations={"resources.gardener.cloud/ignore": "true"}), Goal.READY, "it is suspended"),
        (managed(READY, **DELETED), Goal.READY, "it is being deleted"),
        (managed(READY), Goal.DELETED, "it is not being deleted"),
    ],
)
def test_what_never_comes_true_is_not_waited_for(obj: Object, goal: Goal, why: str) -> None:
    assert progress_of("shop", obj, [], goal).hopeless == why


def test_objects_that_block_a_deletion_are_named_with_the_reason() -> None:
    progress = progress_of("shop", managed(**DELETED), [held("a", "example.com/hold"), MISSING], Goal.DELETED)
    assert [rendered(line, colors=False) for line in picture([progress])] == [
        "shop Deleting, 1 object left",
        "  ConfigMap/shop/a Deleting: waits for example.com/hold",
    ]


def test_a_deletion_that_is_refused_reports_who_lacks_which_right() -> None:
    refused = 'configmaps "a" is forbidden: User "agent" cannot delete resource "configmaps" in API group ""'
    message = pending_message([("a", pending_text("v1/ConfigMap/shop/a", reason=f'{refused} in the namespace "shop"'))])
    obj = failed(message, "DeletionFailed", **DELETED)
    progress = progress_of("shop", obj, [held("a", "")], Goal.DELETED)
    assert 'User "agent" cannot delete resource "configmaps"' in rendered(progress.line, colors=False)
    assert any(advice.startswith("ConfigMap/shop/a: ") and "agent" in advice for advice in hints(obj, []))


def test_only_some_of_many_objects_are_shown() -> None:
    progress = progress_of("shop", managed(**DELETED), [held(f"a{i}") for i in range(9)], Goal.DELETED)
    assert len(progress.blocking) == 6
    assert rendered(progress.blocking[-1], colors=False) == "and 4 more"


def test_a_namespace_shows_what_is_left_in_it() -> None:
    remaining = {"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 1 resource instances"}
    namespace = obj("v1 Namespace", "shop", status={"conditions": [remaining]}, **DELETED)
    assert health_status(namespace).message == "pods. has 1 resource instances"


@pytest.mark.parametrize(
    ("obj", "found", "words"),
    [
        (managed(), [], "of the same class"),
        (managed(annotations={"resources.gardener.cloud/ignore": "true"}), [], "kubectl mr resume shop"),
        (failed("…", "CannotReadSecret"), [], "create the Secret"),
        (failed("…", "DecodingFailed"), [], "kubectl mr decode"),
        (failed('no matches for kind "A" in version "example.com/v1"'), [], "install the CustomResourceDefinition"),
        (failed('namespaces "shop" not found'), [], "add the Namespace"),
        (
            failed('pods "p" is forbidden: exceeded quota: small, requested: pods=1'),
            [],
            "raise the ResourceQuota small",
        ),
        (managed(WARNED), [], "correct the name of the field spec.replica"),
        (failed("x is held by ManagedResource b"), [], "from one of the two"),
        (managed(**DELETED), [held("a", "example.com/hold")], "ConfigMap/shop/a waits for example.com/hold"),
        (managed(READY), [MISSING], "--target-kubeconfig"),
    ],
)
def test_advice_fits_to_what_is_wrong(obj: Object, found: list[Live], words: str) -> None:
    assert any(words in advice for advice in hints(obj, found))


def test_what_could_not_be_applied_is_not_looked_for_elsewhere() -> None:
    assert hints(failed('namespaces "shop" not found'), [MISSING]) == [
        "add the Namespace shop to the objects, or create it"
    ]


@pytest.mark.parametrize(
    ("found", "is_so"),
    [
        ([], False),
        ([MISSING], True),
        ([MISSING, held("a", annotations={ORIGIN: "garden/other"})], True),
        ([MISSING, held("a")], True),
        ([held("a")], False),
        ([MISSING, held("a", annotations={ORIGIN: "garden/shop"})], False),
        ([MISSING, UNKNOWN], False),
    ],
)
def test_objects_are_in_another_cluster_if_none_of_them_is_here(found: list[Live], is_so: bool) -> None:
    assert is_elsewhere(managed(READY), found) is is_so


def test_there_is_no_advice_when_all_is_well() -> None:
    assert hints(managed(READY), []) == []


def test_a_migration_is_not_disturbed_by_reconcile() -> None:
    with pytest.raises(UserError, match="must not be overwritten"):
        demand_reconcilable(managed(READY, annotations={"gardener.cloud/operation": "migrate"}))
    demand_reconcilable(managed(READY, annotations={"gardener.cloud/operation": "reconcile"}))


def test_a_duration_that_is_none_is_explained() -> None:
    assert seconds_of("1m30s") == 90
    with pytest.raises(UserError, match="missing unit"):
        seconds_of("90")
