"""Pages as a whole: bounded, escaped, and with what their reader may know."""

import asyncio
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest

from agent.resource_manager.common.recent_changes import Action, RecentChanges, object_change
from agent.resource_manager.common.views import MANAGED_RESOURCES_VIEW
from agent.resource_manager.health.objects import NotKnown
from agent.resource_manager.status_page.lister import LeaderState, Lister
from agent.resource_manager.status_page.listing import Listing, Query
from agent.resource_manager.status_page.object_page import Listed, LiveObject, as_yaml, find_reference, object_page
from agent.resource_manager.status_page.pages import ChangesQuery, changes_page, list_page, one_page
from config.resource_manager.schema import ResourceManagerConfiguration
from gardener.health.findings import Finding, Reference
from gardener.managed_resource.changes import FieldChange
from kit.objects import conditions, managed_resource
from kube.objects import Key, Object
from kube.resources import SECRETS
from kube.runtime.cache import Store, View
from kube.runtime.watch import Event, ListBegins, ListEnds, Present
from process.pages.answers import is_loopback, is_name_of_this_computer

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOSTILE = "\"'><script>alert(1)</script>"


def store(view: View[Any], objects: list[Object]) -> Store[Any]:
    made: Store[Any] = Store(view)
    source = made.source("")
    events: list[Event] = [ListBegins(1), *map(Present, objects), ListEnds(1)]
    for event in events:
        source.apply(event)
    return made


def managed(name: str, *, resources: list[Object] | None = None, message: str = "fine", secret: str = "s") -> Object:
    reported = conditions(healthy="False", reason="R", message=message, lastTransitionTime="2026-01-01T11:00:00Z")
    status = {"observedGeneration": 1, "resources": resources or []}
    meta = {"generation": 1, "resourceVersion": "5"}
    spec = {"secretRefs": [{"name": secret}]}
    return managed_resource(f"garden/{name}", spec=spec, conditions=reported, status=status, **meta)


def reference(name: str, kind: str = "Deployment", api_version: str = "apps/v1") -> Object:
    return {"apiVersion": api_version, "kind": kind, "namespace": "shop", "name": name}


def lister(*objects: Object, leading: LeaderState | None = None, changes: RecentChanges | None = None) -> Lister:
    made = Lister(
        managed_resources=store(MANAGED_RESOURCES_VIEW, list(objects)),
        secrets=store(View(SECRETS, str), [{"metadata": {"namespace": "garden", "name": "s", "resourceVersion": "1"}}]),
        changes=changes or RecentChanges(limit=1000),
        resource_class="",
        lease="garden/lease",
    )
    if leading is not None:
        made.lead(leading)
    return made


def leading(
    findings: Mapping[str, str], *, secrets: Mapping[str, str] | None = None, manifest: Object | None = None
) -> LeaderState:
    """Args: findings: what is wrong, by the name of the object; one that is called `unseen` is not known."""

    def unhealthy(wanted: Reference) -> Finding | None:
        if wanted.name == "unseen":
            raise NotKnown
        wrong = findings.get(wanted.name)
        return Finding(wanted, "R", f"{wanted.kind} {wanted} is unhealthy: {wrong}") if wrong else None

    return LeaderState(
        secrets_of_objects=lambda _: secrets or {},
        manifest_of=lambda *_: manifest,
        is_being_deleted=lambda found: found["name"] == "leaving",
        has_finished=lambda found: found["name"] == "over",
        unhealthy=unhealthy,
        progressing=lambda _: None,
        manual=lambda wanted: f"{wanted.kind} {wanted}: delete pods" if wanted.name == "by-hand" else "",
        pods_of=lambda wanted: 3 if wanted.name == "web" else None,
    )


def words(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def listed(known: Lister, **parameters: str) -> str:
    listing = Listing(Query.of(parameters))
    listing.feed(found for _, found in known.managed_resources.items())
    return list_page(known, listing, now=NOW)


async def test_the_list_of_thousands_is_as_short_as_a_page() -> None:
    known = lister(*(managed(f"mr-{number:04}", message="m" * 30_000) for number in range(2000)))
    page = listed(known, page="3")
    assert page.count("<tr") == 101
    assert "201 to 300 of 2,000 ManagedResources" in page
    assert len(page) < 200_000
    assert 'href="/?page=4"' in page


async def test_what_objects_and_queries_hold_is_text() -> None:
    known = lister(managed("a", message=HOSTILE, secret=HOSTILE, resources=[reference(HOSTILE, HOSTILE, HOSTILE)]))
    name, changed = Key(HOSTILE, HOSTILE), reference(HOSTILE, HOSTILE)
    known.changes.add([object_change(name, Action.CHANGED, changed, at=1.0, fields=[FieldChange(HOSTILE, "")])])
    pages = [
        listed(known, q=HOSTILE, namespace=HOSTILE, **{"class": HOSTILE}),
        listed(known),
        changes_page(known, ChangesQuery.of({"q": HOSTILE}), now=NOW),
        changes_page(known, ChangesQuery(), now=NOW),
        *(one_page(known, found, now=NOW) for _, found in known.managed_resources.items()),
    ]
    for page in pages:
        assert "<script>" not in page
        assert "&lt;script&gt;" in page
        assert page.count("<script") == 1


async def test_objects_are_a_tree_below_their_secrets() -> None:
    resources = [reference(name) for name in ("web", "api", "unseen", "leaving", "over", "gone", "left")]
    secrets = {f"apps/Deployment/shop/{name}": "s" for name in ("web", "api", "unseen", "leaving", "over", "gone")}
    message = 'Required Deployment "gone" in namespace "shop" is missing'
    obj = managed("a", resources=resources, message=message)
    page = words(one_page(lister(obj, leading=leading({"api": "too slow"}, secrets=secrets)), obj, now=NOW))
    assert "Secret s 6 Deployment shop/web ✓ Healthy 3 pods Deployment shop/api ! Unhealthy too slow" in page
    assert "Deployment shop/unseen ? Unknown not seen by watches" in page
    assert "Deployment shop/leaving − Deleting" in page
    assert "Deployment shop/over ✓ Completed it has finished, and its time to live has expired" in page
    assert "Deployment shop/gone ✕ Missing" in page
    assert "In no Secret any more 1 Deployment shop/left ✓ Healthy" in page
    assert "look at Deployment/shop/api" in page


async def test_an_object_reports_what_is_left_to_a_person_and_a_failed_job_is_not_completed() -> None:
    obj = managed("a", resources=[reference("by-hand"), reference("over")])
    page = words(one_page(lister(obj, leading=leading({"over": "it has failed"})), obj, now=NOW))
    assert "Deployment shop/by-hand ✓ Healthy delete pods" in page
    assert "Deployment shop/over ! Unhealthy it has failed" in page


async def test_a_standby_lists_objects_and_reports_what_it_does_not_know() -> None:
    obj = managed("a", resources=[reference("web")], secret="other")
    page = words(one_page(lister(obj), obj, now=NOW))
    assert "Secret other ✕ Missing" in page
    assert "Objects 1 Deployment shop/web" in page
    assert "Healthy 3 pods" not in page
    assert "the holder of Lease garden/lease" in page
    assert "What was done lately" not in page


async def test_without_any_the_list_shows_how_to_make_the_first() -> None:
    known = lister()
    known.resource_class = "seed"
    assert "kubectl mr create NAME -n NAMESPACE -f DIRECTORY --class seed --wait" in words(listed(known))
    assert "Make the first one" not in listed(lister(managed("a")), q="nothing like it")


async def test_that_nothing_progresses_is_no_success() -> None:
    obj = managed("a")
    obj["status"]["conditions"] = conditions(applied="True", progressing="False")
    page = words(listed(lister(obj)))
    assert "✓ True" in page
    assert "– False" in page


EVENT = {"type": "Warning", "reason": "Failed", "message": HOSTILE, "count": 3, "lastTimestamp": "2026-01-01T11:00:00Z"}
POD: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1"}, "status": {"phase": "Pending"}}


async def shown(live: LiveObject, *, shows_values: bool = True, findings: Mapping[str, str] | None = None) -> str:
    obj = managed("a", resources=[reference("web")])
    known = lister(obj, leading=leading(findings) if findings is not None else None)
    return await object_page(known, obj, reference("web"), live, shows_values=shows_values, now=NOW)


async def test_a_page_of_an_object_has_its_pods_events_and_fields() -> None:
    live = {
        **reference("web"),
        "metadata": {"name": "web", "managedFields": [{"manager": "m"}]},
        "spec": {"x": HOSTILE},
    }
    page = await shown(LiveObject(live, events=Listed([EVENT]), pods=Listed([POD], is_cut=True)), findings={})
    reported = words(page)
    assert "Deployment shop/ web ✓ Healthy" in reported
    assert "The first 1 pod" in reported
    assert 'web-1 ! Unhealthy Pending 0 – pod is in invalid phase "Pending"' in reported
    assert f"1 Event Last seen Type Reason Times Message 60m Warning Failed 3 {HOSTILE}" in reported
    assert "managedFields" not in page
    assert "<script>" not in page
    assert "alert(1)" in page[page.index("<pre") :]
    assert "too slow" in await shown(LiveObject(live), findings={"web": "too slow"}), "as the list states"


async def test_fields_are_shown_on_loopback_only_and_problems_in_their_place() -> None:
    live = LiveObject({**reference("web"), "data": {"key": "value"}}, events=Listed(problem="They can't be read: no"))
    page = await shown(live, shows_values=False)
    assert "value" not in page[page.index("<main") :]
    assert "only where the page listens on loopback" in page
    assert "They can't be read: no" in words(page)
    assert "It does not exist." in words(await shown(LiveObject(None, "It does not exist.")))


async def test_the_difference_to_the_manifest_is_shown_without_what_the_live_object_has_beyond_it() -> None:
    obj, named = managed("a", resources=[reference("web")]), {"name": "web"}
    manifest = {**reference("web"), "metadata": named, "spec": {"replicas": 2, "paused": False, "selector": {}}}
    live = LiveObject({**reference("web"), "metadata": named, "spec": {"replicas": 5, "paused": False, "x": HOSTILE}})
    known = lister(obj, leading=leading({}, manifest=manifest))
    page = words(await object_page(known, obj, reference("web"), live, shows_values=True, now=NOW))
    assert "Fields that are not as in the manifest Field Live Manifest spec.replicas 5 2 Live object" in page
    page = words(await object_page(known, obj, reference("web"), live, shows_values=False, now=NOW))
    assert "spec.replicas" not in page
    ignored = '[{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}]'
    obj["metadata"]["annotations"] = {"resources.gardener.cloud/ignore-differences": ignored}
    page = words(await object_page(known, obj, reference("web"), live, shows_values=True, now=NOW))
    assert "All fields are as in the manifest." in page


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({"kind": "Secret", "data": {"password": "b2xk"}}, "# Secrets are not shown."),
        ({"kind": "ConfigMap", "data": {"k": "x" * 200_000}}, "# More than 128 KiB; see kubectl get -o yaml."),
        ({"kind": "A", "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "b2xk"}}},
         "kind: A\nmetadata:\n  annotations: {}\n"),
    ],
)  # fmt: skip
def test_some_fields_are_never_shown(obj: Object, expected: str) -> None:
    assert as_yaml(obj) == expected


def test_only_what_is_listed_has_a_page() -> None:
    obj = managed("a", resources=[reference("web")])
    assert find_reference(obj, "apps/Deployment/shop/web") == reference("web")
    assert find_reference(obj, "/Secret/shop/web") is None


async def test_many_objects_are_cut_off() -> None:
    obj = managed("a", resources=[reference(f"d{number}") for number in range(3000)])
    page = one_page(lister(obj, leading=leading({})), obj, now=NOW)
    assert page.count("<li>") < 1100
    assert "2,000 more are not shown." in page


async def test_a_time_that_is_none_and_one_to_come_do_no_harm() -> None:
    obj = managed("a")
    obj["status"]["conditions"][0] |= {"lastTransitionTime": "yesterday", "lastUpdateTime": "2027-01-01T00:00:00Z"}
    assert "0s" in words(one_page(lister(obj), obj, now=NOW))


async def test_a_list_that_is_not_complete_reports_so() -> None:
    stores: Any = {"managed_resources": Store(MANAGED_RESOURCES_VIEW), "secrets": Store(View(SECRETS, str))}
    known = Lister(**stores, changes=RecentChanges(limit=0), resource_class="", lease="")
    assert "The first list of ManagedResources is not complete yet" in listed(known)
    await asyncio.sleep(0)


def test_it_is_off_unless_it_gets_a_port_and_then_on_loopback() -> None:
    page = ResourceManagerConfiguration().server.status_page
    assert (page.port, page.bind_address) == (0, "127.0.0.1")


@pytest.mark.parametrize(
    ("host", "accepted"),
    [
        *((host, True) for host in ("localhost", "LOCALHOST:9000", "127.0.0.1", "127.0.0.1:1", "[::1]:8082", "[::1]")),
        *((host, False) for host in ("", ":8082", "example.com", "localhost.example.com:80", "localhost:")),
        *((host, False) for host in ("localhost:80@example.com", "10.1.2.3:8082", "[::ffff:10.1.2.3]:8082")),
    ],
)
def test_only_names_of_this_computer_are_accepted(host: str, accepted: bool) -> None:
    assert is_name_of_this_computer(host) is accepted


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        *((address, True) for address in ("127.0.0.1", "::1", "localhost")),
        *((address, False) for address in ("0.0.0.0", "::", "", "pod")),
    ],
)
def test_loopback_is_what_others_cannot_reach(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback
