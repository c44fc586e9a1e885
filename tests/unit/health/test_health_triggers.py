"""Which events lead to a check."""

from typing import Any

import pytest

from agent.health.checks import deployment, pod, prometheus
from agent.health.triggers import (
    health_matters,
    managed_resource_matters,
    origin,
    owner,
    progress_matters,
)
from kube.objects import Key, Object

PREFIX = "resources.gardener.cloud"


# --- ManagedResources


def managed_resource(
    *,
    applied: str | None = "True",
    ignore: str | None = None,
    finalizers: tuple[str, ...] = (),
    resource_class: str | None = None,
    keep_objects: bool = False,
) -> Object:
    return {
        "metadata": {
            "annotations": {} if ignore is None else {f"{PREFIX}/ignore": ignore},
            "finalizers": [f"{PREFIX}/{name}" for name in finalizers],
        },
        "spec": {"class": resource_class, "keepObjects": keep_objects},
        "status": {"conditions": [{"type": "ResourcesApplied", "status": applied}] if applied else []},
    }


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
    assert managed_resource_matters(old, new, resource_class="resources") is expected


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
    assert managed_resource_matters(None, created, resource_class="shoot") is expected


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
    with pytest.raises(ValueError, match=f'^unexpected origin format: "{text}"$'):
        origin(from_origin(text), cluster_id="x")


def owned(*owners: tuple[str, str, str]) -> Object:
    references = [{"apiVersion": v, "kind": k, "name": n} for v, k, n in owners]
    return {"metadata": {"ownerReferences": references}}


def test_the_last_owner_of_the_kind_counts() -> None:
    child = owned(
        ("apps/v1", "ReplicaSet", "first"),
        ("apps/v1", "ReplicaSet", "last"),
        ("example.com/v1", "ReplicaSet", "foreign"),
        ("apps/v1", "StatefulSet", "other"),
    )
    assert owner(child, "ReplicaSet") == "last"
    assert owner(child, "Deployment") is None
    assert owner({}, "ReplicaSet") is None


# --- managed objects


def pod_in(phase: str, version: int, *, skip: str | None = None, **metadata: Any) -> Object:
    annotations = {} if skip is None else {f"{PREFIX}/skip-health-check": skip}
    return {
        "metadata": {"resourceVersion": str(version), "annotations": annotations, **metadata},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, pod_in("Pending", 1), True),
        (pod_in("Running", 1), None, True),
        (None, pod_in("Pending", 1, skip="true"), False),
        (pod_in("Pending", 1, skip="true"), None, False),
        (None, pod_in("Pending", 1, skip="True"), True),
        (pod_in("Running", 1), pod_in("Running", 1), True),
        (pod_in("Running", 1), pod_in("Running", 2), False),
        (pod_in("Running", 1), pod_in("Failed", 2), True),
        (pod_in("Failed", 1), pod_in("Running", 2), True),
        # Another message alone is no news.
        (pod_in("Pending", 1), pod_in("Failed", 2), False),
        (pod_in("Pending", 1, skip="true"), pod_in("Running", 2, skip="true"), False),
        (pod_in("Pending", 1, skip="true"), pod_in("Pending", 2), True),
        (pod_in("Pending", 1), pod_in("Pending", 2, skip="true"), True),
    ],
)
def test_a_change_of_health_leads_to_a_check(old: Object | None, new: Object | None, expected: bool) -> None:
    assert health_matters(pod.RULE, old, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, pod_in("", 1), True),
        (pod_in("", 1), None, True),
        (pod_in("", 1), pod_in("", 2), False),
        (pod_in("", 1), pod_in("", 2, skip="true"), True),
    ],
)
def test_without_a_rule_existence_matters(old: Object | None, new: Object | None, expected: bool) -> None:
    assert health_matters(None, old, new) is expected


def deployed(version: int, *, observed: int = 1, replicas: int = 1, skip: str | None = None) -> Object:
    progressing = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
    return {
        "metadata": {
            "generation": 1,
            "resourceVersion": str(version),
            "annotations": {} if skip is None else {f"{PREFIX}/skip-health-check": skip},
        },
        "spec": {"replicas": replicas},
        "status": {"observedGeneration": observed, "conditions": [progressing]},
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, deployed(1), False),
        (deployed(1), None, False),
        (deployed(1), deployed(1), True),
        (deployed(1), deployed(2), False),
        (deployed(1, observed=0), deployed(2), True),
        (deployed(1), deployed(2, observed=0), True),
        (deployed(1), deployed(2, replicas=2), True),
        (deployed(1, skip="true"), deployed(2, skip="true", observed=0), False),
        (deployed(1, skip="true"), deployed(2), True),
    ],
)
def test_a_change_of_progress_leads_to_a_check(old: Object | None, new: Object | None, expected: bool) -> None:
    assert progress_matters(deployment.RULE, old, new) is expected


def monitored(version: int, status: Any) -> Object:
    return {"metadata": {"resourceVersion": str(version), "generation": 1}, "status": status}


def test_a_malformed_object_is_not_healthy_and_not_progressing() -> None:
    broken, also_broken = monitored(1, "broken"), monitored(2, {"conditions": "broken"})
    assert not health_matters(prometheus.RULE, broken, also_broken)
    assert not progress_matters(prometheus.RULE, broken, also_broken)
    waiting = monitored(3, {})
    assert not health_matters(prometheus.RULE, broken, waiting)
    assert progress_matters(prometheus.RULE, broken, waiting)
