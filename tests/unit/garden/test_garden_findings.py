"""The one answer that is made of findings, and what an update is not refused for."""

import time
from typing import Any

import pytest

from gardener.api.garden import SHOOTS
from kube.objects import Object
from kube.validation import duplicate, invalid, required
from webhooks.garden.common.findings import Denial, Finding, ratcheted, status, value_at


def test_errors_of_fields_make_422_with_causes() -> None:
    refused = status(SHOOTS, "s", [invalid("spec.a", 1, "bad"), required("spec.b")])
    assert refused["code"] == 422
    assert refused["message"] == (
        'Shoot.core.gardener.cloud "s" is invalid: [spec.a: Invalid value: 1: bad, spec.b: Required value]'
    )
    assert [cause["field"] for cause in refused["details"]["causes"]] == ["spec.a", "spec.b"]


def test_denials_make_403_and_are_named_once() -> None:
    refused = status(SHOOTS, "s", [Denial("no", "spec.a"), Denial("no", "spec.b"), Denial("never")])
    assert (refused["code"], refused["message"]) == (
        403,
        'shoots.core.gardener.cloud "s" is forbidden: [no, never]',
    )


def test_with_both_the_answer_is_422_and_reports_all() -> None:
    refused = status(SHOOTS, "s", [Denial("no"), required("spec.b")])
    assert refused["code"] == 422
    assert refused["message"].endswith("is invalid: spec.b: Required value; no")


def test_with_both_all_are_causes_since_kubectl_shows_nothing_else() -> None:
    denials = [Denial("no"), Denial('spec.a: Invalid value: "x"', "spec.a"), Denial("never", "spec.c")]
    refused = status(SHOOTS, "s", [*denials, required("spec.b"), denials[0]])
    causes = [(cause["field"], cause["message"]) for cause in refused["details"]["causes"]]
    assert causes == [
        ("spec.b", "Required value"),
        ("<nil>", "no"),
        ("spec.a", 'Invalid value: "x"'),
        ("spec.c", "never"),
    ]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.workers[1].name", "b"),
        ("metadata.labels[a.b/c]", "d"),
        ("spec.workers", [{"name": "a"}, {"name": "b"}]),
    ],
)
def test_the_value_at_the_path_of_a_finding(path: str, value: Any) -> None:
    obj = {"spec": {"workers": [{"name": "a"}, {"name": "b"}]}, "metadata": {"labels": {"a.b/c": "d"}}}
    assert value_at(obj, path) == value


@pytest.mark.parametrize("path", ["spec.x", "spec.workers[9]", "spec.workers.name", "", "spec.workers[0].name.x"])
def test_what_is_not_there_is_like_nothing_else(path: str) -> None:
    obj: Object = {"spec": {"workers": [{"name": "a"}]}}
    found = value_at(obj, path)
    assert (found is obj) if path == "" else found not in (None, "", {}, [])


BAD = invalid("spec.a", 1, "too small")


@pytest.mark.parametrize(
    ("new", "found", "old", "before", "kept"),
    [
        pytest.param({"a": 1}, [BAD], {"a": 1}, [BAD], [], id="unchanged"),
        pytest.param({"a": 1}, [BAD], {"a": 5}, [], [BAD], id="became wrong"),
        pytest.param({"a": 1}, [BAD], {"a": 1, "b": 3}, [], [BAD], id="became wrong by another field"),
        pytest.param({"l": [1, 1]}, [duplicate("spec.l[1]", 1)], {"l": [1]}, [], [duplicate("spec.l[1]", 1)], id="new duplicate"),
        pytest.param({"l": [2, 1]}, [invalid("spec.l[1]", 1, "d")], {"l": [1]}, [invalid("spec.l[0]", 1, "d")], [], id="moved"),
        pytest.param(
            {"l": [1, 1]},
            [invalid("spec.l[0]", 1, "d"), invalid("spec.l[1]", 1, "d")],
            {"l": [1]},
            [invalid("spec.l[0]", 1, "d")],
            [invalid("spec.l[1]", 1, "d")],
            id="once more",
        ),
        pytest.param({}, [required("spec.a")], {}, [required("spec.a")], [], id="missing as before"),
        pytest.param({"a": 1}, [Denial("no", "spec.a")], {"a": 1}, [Denial("no", "spec.a")], [], id="denied as before"),
        pytest.param({"a": 2}, [Denial("no", "spec.a")], {"a": 1}, [Denial("no", "spec.a")], [Denial("no", "spec.a")], id="denied again"),
        pytest.param({"a": 1}, [Denial("no")], {"a": 2}, [Denial("no")], [Denial("no")], id="denied as a whole"),
    ],
)  # fmt: skip
def test_an_update_is_not_refused_for_what_it_leaves_as_it_was(
    new: Object, found: list[Finding], old: Object, before: list[Finding], kept: list[Finding]
) -> None:
    assert ratcheted(found, {"spec": new}, before, {"spec": old}) == kept


def test_a_path_of_brackets_that_are_not_closed_is_followed_at_once() -> None:
    begin = time.thread_time()
    assert value_at({"data": {"a": 1}}, f"data[{'[' * (1 << 17)}") != 1
    assert time.thread_time() - begin < 0.2
