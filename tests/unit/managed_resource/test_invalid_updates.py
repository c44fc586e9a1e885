"""What happens when the API server refuses an update as invalid."""

from typing import Any

import pytest

from agent.resource_manager.managed_resource.rules.invalid_update import (
    PropagationPolicyError,
    as_if_gone,
    deleted_text,
    may_be_replaced,
    not_creatable_text,
    not_deleted_text,
    propagation_policy,
)
from kube.errors import Invalid
from kube.objects import Object

TEXT = "Forbidden: field is immutable when `immutable` is set"
IMMUTABLE = {"reason": "FieldValueForbidden", "message": TEXT, "field": "data"}


def obj(kind: str, api_version: str = "v1", **annotations: str) -> Object:
    notes = {f"resources.gardener.cloud/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "n", "annotations": notes}}


@pytest.mark.parametrize(
    ("merged", "causes", "replaced"),
    [
        (obj("Deployment", "apps/v1"), [], False),
        (obj("Deployment", "apps/v1"), [IMMUTABLE], False),
        (obj("Deployment", "apps/v1", delete_on_invalid_update="true"), [], True),
        (obj("Deployment", "apps/v1", delete_on_invalid_update="TRUE"), [], True),
        (obj("Deployment", "apps/v1", delete_on_invalid_update="no"), [], False),
        (obj("ConfigMap"), [IMMUTABLE], True),
        (obj("Secret"), [{"reason": "FieldValueInvalid"}, IMMUTABLE], True),
        (obj("Secret", delete_on_invalid_update="no"), [IMMUTABLE], True),
        (obj("Secret"), [{**IMMUTABLE, "reason": "FieldValueInvalid"}], False),
        (obj("Secret"), [{**IMMUTABLE, "message": "field is immutable"}], False),
        (obj("Secret"), [{"reason": "FieldValueForbidden"}], False),
        (obj("Secret", "example.com/v1"), [IMMUTABLE], False),
    ],
)
def test_it_is_replaced_if_it_states_so_or_is_immutable(merged: Object, causes: list[Any], replaced: bool) -> None:
    error = Invalid(422, message="no", details={"causes": causes})
    assert may_be_replaced(merged, error) is replaced


@pytest.mark.parametrize(
    ("refused", "replaced"),
    [
        ('Job.batch "j" is invalid: spec.completions: Invalid value: 2: field is immutable', True),
        ('W.example.com "w" is invalid: spec.b: Invalid value: 2: may only grow', True),
        (
            "x \"n\" is invalid: : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: a: field is immutable",
            True,
        ),
        (
            "x \"n\" is invalid: : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: freeze until Monday",
            False,
        ),
        ('admission webhook "a.b.c" denied the request: freeze until Monday', False),
    ],
)
def test_a_refusal_of_admission_counts_only_for_immutable_fields(refused: str, replaced: bool) -> None:
    error = Invalid(422, message=refused)
    assert may_be_replaced(obj("Job", delete_on_invalid_update="true"), error) is replaced


@pytest.mark.parametrize(
    ("annotations", "policy"),
    [
        *(({"deletion_propagation_on_invalid_update": name}, name) for name in ("Background", "Foreground", "Orphan")),
        ({}, None),  # the API server decides
    ],
)
def test_the_annotation_states_what_becomes_of_dependents(annotations: dict[str, str], policy: str | None) -> None:
    assert propagation_policy(obj("Job", **annotations), resource="r") == policy


@pytest.mark.parametrize("policy", ["Whatever", "", "background"])
def test_an_unknown_policy_is_an_error(policy: str) -> None:
    with pytest.raises(PropagationPolicyError) as caught:
        propagation_policy(obj("Job", deletion_propagation_on_invalid_update=policy), resource="batch/v1/Job/ns/j")
    assert str(caught.value) == (
        f'invalid deletion propagation policy on object batch/v1/Job/ns/j: "{policy}" is invalid, '
        "supported values: [Background Foreground Orphan]"
    )


def test_what_became_of_the_object_is_reported_with_the_reasons() -> None:
    assert deleted_text("v1/ConfigMap/demo/cm", "why") == (
        "deleted object \"v1/ConfigMap/demo/cm\" because of 'invalid' update error, and 'delete-on-invalid-update' "
        "annotation on object or the resource is an immutable ConfigMap/Secret: why"
    )
    assert not_deleted_text("v1/ConfigMap/demo/cm", "why") == (
        "error deleting object \"v1/ConfigMap/demo/cm\" after 'invalid' update error: why"
    )
    assert not_creatable_text("v1/ConfigMap/demo/cm", "why", "typo") == (
        'error during apply of object "v1/ConfigMap/demo/cm": why; it was not deleted, since the API server would '
        "reject its recreation: typo"
    )


def service(**spec: Any) -> Object:
    return {**obj("Service"), "spec": spec}


LIVE = service(
    clusterIP="10.0.0.1", clusterIPs=["10.0.0.1"], healthCheckNodePort=32000, ports=[{"port": 1, "nodePort": 30001}]
)


OTHER = service(clusterIP="10.0.0.2", ports=[{"port": 2, "nodePort": 30002}])


@pytest.mark.parametrize(
    ("wanted", "live", "requested"),
    [
        (LIVE, LIVE, service(ports=[{"port": 1}])),
        (OTHER, LIVE, OTHER),
        (service(clusterIP="None"), service(clusterIP="None"), service(clusterIP="None")),
        (service(ports=[None, {"port": "x"}]), service(ports=None), service(ports=[{}, {"port": "x"}])),
        (service(), obj("Service"), service()),
    ],
)
def test_what_a_live_service_holds_is_not_requested(wanted: Object, live: Object, requested: Object) -> None:
    assert as_if_gone(wanted, live) == {**requested, "spec": {"ports": [], **requested["spec"]}}


def test_of_other_kinds_all_is_requested() -> None:
    wanted = {**obj("Service", "serving.knative.dev/v1"), "spec": "anything"}
    assert as_if_gone(wanted, wanted) is wanted
