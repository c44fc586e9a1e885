"""Labels that are injected, and the origin."""

from copy import deepcopy
from typing import Any

import pytest

from gardener.keys import MANAGED_BY
from gardener.managed_resource.stamps import InjectionError, inject_labels, injected_labels

LABELS = {"team": "red"}


def test_the_managed_by_label_always_wins() -> None:
    given = {MANAGED_BY: "me", "x": "y"}
    assert injected_labels(given, managed_by="gardener") == {MANAGED_BY: "gardener", "x": "y"}
    assert injected_labels(None, managed_by="g") == {MANAGED_BY: "g"}


def labelled(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": spec}


MORE, BLUE = {"a": "b", "team": "red"}, {"app": "x", "team": "blue"}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({}, {"metadata": {"labels": LABELS}}),
        ({"metadata": {"name": "n", "labels": BLUE}}, {"metadata": {"name": "n", "labels": {**BLUE, **LABELS}}}),
        ({"spec": {"template": {}}}, labelled(template={"metadata": {"labels": LABELS}})),
        (
            {"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}, "selector": {}}},
            labelled(template={"metadata": {"labels": MORE}, "spec": {"x": 1}}, selector={}),
        ),
        (
            {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "v"}}, {}]}},
            labelled(
                volumeClaimTemplates=[{"metadata": {"name": "v", "labels": LABELS}}, {"metadata": {"labels": LABELS}}]
            ),
        ),
        ({"spec": {"jobTemplate": {"spec": {"template": {}}}}}, labelled(jobTemplate={"spec": {"template": {}}})),
        ({"spec": {"template": "text"}}, labelled(template="text")),
        ({"spec": {"template": None}}, labelled(template=None)),
        ({"spec": ["x"]}, {"metadata": {"labels": LABELS}, "spec": ["x"]}),
    ],
)
def test_labels_go_on_the_object_and_on_its_templates(manifest: dict[str, Any], expected: dict[str, Any]) -> None:
    before = deepcopy(manifest)
    assert inject_labels(manifest, LABELS) == expected
    assert manifest == before


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"template": {"metadata": "x"}}, "spec.template.metadata is not a mapping"),
        ({"template": {"metadata": {"labels": ["x"]}}}, "spec.template.metadata.labels is not a mapping"),
        ({"template": {"metadata": {"labels": {"a": 1}}}}, "spec.template.metadata.labels.a is not a string"),
        ({"volumeClaimTemplates": {}}, "spec.volumeClaimTemplates is not a list"),
        ({"volumeClaimTemplates": ["x"]}, "spec.volumeClaimTemplates[0] is not a mapping"),
    ],
)
def test_a_wrong_type_on_the_way_is_an_error_that_names_the_path(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InjectionError) as caught:
        inject_labels({"spec": spec}, LABELS)
    assert str(caught.value) == message
