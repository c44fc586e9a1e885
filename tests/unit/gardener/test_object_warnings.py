"""What was not stored, what is reported of it, and what is remembered of it."""

from functools import partial
from typing import Any

import orjson
import pytest

from gardener.keys import FIELD_MANAGER
from gardener.managed_resource.references import key_of_reference
from gardener.managed_resource.warnings import (
    MOST_STORED,
    FieldValidationError,
    ObjectWarnings,
    all_warnings_text,
    annotation_warnings,
    basis,
    field_validation,
    object_warnings,
    status_entries,
    stored_warnings,
)
from kit.objects import managed_resource
from kube import differences
from kube.differences import Difference, is_reportable
from kube.objects import Object
from kube.write_mode import FieldValidation

is_drifted = partial(differences.is_drifted, field_manager=FIELD_MANAGER)
dropped_fields = partial(differences.dropped_fields, field_manager=FIELD_MANAGER)

REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "front", "labels": {"a": "b"}}
OURS = {"manager": "gardener-resource-manager", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}


def sent(**spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def answered(*, fields: Object | None = None, **spec: Any) -> Object:
    managed = [{**OURS, "fieldsV1": {"f:spec": fields or {}}}]
    return {**sent(**spec), "metadata": {"name": "t", "managedFields": managed}}


NAMED: Object = {"f:items": {'k:{"name":"a"}': {}, 'k:{"name":"b"}': {}}}


@pytest.mark.parametrize(
    ("wanted", "answer", "dropped"),
    [
        (sent(a=1), answered(a=1, default=2), []),
        (sent(a=1, b={"c": 2}), answered(a=1), ["spec.b"]),
        (sent(a={"b": 1, "c": "x"}), answered(a={"b": 1}), ["spec.a.c"]),
        (sent(a="1000m"), answered(a="1"), []),
        (sent(a=None, b=[], c={}, d=0, e=False), answered(), []),
        (sent(a=""), answered(), ["spec.a"]),
        (
            sent(items=[{"name": "a", "x": 1}, {"name": "b", "y": 2}]),
            answered(items=[{"name": "a", "x": 1, "default": 3}, {"name": "b"}], fields=NAMED),
            ["spec.items[1].y"],
        ),
        (sent(rules=[{"verb": "get", "x": 1}]), answered(rules=[{"verb": "get"}]), ["spec.rules[0].x"]),
        # Sorted by the API server: what is missing in one item is in another.
        (sent(of=[{"ip": "2", "host": "h"}, {"ip": "1"}]), answered(of=[{"ip": "1"}, {"ip": "2", "host": "h"}]), []),
        (sent(of=["a", "a"]), answered(of=["a"]), []),
    ],
)
def test_what_the_answer_to_a_write_lacks_was_dropped(wanted: Object, answer: Object, dropped: list[str]) -> None:
    found = dropped_fields(wanted, answer)
    assert list(map(str, found)) == dropped
    # And it is no drift, unless something else is missing, too.
    if dropped:
        assert is_drifted(wanted, answer)
        assert not is_drifted(wanted, answer, dropped=dropped)
        assert is_drifted({**wanted, "more": 1}, answer, dropped=dropped)


def test_what_another_one_changed_is_drift_whatever_was_dropped() -> None:
    theirs = {"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:spec": {"f:a": {}}}}
    live = answered(a=2)
    live["metadata"]["managedFields"].append(theirs)
    assert is_drifted(sent(a=1, b=1), live, dropped=["spec.b"])


@pytest.mark.parametrize(
    ("path", "value", "reported"),
    [
        (("spec", "a"), 1, True),
        (("spec", "a"), {"b": [{"c": ""}, None]}, False),
        (("spec", "a"), "", False),
        (("spec", "a"), False, False),
        (("metadata", "selfLink"), "/api", False),
        (("metadata", "annotations", "uid"), "x", True),
    ],
)
def test_only_what_a_user_may_have_meant_is_reported(path: tuple[str, ...], value: Any, *, reported: bool) -> None:
    assert is_reportable(Difference(path, value, is_missing=True)) is reported


def warned(*texts: str, dropped: tuple[Difference, ...] = (), reference: Object = REFERENCE) -> ObjectWarnings:
    found = object_warnings(reference, texts, dropped, basis="b")
    assert found is not None
    return found


def missing(*path: str) -> Difference:
    return Difference(path, 2, is_missing=True)


def test_a_field_is_reported_once_by_all_reporters() -> None:
    found = warned('unknown field "spec.a"', dropped=(missing("spec", "a"), missing("spec", "b")))
    assert found.texts == ('unknown field "spec.a"', 'field "spec.b" was not stored, by the API server or by admission')
    assert found.dropped == ("spec.a", "spec.b")
    assert object_warnings(REFERENCE, (), (), basis="b") is None


def test_of_a_secret_no_names_are_reported() -> None:
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "s"}
    assert warned(dropped=(missing("data", "token"),), reference=reference).texts == ()


def test_what_is_in_the_status_is_read_again() -> None:
    found = warned('unknown field "spec.a"', dropped=(missing("spec", "a"),))
    entries = status_entries({"apps/Deployment/shop/front": found})
    assert entries == [
        {
            **{name: REFERENCE[name] for name in ("apiVersion", "kind", "namespace", "name")},
            "messages": ['unknown field "spec.a"'],
            "droppedFields": ["spec.a"],
            "basis": "b",
        }
    ]
    assert stored_warnings(managed_resource(status={"warnings": entries})) == {"apps/Deployment/shop/front": found}


@pytest.mark.parametrize("warnings", [None, "x", [1, None, {}], [{"messages": None, "droppedFields": [1]}]])
def test_a_status_that_another_client_wrote_does_no_harm(warnings: Any) -> None:
    for found in stored_warnings(managed_resource(status={"warnings": warnings})).values():
        assert found.texts == ()


def test_however_many_warnings_there_are_the_status_stays_small() -> None:
    references: list[Object] = [{**REFERENCE, "name": f"d{number:05}"} for number in range(10_000)]
    found = {key_of_reference(each): warned("x" * 500, reference=each) for each in references}
    assert len(orjson.dumps(status_entries(found))) < MOST_STORED + 1024  # and commas
    text = all_warnings_text(found)
    assert len(text) < 4_200
    assert text.startswith("apps/v1/Deployment/shop/d00000: xxx")
    assert " more" in text[-20:]


RULES = """
- {group: apps, kind: Deployment, name: front, namespace: shop, jsonPointers: [/spec/replicas]}
- {group: apps, kind: Deployment, name: back, jsonPointers: [/spec/replicas]}
- {group: extensions, kind: Deployment, jsonPointers: [/spec/replicas]}
- {kind: ConfigMap, namespace: shop, jsonPointers: [/data]}
"""


def test_a_rule_for_no_object_is_reported() -> None:
    field = "metadata.annotations[resources.gardener.cloud/ignore-differences]"
    marked = managed_resource("mr", annotations={"resources.gardener.cloud/ignore-differences": RULES})
    assert annotation_warnings(marked, [REFERENCE]) == [
        f"{field}[1]: no object is a Deployment.apps back",
        f"{field}[2]: no object is a Deployment.extensions",
        f"{field}[3]: no object is a ConfigMap in namespace shop",
    ]
    assert annotation_warnings(managed_resource("mr"), [REFERENCE]) == []


def test_a_wrong_limit_of_the_history_is_reported() -> None:
    marked = managed_resource("mr", annotations={"resources.gardener.cloud/history-limit": "many"})
    (reported,) = annotation_warnings(marked, [])
    assert reported == (
        'metadata.annotations[resources.gardener.cloud/history-limit]: Invalid value: "many": '
        "must be a number from 0 to 100"
    )


def test_the_basis_differs_by_manifest_and_by_schema() -> None:
    assert len({basis(b"a", ""), basis(b"b", ""), basis(b"a", "v1.36.0")}) == 3


@pytest.mark.parametrize(("value", "mode"), [(None, "Warn"), ("Warn", "Warn"), ("Strict", "Strict")])
def test_the_annotation_chooses_how_fields_are_validated(value: str | None, mode: str) -> None:
    annotations = {} if value is None else {"resources.gardener.cloud/field-validation": value}
    assert field_validation(managed_resource("mr", annotations=annotations)) is FieldValidation(mode)


def test_another_value_is_an_error() -> None:
    wrong = managed_resource("mr", annotations={"resources.gardener.cloud/field-validation": "strict"})
    with pytest.raises(FieldValidationError, match='Unsupported value: "strict": supported values: "Warn", "Strict"'):
        field_validation(wrong)
