"""What an autoscaler has chosen stays when its object is applied again."""

import pytest

from kit.objects import deployment
from kube.apply.scaled import Bounds, bounds_of, target_of, with_chosen_replicas
from kube.objects import Object, spec


def autoscaler(name: str, **fields: int) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "any", "namespace": "here"},
        "spec": {"scaleTargetRef": target, **fields},
    }


def placed(name: str, replicas: int, namespace: str = "here") -> Object:
    found = deployment(name, replicas=replicas)
    return {**found, "metadata": {**found["metadata"], "namespace": namespace}}


@pytest.mark.parametrize(
    ("desired", "chosen", "expected"),
    [
        (2, 3, 3),
        (2, 4, 4),
        (2, 9, 4),  # it could not have been the autoscaler
        (2, 1, 2),
        (0, 3, 0),  # it goes to sleep
        (2, 0, 2),  # it wakes up
        (3, 3, 3),
    ],
)
def test_what_was_chosen_stays_within_the_bounds(desired: int, chosen: int, expected: int) -> None:
    made = with_chosen_replicas(placed("d", desired), placed("d", chosen), Bounds(2, 4))
    assert spec(made)["replicas"] == expected


def test_what_no_autoscaler_scales_has_what_is_desired() -> None:
    assert spec(with_chosen_replicas(placed("d", 2), placed("d", 3), None))["replicas"] == 2


def test_bounds_are_those_of_the_object_that_is_named() -> None:
    bounds = bounds_of([placed("d", 1), autoscaler("d", minReplicas=2, maxReplicas=4), autoscaler("e", maxReplicas=3)])
    assert bounds.get(target_of(placed("d", 1))) == Bounds(2, 4)
    assert bounds.get(target_of(placed("e", 1))) == Bounds(1, 3)
    assert bounds.get(target_of(placed("f", 1))) is None
    assert bounds.get(target_of(placed("d", 1, namespace="there"))) is None
