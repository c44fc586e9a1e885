"""A kind that is not served is gone only if nothing defines it any more; against the answers of an API server."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

import pytest

from kit.clock import FakeClock
from kube.errors import Forbidden, KindGone, KindUnavailable, KubeError, NoStatus, ServerFailure, Unreachable
from kube.objects import Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from kube.runtime.client import Client, Selection
from kube.runtime.discovery import Discovery
from kube.runtime.kind_definitions import require_gone

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
UNAVAILABLE = ServerFailure(503, message="the server is currently unable to handle the request")
NO_PAGE = NoStatus(404, "404 page not found")
FORBIDDEN = Forbidden(403, message="apiservices is forbidden", reason="Forbidden")
GROUPS = {"kind": "APIGroupList", "groups": [{"name": "apiregistration.k8s.io", "versions": []}]}


def service(version: str, group: str, *, elsewhere: bool = False) -> Object:
    spec = {"group": group, "version": version, **({"service": {"name": "s"}} if elsewhere else {})}
    return {"metadata": {"name": f"{version}.{group}"}, "spec": spec}


def services(*found: Object) -> Object:
    return {"kind": "APIServiceList", "items": list(found)}


def document(api_version: str, *kinds: str, verbs: Sequence[str] = ("get",)) -> Object:
    entries = [{"name": f"{kind.lower()}s", "kind": kind, "namespaced": True, "verbs": list(verbs)} for kind in kinds]
    return {"kind": "APIResourceList", "groupVersion": api_version, "resources": entries}


def crd(name: str, kind: str, **more: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"names": {"kind": kind}}, **more}


class Answers:
    """An API server: by path a document or an error, and its CustomResourceDefinitions, or why they can't be read."""

    def __init__(self, answers: Mapping[str, Any], definitions: Sequence[Object] | KubeError = ()) -> None:
        self._answers = {SERVICES: services(), "/apis": GROUPS, **answers}
        self._definitions = definitions
        self.calls: list[str] = []

    async def read(self, path: str, *, accept: str = "") -> Object:
        self.calls.append(path)
        found = self._answers.get(path, NO_PAGE)
        if isinstance(found, KubeError):
            raise found
        return cast("Object", found)

    async def pages(self, resource: object, selection: Selection, **_: object) -> AsyncIterator[list[Object]]:
        yield await self.list(resource, selection)

    async def list(self, resource: object, selection: Selection) -> list[Object]:
        assert resource == CUSTOM_RESOURCE_DEFINITIONS
        self.calls.append(selection.field_selector)
        if isinstance(self._definitions, KubeError):
            raise self._definitions
        name = selection.field_selector.removeprefix("metadata.name=")
        return [each for each in self._definitions if name in ("", each["metadata"]["name"])]

    @property
    def client(self) -> Client:
        return cast("Client", self)


EXAMPLE, BUILT_IN = "example.com/v1", "policy/v1beta1"
THINGS = "things.example.com"
ELSEWHERE = services(service("v2", "example.com", elsewhere=True))


@pytest.mark.parametrize(
    ("api_version", "answers", "definitions", "error"),
    [
        pytest.param(EXAMPLE, {}, [], None, id="nothing defines it"),
        pytest.param(EXAMPLE, {}, [crd(THINGS, "Thing")], KindUnavailable, id="all versions are switched off"),
        pytest.param(EXAMPLE, {}, [crd(THINGS, "Other")], None, id="a definition of another kind"),
        pytest.param(EXAMPLE, {}, [crd("things.other.com", "Thing")], None, id="a definition of another group"),
        pytest.param(
            EXAMPLE,
            {},
            [crd("x.example.com", "New", status={"acceptedNames": {"kind": "Thing"}})],
            KindUnavailable,
            id="a definition that has the name still",
        ),
        pytest.param(EXAMPLE, {}, FORBIDDEN, Forbidden, id="definitions may not be read"),
        pytest.param(EXAMPLE, {SERVICES: FORBIDDEN}, [], Forbidden, id="APIServices may not be read"),
        pytest.param(EXAMPLE, {SERVICES: UNAVAILABLE}, [], ServerFailure, id="an API server that starts"),
        pytest.param(EXAMPLE, {SERVICES: {"kind": "Page"}}, [], Unreachable, id="an answer of something else"),
        pytest.param(EXAMPLE, {SERVICES: NO_PAGE}, [], None, id="an API server without others"),
        pytest.param(
            EXAMPLE,
            {SERVICES: ELSEWHERE, "/apis/example.com/v2": UNAVAILABLE},
            [],
            ServerFailure,
            id="another server is away",
        ),
        pytest.param(EXAMPLE, {SERVICES: ELSEWHERE}, [], NoStatus, id="another server is not queried yet"),
        pytest.param(
            EXAMPLE,
            {SERVICES: ELSEWHERE, "/apis/example.com/v2": document("example.com/v2", "Other")},
            [],
            None,
            id="another server does not have it",
        ),
        pytest.param(
            EXAMPLE,
            {SERVICES: ELSEWHERE, "/apis/example.com/v2": document("example.com/v2", "Thing")},
            [],
            KindUnavailable,
            id="another server has it",
        ),
        pytest.param(
            EXAMPLE,
            {SERVICES: services(service("v1", "example.com"))},
            [],
            None,
            id="an APIService of a gone definition",
        ),
        pytest.param(BUILT_IN, {SERVICES: services(service("v1", "policy"))}, [], NoStatus, id="built in, not settled"),
        pytest.param(
            BUILT_IN,
            {SERVICES: services(service("v1", "policy")), "/apis/policy/v1": document("policy/v1", "Other")},
            FORBIDDEN,
            None,
            id="built in, and no longer",
        ),
        pytest.param(
            BUILT_IN,
            {SERVICES: services(service("v1", "policy")), "/apis/policy/v1": document("policy/v1", "Thing")},
            [],
            KindUnavailable,
            id="built in",
        ),
        pytest.param(
            "v1",
            {SERVICES: services(service("v1", "")), "/api/v1": document("v1", "Thing", verbs=["create"])},
            [],
            None,
            id="of the core, and never stored",
        ),
    ],
)
async def test_a_kind_is_gone_if_nothing_defines_it(
    api_version: str, answers: Mapping[str, Any], definitions: Any, error: type[KubeError] | None
) -> None:
    client = Answers(answers, definitions).client
    if error is None:
        await require_gone(client, api_version, "Thing")
        return
    with pytest.raises(error):
        await require_gone(client, api_version, "Thing")


async def test_the_error_reports_what_defines_it_or_what_has_to_be_permitted() -> None:
    with pytest.raises(KindUnavailable, match=f"CustomResourceDefinition {THINGS} defines this kind"):
        await require_gone(Answers({}, [crd(THINGS, "Thing")]).client, EXAMPLE, "Thing")
    with pytest.raises(Forbidden, match=r"example.com still exist, since apiservices .*; grant the right to list"):
        await require_gone(Answers({SERVICES: FORBIDDEN}).client, EXAMPLE, "Thing")


async def test_discovery_does_not_take_the_few_groups_of_an_api_server_that_starts_for_all() -> None:
    """It answers /apis with what it has registered so far, and everything else with 503."""
    item = {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "freshness": "Current", "resources": []}]}
    few = {"kind": "APIGroupDiscoveryList", "items": [item]}

    class Starting(Answers):
        async def read(self, path: str, *, accept: str = "") -> Object:
            if path == "/apis":
                return few if "as=APIGroupDiscoveryList" in accept else GROUPS
            raise UNAVAILABLE

    discovery = Discovery(Starting({}).client, clock=FakeClock())
    with pytest.raises(ServerFailure):
        await discovery.find_any_version(EXAMPLE, "Thing")


async def test_many_kinds_of_a_group_cost_discovery_no_more_than_one() -> None:
    answers, clock = Answers({}, [crd(THINGS, "Thing")]), FakeClock()
    discovery = Discovery(answers.client, clock=clock)
    for _ in range(2):
        with pytest.raises(KindUnavailable):
            await discovery.find_any_version(EXAMPLE, "Thing")
    for number in range(50):
        with pytest.raises(KindGone):
            await discovery.find_any_version(EXAMPLE, f"Kind{number}")
    assert answers.calls.count(SERVICES) == 1
    assert answers.calls.count(f"metadata.name={THINGS}") == 1
