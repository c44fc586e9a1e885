"""Discovery follows kinds that come, change and go, and queries little."""

import asyncio
import contextlib
import itertools
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.clock import FakeClock
from kit.eventually import soon
from kit.kinds import custom_resource, definition
from kit.world import CountingClient
from kube.errors import KindNotServed, NoStatus, NotFound
from kube.objects import Object
from kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, Resource
from kube.runtime.connection import load_kubeconfig
from kube.runtime.discovery import Discovery, find_all
from kube.runtime.transport import Transport


@pytest.fixture
def group(cluster: Cluster) -> Iterator[str]:
    """An API group of the test's own, with the kind Widget to come."""
    group = f"t{uuid.uuid4().hex[:10]}.example.com"
    yield group
    with contextlib.suppress(NotFound):
        cluster.api.delete(CUSTOM_RESOURCE_DEFINITIONS.path(name=f"widgets.{group}"))


@pytest.fixture
async def client(cluster: Cluster, user_agent: str) -> AsyncIterator[CountingClient]:
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        yield CountingClient(transport, user_agent=user_agent)


def widgets(group: str, *, versions: Sequence[str] = ("v1",), scope: str = "Namespaced") -> Object:
    crd = definition(custom_resource(group, "Widget", namespaced=scope == "Namespaced"), has_status=True)
    (first,) = crd["spec"]["versions"]
    crd["spec"]["versions"] = [{**first, "name": each, "storage": each == versions[0]} for each in versions]
    return crd


async def until_found(
    discovery: Discovery, group: str, version: str, holds: Callable[[Resource | None], bool]
) -> Resource | None:
    """Queries as those do who learn of every change of a CRD, until the API server has caught up."""
    async with asyncio.timeout(60):
        while True:
            discovery.invalidate(group)
            try:
                found = await discovery.find(f"{group}/{version}", "Widget")
            except KindNotServed:
                found = None
            except NoStatus:  # the list of groups is ahead of the group
                continue
            if holds(found):
                return found
            await asyncio.sleep(0.1)


async def test_a_kind_that_comes_changes_and_goes_is_followed(client: CountingClient, group: str) -> None:
    discovery = Discovery(client)
    name = f"widgets.{group}"
    with pytest.raises(KindNotServed) as missing:
        await discovery.find(f"{group}/v1", "Widget")
    assert str(missing.value) == f'no matches for kind "Widget" in version "{group}/v1"'

    await client.create(CUSTOM_RESOURCE_DEFINITIONS, widgets(group))
    found = await until_found(discovery, group, "v1", bool)
    assert found == Resource(group, "v1", "Widget", "widgets", namespaced=True)
    with pytest.raises(KindNotServed):
        await discovery.find(f"{group}/v2", "Widget")

    two = widgets(group, versions=("v1", "v2"))["spec"]["versions"]
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, {"spec": {"versions": two}})
    second = await until_found(discovery, group, "v2", bool)
    assert second == Resource(group, "v2", "Widget", "widgets", namespaced=True)
    await until_found(discovery, group, "v1", lambda first: first == found)

    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
    await until_found(discovery, group, "v1", lambda found: found is None)
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, widgets(group, scope="Cluster"))
    again = Resource(group, "v1", "Widget", "widgets", namespaced=False)
    await until_found(discovery, group, "v1", lambda found: found == again)

    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
    await until_found(discovery, group, "v1", lambda found: found is None)


@pytest.mark.parametrize(("api_version", "calls"), [("v1", 1), ("unused.example.com/v1", 2)])
async def test_a_missing_kind_is_requested_less_and_less_often(
    api_version: str, calls: int, client: CountingClient, audit: Audit, user_agent: str
) -> None:
    """That a group version is not served takes two answers: there is no document, and it is not in the list."""
    clock = FakeClock()
    discovery = Discovery(client, clock=clock)
    await discovery.find("apps/v1", "Deployment")  # with all other group versions
    clock.now += 1
    asked_at = []
    for second in range(2000):
        before = client.requests
        with pytest.raises(KindNotServed):
            await discovery.find(api_version, "Widget")
        asked_at += [second] * ((client.requests - before) // calls)
        clock.now += 1
    waits = [later - earlier for earlier, later in itertools.pairwise(asked_at)]
    assert waits[0] == 1
    assert waits[-1] == 600
    assert waits == sorted(waits)
    assert len(asked_at) <= 16
    wanted = len(asked_at) * calls + 1
    assert client.requests == wanted
    # A call may be in the audit log a moment after its answer.
    await soon(lambda: sum(audit.count(user_agent=user_agent).values()) == wanted, "the calls in the audit log")


async def test_what_is_invalidated_is_requested_at_once(client: CountingClient) -> None:
    discovery = Discovery(client, clock=FakeClock())
    for _ in range(3):
        with pytest.raises(KindNotServed):
            await discovery.find("unused.example.com/v1", "Widget")
        discovery.invalidate("somebody.example.com")
        discovery.invalidate("example.com")
        discovery.invalidate("")
    assert client.requests == 1
    discovery.invalidate("unused.example.com")
    with pytest.raises(KindNotServed):
        await discovery.find("unused.example.com/v1", "Widget")
    assert client.requests == 3


async def test_one_question_answers_for_all_kinds_of_a_version(client: CountingClient) -> None:
    discovery = Discovery(client)
    kinds = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"] * 10
    found = await asyncio.gather(*(discovery.find("apps/v1", kind) for kind in kinds))
    assert [resource.kind for resource in found] == kinds
    assert found[0] == Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
    assert await discovery.find("v1", "Namespace") == Resource("", "v1", "Namespace", "namespaces", namespaced=False)
    assert client.requests == 2


async def test_one_question_answers_for_all_groups(client: CountingClient) -> None:
    discovery = Discovery(client, clock=FakeClock())
    named = [
        ("apps/v1", "Deployment"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("networking.k8s.io/v1", "IngressClass"),
        ("coordination.k8s.io/v1", "Lease"),
    ]
    found = await asyncio.gather(*(discovery.find(*each) for each in named))
    assert [(each.api_version, each.kind, each.namespaced) for each in found] == [
        (*named[0], True),
        (*named[1], False),
        (*named[2], False),
        (*named[3], True),
    ]
    with pytest.raises(KindNotServed):
        await discovery.find("unused.example.com/v1", "Widget")
    assert client.requests == 1


async def test_a_kind_that_came_after_that_question_is_found(client: CountingClient, group: str) -> None:
    clock = FakeClock()
    discovery = Discovery(client, clock=clock)
    await discovery.find("apps/v1", "Deployment")
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, widgets(group))

    async def is_found() -> bool:
        """The change of the CRD is not noticed."""
        clock.now += 1
        with contextlib.suppress(KindNotServed, NoStatus):
            return bool(await discovery.find(f"{group}/v1", "Widget"))
        return False

    await soon(is_found)


async def test_subresources_and_what_can_not_be_read_are_no_kinds(client: CountingClient) -> None:
    discovery = Discovery(client)
    for api_version, kind in (
        ("v1", "Eviction"),
        ("apps/v1", "Scale"),
        ("authorization.k8s.io/v1", "SubjectAccessReview"),
    ):
        with pytest.raises(KindNotServed):
            await discovery.find(api_version, kind)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("", "ConfigMap"),
        ("v1", ""),
        ("a/b/c", "ConfigMap"),
        ("../api/v1", "ConfigMap"),
        ("../v1", "ConfigMap"),
        ("..", "ConfigMap"),
        ("v1?x=y", "ConfigMap"),
        ("v1#", "ConfigMap"),
        ("/v1", "ConfigMap"),
        ("apps/", "ConfigMap"),
        ("apps /v1", "ConfigMap"),
        ("v1\r\nX: y", "ConfigMap"),
    ],
)
async def test_what_is_no_api_version_is_not_requested(api_version: str, kind: str, client: CountingClient) -> None:
    with pytest.raises(KindNotServed) as missing:
        await Discovery(client).find(api_version, kind)
    assert str(missing.value) == f'no matches for kind "{kind}" in version "{api_version}"'
    assert client.requests == 0


async def test_many_kinds_that_no_version_of_a_group_has_cost_no_more_than_one(client: CountingClient) -> None:
    discovery = Discovery(client, clock=FakeClock())
    for number in range(1000):
        with pytest.raises(KindNotServed):
            await discovery.find_any_version("unused.example.com/v1", f"Kind{number}")
    assert client.requests == 4  # kinds, and what defines them


async def test_another_version_of_a_group_has_the_kind(client: CountingClient) -> None:
    discovery = Discovery(client, clock=FakeClock())
    found = await discovery.find_any_version("apps/v1beta1", "Deployment")
    assert found == Resource("apps", "v1", "Deployment", "deployments", namespaced=True)


async def test_a_kind_of_the_core_group_has_no_other_version(client: CountingClient) -> None:
    with pytest.raises(KindNotServed):
        await Discovery(client).find_any_version("v1", "Widget")
    for api_version, kind in (("v1", ""), ("../v1", "ConfigMap")):
        with pytest.raises(KindNotServed):
            await Discovery(client).find_any_version(api_version, kind)
    assert client.requests == 4  # kinds, and what defines them


async def test_what_is_remembered_is_bounded(client: CountingClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kube.runtime.discovery._MOST_GROUP_VERSIONS", 2)
    discovery = Discovery(client)
    for api_version, kind in (("v1", "Pod"), ("apps/v1", "Deployment"), ("batch/v1", "Job")):
        await discovery.find(api_version, kind)
    for group in ("a.example.com", "b.example.com", "c.example.com"):
        with pytest.raises(KindNotServed):
            await discovery.find_any_version(f"{group}/v1", "Widget")
    assert discovery.known("apps/v1", "Deployment") is None
    assert len(discovery._group_versions) <= 2
    assert len(discovery._groups) <= 2
    discovery.forget()
    assert discovery.known("v1", "Pod") is None


async def test_the_schema_of_a_kind_changes_with_its_definition(client: CountingClient, group: str) -> None:
    discovery = Discovery(client)
    crd = await client.create(CUSTOM_RESOURCE_DEFINITIONS, widgets(group))
    widget = custom_resource(group, "Widget")
    first = await discovery.schema(widget)
    assert first
    assert await discovery.schema(widget) == discovery.known_schema(widget) == first
    labels = {"metadata": {"labels": {"touched": "yes"}}}
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, crd["metadata"]["name"], labels)
    discovery.invalidate(group)
    assert discovery.known_schema(widget) is None
    assert await discovery.schema(widget) == first
    fields = {"spec": {"names": {"shortNames": ["wd"]}}}
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, crd["metadata"]["name"], fields)
    discovery.invalidate(group)
    assert await discovery.schema(widget) not in {"", first}


async def test_the_schema_of_a_built_in_kind_is_the_version_of_kubernetes(client: CountingClient) -> None:
    discovery = Discovery(client)
    assert (await discovery.schema(DEPLOYMENTS)).startswith("v1.")
    assert discovery.known_schema(CONFIG_MAPS) == await discovery.schema(DEPLOYMENTS)
    discovery.forget()
    assert discovery.known_schema(CONFIG_MAPS) is None


async def test_all_kinds_are_requested_at_once_and_seldom(client: CountingClient) -> None:
    clock = FakeClock()
    discovery = Discovery(client, clock=clock)
    assert {DEPLOYMENTS, CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS} <= set(await discovery.served())
    requested = client.requests
    clock.advance(29)
    await discovery.served()
    assert client.requests == requested
    clock.advance(2)
    await discovery.served()
    assert client.requests == requested + 2


async def test_only_the_first_of_many_kinds_that_are_not_served_are_explained(client: CountingClient) -> None:
    explained: list[str] = []

    def explain(error: KindNotServed, _: Sequence[Resource]) -> KindNotServed:
        explained.append(error.kind)
        return error

    kinds = [("many.example.com/v1", f"Kind{number}") for number in range(100)]
    found = await find_all(Discovery(client), kinds, explain=explain)
    assert explained == [f"Kind{number}" for number in range(20)]
    assert all(isinstance(each, KindNotServed) for each in found.values())
