"""What becomes of objects that are no longer wanted."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.managed_resource.removal import (
    Verdict,
    is_namespace,
    must_be_finalized,
    propagation_policy,
    verdict,
    without_finalizers,
)
from kube.objects import Object, format_time

G = "resources.gardener.cloud"
OURS = "ns/mr"
NOW = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


def obj(kind: str, api_version: str = "v1", **meta: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "n", **meta}}


def judged(live: Object, *, held: bool = False, collector: bool = False, announced: bool = False) -> Verdict:
    return verdict(
        live,
        origin=OURS,
        held_by_other=lambda _: held,
        garbage_collector=collector,
        is_ours_unstamped=not announced,
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", Verdict.KEEP), ("1", Verdict.KEEP), ("yes", Verdict.DELETE), ("false", Verdict.DELETE)],
)
def test_an_object_that_says_so_is_kept(value: str, expected: Verdict) -> None:
    assert judged(obj("ConfigMap", annotations={f"{G}/keep-object": value})) is expected


@pytest.mark.parametrize(
    ("live", "collector", "expected"),
    [
        (obj("Secret"), True, Verdict.COLLECTED),
        (obj("ConfigMap"), True, Verdict.COLLECTED),
        (obj("ConfigMap"), False, Verdict.DELETE),
        (obj("Service"), True, Verdict.DELETE),
        (obj("Secret", "example.com/v1"), True, Verdict.DELETE),
    ],
)
def test_what_the_garbage_collector_takes_is_left_to_it(live: Object, collector: bool, expected: Verdict) -> None:
    live["metadata"]["labels"] = {f"{G}/garbage-collectable-reference": "true"}
    assert judged(live, collector=collector) is expected


@pytest.mark.parametrize(
    ("origin", "held", "expected"),
    [
        (None, True, Verdict.DELETE),
        (OURS, True, Verdict.DELETE),
        ("other/mr", True, Verdict.HANDED_OVER),
        ("other/mr", False, Verdict.DELETE),
    ],
)
def test_an_object_that_another_managed_resource_has_is_not_deleted(
    origin: str | None, held: bool, expected: Verdict
) -> None:
    annotations = {f"{G}/origin": origin} if origin else {}
    assert judged(obj("ConfigMap", annotations=annotations), held=held) is expected


@pytest.mark.parametrize(("origin", "expected"), [(None, Verdict.FOREIGN), (OURS, Verdict.DELETE)])
def test_what_was_about_to_be_created_and_has_no_stamp_was_there_before(origin: str | None, expected: Verdict) -> None:
    annotations = {f"{G}/origin": origin} if origin else {}
    assert judged(obj("ConfigMap", annotations=annotations), announced=True) is expected


@pytest.mark.parametrize("annotation", ["ignore", "mode"])
def test_other_annotations_do_not_protect_from_removal(annotation: str) -> None:
    live = obj("ConfigMap", annotations={f"{G}/{annotation}": "true", f"{G}/delete-on-invalid-update": "true"})
    assert judged(live) is Verdict.DELETE


@pytest.mark.parametrize(
    ("api_version", "policy"),
    [
        ("apps/v1", "Foreground"),
        ("extensions/v1beta1", "Foreground"),
        ("batch/v1", "Foreground"),
        ("v1", None),
        ("example.com/v1", None),
    ],
)
def test_workloads_are_deleted_after_their_pods(api_version: str, policy: str | None) -> None:
    assert propagation_policy(obj("X", api_version)) == policy


def waiting(after: str | None, *, since: int | None, kind: str = "ConfigMap", **meta: Any) -> Object:
    notes = {} if after is None else {f"{G}/finalize-deletion-after": after}
    live = obj(kind, annotations=notes, **{"finalizers": ["x/y"], **meta})
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
    live = {**obj("Namespace", finalizers=["x/y"], resourceVersion="7"), "spec": {"finalizers": ["kubernetes"], "a": 1}}
    assert is_namespace(live)
    assert without_finalizers(live) == {**obj("Namespace", resourceVersion="7"), "spec": {"finalizers": [], "a": 1}}
    assert live["metadata"]["finalizers"] == ["x/y"]
