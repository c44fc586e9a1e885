"""What becomes of objects that are no longer wanted."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.resource_manager.managed_resource.removal_rules import (
    Disposition,
    disposition,
    is_namespace,
    must_be_finalized,
    propagation_policy,
    without_finalizers,
)
from kit.objects import obj
from kube.clock import format_time
from kube.objects import Object

G = "resources.gardener.cloud"
OURS = "ns/mr"
NOW = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


def disposed(live: Object, *, held: bool = False, collector: bool = False, announced: bool = False) -> Disposition:
    return disposition(
        live,
        origin=OURS,
        held_by_other=lambda _: held,
        garbage_collector=collector,
        is_ours_unstamped=not announced,
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", Disposition.KEEP), ("1", Disposition.KEEP), ("yes", Disposition.DELETE), ("false", Disposition.DELETE)],
)
def test_an_object_that_says_so_is_kept(value: str, expected: Disposition) -> None:
    assert disposed(obj("v1 ConfigMap", "n", annotations={f"{G}/keep-object": value})) is expected


@pytest.mark.parametrize(
    ("live", "collector", "expected"),
    [
        (obj("v1 Secret", "n"), True, Disposition.COLLECTED),
        (obj("v1 ConfigMap", "n"), True, Disposition.COLLECTED),
        (obj("v1 ConfigMap", "n"), False, Disposition.DELETE),
        (obj("v1 Service", "n"), True, Disposition.DELETE),
        (obj("example.com/v1 Secret", "n"), True, Disposition.DELETE),
    ],
)
def test_what_the_garbage_collector_takes_is_left_to_it(live: Object, collector: bool, expected: Disposition) -> None:
    live["metadata"]["labels"] = {f"{G}/garbage-collectable-reference": "true"}
    assert disposed(live, collector=collector) is expected


@pytest.mark.parametrize(
    ("origin", "held", "expected"),
    [
        (None, True, Disposition.DELETE),
        (OURS, True, Disposition.DELETE),
        ("other/mr", True, Disposition.HANDED_OVER),
        ("other/mr", False, Disposition.DELETE),
    ],
)
def test_an_object_that_another_managed_resource_has_is_not_deleted(
    origin: str | None, held: bool, expected: Disposition
) -> None:
    annotations = {f"{G}/origin": origin} if origin else {}
    assert disposed(obj("v1 ConfigMap", "n", annotations=annotations), held=held) is expected


@pytest.mark.parametrize(("origin", "expected"), [(None, Disposition.FOREIGN), (OURS, Disposition.DELETE)])
def test_what_was_about_to_be_created_and_has_no_stamp_was_there_before(
    origin: str | None, expected: Disposition
) -> None:
    annotations = {f"{G}/origin": origin} if origin else {}
    assert disposed(obj("v1 ConfigMap", "n", annotations=annotations), announced=True) is expected


@pytest.mark.parametrize("annotation", ["ignore", "mode"])
def test_other_annotations_do_not_protect_from_removal(annotation: str) -> None:
    live = obj("v1 ConfigMap", "n", annotations={f"{G}/{annotation}": "true", f"{G}/delete-on-invalid-update": "true"})
    assert disposed(live) is Disposition.DELETE


@pytest.mark.parametrize(
    ("api_version", "policy"),
    [
        *((version, "Foreground") for version in ("apps/v1", "extensions/v1beta1", "batch/v1")),
        *(("v1", None), ("example.com/v1", None)),
    ],
)
def test_workloads_are_deleted_after_their_pods(api_version: str, policy: str | None) -> None:
    assert propagation_policy(obj(f"{api_version} X", "n")) == policy


def waiting(after: str | None, *, since: int | None, kind: str = "ConfigMap", **meta: Any) -> Object:
    notes = {} if after is None else {f"{G}/finalize-deletion-after": after}
    live = obj(f"v1 {kind}", "n", annotations=notes, **{"finalizers": ["x/y"], **meta})
    if since is not None:
        live["metadata"]["deletionTimestamp"] = format_time(NOW - timedelta(seconds=since))
    return live


@pytest.mark.parametrize(
    ("live", "due"),
    [
        (waiting("1h30m", since=5400), True),
        (waiting("1h30m", since=5399), False),
        (waiting("90s", since=100), True),
        (waiting("90s", since=None), False),
        (waiting("0", since=100), False),
        (waiting("", since=100), False),
        (waiting(None, since=100), False),
        (waiting("1s", since=100, finalizers=[]), False),
        ({**waiting("1s", since=100, kind="Namespace", finalizers=[]), "spec": {"finalizers": ["kubernetes"]}}, True),
        ({**waiting("1s", since=100, kind="Other", finalizers=[]), "spec": {"finalizers": ["kubernetes"]}}, False),
    ],
)
def test_finalizers_are_taken_away_when_the_time_is_up(live: Object, due: bool) -> None:
    assert must_be_finalized(live, now=NOW) is due


@pytest.mark.parametrize("since", [None, 100])
def test_what_is_no_duration_is_an_error(since: int | None) -> None:
    with pytest.raises(ValueError, match="failed parsing") as caught:
        must_be_finalized(waiting("soon", since=since), now=NOW)
    assert str(caught.value) == (
        "failed parsing duration of resources.gardener.cloud/finalize-deletion-after annotation: "
        'time: invalid duration "soon"'
    )


def test_a_namespace_is_finalized_as_a_whole() -> None:
    live = {
        **obj("v1 Namespace", "n", finalizers=["x/y"], resourceVersion="7"),
        "spec": {"finalizers": ["kubernetes"], "a": 1},
    }
    assert is_namespace(live)
    assert without_finalizers(live) == {
        **obj("v1 Namespace", "n", resourceVersion="7"),
        "spec": {"finalizers": [], "a": 1},
    }
    assert live["metadata"]["finalizers"] == ["x/y"]
