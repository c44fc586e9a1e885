"""Which workloads an autoscaler scales."""

from typing import Any

import pytest

from agent.managed_resource.autoscaling import TargetReferenceError, is_scaled, list_error_text, scaled_by
from agent.managed_resource.equivalences import Equivalences
from kube.objects import Object


def autoscaler(**spec: Any) -> Object:
    return {"metadata": {"namespace": "ns", "name": "h"}, "spec": spec}


def target(api_version: str = "apps/v1", kind: str = "Deployment", name: str = "d") -> dict[str, str]:
    return {"apiVersion": api_version, "kind": kind, "name": name}


def workload(api_version: str, kind: str = "Deployment", namespace: str = "ns") -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "d", "namespace": namespace}}


def test_targets_are_object_keys_in_the_namespace_of_the_autoscaler() -> None:
    found = scaled_by([autoscaler(scaleTargetRef=target()), autoscaler(scaleTargetRef=target("v1", "RC"))])
    assert found.horizontally == {"apps/Deployment/ns/d", "/RC/ns/d"}
    assert found.vertically == set()


@pytest.mark.parametrize(
    ("spec", "horizontally", "vertically"),
    [
        ({"hpa": {"deploy": True}, "vpa": {"deploy": True}}, True, True),
        ({"hpa": {"deploy": True}}, True, False),
        ({"vpa": {"deploy": True}, "hpa": {"deploy": False}}, False, True),
        ({"hpa": "x"}, False, False),
    ],
)
def test_an_hvpa_scales_as_far_as_it_deploys(spec: Object, horizontally: bool, vertically: bool) -> None:
    found = scaled_by([], [autoscaler(targetRef=target(), **spec)])
    assert (bool(found.horizontally), bool(found.vertically)) == (horizontally, vertically)


@pytest.mark.parametrize(
    ("manifest", "scaled"),
    [
        (workload("apps/v1"), True),
        (workload("extensions/v1beta1"), True),
        (workload("apps/v1", kind="StatefulSet"), False),
        (workload("apps/v1", namespace="other"), False),
        (workload("v1"), False),
    ],
)
def test_a_workload_is_scaled_under_an_equivalent_kind_too(manifest: Object, scaled: bool) -> None:
    targets = scaled_by([autoscaler(scaleTargetRef=target())]).horizontally
    assert is_scaled(manifest, targets, Equivalences()) is scaled
    assert not is_scaled(manifest, frozenset(), Equivalences())


@pytest.mark.parametrize(
    ("kind", "lists"),
    [
        ("HorizontalPodAutoscaler", ([autoscaler(scaleTargetRef=target("a/b/c"))], [])),
        ("Hvpa", ([], [autoscaler(targetRef=target("a/b/c"))])),
    ],
)
def test_a_target_without_a_proper_version_fails_all(kind: str, lists: tuple[list[Object], list[Object]]) -> None:
    with pytest.raises(TargetReferenceError) as caught:
        scaled_by(*lists)
    assert str(caught.value) == (
        "failed to compute all HPA and HVPA target ref object keys: invalid API version in scaleTargetReference "
        f"of {kind} 'ns/h': unexpected GroupVersion string: a/b/c"
    )


@pytest.mark.parametrize("spec", [None, "x", {}, {"scaleTargetRef": None}, {"scaleTargetRef": {"apiVersion": 1}}])
def test_an_autoscaler_without_a_target_does_no_harm(spec: Any) -> None:
    scaled_by([{"metadata": {}, "spec": spec}], [{"spec": spec}])


def test_a_list_that_fails_is_told() -> None:
    assert list_error_text("HVPA", "no") == (
        "failed to compute all HPA and HVPA target ref object keys: failed to list all HVPAs: no"
    )
