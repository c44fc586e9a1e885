"""What becomes of objects that are no longer wanted."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardener.managed_resource.removal_rules import (
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


def live(kind: str = "v1 ConfigMap", **annotations: str) -> Object:
    """Its annotations have our prefix."""
    return obj(kind, "n", annotations={f"{G}/{name.replace('_', '-')}": text for name, text in annotations.items()})


def labelled(kind: str) -> Object:
    return obj(kind, "n", labels={f"{G}/garbage-collectable-reference": "true"})


@pytest.mark.parametrize(
    ("found", "around", "expected"),
    [
        # It is kept if it states so.
        (live(keep_object="true"), {}, Disposition.KEEP),
        (live(keep_object="1"), {}, Disposition.KEEP),
        (live(keep_object="yes"), {}, Disposition.DELETE),
        (live(keep_object="false"), {}, Disposition.DELETE),
        (live(ignore="true", delete_on_invalid_update="true"), {}, Disposition.DELETE),
        (live(mode="true", delete_on_invalid_update="true"), {}, Disposition.DELETE),
        # What the garbage collector takes is left to it.
        (labelled("v1 Secret"), {"garbage_collector": True}, Disposition.COLLECTED),
        (labelled("v1 ConfigMap"), {"garbage_collector": True}, Disposition.COLLECTED),
        (labelled("v1 ConfigMap"), {}, Disposition.DELETE),
        (labelled("v1 Service"), {"garbage_collector": True}, Disposition.DELETE),
        (labelled("example.com/v1 Secret"), {"garbage_collector": True}, Disposition.DELETE),
        # One that another ManagedResource holds is its own.
        (live(), {"held_by_other": lambda _: True}, Disposition.DELETE),
        (live(origin=OURS), {"held_by_other": lambda _: True}, Disposition.DELETE),
        (live(origin="other/mr"), {"held_by_other": lambda _: True}, Disposition.HANDED_OVER),
        (live(origin="other/mr"), {}, Disposition.DELETE),
        # What was about to be created and has no stamp was there before.
        (live(), {"is_ours_unstamped": False}, Disposition.FOREIGN),
        (live(origin=OURS), {"is_ours_unstamped": False}, Disposition.DELETE),
    ],
)
def test_what_becomes_of_an_object(found: Object, around: dict[str, Any], expected: Disposition) -> None:
    usual = {"held_by_other": lambda _: False, "garbage_collector": False, "is_ours_unstamped": True}
    assert disposition(found, origin=OURS, **{**usual, **around}) is expected


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
