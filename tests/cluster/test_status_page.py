"""The status page of an agent, over HTTP: what it shows, what it does not show, and whom it answers."""

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.status_page import MARKER, SCRIPT, PageWorld, filled
from localprocesses.ports import free_port


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[PageWorld]:
    with filled(cluster) as world:
        world.fill_hostile()
        hostile = {f"{world.garden}/{name}" for name in ("hostile-kind", "hostile-reason")}
        eventually(lambda: hostile <= listed(world.page("/")), state=lambda: world.page("/"))
        eventually(lambda: "hostile-kind" in world.page("/?state=failed"), state=lambda: world.page("/"))
        yield world


def words(page: str) -> str:
    """What can be read on it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def links(page: str) -> set[str]:
    return {unescape(link) for link in re.findall(r'<a [^>]*href="(/[^"]*)"', page)}


def listed(page: str) -> set[str]:
    return {path.removeprefix("/managedresources/") for path in links(page) if path.startswith("/managedresources/")}


def table(page: str) -> str:
    return words(page[page.index("<table") : page.rindex("</table>")])


# --- what is shown


def test_the_list_shows_each_managed_resource_with_its_state_and_why(world: PageWorld) -> None:
    page = world.page("/")
    assert {f"{namespace}/{name}" for namespace, name in world.states()} == listed(page)
    reported = table(page)
    assert 'CannotReadSecret: Secret "vpn-manifests" not found' in reported
    assert "by jane: migration of the zone, see the run book" in reported
    assert "This replica: leader" in words(page)


def test_query_parameters_search_and_filter(world: PageWorld) -> None:
    def found(query: str) -> set[str]:
        return listed(world.page(f"/?{query}"))

    assert found(f"namespace={world.berlin}&state=ready") == {
        f"{world.berlin}/coredns",
        f"{world.berlin}/metrics-server",
    }
    assert found(f"q=gpu&class={world.resource_class}") == {f"{world.berlin}/gpu-operator"}
    assert found(f"q={world.prefix}+suspended&namespace={world.paris}") == {f"{world.paris}/node-local-dns"}
    assert found(f"q=ConfigMap/{world.garden}/zones") == {f"{world.garden}/storage-classes"}, "by an object"
    assert found("q=vpn-manifests") == {f"{world.paris}/vpn"}, "by a Secret"
    assert found("q=there-is-no-such-thing") == set()
    assert f"{world.berlin}/gpu-operator" in found(f"state=failed&q={world.prefix}")


def test_one_managed_resource_shows_conditions_and_the_tree_of_its_objects(world: PageWorld) -> None:
    path = f"/managedresources/{world.berlin}/coredns"
    healthy = f"Deployment {world.berlin}/coredns ✓ Healthy 2 pods"
    eventually(lambda: healthy in words(world.page(path)), state=lambda: words(world.page(path)))
    page = words(world.page(path))
    assert "ResourcesApplied ✓ True" in page
    assert "ApplySucceeded All resources are applied." in page
    assert "Secret coredns-manifests 3" in page
    assert f"Secret {world.berlin}/keys ✓ Healthy" in page
    unhealthy = words(world.page(f"/managedresources/{world.berlin}/gpu-operator"))
    assert 'gpu-operator ! Unhealthy condition "Available" has invalid status False' in unhealthy
    assert f"What to do look at Deployment/{world.berlin}/gpu-operator" in unhealthy


def test_what_is_missing_or_on_its_way_out_is_reported(world: PageWorld) -> None:
    vpn = words(world.page(f"/managedresources/{world.paris}/vpn"))
    assert "Secret vpn-manifests ✕ Missing" in vpn
    assert "What to do create the Secret" in vpn
    leaving = f"/managedresources/{world.paris}/old-dashboard"
    reported = f"ConfigMap {world.paris}/dashboard − Deleting"
    eventually(lambda: reported in words(world.page(leaving)), state=lambda: words(world.page(leaving)))


def test_drift_that_was_repaired_is_reported_with_the_paths_of_the_fields(world: PageWorld) -> None:
    reported = table(world.page("/changes?only=drift"))
    assert f"{world.berlin}/ coredns ! repaired ConfigMap {world.berlin}/corefile data.zone" in reported
    assert f"{world.garden}/ dns-policies ! made again ConfigMap {world.garden}/policy-2" in reported
    assert "created" not in reported
    own = words(world.page(f"/managedresources/{world.berlin}/coredns"))
    assert f"! repaired ConfigMap {world.berlin}/corefile data.zone" in own
    assert f"− deleted ConfigMap {world.paris}/dashboard" in table(world.page("/changes?q=old-dashboard"))


def test_a_replica_that_stands_by_shows_what_it_knows(world: PageWorld) -> None:
    port = free_port()
    with world.agent(page_port=port) as standby:
        standby.wait_until_ready()
        page = words(world.page("/", port=port))
        assert "This replica: standby" in page
        assert f"the holder of Lease {world.garden}/gardener-resource-manager" in page
        own = words(world.page(f"/managedresources/{world.berlin}/coredns", port=port))
        assert "ResourcesApplied ✓ True" in own
        assert f"Deployment {world.berlin}/coredns" in own
        assert "Healthy 2 pods" not in own


def object_path(world: PageWorld, owner: str, object_key: str) -> str:
    return f"/managedresources/{world.berlin}/{owner}/objects/{quote(object_key, safe='')}"


def test_an_object_is_shown_as_it_is_with_its_pods_and_events(world: PageWorld) -> None:
    path = object_path(world, "gpu-operator", f"apps/Deployment/{world.berlin}/gpu-operator")
    assert path in links(world.page(f"/managedresources/{world.berlin}/gpu-operator"))
    page = world.page(path)
    reported = words(page)
    assert f"Deployment {world.berlin}/ gpu-operator ! Unhealthy" in reported
    assert "1 pod Pod Health Phase Node Restarts Age Message gpu-operator-" in reported
    assert "ScalingReplicaSet" in reported
    assert f"value: {MARKER}" in page
    secret = world.page(object_path(world, "coredns", f"/Secret/{world.berlin}/keys"))
    assert "# Secrets are not shown." in secret
    assert world.get(object_path(world, "coredns", f"/Secret/{world.berlin}/coredns-manifests"))[0] == 404


# --- what is not


def test_no_page_shows_a_secret_or_the_value_of_a_field(world: PageWorld) -> None:
    seen, left = set[str](), {"/", "/changes"}
    while left:
        path = left.pop()
        seen.add(path)
        page = world.page(path)
        assert "/objects/" in path or MARKER not in page, path
        assert "Secret" not in path or MARKER not in page, path
        assert page.count("<script") == page.count('<script src="/script-') == 1, path
        left |= {link for link in links(page) if link not in seen and "sort=" not in link}
    assert len(seen) > len(world.states())


def test_what_a_user_wrote_into_the_cluster_is_text_on_the_page(world: PageWorld) -> None:
    page = world.page("/?q=hostile")
    assert listed(page) == {f"{world.garden}/hostile-kind", f"{world.garden}/hostile-reason"}
    assert SCRIPT not in page
    assert SCRIPT in words(page.replace("&lt;", "&amp;lt;").replace("&gt;", "&amp;gt;")).replace("&lt;", "<").replace(
        "&gt;", ">"
    )
    for name in ("hostile-kind", "hostile-reason"):
        own = world.page(f"/managedresources/{world.garden}/{name}")
        assert "<script>alert" not in own
        assert "&lt;script&gt;alert" in own


def test_looking_at_pages_queries_no_api_server(world: PageWorld, audit: Audit) -> None:
    mark = audit.mark()
    for path in links(world.page("/")) | {"/changes"}:
        world.page(path)
    for namespace in world.namespaces:
        agent = "gardener-resource-manager/"
        assert audit.count(since=mark, user_agent=agent, namespace=namespace, verbs=("get", "list")) == {}


# --- whom it answers


@pytest.mark.parametrize("host", ["evil.example.com", "evil.example.com:8082", "127.0.0.1.nip.example", "10.0.0.1", ""])
def test_a_name_that_is_not_of_this_computer_is_refused(host: str, world: PageWorld) -> None:
    status, _, body = world.get("/", host=host)
    assert status == 421
    assert "localhost" in body
    assert world.prefix not in body


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9000", "LocalHost:1", "127.0.0.1:8082", "[::1]:8082", "[::1]"]
)
def test_the_port_may_be_any_since_it_is_forwarded(host: str, world: PageWorld) -> None:
    assert world.get("/changes", host=host)[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_written(method: str, world: PageWorld) -> None:
    status, headers, _ = world.get("/", method=method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")


def test_head_answers_without_a_body(world: PageWorld) -> None:
    status, headers, body = world.get("/", method="HEAD")
    assert (status, body) == (200, "")
    assert headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize("path", ["/", "/changes", "/nothing", "/managedresources/a/b", "/managedresources/%00/%2F"])
def test_headers_keep_browsers_strict(path: str, world: PageWorld) -> None:
    status, headers, _ = world.get(path)
    assert status == (200 if path in {"/", "/changes"} else 404)
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "set-cookie" not in headers


def test_style_script_and_icon_are_served_and_may_be_kept(world: PageWorld) -> None:
    paths = set(re.findall(r'(?:href|src)="(/(?:style|script|icon)-[^"]*)"', world.page("/")))
    assert len(paths) == 3
    for path in paths:
        status, headers, body = world.get(path)
        assert (status, "immutable" in headers["cache-control"]) == (200, True)
        assert body
