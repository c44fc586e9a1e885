"""What discovery documents state, and which answers are none."""

from collections.abc import Mapping
from typing import Any

import pytest

from kube.errors import ApiError, KubeError, NoStatus, NotFound, ServerFailure, Unreachable
from kube.resources import Resource
from kube.runtime.discovery_documents import all_kinds, is_served, kinds, versions

WIDGETS = Resource("example.com", "v1", "Widget", "widgets", namespaced=True)
GROUPS = {
    "kind": "APIGroupList",
    "groups": [
        {"name": "apps", "versions": [{"groupVersion": "apps/v1"}]},
        {
            "name": "example.com",
            "versions": [{"groupVersion": "example.com/v1"}, {"groupVersion": "example.com/v1beta1"}],
        },
        {"name": "empty.com", "versions": None},
    ],
}
WIDGET_V1 = {
    "kind": "APIResourceList",
    "groupVersion": "example.com/v1",
    "resources": [
        {"name": "widgets", "kind": "Widget", "namespaced": True, "verbs": ["get", "list"]},
        {"name": "widgets/scale", "kind": "Scale", "namespaced": True, "verbs": ["get"]},
        {"name": "reviews", "kind": "Review", "namespaced": False, "verbs": ["create"]},
    ],
}
SERVED: Mapping[str, Any] = {"/apis": GROUPS, "/apis/example.com/v1": WIDGET_V1}
NO_PAGE = NoStatus(404, "404 page not found")
MISSING = NotFound(404, message="m", reason="NotFound")


class Answers:
    """Of an API server: by path the document, or the error."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers

    async def __call__(self, path: str, *, accept: str = "") -> Mapping[str, Any]:
        found = self._answers.get(path, NO_PAGE)
        if isinstance(found, KubeError):
            raise found
        return dict(found)


@pytest.mark.parametrize(
    ("api_version", "more", "expected"),
    [
        ("example.com/v1", {}, {"Widget": WIDGETS}),
        ("example.com/v2", {}, {}),
        ("example.com/v2", {"/apis/example.com/v2": MISSING}, {}),
        ("other.com/v1", {}, {}),
        ("example.com/v1", {"/apis/example.com/v1": {**WIDGET_V1, "resources": None}}, {}),
    ],
)
async def test_kinds_are_what_can_be_read(api_version: str, more: Any, expected: Mapping[str, Resource]) -> None:
    assert await kinds(Answers({**SERVED, **more}), api_version) == expected


@pytest.mark.parametrize(
    ("api_version", "more", "error"),
    [
        ("v1", {}, NoStatus),
        ("apps/v1", {}, NoStatus),
        ("example.com/v1", {"/apis/example.com/v1": MISSING}, NotFound),
        ("example.com/v1", {"/apis/example.com/v1": NoStatus(403, "a proxy")}, NoStatus),
        ("example.com/v1", {"/apis/example.com/v1": ServerFailure(503, message="m")}, ServerFailure),
        ("example.com/v1", {"/apis/example.com/v1": {"kind": "Page"}}, Unreachable),
        ("example.com/v1", {"/apis/example.com/v1": {**WIDGET_V1, "groupVersion": "v1"}}, Unreachable),
        ("example.com/v2", {"/apis": NO_PAGE}, NoStatus),
        ("example.com/v2", {"/apis": {"kind": "Page"}}, Unreachable),
        ("example.com/v2", {"/apis": {**GROUPS, "groups": []}}, Unreachable),
    ],
)
async def test_what_is_no_answer_does_not_end_a_kind(api_version: str, more: Any, error: type[ApiError]) -> None:
    with pytest.raises(error):
        await kinds(Answers({**SERVED, **more}), api_version)


@pytest.mark.parametrize(
    ("group", "expected"),
    [("", ["v1"]), ("example.com", ["example.com/v1", "example.com/v1beta1"]), ("empty.com", []), ("other.com", [])],
)
async def test_the_versions_of_a_group_come_in_order(group: str, expected: list[str]) -> None:
    assert list(await versions(Answers(SERVED), group)) == expected


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (WIDGETS, True),
        (Resource("example.com", "v1", "Gadget", "gadgets", namespaced=True), False),
        (Resource("example.com", "v2", "Widget", "widgets", namespaced=True), False),
        (Resource("other.com", "v1", "Widget", "widgets", namespaced=True), False),
    ],
)
async def test_a_kind_is_served_if_its_group_version_lists_it(resource: Resource, expected: bool) -> None:
    assert await is_served(Answers(SERVED), resource) is expected


def entry(plural: str, kind: str, *verbs: str, scope: str = "Namespaced", **more: Any) -> Mapping[str, Any]:
    return {"resource": plural, "responseKind": {"kind": kind}, "verbs": list(verbs), "scope": scope, **more}


def all_versions(*entries: Mapping[str, Any], freshness: str = "Current") -> Mapping[str, Any]:
    version = {"version": "v1", "freshness": freshness, "resources": list(entries)}
    items = [{"metadata": {"name": "example.com"}, "versions": [version]}]
    return {"kind": "APIGroupDiscoveryList", "items": items}


WIDGET = entry("widgets", "Widget", "get", "list", subresources=[{"subresource": "status"}])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (all_versions(WIDGET, entry("reviews", "Review", "create")), {"example.com/v1": {"Widget": WIDGETS}}),
        (
            all_versions(entry("widgets", "Widget", "get", scope="Cluster")),
            {"example.com/v1": {"Widget": Resource("example.com", "v1", "Widget", "widgets", namespaced=False)}},
        ),
        (all_versions(), {"example.com/v1": {}}),
        (all_versions(WIDGET, freshness="Stale"), {"example.com/v1": None}),
        (all_versions(WIDGET, {"resource": "gadgets", "verbs": ["get"]}), {"example.com/v1": None}),
        ({"kind": "APIGroupDiscoveryList"}, {}),
        (GROUPS, {}),
        ({"kind": "Page"}, {}),
    ],
    ids=["namespaced", "cluster", "empty", "stale", "a kind without a name", "nothing", "an old API server", "a page"],
)
async def test_one_answer_has_all_kinds_if_the_api_server_can_give_it(answer: Any, expected: Any) -> None:
    assert await all_kinds(Answers({"/apis": answer})) == expected


async def test_no_answer_about_all_kinds_is_an_error() -> None:
    with pytest.raises(NoStatus):
        await all_kinds(Answers({}))
