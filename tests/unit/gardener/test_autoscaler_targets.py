"""Which workloads an autoscaler scales."""

from typing import Any

import pytest

from gardener.managed_resource.autoscaling import is_scaled, list_error_text, scaled_by_hpa, scaled_by_hvpa, together
from gardener.managed_resource.equivalences import Equivalences
from kit.objects import obj
from kube.objects import Object


def autoscaler(**spec: Any) -> Object:
    return {"metadata": {"namespace": "ns", "name": "h"}, "spec": spec}


def target(api_version: str = "apps/v1", kind: str = "Deployment", name: str = "d") -> dict[str, str]:
    return {"apiVersion": api_version, "kind": kind, "name": name}


def workload(api_version: str, kind: str = "Deployment", namespace: str = "ns") -> Object:
    return obj(f"{api_version} {kind}", f"{namespace}/d")


def test_targets_are_object_keys_in_the_namespace_of_the_autoscaler() -> None:
    named = target(), target("v1", "RC")
    found = together(scaled_by_hpa(autoscaler(scaleTargetRef=reference)) for reference in named)
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
    found = scaled_by_hvpa(autoscaler(targetRef=target(), **spec))
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
    targets = scaled_by_hpa(autoscaler(scaleTargetRef=target())).horizontally
    assert is_scaled(manifest, targets, Equivalences()) is scaled
    assert not is_scaled(manifest, frozenset(), Equivalences())


ODD = [None, "x", {}, {"apiVersion": "a/b/c"}, {"apiVersion": 1}, {"apiVersion": "v1", "kind": [], "name": {}}]


@pytest.mark.parametrize("reference", ODD)
def test_an_autoscaler_with_a_strange_target_affects_only_itself(reference: Any) -> None:
    strange = autoscaler(scaleTargetRef=reference, targetRef=reference, hpa={"deploy": True}, vpa="boom")
    found = together(
        [scaled_by_hpa(autoscaler(scaleTargetRef=target())), scaled_by_hpa(strange), scaled_by_hvpa(strange)]
    )
    assert is_scaled(workload("apps/v1"), found.horizontally, Equivalences())
    assert found.vertically == set()


@pytest.mark.parametrize("spec", [None, "x", []])
def test_an_autoscaler_without_a_spec_does_no_harm(spec: Any) -> None:
    for scaled_by in scaled_by_hpa, scaled_by_hvpa:
        assert not is_scaled(workload("apps/v1"), scaled_by({"spec": spec}).horizontally, Equivalences())


def test_a_list_that_fails_is_reported() -> None:
    assert list_error_text("HVPA", "no") == (
        "failed to compute all HPA and HVPA target ref object keys: failed to list all HVPAs: no"
    )
