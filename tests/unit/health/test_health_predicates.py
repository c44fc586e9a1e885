"""Which events lead to a check, and what is kept of objects to report."""

import gc
from typing import Any

import pytest

from agent.resource_manager.health import projections
from agent.resource_manager.health.pods import CountedPod
from agent.resource_manager.health.predicates import LATER, SOON, calls_for_check, delay, pod_delay
from agent.resource_manager.health.projections import NOTHING, ObjectHealth, origin, project_health, project_progress
from gardener.health.checks.workload_pods import PodsWanted
from gardener.health.findings import Finding, Reference
from kit import objects
from kube.objects import Key, Object
from kube.resources import DEPLOYMENTS, PODS, SECRETS
from kube.runtime.cache import Change

PREFIX = "resources.gardener.cloud"
KEY = Key("garden", "mr")


# --- ManagedResources


def managed_resource(
    *,
    applied: str | None = "True",
    ignore: str | None = None,
    finalizers: tuple[str, ...] = (),
    resource_class: str | None = None,
    keep_objects: bool = False,
) -> Object:
    return objects.managed_resource(
        annotations={} if ignore is None else {f"{PREFIX}/ignore": ignore},
        finalizers=[f"{PREFIX}/{name}" for name in finalizers],
        spec={"class": resource_class, "keepObjects": keep_objects},
        conditions=objects.conditions(applied=applied or "", healthy="", progressing=""),
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, managed_resource(), True),
        (None, managed_resource(ignore="true"), False),
        (managed_resource(), None, False),
        (managed_resource(), managed_resource(), False),
        (managed_resource(), managed_resource(keep_objects=True), False),
        (managed_resource(applied="Progressing"), managed_resource(), True),
        (managed_resource(applied=None), managed_resource(), True),
        (managed_resource(), managed_resource(applied=None), True),
        (managed_resource(), managed_resource(applied="False"), True),
        (managed_resource(ignore="true"), managed_resource(), True),
        (managed_resource(ignore="true"), managed_resource(ignore="maybe"), True),
        (managed_resource(ignore="maybe"), managed_resource(), False),
        (managed_resource(), managed_resource(ignore="1", applied="False"), False),
        (managed_resource(), managed_resource(resource_class=""), True),
    ],
)
def test_a_managed_resource_is_checked_when_it_was_applied_or_is_no_longer_ignored(
    old: Object | None, new: Object | None, expected: bool
) -> None:
    assert calls_for_check(resource_class="resources")(Change(KEY, old, new, initial=False)) is expected


@pytest.mark.parametrize(
    ("finalizers", "having", "expected"),
    [
        ((), "shoot", True),
        ((), "other", False),
        (("gardener-resource-manager-shoot",), "other", True),
        (("gardener-resource-manager",), "other", False),
    ],
)
def test_the_class_or_the_finalizer_has_to_be_ours(finalizers: tuple[str, ...], having: str, expected: bool) -> None:
    created = managed_resource(finalizers=finalizers, resource_class=having)
    assert calls_for_check(resource_class="shoot")(Change(KEY, None, created, initial=False)) is expected


# --- from an object to its ManagedResource


def from_origin(text: str | None) -> Object:
    return {"metadata": {"annotations": {} if text is None else {f"{PREFIX}/origin": text}}}


@pytest.mark.parametrize(
    ("text", "cluster_id", "expected"),
    [
        (None, "", None),
        ("a/mr", "", Key("a", "mr")),
        ("a/mr", "seed", None),
        ("seed:a/mr", "seed", Key("a", "mr")),
        ("seed:a/mr", "other", None),
        ("seed:a/mr", "", None),
        (":a/mr", "", Key("a", "mr")),
    ],
)
def test_the_origin_names_the_managed_resource(text: str | None, cluster_id: str, expected: Key | None) -> None:
    assert origin(from_origin(text), cluster_id=cluster_id) == expected


@pytest.mark.parametrize("text", ["", "mr", "a/b/c", "x:y:a/mr", "x:mr", "a/mr:x", "/mr", "a/"])
def test_a_malformed_origin_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=f"^unexpected origin format: '{text}', it must be "):
        origin(from_origin(text), cluster_id="x")


# --- managed objects

POD = Reference("v1", "Pod", "a", "p")
MR = Key("a", "mr")
FINE = ObjectHealth(MR)
PENDING, FAILED = (ObjectHealth(MR, Finding(POD, "PodUnhealthy", message)) for message in ("pending", "failed"))
TWO, THREE = (
    ObjectHealth(MR, None, PodsWanted(Key("a", "p"), {"matchLabels": {"app": "x"}}, count)) for count in (2, 3)
)


@pytest.mark.parametrize(
    ("old", "new", "health", "progress"),
    [
        (None, FINE, SOON, None),
        (FINE, None, SOON, None),
        (None, PENDING, SOON, SOON),
        (PENDING, None, SOON, SOON),
        (FINE, FINE, None, None),
        (PENDING, PENDING, None, None),
        (FINE, PENDING, SOON, SOON),
        (PENDING, FINE, SOON, SOON),
        # Other words for a known problem are not urgent.
        (PENDING, FAILED, LATER, LATER),
        (TWO, TWO, None, None),
        (TWO, THREE, SOON, SOON),
        (PENDING, TWO, SOON, SOON),
    ],
)
def test_a_check_is_due_when_what_is_wrong_changes(
    old: ObjectHealth | None, new: ObjectHealth | None, health: float | None, progress: float | None
) -> None:
    assert delay(old, new, counts_existence=True) == health
    assert delay(old, new, counts_existence=False) == progress


# --- what is kept of an object


def live(*, spec: Any = None, status: Any = None, origin: str = "a/mr", **annotations: str) -> Object:
    noted = {f"{PREFIX}/origin": origin, **{f"{PREFIX}/{name}": value for name, value in annotations.items()}}
    metadata = {"name": "p", "namespace": "a", "generation": 1, "annotations": noted}
    return {"metadata": metadata, "spec": spec or {}, "status": status or {}}


def test_an_object_is_kept_as_what_is_wrong_with_it() -> None:
    kept = project_health(PODS, live(status={"phase": "Pending"}), cluster_id="")
    assert kept.origin == MR
    assert kept.finding is not None
    assert kept.finding.reference == POD
    assert project_health(PODS, live(status={"phase": "Running"}), cluster_id="") == FINE
    skipped = live(status={"phase": "Pending"}, **{"skip-health-check": "true"})
    assert project_health(PODS, skipped, cluster_id="") == FINE


def test_fine_objects_of_a_managed_resource_share_one_value_until_the_last_goes() -> None:
    pod = project_health(PODS, live(origin="a/shared", status={"phase": "Running"}), cluster_id="")
    secret = project_health(SECRETS, live(origin="a/shared"), cluster_id="")
    assert pod is secret
    assert pod is not project_health(SECRETS, live(origin="a/other"), cluster_id="")
    shared = Key("a", "shared")
    assert pod.origin == shared
    del pod, secret
    gc.collect()
    assert shared not in projections._FINE


@pytest.mark.parametrize("origin", ["other:a/mr", "nonsense", "a/b/c"])
def test_an_object_of_another_agent_is_not_checked(origin: str) -> None:
    kept = project_health(PODS, live(origin=origin, status={"phase": "Pending"}), cluster_id="")
    assert kept.origin is None
    assert kept.finding is not None


def test_the_pods_of_a_deployment_count_once_nothing_else_is_waited_for() -> None:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}}
    progressing = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
    done = live(spec=spec, status={"observedGeneration": 1, "conditions": [progressing]})
    assert project_progress(DEPLOYMENTS, done, cluster_id="") == TWO
    outdated = project_progress(DEPLOYMENTS, live(spec=spec), cluster_id="")
    assert outdated.finding is not None
    # They are not counted, and may report why.
    assert outdated.pods == TWO.pods


@pytest.mark.parametrize(
    ("kept", "pod", "counts", "seconds"),
    [
        (TWO, CountedPod("a", {"app": "x"}), True, SOON),
        (TWO, CountedPod("a", {"app": "x"}, cause="c"), False, None),
        (TWO, CountedPod("a", {"app": "y"}), True, None),
        (ObjectHealth(MR, PENDING.finding, TWO.pods), CountedPod("a", {"app": "x"}), True, None),
        (ObjectHealth(MR, PENDING.finding, TWO.pods), CountedPod("a", {"app": "x"}, cause="c"), False, LATER),
        (PENDING, CountedPod("a", {"app": "x"}, cause="c"), True, None),
    ],
)
def test_a_pod_counts_for_what_is_well_and_reports_why_the_rest_is_not(
    kept: ObjectHealth, pod: CountedPod, counts: bool, seconds: float | None
) -> None:
    assert pod_delay(kept, pod, counts=counts) == seconds


def test_nothing_is_kept_of_what_is_never_rolled_out() -> None:
    assert project_progress(PODS, live(status={"phase": "Pending"}), cluster_id="") is NOTHING
